//! Redis Cluster.

use crate::row::row;
use crate::shape;
use crate::{Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// Redis Cluster.
    ClusterCommand, Cluster;

    /// Let the next command use a slot that is still being imported.
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Asking = row("ASKING", 1, "3.0.0").flags("fast").acl("connection").lane(Lane::Local);

    /// See and steer the cluster.
    Cluster = row("CLUSTER", -2, "3.0.0") => {
        /// Give slots to this node.
        #[args = "slot:int+"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ClusterAddslots = row("CLUSTER ADDSLOTS", -3, "3.0.0").flags("admin stale no_async_loading");
        /// Give ranges of slots to this node.
        #[args = "start-slot_end-slot(start-slot:int end-slot:int)+"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ClusterAddslotsrange = row("CLUSTER ADDSLOTSRANGE", -4, "7.0.0").flags("admin stale no_async_loading");
        /// Move this node to a new configuration epoch.
        #[reply = "simple"]
        #[complexity = "O(1)"]
        ClusterBumpepoch = row("CLUSTER BUMPEPOCH", 2, "3.0.0")
            .flags("admin stale no_async_loading")
            .tips(&["nondeterministic_output"]);
        /// Count the nodes that hold another for failed.
        #[args = "node-id"]
        #[reply = "int"]
        #[complexity = "O(N)"]
        ClusterCountFailureReports = row("CLUSTER COUNT-FAILURE-REPORTS", 3, "3.0.0")
            .flags("admin stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Count the keys of a slot.
        #[args = "slot:int"]
        #[reply = "int"]
        #[complexity = "O(1)"]
        ClusterCountkeysinslot = row("CLUSTER COUNTKEYSINSLOT", 3, "3.0.0")
            .flags("stale")
            .tells_of_keys()
            .retry_safe();
        /// Make slots unassigned as far as this node knows.
        #[args = "slot:int+"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ClusterDelslots = row("CLUSTER DELSLOTS", -3, "3.0.0").flags("admin stale no_async_loading");
        /// Make ranges of slots unassigned as far as this node knows.
        #[args = "start-slot_end-slot(start-slot:int end-slot:int)+"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ClusterDelslotsrange = row("CLUSTER DELSLOTSRANGE", -4, "7.0.0").flags("admin stale no_async_loading");
        /// Have this replica take over from its primary.
        #[args = "[options<FORCE|TAKEOVER>]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterFailover = row("CLUSTER FAILOVER", -2, "3.0.0").flags("admin stale no_async_loading");
        /// Take all slots from this node.
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterFlushslots = row("CLUSTER FLUSHSLOTS", 2, "3.0.0").flags("admin stale no_async_loading");
        /// Drop a node from this node's table.
        #[args = "node-id"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterForget = row("CLUSTER FORGET", 3, "3.0.0").flags("admin stale no_async_loading");
        /// List keys of a slot.
        #[args = "slot:int count:int"]
        #[reply = "[bulk]"]
        #[complexity = "O(log(N))"]
        ClusterGetkeysinslot = row("CLUSTER GETKEYSINSLOT", 4, "3.0.0")
            .flags("stale")
            .tells_of_keys()
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// List the subcommands.
        #[reply = "[simple]"]
        #[complexity = "O(1)"]
        ClusterHelp = row("CLUSTER HELP", 2, "5.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Describe the cluster's state.
        #[reply = "text"]
        #[complexity = "O(1)"]
        ClusterInfo = row("CLUSTER INFO", 2, "3.0.0").replies(&shape::TEXT)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Tell the slot of a key.
        #[args = "key"]
        #[reply = "int"]
        #[complexity = "O(N)"]
        ClusterKeyslot = row("CLUSTER KEYSLOT", 3, "3.0.0").flags("stale").retry_safe();
        /// Describe the links to the other nodes.
        #[reply = "[map<any>]"]
        #[complexity = "O(N)"]
        ClusterLinks = row("CLUSTER LINKS", 2, "7.0.0").replies(&shape::MAPS)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Introduce this node to another one.
        #[args = "ip port:int [cluster_bus_port:int^4.0.0]"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterMeet = row("CLUSTER MEET", -4, "3.0.0").flags("admin stale no_async_loading");
        /// Tell the id of this node.
        #[reply = "bulk"]
        #[complexity = "O(1)"]
        ClusterMyid = row("CLUSTER MYID", 2, "3.0.0").flags("stale").retry_safe();
        /// Show the nodes table.
        #[reply = "text"]
        #[complexity = "O(N)"]
        ClusterNodes = row("CLUSTER NODES", 2, "3.0.0").replies(&shape::TEXT)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Describe the replicas of a primary.
        #[args = "node-id"]
        #[reply = "[bulk]"]
        #[complexity = "O(1)"]
        ClusterReplicas = row("CLUSTER REPLICAS", 3, "5.0.0")
            .flags("admin stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Make this node a replica of another.
        #[args = "node-id"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterReplicate = row("CLUSTER REPLICATE", 3, "3.0.0").flags("admin stale no_async_loading");
        /// Make this node leave the cluster and forget it.
        #[args = "[hard_soft<HARD|SOFT>]"]
        #[reply = "ok"]
        #[complexity = "O(N)"]
        ClusterReset = row("CLUSTER RESET", -2, "3.0.0").flags("admin noscript stale");
        /// Write the nodes table to disk.
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterSaveconfig = row("CLUSTER SAVECONFIG", 2, "3.0.0").flags("admin stale no_async_loading");
        /// Set the configuration epoch of a fresh node.
        #[args = "config-epoch:int"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterSetConfigEpoch = row("CLUSTER SET-CONFIG-EPOCH", 3, "3.0.0")
            .flags("admin stale no_async_loading");
        /// Bind a slot to a node, or mark it as being migrated or imported.
        #[args = "slot:int subcommand<IMPORTING/node-id|MIGRATING/node-id|NODE/node-id|STABLE>"]
        #[reply = "ok"]
        #[complexity = "O(1)"]
        ClusterSetslot = row("CLUSTER SETSLOT", -4, "3.0.0").flags("admin stale no_async_loading");
        /// Describe shards, their slots and nodes.
        #[reply = "[map<any>]"]
        #[complexity = "O(N)"]
        ClusterShards = row("CLUSTER SHARDS", 2, "7.0.0").replies(&shape::SHARDS)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Describe the replicas of a primary.
        #[args = "node-id"]
        #[reply = "[bulk]"]
        #[complexity = "O(1)"]
        ClusterSlaves = row("CLUSTER SLAVES", 3, "3.0.0")
            .flags("admin stale")
            .tips(&["nondeterministic_output"])
            .retry_safe()
            .deprecated("5.0.0", "CLUSTER REPLICAS");
        /// List which nodes serve which ranges of slots.
        #[reply = "[any]"]
        #[complexity = "O(N)"]
        ClusterSlots = row("CLUSTER SLOTS", 2, "3.0.0").replies(&shape::SLOTS)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe()
            .deprecated("7.0.0", "CLUSTER SHARDS");
    };

    /// Allow reads from a replica in a cluster.
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Readonly = row("READONLY", 1, "3.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);

    /// Have reads from a replica redirected again.
    #[reply = "ok"]
    #[complexity = "O(1)"]
    #[changes = "connection"]
    Readwrite = row("READWRITE", 1, "3.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);
}
