//! Scripts and functions.

use crate::row::row;
use crate::shape;
use crate::{Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// Scripts and functions.
    ScriptingCommand, Scripting;

    /// Run a script.
    #[args = "script numkeys:int [key@0+] [arg+]"]
    #[reply = "any"]
    Eval = row("EVAL", -3, "2.6.0")
        .flags("noscript stale skip_monitor no_mandatory_keys")
        .acl("scripting")
        .counted_keys(2, "RW access update")
        .runs_scripts();

    /// Run a script that changes nothing.
    #[args = "script numkeys:int [key@0+] [arg+]"]
    #[reply = "any"]
    EvalRo = row("EVAL_RO", -3, "7.0.0")
        .flags("readonly noscript stale skip_monitor no_mandatory_keys")
        .acl("scripting")
        .counted_keys(2, "RO access")
        .runs_scripts();

    /// Run a script by the hash of its text.
    #[args = "sha1 numkeys:int [key@0+] [arg+]"]
    #[reply = "any"]
    Evalsha = row("EVALSHA", -3, "2.6.0")
        .flags("noscript stale skip_monitor no_mandatory_keys")
        .acl("scripting")
        .counted_keys(2, "RW access update")
        .runs_scripts();

    /// Run a script that changes nothing by the hash of its text.
    #[args = "sha1 numkeys:int [key@0+] [arg+]"]
    #[reply = "any"]
    EvalshaRo = row("EVALSHA_RO", -3, "7.0.0")
        .flags("readonly noscript stale skip_monitor no_mandatory_keys")
        .acl("scripting")
        .counted_keys(2, "RO access")
        .runs_scripts();

    /// Call a function.
    #[args = "function numkeys:int [key@0+] [arg+]"]
    #[reply = "any"]
    Fcall = row("FCALL", -3, "7.0.0")
        .flags("noscript stale skip_monitor no_mandatory_keys")
        .acl("scripting")
        .counted_keys(2, "RW access update")
        .runs_scripts();

    /// Call a function that changes nothing.
    #[args = "function numkeys:int [key@0+] [arg+]"]
    #[reply = "any"]
    FcallRo = row("FCALL_RO", -3, "7.0.0")
        .flags("readonly noscript stale skip_monitor no_mandatory_keys")
        .acl("scripting")
        .counted_keys(2, "RO access")
        .runs_scripts();

    /// Manage libraries of functions.
    Function = row("FUNCTION", -2, "7.0.0") => {
        /// Remove a library.
        #[args = "library-name"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        FunctionDelete = row("FUNCTION DELETE", 3, "7.0.0")
            .flags("write noscript")
            .acl("scripting")
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);
        /// Serialise all libraries.
        #[reply = "bulk"]
        #[complexity = "O(N)"]
        FunctionDump = row("FUNCTION DUMP", 2, "7.0.0").flags("noscript").acl("scripting").retry_safe();
        /// Remove all libraries.
        #[args = "[async<ASYNC|SYNC>]"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        FunctionFlush = row("FUNCTION FLUSH", -2, "7.0.0")
            .flags("write noscript")
            .acl("scripting")
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        FunctionHelp = row("FUNCTION HELP", 2, "7.0.0")
            .flags("loading stale")
            .acl("scripting")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Stop the function that is running.
        #[reply = "ok"]
        #[complexity = "O(1)"]
        FunctionKill = row("FUNCTION KILL", 2, "7.0.0")
            .flags("noscript allow_busy")
            .acl("scripting")
            .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
            // On a shared connection it would wait behind the function that it is to stop.
            .lane(Lane::Script);
        /// Describe the libraries.
        #[args = "[LIBRARYNAME/library-name-pattern] [WITHCODE]"]
        #[reply = "[map<any>]"]
        #[complexity = "O(N)"]
        FunctionList = row("FUNCTION LIST", -2, "7.0.0").replies(&shape::LIBRARIES)
            .flags("noscript")
            .acl("scripting")
            .tips(&["nondeterministic_output_order"])
            .retry_safe();
        /// Load a library from its source.
        #[args = "[REPLACE] function-code"]
        #[reply = "bulk"]
        #[complexity = "O(1)"]
        FunctionLoad = row("FUNCTION LOAD", -3, "7.0.0")
            .flags("write denyoom noscript")
            .acl("scripting")
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);
        /// Bring back serialised libraries.
        #[args = "serialized-value [policy<FLUSH|APPEND|REPLACE>]"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        FunctionRestore = row("FUNCTION RESTORE", -3, "7.0.0")
            .flags("write denyoom noscript")
            .acl("scripting")
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);
        /// Describe the function that is running and the engines.
        #[reply = "map<any>"]
        #[complexity = "O(1)"]
        FunctionStats = row("FUNCTION STATS", 2, "7.0.0").replies(&shape::RUNNING)
            .flags("noscript allow_busy")
            .acl("scripting")
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
            .policy(RequestPolicy::AllShards, ResponsePolicy::Busiest)
            .retry_safe();
    };

    /// Manage scripts.
    Script = row("SCRIPT", -2, "2.6.0") => {
        /// Choose how scripts of this connection are debugged.
        #[args = "mode<YES|SYNC|NO>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        #[changes = "connection"]
        ScriptDebug = row("SCRIPT DEBUG", 3, "3.2.0").flags("noscript").acl("scripting").lane(Lane::Dedicated);
        /// Tell which scripts are in the cache.
        #[args = "sha1+"]
        #[reply = "[flag]"]
        #[complexity = "O(N)"]
        ScriptExists = row("SCRIPT EXISTS", -3, "2.6.0")
            .flags("noscript")
            .acl("scripting")
            .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
            .retry_safe();
        /// Empty the cache of scripts.
        #[args = "[async<ASYNC|SYNC>^6.2.0]"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ScriptFlush = row("SCRIPT FLUSH", -2, "2.6.0")
            .flags("noscript")
            .acl("scripting")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .lane(Lane::Script);
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        ScriptHelp = row("SCRIPT HELP", 2, "5.0.0")
            .flags("loading stale")
            .acl("scripting")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Stop the script that is running.
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ScriptKill = row("SCRIPT KILL", 2, "2.6.0")
            .flags("noscript allow_busy")
            .acl("scripting")
            .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
            // On a shared connection it would wait behind the script that it is to stop.
            .lane(Lane::Script);
        /// Put a script into the cache.
        #[args = "script"]
        #[reply = "bulk"]
        #[complexity = "O(N)"]
        ScriptLoad = row("SCRIPT LOAD", 3, "2.6.0")
            .flags("noscript stale")
            .acl("scripting")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .retry_safe()
            .lane(Lane::Script);
        /// Tell the text of a script in the cache (Valkey).
        #[args = "sha1"]
        #[reply = "bulk"]
        #[complexity = "O(1)"]
        ScriptShow = row("SCRIPT SHOW", 3, "8.0.0")
            .flags("noscript stale")
            .acl("scripting")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
    };
}
