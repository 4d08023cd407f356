//! The server itself.

use crate::row::{Way, row};
use crate::shape;
use crate::secrets;
use crate::{Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// The server itself.
    ServerCommand, Server;

    /// Manage users and what they may do.
    Acl = row("ACL", -2, "6.0.0").lane(Lane::Local) => {
        /// List the command categories, or the commands of one.
        #[args = "[categoryname]"]
        #[reply = "[bulk]"]
        #[complexity = "O(1)"]
        AclCat = row("ACL CAT", -2, "6.0.0").flags("noscript loading stale").lane(Lane::Local);
        /// Remove users and close their connections.
        #[args = "username+"]
        #[reply = "int"]
        #[complexity = "O(1)"]
        AclDeluser = row("ACL DELUSER", -3, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Tell whether a user may run a command, without running it.
        #[args = "username command [arg+]"]
        #[reply = "any"]
        #[complexity = "O(1)"]
        AclDryrun = row("ACL DRYRUN", -4, "7.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Make a random password.
        #[args = "[bits:int]"]
        #[reply = "bulk"]
        #[complexity = "O(1)"]
        AclGenpass = row("ACL GENPASS", -2, "6.0.0").flags("noscript loading stale").lane(Lane::Local);
        /// Show the rules of a user.
        #[args = "username"]
        #[reply = "map<any>?"]
        #[complexity = "O(N)"]
        AclGetuser = row("ACL GETUSER", 3, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        AclHelp = row("ACL HELP", 2, "6.0.0").flags("loading stale").lane(Lane::Local);
        /// Show every user as a line of the ACL file.
        #[reply = "[bulk]"]
        #[complexity = "O(N)"]
        AclList = row("ACL LIST", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Read the users again from the ACL file.
        #[reply = "ok"]
        #[complexity = "O(N)"]
        AclLoad = row("ACL LOAD", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Show or clear the latest refusals.
        #[args = "[operation<count:int|RESET>]"]
        #[reply = "[map<any>]; RESET -> ok"]
        #[complexity = "O(N)"]
        AclLog = row("ACL LOG", -2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Write the users to the ACL file.
        #[reply = "ok"]
        #[complexity = "O(N)"]
        AclSave = row("ACL SAVE", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Make a user or change its rules.
        #[args = "username [rule+]"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        AclSetuser = row("ACL SETUSER", -3, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// List the names of users.
        #[reply = "[bulk]"]
        #[complexity = "O(N)"]
        AclUsers = row("ACL USERS", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Tell the user of this connection.
        #[reply = "bulk"]
        #[complexity = "O(1)"]
        AclWhoami = row("ACL WHOAMI", 2, "6.0.0").flags("noscript loading stale").lane(Lane::Local);
    };

    /// Rewrite the append-only file in the background.
    #[reply = "simple"]
    #[complexity = "O(1)"]
    Bgrewriteaof = row("BGREWRITEAOF", 1, "1.0.0")
        .flags("admin noscript no_async_loading")
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Write a snapshot in the background.
    #[args = "[SCHEDULE^3.2.2]"]
    #[reply = "simple"]
    #[complexity = "O(1)"]
    Bgsave = row("BGSAVE", -1, "1.0.0")
        .flags("admin noscript no_async_loading")
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Describe every command.
    #[reply = "[any]"]
    #[complexity = "O(N)"]
    Command = row("COMMAND", -1, "2.8.13").replies(&shape::COMMANDS)
        .flags("loading stale")
        .acl("connection")
        .tips(&["nondeterministic_output_order"])
        .lane(Lane::Local) => {
        /// Count the commands.
        #[reply = "int"]
        #[complexity = "O(1)"]
        CommandCount = row("COMMAND COUNT", 2, "2.8.13")
            .flags("loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Document commands.
        #[args = "[command-name+]"]
        #[reply = "map<any>"]
        #[complexity = "O(N)"]
        CommandDocs = row("COMMAND DOCS", -2, "7.0.0").replies(&shape::COMMAND_DOCS)
            .flags("loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output_order"])
            .lane(Lane::Local);
        /// Tell which arguments of a request are keys.
        #[reply = "[bulk]"]
        #[complexity = "O(N)"]
        CommandGetkeys = row("COMMAND GETKEYS", -4, "2.8.13")
            .flags("loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Tell which arguments of a request are keys, and how each is used.
        #[reply = "[(bulk {simple})]"]
        #[complexity = "O(N)"]
        CommandGetkeysandflags = row("COMMAND GETKEYSANDFLAGS", -4, "7.0.0").replies(&shape::KEYS_AND_FLAGS)
            .flags("loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        CommandHelp = row("COMMAND HELP", 2, "5.0.0").flags("loading stale").acl("connection").lane(Lane::Local);
        /// Describe the named commands.
        #[args = "[command-name+]"]
        #[reply = "[any]"]
        #[complexity = "O(N)"]
        CommandInfo = row("COMMAND INFO", -2, "2.8.13").replies(&shape::COMMANDS)
            .flags("loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output_order"])
            .lane(Lane::Local);
        /// List the names of commands.
        #[args = "[FILTERBY/filterby<MODULE/module-name|ACLCAT/category|PATTERN/pattern:pattern>]"]
        #[reply = "[bulk]"]
        #[complexity = "O(N)"]
        CommandList = row("COMMAND LIST", -2, "7.0.0")
            .flags("loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output_order"])
            .lane(Lane::Local);
    };

    /// See which commands were slow, or had large requests or replies (Valkey).
    Commandlog = row("COMMANDLOG", -2, "8.1.0") => {
        /// List commands of one of the logs.
        #[args = "count:int type"]
        #[reply = "[any]"]
        #[complexity = "O(N)"]
        CommandlogGet = row("COMMANDLOG GET", 4, "8.1.0")
            .flags("admin loading stale")
            .tells_of_keys()
            .tips(&["request_policy:all_nodes", "nondeterministic_output"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Newest)
            .retry_safe();
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        CommandlogHelp = row("COMMANDLOG HELP", 2, "8.1.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Count the entries of one of the logs.
        #[args = "type"]
        #[reply = "int"]
        #[complexity = "O(1)"]
        CommandlogLen = row("COMMANDLOG LEN", 3, "8.1.0")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
            .retry_safe();
        /// Empty one of the logs.
        #[args = "type"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        CommandlogReset = row("COMMANDLOG RESET", 3, "8.1.0")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]);
    };

    /// Read and change settings.
    Config = row("CONFIG", -2, "2.0.0") => {
        /// Show the settings whose names match patterns.
        #[args = "parameter(parameter)+"]
        #[reply = "map<bulk>"]
        #[complexity = "O(N)"]
        ConfigGet = row("CONFIG GET", -3, "2.0.0").replies(&shape::MAP)
            .flags("admin noscript loading stale")
            .retry_safe()
            .lane_of(Lane::Admin, secrets::lane_of_config_get);
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        ConfigHelp = row("CONFIG HELP", 2, "5.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Set the counters of INFO back to zero.
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ConfigResetstat = row("CONFIG RESETSTAT", 2, "2.0.0")
            .flags("admin noscript loading stale")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Write the settings to the configuration file.
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ConfigRewrite = row("CONFIG REWRITE", 2, "2.8.0")
            .flags("admin noscript loading stale")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Change settings while running.
        #[args = "parameter_value(parameter value)+"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ConfigSet = row("CONFIG SET", -4, "2.0.0")
            .flags("admin noscript loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]);
    };

    /// Count the keys of the database.
    #[reply = "int"]
    #[complexity = "O(1)"]
    Dbsize = row("DBSIZE", 1, "1.0.0")
        .flags("readonly fast")
        .acl("keyspace")
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]);

    /// Poke at the server's insides.
    #[reply = "any"]
    Debug = row("DEBUG", -2, "1.0.0")
        .flags("admin noscript loading stale")
        .policy(RequestPolicy::OneShard, ResponsePolicy::AllSucceeded)
        .way_of(|args| {
            const OF_KEYS: [&str; 6] = ["OBJECT", "DIGEST-VALUE", "SDSLEN", "ZIPLIST", "LISTPACK", "QUICKLIST"];
            const OF_ALL: [&str; 7] = [
                "SET-ACTIVE-EXPIRE", "JMAP", "PAUSE-CRON", "QUICKLIST-PACKED-THRESHOLD", "SET-DISABLE-DENY-SCRIPTS",
                "DICT-RESIZING", "REPLYBUFFER",
            ];
            let is = |name: &&str| args.at(1).eq_ignore_ascii_case(name.as_bytes());
            match args.len() {
                0 | 1 => None,
                3.. if OF_KEYS.iter().any(is) => Some(Way::KeysFrom(2)),
                _ => OF_ALL.iter().any(is).then_some(Way::AllNodes),
            }
        })
        .internal();

    /// Hand over from this primary to one of its replicas.
    #[args = "[TO/target(host port:int [FORCE])] [ABORT] [TIMEOUT/milliseconds:int]"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    Failover = row("FAILOVER", -1, "6.2.0").flags("admin noscript stale");

    /// Delete every key of every database.
    #[args = "[async<ASYNC^4.0.0|SYNC^6.2.0>]"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Flushall = row("FLUSHALL", -1, "1.0.0")
        .flags("write")
        .acl("keyspace dangerous")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);

    /// Delete every key of the database.
    #[args = "[async<ASYNC^4.0.0|SYNC^6.2.0>]"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Flushdb = row("FLUSHDB", -1, "1.0.0")
        .flags("write")
        .acl("keyspace dangerous")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);

    /// Describe the server's state.
    #[args = "[section+]"]
    #[reply = "text"]
    #[complexity = "O(1)"]
    Info = row("INFO", -1, "1.0.0").replies(&shape::TEXT)
        .flags("loading stale")
        .acl("dangerous")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Sections)
        .retry_safe();

    /// Tell when the last snapshot was finished.
    #[reply = "int"]
    #[complexity = "O(1)"]
    Lastsave = row("LASTSAVE", 1, "1.0.0")
        .flags("loading stale fast")
        .acl("admin dangerous")
        .tips(&["nondeterministic_output"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Min)
        .retry_safe();

    /// See what made the server slow.
    Latency = row("LATENCY", -2, "2.8.13") => {
        /// Report on latency in prose.
        #[reply = "text"]
        #[complexity = "O(1)"]
        LatencyDoctor = row("LATENCY DOCTOR", 2, "2.8.13").replies(&shape::TEXT)
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Texts)
            .retry_safe();
        /// Draw the latency of an event over time.
        #[args = "event"]
        #[reply = "text"]
        #[complexity = "O(1)"]
        LatencyGraph = row("LATENCY GRAPH", 3, "2.8.13").replies(&shape::TEXT)
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Texts)
            .retry_safe();
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        LatencyHelp = row("LATENCY HELP", 2, "2.8.13")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Show how long commands took, as histograms.
        #[args = "[command+]"]
        #[reply = "map<any>"]
        #[complexity = "O(N)"]
        LatencyHistogram = row("LATENCY HISTOGRAM", -2, "7.0.0").replies(&shape::HISTOGRAMS)
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Figures)
            .retry_safe();
        /// List the samples of an event.
        #[args = "event"]
        #[reply = "[(int int)]"]
        #[complexity = "O(1)"]
        LatencyHistory = row("LATENCY HISTORY", 3, "2.8.13")
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Concat)
            .retry_safe();
        /// List the latest sample of each event.
        #[reply = "[(bulk int int int)]"]
        #[complexity = "O(1)"]
        LatencyLatest = row("LATENCY LATEST", 2, "2.8.13")
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Concat)
            .retry_safe();
        /// Forget the samples of events.
        #[args = "[event+]"]
        #[reply = "int"]
        #[complexity = "O(1)"]
        LatencyReset = row("LATENCY RESET", -2, "2.8.13")
            .flags("admin noscript loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            // It tells how many it reset.
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Sum);
    };

    /// Draw a picture and tell the version.
    #[args = "[VERSION/version:int]"]
    #[reply = "text"]
    Lolwut = row("LOLWUT", -1, "5.0.0").replies(&shape::TEXT)
        .flags("readonly fast")
        .policy(RequestPolicy::AnyNode, ResponsePolicy::Single);

    /// See where memory goes.
    Memory = row("MEMORY", -2, "4.0.0") => {
        /// Report on memory in prose.
        #[reply = "text"]
        #[complexity = "O(1)"]
        MemoryDoctor = row("MEMORY DOCTOR", 2, "4.0.0").replies(&shape::TEXT)
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
            .policy(RequestPolicy::AllShards, ResponsePolicy::Texts)
            .retry_safe();
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        MemoryHelp = row("MEMORY HELP", 2, "4.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Show the allocator's own figures.
        #[reply = "text"]
        MemoryMallocStats = row("MEMORY MALLOC-STATS", 2, "4.0.0").replies(&shape::TEXT)
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
            .policy(RequestPolicy::AllShards, ResponsePolicy::Texts)
            .retry_safe();
        /// Have the allocator give memory back.
        #[reply = "ok"]
        MemoryPurge = row("MEMORY PURGE", 2, "4.0.0")
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);
        /// Show where memory goes.
        #[reply = "map<any>"]
        #[complexity = "O(1)"]
        MemoryStats = row("MEMORY STATS", 2, "4.0.0").replies(&shape::MEMORY)
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
            .policy(RequestPolicy::AllShards, ResponsePolicy::Figures)
            .retry_safe();
        /// Estimate the bytes that a key takes.
        #[args = "key@0 [SAMPLES/count:int]"]
        #[reply = "int?"]
        #[complexity = "O(N)"]
        MemoryUsage = row("MEMORY USAGE", -3, "4.0.0").flags("readonly").key(2, "RO").changes_untold();
    };

    /// Manage modules.
    Module = row("MODULE", -2, "4.0.0") => {
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        ModuleHelp = row("MODULE HELP", 2, "5.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// List the loaded modules.
        #[reply = "[map<any>]"]
        #[complexity = "O(N)"]
        ModuleList = row("MODULE LIST", 2, "4.0.0").replies(&shape::MAPS)
            .flags("admin noscript")
            .tips(&["nondeterministic_output_order"])
            .retry_safe()
            // It shows with what arguments they were loaded.
            .lane(Lane::Admin);
        /// Load a module.
        #[args = "path [arg+]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ModuleLoad = row("MODULE LOAD", -3, "4.0.0")
            .flags("admin noscript no_async_loading")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Load a module with settings and arguments.
        #[args = "path [CONFIG/configs(name value)++] [ARGS/args(arg)+]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ModuleLoadex = row("MODULE LOADEX", -3, "7.0.0")
            .flags("admin noscript no_async_loading")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Unload a module.
        #[args = "name"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ModuleUnload = row("MODULE UNLOAD", 3, "4.0.0")
            .flags("admin noscript no_async_loading")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
    };

    /// Show every command that the server receives.
    #[reply = "ok"]
    #[changes = "connection"]
    Monitor = row("MONITOR", 1, "1.0.0").flags("admin noscript loading stale").lane(Lane::Dedicated);

    /// Begin or resume replication from this server.
    #[args = "replicationid offset:int"]
    #[reply = "any"]
    #[changes = "connection"]
    Psync = row("PSYNC", -3, "2.8.0").flags("admin noscript no_async_loading no_multi").lane(Lane::Dedicated);

    /// Negotiate replication between servers.
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Replconf = row("REPLCONF", -1, "3.0.0")
        .flags("admin noscript loading stale allow_busy")
        .lane(Lane::Dedicated)
        .internal();

    /// Make the server a replica of another, or a primary.
    #[args = "args<host-port(host port:int)|no-one(NO ONE)>"]
    #[reply = "simple"]
    #[complexity = "O(1)"]
    Replicaof = row("REPLICAOF", 3, "5.0.0").flags("admin noscript stale no_async_loading");

    /// Make a key of a slot that is being imported.
    #[args = "\
        key@0 ttl:int serialized-value [REPLACE^3.0.0] [ABSTTL^5.0.0] [IDLETIME/seconds:int^5.0.0] \
        [FREQ/frequency:int^5.0.0]"]
    #[reply = "ok"]
    #[complexity = "O(1)"]
    RestoreAsking = row("RESTORE-ASKING", -4, "3.0.0")
        .flags("write denyoom asking")
        .acl("keyspace dangerous")
        .key(1, "OW update")
        .internal();

    /// Tell the server's part in replication.
    #[reply = "[any]"]
    #[complexity = "O(1)"]
    Role = row("ROLE", 1, "2.8.12").flags("noscript loading stale fast").acl("admin dangerous").retry_safe();

    /// Write a snapshot while all clients wait.
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Save = row("SAVE", 1, "1.0.0")
        .flags("admin noscript no_async_loading no_multi")
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Save if need be, and end the server.
    #[args = "[nosave_save<NOSAVE|SAVE>] [NOW^7.0.0] [FORCE^7.0.0] [ABORT^7.0.0]"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Shutdown = row("SHUTDOWN", -1, "1.0.0")
        .flags("admin noscript loading stale no_multi allow_busy")
        // It has no reply but the end of the connection.
        .lane(Lane::Dedicated);

    /// Make the server a replica of another, or a primary.
    #[args = "args<host-port(host port:int)|no-one(NO ONE)>"]
    #[reply = "simple"]
    #[complexity = "O(1)"]
    Slaveof = row("SLAVEOF", 3, "1.0.0")
        .flags("admin noscript stale no_async_loading")
        .deprecated("5.0.0", "REPLICAOF");

    /// See which commands were slow.
    Slowlog = row("SLOWLOG", -2, "2.2.12") => {
        /// List slow commands.
        #[args = "[count:int]"]
        #[reply = "[any]"]
        #[complexity = "O(N)"]
        SlowlogGet = row("SLOWLOG GET", -2, "2.2.12")
            .flags("admin loading stale")
            .tells_of_keys()
            .tips(&["request_policy:all_nodes", "nondeterministic_output"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Newest)
            .retry_safe();
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        SlowlogHelp = row("SLOWLOG HELP", 2, "6.2.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Count the entries of the slow log.
        #[reply = "int"]
        #[complexity = "O(1)"]
        SlowlogLen = row("SLOWLOG LEN", 2, "2.2.12")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
            .retry_safe();
        /// Empty the slow log.
        #[reply = "ok"]
        #[complexity = "O(N)"]
        SlowlogReset = row("SLOWLOG RESET", 2, "2.2.12")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]);
    };

    /// Swap two databases.
    #[args = "index1:int index2:int"]
    #[reply = "ok"]
    #[complexity = "O(N)"]
    Swapdb = row("SWAPDB", 3, "4.0.0")
        .flags("write fast")
        .acl("keyspace dangerous")
        .databases(|args, each| args.from(1).iter().for_each(each))
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Begin replication the old way.
    #[reply = "any"]
    #[changes = "connection"]
    Sync = row("SYNC", 1, "1.0.0").flags("admin noscript no_async_loading no_multi").lane(Lane::Dedicated);

    /// Tell the server's time.
    #[reply = "(digits digits)"]
    #[complexity = "O(1)"]
    Time = row("TIME", 1, "2.6.0")
        .flags("loading stale fast")
        .tips(&["nondeterministic_output"])
        .lane(Lane::Local);
}
