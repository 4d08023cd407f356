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
        AclCat = row("ACL CAT", -2, "6.0.0").flags("noscript loading stale").lane(Lane::Local);
        /// Remove users and close their connections.
        AclDeluser = row("ACL DELUSER", -3, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Tell whether a user may run a command, without running it.
        AclDryrun = row("ACL DRYRUN", -4, "7.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Make a random password.
        AclGenpass = row("ACL GENPASS", -2, "6.0.0").flags("noscript loading stale").lane(Lane::Local);
        /// Show the rules of a user.
        AclGetuser = row("ACL GETUSER", 3, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// List the subcommands.
        AclHelp = row("ACL HELP", 2, "6.0.0").flags("loading stale").lane(Lane::Local);
        /// Show every user as a line of the ACL file.
        AclList = row("ACL LIST", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Read the users again from the ACL file.
        AclLoad = row("ACL LOAD", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Show or clear the latest refusals.
        AclLog = row("ACL LOG", -2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Write the users to the ACL file.
        AclSave = row("ACL SAVE", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Make a user or change its rules.
        AclSetuser = row("ACL SETUSER", -3, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// List the names of users.
        AclUsers = row("ACL USERS", 2, "6.0.0").flags("admin noscript loading stale").lane(Lane::Local);
        /// Tell the user of this connection.
        AclWhoami = row("ACL WHOAMI", 2, "6.0.0").flags("noscript loading stale").lane(Lane::Local);
    };

    /// Rewrite the append-only file in the background.
    Bgrewriteaof = row("BGREWRITEAOF", 1, "1.0.0")
        .flags("admin noscript no_async_loading")
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Write a snapshot in the background.
    Bgsave = row("BGSAVE", -1, "1.0.0")
        .flags("admin noscript no_async_loading")
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Describe every command.
    Command = row("COMMAND", -1, "2.8.13").replies(&shape::COMMANDS)
        .flags("loading stale")
        .acl("connection")
        .tips(&["nondeterministic_output_order"])
        .lane(Lane::Local) => {
        /// Count the commands.
        CommandCount = row("COMMAND COUNT", 2, "2.8.13")
            .flags("loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Document commands.
        CommandDocs = row("COMMAND DOCS", -2, "7.0.0").replies(&shape::COMMAND_DOCS)
            .flags("loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output_order"])
            .lane(Lane::Local);
        /// Tell which arguments of a request are keys.
        CommandGetkeys = row("COMMAND GETKEYS", -4, "2.8.13")
            .flags("loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// Tell which arguments of a request are keys, and how each is used.
        CommandGetkeysandflags = row("COMMAND GETKEYSANDFLAGS", -4, "7.0.0").replies(&shape::KEYS_AND_FLAGS)
            .flags("loading stale")
            .acl("connection")
            .lane(Lane::Local);
        /// List the subcommands.
        CommandHelp = row("COMMAND HELP", 2, "5.0.0").flags("loading stale").acl("connection").lane(Lane::Local);
        /// Describe the named commands.
        CommandInfo = row("COMMAND INFO", -2, "2.8.13").replies(&shape::COMMANDS)
            .flags("loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output_order"])
            .lane(Lane::Local);
        /// List the names of commands.
        CommandList = row("COMMAND LIST", -2, "7.0.0")
            .flags("loading stale")
            .acl("connection")
            .tips(&["nondeterministic_output_order"])
            .lane(Lane::Local);
    };

    /// See which commands were slow, or had large requests or replies (Valkey).
    Commandlog = row("COMMANDLOG", -2, "8.1.0") => {
        /// List commands of one of the logs.
        CommandlogGet = row("COMMANDLOG GET", 4, "8.1.0")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "nondeterministic_output"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Newest)
            .retry_safe();
        /// List the subcommands.
        CommandlogHelp = row("COMMANDLOG HELP", 2, "8.1.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Count the entries of one of the logs.
        CommandlogLen = row("COMMANDLOG LEN", 3, "8.1.0")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
            .retry_safe();
        /// Empty one of the logs.
        CommandlogReset = row("COMMANDLOG RESET", 3, "8.1.0")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]);
    };

    /// Read and change settings.
    Config = row("CONFIG", -2, "2.0.0") => {
        /// Show the settings whose names match patterns.
        ConfigGet = row("CONFIG GET", -3, "2.0.0").replies(&shape::MAP)
            .flags("admin noscript loading stale")
            .retry_safe()
            .lane_of(Lane::Admin, secrets::lane_of_config_get);
        /// List the subcommands.
        ConfigHelp = row("CONFIG HELP", 2, "5.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Set the counters of INFO back to zero.
        ConfigResetstat = row("CONFIG RESETSTAT", 2, "2.0.0")
            .flags("admin noscript loading stale")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Write the settings to the configuration file.
        ConfigRewrite = row("CONFIG REWRITE", 2, "2.8.0")
            .flags("admin noscript loading stale")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Change settings while running.
        ConfigSet = row("CONFIG SET", -4, "2.0.0")
            .flags("admin noscript loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]);
    };

    /// Count the keys of the database.
    Dbsize = row("DBSIZE", 1, "1.0.0")
        .flags("readonly fast")
        .acl("keyspace")
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]);

    /// Poke at the server's insides.
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
                3.. if OF_KEYS.iter().any(is) => Some(Way::KeyAt(2)),
                _ => OF_ALL.iter().any(is).then_some(Way::AllNodes),
            }
        })
        .internal();

    /// Hand over from this primary to one of its replicas.
    Failover = row("FAILOVER", -1, "6.2.0").flags("admin noscript stale");

    /// Delete every key of every database.
    Flushall = row("FLUSHALL", -1, "1.0.0")
        .flags("write")
        .acl("keyspace dangerous")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);

    /// Delete every key of the database.
    Flushdb = row("FLUSHDB", -1, "1.0.0")
        .flags("write")
        .acl("keyspace dangerous")
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);

    /// Describe the server's state.
    Info = row("INFO", -1, "1.0.0").replies(&shape::TEXT)
        .flags("loading stale")
        .acl("dangerous")
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Sections)
        .retry_safe();

    /// Tell when the last snapshot was finished.
    Lastsave = row("LASTSAVE", 1, "1.0.0")
        .flags("loading stale fast")
        .acl("admin dangerous")
        .tips(&["nondeterministic_output"])
        .policy(RequestPolicy::AllShards, ResponsePolicy::Min)
        .retry_safe();

    /// See what made the server slow.
    Latency = row("LATENCY", -2, "2.8.13") => {
        /// Report on latency in prose.
        LatencyDoctor = row("LATENCY DOCTOR", 2, "2.8.13").replies(&shape::TEXT)
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Texts)
            .retry_safe();
        /// Draw the latency of an event over time.
        LatencyGraph = row("LATENCY GRAPH", 3, "2.8.13").replies(&shape::TEXT)
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Texts)
            .retry_safe();
        /// List the subcommands.
        LatencyHelp = row("LATENCY HELP", 2, "2.8.13")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Show how long commands took, as histograms.
        LatencyHistogram = row("LATENCY HISTOGRAM", -2, "7.0.0").replies(&shape::HISTOGRAMS)
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Figures)
            .retry_safe();
        /// List the samples of an event.
        LatencyHistory = row("LATENCY HISTORY", 3, "2.8.13")
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Concat)
            .retry_safe();
        /// List the latest sample of each event.
        LatencyLatest = row("LATENCY LATEST", 2, "2.8.13")
            .flags("admin noscript loading stale")
            .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Concat)
            .retry_safe();
        /// Forget the samples of events.
        LatencyReset = row("LATENCY RESET", -2, "2.8.13")
            .flags("admin noscript loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            // It tells how many it reset.
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Sum);
    };

    /// Draw a picture and tell the version.
    Lolwut = row("LOLWUT", -1, "5.0.0").replies(&shape::TEXT)
        .flags("readonly fast")
        .policy(RequestPolicy::AnyNode, ResponsePolicy::Single);

    /// See where memory goes.
    Memory = row("MEMORY", -2, "4.0.0") => {
        /// Report on memory in prose.
        MemoryDoctor = row("MEMORY DOCTOR", 2, "4.0.0").replies(&shape::TEXT)
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
            .policy(RequestPolicy::AllShards, ResponsePolicy::Texts)
            .retry_safe();
        /// List the subcommands.
        MemoryHelp = row("MEMORY HELP", 2, "4.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Show the allocator's own figures.
        MemoryMallocStats = row("MEMORY MALLOC-STATS", 2, "4.0.0").replies(&shape::TEXT)
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
            .policy(RequestPolicy::AllShards, ResponsePolicy::Texts)
            .retry_safe();
        /// Have the allocator give memory back.
        MemoryPurge = row("MEMORY PURGE", 2, "4.0.0")
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]);
        /// Show where memory goes.
        MemoryStats = row("MEMORY STATS", 2, "4.0.0").replies(&shape::MEMORY)
            .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
            .policy(RequestPolicy::AllShards, ResponsePolicy::Figures)
            .retry_safe();
        /// Estimate the bytes that a key takes.
        MemoryUsage = row("MEMORY USAGE", -3, "4.0.0").flags("readonly").key(2, "RO");
    };

    /// Manage modules.
    Module = row("MODULE", -2, "4.0.0") => {
        /// List the subcommands.
        ModuleHelp = row("MODULE HELP", 2, "5.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// List the loaded modules.
        ModuleList = row("MODULE LIST", 2, "4.0.0").replies(&shape::MAPS)
            .flags("admin noscript")
            .tips(&["nondeterministic_output_order"])
            .retry_safe()
            // It shows with what arguments they were loaded.
            .lane(Lane::Admin);
        /// Load a module.
        ModuleLoad = row("MODULE LOAD", -3, "4.0.0")
            .flags("admin noscript no_async_loading")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Load a module with settings and arguments.
        ModuleLoadex = row("MODULE LOADEX", -3, "7.0.0")
            .flags("admin noscript no_async_loading")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
        /// Unload a module.
        ModuleUnload = row("MODULE UNLOAD", 3, "4.0.0")
            .flags("admin noscript no_async_loading")
            .policy(RequestPolicy::AllNodes, ResponsePolicy::AllSucceeded);
    };

    /// Show every command that the server receives.
    Monitor = row("MONITOR", 1, "1.0.0").flags("admin noscript loading stale").lane(Lane::Dedicated);

    /// Begin or resume replication from this server.
    Psync = row("PSYNC", -3, "2.8.0").flags("admin noscript no_async_loading no_multi").lane(Lane::Dedicated);

    /// Negotiate replication between servers.
    Replconf = row("REPLCONF", -1, "3.0.0")
        .flags("admin noscript loading stale allow_busy")
        .lane(Lane::Dedicated)
        .internal();

    /// Make the server a replica of another, or a primary.
    Replicaof = row("REPLICAOF", 3, "5.0.0").flags("admin noscript stale no_async_loading");

    /// Make a key of a slot that is being imported.
    RestoreAsking = row("RESTORE-ASKING", -4, "3.0.0")
        .flags("write denyoom asking")
        .acl("keyspace dangerous")
        .key(1, "OW update")
        .internal();

    /// Tell the server's part in replication.
    Role = row("ROLE", 1, "2.8.12").flags("noscript loading stale fast").acl("admin dangerous").retry_safe();

    /// Write a snapshot while all clients wait.
    Save = row("SAVE", 1, "1.0.0")
        .flags("admin noscript no_async_loading no_multi")
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Save if need be, and end the server.
    Shutdown = row("SHUTDOWN", -1, "1.0.0")
        .flags("admin noscript loading stale no_multi allow_busy")
        // It has no reply but the end of the connection.
        .lane(Lane::Dedicated);

    /// Make the server a replica of another, or a primary.
    Slaveof = row("SLAVEOF", 3, "1.0.0")
        .flags("admin noscript stale no_async_loading")
        .deprecated("5.0.0", "REPLICAOF");

    /// See which commands were slow.
    Slowlog = row("SLOWLOG", -2, "2.2.12") => {
        /// List slow commands.
        SlowlogGet = row("SLOWLOG GET", -2, "2.2.12")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "nondeterministic_output"])
            .policy(RequestPolicy::AllNodes, ResponsePolicy::Newest)
            .retry_safe();
        /// List the subcommands.
        SlowlogHelp = row("SLOWLOG HELP", 2, "6.2.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Count the entries of the slow log.
        SlowlogLen = row("SLOWLOG LEN", 2, "2.2.12")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
            .retry_safe();
        /// Empty the slow log.
        SlowlogReset = row("SLOWLOG RESET", 2, "2.2.12")
            .flags("admin loading stale")
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]);
    };

    /// Swap two databases.
    Swapdb = row("SWAPDB", 3, "4.0.0")
        .flags("write fast")
        .acl("keyspace dangerous")
        .databases(|args, each| args.from(1).iter().for_each(each))
        .policy(RequestPolicy::AllShards, ResponsePolicy::AllSucceeded);

    /// Begin replication the old way.
    Sync = row("SYNC", 1, "1.0.0").flags("admin noscript no_async_loading no_multi").lane(Lane::Dedicated);

    /// Tell the server's time.
    Time = row("TIME", 1, "2.6.0")
        .flags("loading stale fast")
        .tips(&["nondeterministic_output"])
        .lane(Lane::Local);
}
