//! Redis Cluster.

use crate::row::row;
use crate::shape;
use crate::{Lane, RequestPolicy, ResponsePolicy};

rows! {
    /// Redis Cluster.
    ClusterCommand, Cluster;

    /// Let the next command use a slot that is still being imported.
    Asking = row("ASKING", 1, "3.0.0").flags("fast").acl("connection").lane(Lane::Local);

    /// See and steer the cluster.
    Cluster = row("CLUSTER", -2, "3.0.0") => {
        /// Give slots to this node.
        ClusterAddslots = row("CLUSTER ADDSLOTS", -3, "3.0.0").flags("admin stale no_async_loading");
        /// Give ranges of slots to this node.
        ClusterAddslotsrange = row("CLUSTER ADDSLOTSRANGE", -4, "7.0.0").flags("admin stale no_async_loading");
        /// Move this node to a new configuration epoch.
        ClusterBumpepoch = row("CLUSTER BUMPEPOCH", 2, "3.0.0")
            .flags("admin stale no_async_loading")
            .tips(&["nondeterministic_output"]);
        /// Count the nodes that hold another for failed.
        ClusterCountFailureReports = row("CLUSTER COUNT-FAILURE-REPORTS", 3, "3.0.0")
            .flags("admin stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Count the keys of a slot.
        ClusterCountkeysinslot = row("CLUSTER COUNTKEYSINSLOT", 3, "3.0.0").flags("stale").retry_safe();
        /// Make slots unassigned as far as this node knows.
        ClusterDelslots = row("CLUSTER DELSLOTS", -3, "3.0.0").flags("admin stale no_async_loading");
        /// Make ranges of slots unassigned as far as this node knows.
        ClusterDelslotsrange = row("CLUSTER DELSLOTSRANGE", -4, "7.0.0").flags("admin stale no_async_loading");
        /// Have this replica take over from its primary.
        ClusterFailover = row("CLUSTER FAILOVER", -2, "3.0.0").flags("admin stale no_async_loading");
        /// Take all slots from this node.
        ClusterFlushslots = row("CLUSTER FLUSHSLOTS", 2, "3.0.0").flags("admin stale no_async_loading");
        /// Drop a node from this node's table.
        ClusterForget = row("CLUSTER FORGET", 3, "3.0.0").flags("admin stale no_async_loading");
        /// List keys of a slot.
        ClusterGetkeysinslot = row("CLUSTER GETKEYSINSLOT", 4, "3.0.0")
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// List the subcommands.
        ClusterHelp = row("CLUSTER HELP", 2, "5.0.0")
            .flags("loading stale")
            .policy(RequestPolicy::AnyNode, ResponsePolicy::Single)
            .retry_safe();
        /// Describe the cluster's state.
        ClusterInfo = row("CLUSTER INFO", 2, "3.0.0").replies(&shape::TEXT)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Tell the slot of a key.
        ClusterKeyslot = row("CLUSTER KEYSLOT", 3, "3.0.0").flags("stale").retry_safe();
        /// Describe the links to the other nodes.
        ClusterLinks = row("CLUSTER LINKS", 2, "7.0.0").replies(&shape::MAPS)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Introduce this node to another one.
        ClusterMeet = row("CLUSTER MEET", -4, "3.0.0").flags("admin stale no_async_loading");
        /// Tell the id of this node.
        ClusterMyid = row("CLUSTER MYID", 2, "3.0.0").flags("stale").retry_safe();
        /// Show the nodes table.
        ClusterNodes = row("CLUSTER NODES", 2, "3.0.0").replies(&shape::TEXT)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Describe the replicas of a primary.
        ClusterReplicas = row("CLUSTER REPLICAS", 3, "5.0.0")
            .flags("admin stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Make this node a replica of another.
        ClusterReplicate = row("CLUSTER REPLICATE", 3, "3.0.0").flags("admin stale no_async_loading");
        /// Make this node leave the cluster and forget it.
        ClusterReset = row("CLUSTER RESET", -2, "3.0.0").flags("admin noscript stale");
        /// Write the nodes table to disk.
        ClusterSaveconfig = row("CLUSTER SAVECONFIG", 2, "3.0.0").flags("admin stale no_async_loading");
        /// Set the configuration epoch of a fresh node.
        ClusterSetConfigEpoch = row("CLUSTER SET-CONFIG-EPOCH", 3, "3.0.0")
            .flags("admin stale no_async_loading");
        /// Bind a slot to a node, or mark it as being migrated or imported.
        ClusterSetslot = row("CLUSTER SETSLOT", -4, "3.0.0").flags("admin stale no_async_loading");
        /// Describe shards, their slots and nodes.
        ClusterShards = row("CLUSTER SHARDS", 2, "7.0.0").replies(&shape::SHARDS)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe();
        /// Describe the replicas of a primary.
        ClusterSlaves = row("CLUSTER SLAVES", 3, "3.0.0")
            .flags("admin stale")
            .tips(&["nondeterministic_output"])
            .retry_safe()
            .deprecated("5.0.0", "CLUSTER REPLICAS");
        /// List which nodes serve which ranges of slots.
        ClusterSlots = row("CLUSTER SLOTS", 2, "3.0.0").replies(&shape::SLOTS)
            .flags("stale")
            .tips(&["nondeterministic_output"])
            .retry_safe()
            .deprecated("7.0.0", "CLUSTER SHARDS");
    };

    /// Allow reads from a replica in a cluster.
    Readonly = row("READONLY", 1, "3.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);

    /// Have reads from a replica redirected again.
    Readwrite = row("READWRITE", 1, "3.0.0").flags("loading stale fast").acl("connection").lane(Lane::Local);
}
