//! Commands of the group cluster.

// Written by `cargo xtask codegen` from the command table. Not to be edited.
#![allow(unused_imports, reason = "each group needs some of them")]
#![allow(clippy::type_complexity, clippy::too_many_arguments, reason = "replies and requests are what they are")]

use super::*;
use crate::commands::{Pairs, ToArg, ToDouble, ToInteger, Typed, builder};
use crate::{Reply, ToArgs, cmd};
use bytes::Bytes;
use std::collections::HashMap;

/// Give slots to this node.
///
/// ```text
/// CLUSTER ADDSLOTS slot [slot ...]
/// ```
///
/// Since 3.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-addslots/) and [Valkey](https://valkey.io/commands/cluster-addslots/).
pub fn cluster_addslots(slots: impl ToArgs) -> Typed<()> {
    let mut request = cmd("CLUSTER ADDSLOTS");
    slots.write_args(&mut request);
    Typed::new(request)
}

/// Give ranges of slots to this node.
///
/// ```text
/// CLUSTER ADDSLOTSRANGE start-slot end-slot [start-slot end-slot ...]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-addslotsrange/) and [Valkey](https://valkey.io/commands/cluster-addslotsrange/).
pub fn cluster_addslotsrange(pairs: impl ToArgs) -> Typed<()> {
    let mut request = cmd("CLUSTER ADDSLOTSRANGE");
    pairs.write_args(&mut request);
    Typed::new(request)
}

/// Move this node to a new configuration epoch.
///
/// ```text
/// CLUSTER BUMPEPOCH
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-bumpepoch/) and [Valkey](https://valkey.io/commands/cluster-bumpepoch/).
pub fn cluster_bumpepoch() -> Typed<String> {
    let request = cmd("CLUSTER BUMPEPOCH");
    Typed::new(request)
}

/// Count the nodes that hold another for failed.
///
/// ```text
/// CLUSTER COUNT-FAILURE-REPORTS node-id
/// ```
///
/// Since 3.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-count-failure-reports/) and [Valkey](https://valkey.io/commands/cluster-count-failure-reports/).
pub fn cluster_count_failure_reports(node_id: impl ToArg) -> Typed<i64> {
    let mut request = cmd("CLUSTER COUNT-FAILURE-REPORTS");
    node_id.write_args(&mut request);
    Typed::new(request)
}

/// Count the keys of a slot.
///
/// ```text
/// CLUSTER COUNTKEYSINSLOT slot
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-countkeysinslot/) and [Valkey](https://valkey.io/commands/cluster-countkeysinslot/).
pub fn cluster_countkeysinslot(slot: impl ToInteger) -> Typed<i64> {
    let mut request = cmd("CLUSTER COUNTKEYSINSLOT");
    slot.write_args(&mut request);
    Typed::new(request)
}

/// Make slots unassigned as far as this node knows.
///
/// ```text
/// CLUSTER DELSLOTS slot [slot ...]
/// ```
///
/// Since 3.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-delslots/) and [Valkey](https://valkey.io/commands/cluster-delslots/).
pub fn cluster_delslots(slots: impl ToArgs) -> Typed<()> {
    let mut request = cmd("CLUSTER DELSLOTS");
    slots.write_args(&mut request);
    Typed::new(request)
}

/// Make ranges of slots unassigned as far as this node knows.
///
/// ```text
/// CLUSTER DELSLOTSRANGE start-slot end-slot [start-slot end-slot ...]
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-delslotsrange/) and [Valkey](https://valkey.io/commands/cluster-delslotsrange/).
pub fn cluster_delslotsrange(pairs: impl ToArgs) -> Typed<()> {
    let mut request = cmd("CLUSTER DELSLOTSRANGE");
    pairs.write_args(&mut request);
    Typed::new(request)
}

/// Have this replica take over from its primary.
///
/// ```text
/// CLUSTER FAILOVER [FORCE | TAKEOVER]
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-failover/) and [Valkey](https://valkey.io/commands/cluster-failover/).
pub fn cluster_failover() -> ClusterFailover {
    let request = cmd("CLUSTER FAILOVER");
    let place = request.place();
    ClusterFailover::new(request, place)
}

builder! {
    /// A request of [`cluster_failover()`] and its options.
    ClusterFailover, ()
}

impl<T, S> ClusterFailover<T, S> {
    /// `FORCE`.
    pub fn force(self) -> Self {
        self.with(|request| {
            request.push(b"FORCE");
        })
    }
    /// `TAKEOVER`.
    pub fn takeover(self) -> Self {
        self.with(|request| {
            request.push(b"TAKEOVER");
        })
    }
}

/// Take all slots from this node.
///
/// ```text
/// CLUSTER FLUSHSLOTS
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-flushslots/) and [Valkey](https://valkey.io/commands/cluster-flushslots/).
pub fn cluster_flushslots() -> Typed<()> {
    let request = cmd("CLUSTER FLUSHSLOTS");
    Typed::new(request)
}

/// Drop a node from this node's table.
///
/// ```text
/// CLUSTER FORGET node-id
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-forget/) and [Valkey](https://valkey.io/commands/cluster-forget/).
pub fn cluster_forget(node_id: impl ToArg) -> Typed<()> {
    let mut request = cmd("CLUSTER FORGET");
    node_id.write_args(&mut request);
    Typed::new(request)
}

/// List keys of a slot.
///
/// ```text
/// CLUSTER GETKEYSINSLOT slot count
/// ```
///
/// Since 3.0.0. Takes O(log(N)). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-getkeysinslot/) and [Valkey](https://valkey.io/commands/cluster-getkeysinslot/).
pub fn cluster_getkeysinslot(slot: impl ToInteger, count: impl ToInteger) -> Typed<Vec<Bytes>> {
    let mut request = cmd("CLUSTER GETKEYSINSLOT");
    slot.write_args(&mut request);
    count.write_args(&mut request);
    Typed::new(request)
}

/// Describe the cluster's state.
///
/// ```text
/// CLUSTER INFO
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-info/) and [Valkey](https://valkey.io/commands/cluster-info/).
pub fn cluster_info() -> Typed<String> {
    let request = cmd("CLUSTER INFO");
    Typed::new(request)
}

/// Tell the slot of a key.
///
/// ```text
/// CLUSTER KEYSLOT key
/// ```
///
/// Since 3.0.0. Takes O(N). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-keyslot/) and [Valkey](https://valkey.io/commands/cluster-keyslot/).
pub fn cluster_keyslot(key: impl ToArg) -> Typed<i64> {
    let mut request = cmd("CLUSTER KEYSLOT");
    key.write_args(&mut request);
    Typed::new(request)
}

/// Describe the links to the other nodes.
///
/// ```text
/// CLUSTER LINKS
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-links/) and [Valkey](https://valkey.io/commands/cluster-links/).
pub fn cluster_links() -> Typed<Vec<HashMap<Bytes, Reply>>> {
    let request = cmd("CLUSTER LINKS");
    Typed::new(request)
}

/// Introduce this node to another one.
///
/// ```text
/// CLUSTER MEET ip port [cluster_bus_port]
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-meet/) and [Valkey](https://valkey.io/commands/cluster-meet/).
pub fn cluster_meet(ip: impl ToArg, port: impl ToInteger) -> ClusterMeet {
    let mut request = cmd("CLUSTER MEET");
    ip.write_args(&mut request);
    port.write_args(&mut request);
    let place = request.place();
    ClusterMeet::new(request, place)
}

builder! {
    /// A request of [`cluster_meet()`] and its options.
    ClusterMeet, ()
}

impl<T, S> ClusterMeet<T, S> {
    /// `cluster_bus_port`, since 4.0.0.
    pub fn cluster_bus_port(self, cluster_bus_port: impl ToInteger) -> Self {
        self.with(|request| {
            cluster_bus_port.write_args(request);
        })
    }
}

/// Tell the id of this node.
///
/// ```text
/// CLUSTER MYID
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-myid/) and [Valkey](https://valkey.io/commands/cluster-myid/).
pub fn cluster_myid() -> Typed<Bytes> {
    let request = cmd("CLUSTER MYID");
    Typed::new(request)
}

/// Show the nodes table.
///
/// ```text
/// CLUSTER NODES
/// ```
///
/// Since 3.0.0. Takes O(N). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-nodes/) and [Valkey](https://valkey.io/commands/cluster-nodes/).
pub fn cluster_nodes() -> Typed<String> {
    let request = cmd("CLUSTER NODES");
    Typed::new(request)
}

/// Describe the replicas of a primary.
///
/// ```text
/// CLUSTER REPLICAS node-id
/// ```
///
/// Since 5.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-replicas/) and [Valkey](https://valkey.io/commands/cluster-replicas/).
pub fn cluster_replicas(node_id: impl ToArg) -> Typed<Vec<Bytes>> {
    let mut request = cmd("CLUSTER REPLICAS");
    node_id.write_args(&mut request);
    Typed::new(request)
}

/// Make this node a replica of another.
///
/// ```text
/// CLUSTER REPLICATE node-id
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-replicate/) and [Valkey](https://valkey.io/commands/cluster-replicate/).
pub fn cluster_replicate(node_id: impl ToArg) -> Typed<()> {
    let mut request = cmd("CLUSTER REPLICATE");
    node_id.write_args(&mut request);
    Typed::new(request)
}

/// Make this node leave the cluster and forget it.
///
/// ```text
/// CLUSTER RESET [HARD | SOFT]
/// ```
///
/// Since 3.0.0. Takes O(N). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-reset/) and [Valkey](https://valkey.io/commands/cluster-reset/).
pub fn cluster_reset() -> ClusterReset {
    let request = cmd("CLUSTER RESET");
    let place = request.place();
    ClusterReset::new(request, place)
}

builder! {
    /// A request of [`cluster_reset()`] and its options.
    ClusterReset, ()
}

impl<T, S> ClusterReset<T, S> {
    /// `HARD`.
    pub fn hard(self) -> Self {
        self.with(|request| {
            request.push(b"HARD");
        })
    }
    /// `SOFT`.
    pub fn soft(self) -> Self {
        self.with(|request| {
            request.push(b"SOFT");
        })
    }
}

/// Write the nodes table to disk.
///
/// ```text
/// CLUSTER SAVECONFIG
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-saveconfig/) and [Valkey](https://valkey.io/commands/cluster-saveconfig/).
pub fn cluster_saveconfig() -> Typed<()> {
    let request = cmd("CLUSTER SAVECONFIG");
    Typed::new(request)
}

/// Set the configuration epoch of a fresh node.
///
/// ```text
/// CLUSTER SET-CONFIG-EPOCH config-epoch
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-set-config-epoch/) and [Valkey](https://valkey.io/commands/cluster-set-config-epoch/).
pub fn cluster_set_config_epoch(config_epoch: impl ToInteger) -> Typed<()> {
    let mut request = cmd("CLUSTER SET-CONFIG-EPOCH");
    config_epoch.write_args(&mut request);
    Typed::new(request)
}

/// Bind a slot to a node, or mark it as being migrated or imported.
///
/// ```text
/// CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>
/// ```
///
/// Since 3.0.0. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-setslot/) and [Valkey](https://valkey.io/commands/cluster-setslot/).
pub fn cluster_setslot(slot: impl ToInteger) -> ClusterSetslot {
    let mut request = cmd("CLUSTER SETSLOT");
    slot.write_args(&mut request);
    let place = request.place();
    ClusterSetslot::new(request, place)
}

builder! {
    /// A request of [`cluster_setslot()`] and its options.
    ClusterSetslot, ()
}

impl<T, S> ClusterSetslot<T, S> {
    /// `IMPORTING node-id`.
    pub fn importing(self, node_id: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"IMPORTING");
            node_id.write_args(request);
        })
    }
    /// `MIGRATING node-id`.
    pub fn migrating(self, node_id: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"MIGRATING");
            node_id.write_args(request);
        })
    }
    /// `NODE node-id`.
    pub fn node(self, node_id: impl ToArg) -> Self {
        self.with(|request| {
            request.push(b"NODE");
            node_id.write_args(request);
        })
    }
    /// `STABLE`.
    pub fn stable(self) -> Self {
        self.with(|request| {
            request.push(b"STABLE");
        })
    }
}

/// Describe shards, their slots and nodes.
///
/// ```text
/// CLUSTER SHARDS
/// ```
///
/// Since 7.0.0. Takes O(N). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-shards/) and [Valkey](https://valkey.io/commands/cluster-shards/).
pub fn cluster_shards() -> Typed<Vec<HashMap<Bytes, Reply>>> {
    let request = cmd("CLUSTER SHARDS");
    Typed::new(request)
}

/// Describe the replicas of a primary.
///
/// ```text
/// CLUSTER SLAVES node-id
/// ```
///
/// Since 3.0.0. Deprecated since 5.0.0: use CLUSTER REPLICAS. Takes O(1). ACL: @admin @slow @dangerous.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-slaves/) and [Valkey](https://valkey.io/commands/cluster-slaves/).
pub fn cluster_slaves(node_id: impl ToArg) -> Typed<Vec<Bytes>> {
    let mut request = cmd("CLUSTER SLAVES");
    node_id.write_args(&mut request);
    Typed::new(request)
}

/// List which nodes serve which ranges of slots.
///
/// ```text
/// CLUSTER SLOTS
/// ```
///
/// Since 3.0.0. Deprecated since 7.0.0: use CLUSTER SHARDS. Takes O(N). ACL: @slow.
/// See [Redis](https://redis.io/docs/latest/commands/cluster-slots/) and [Valkey](https://valkey.io/commands/cluster-slots/).
pub fn cluster_slots() -> Typed<Vec<Reply>> {
    let request = cmd("CLUSTER SLOTS");
    Typed::new(request)
}

/// Commands of the group cluster.
impl crate::Client {
    /// Give slots to this node.
    ///
    /// `CLUSTER ADDSLOTS slot [slot ...]`: see [`cluster_addslots()`].
    pub fn cluster_addslots(&self, slots: impl ToArgs) -> Typed<(), &Self> {
        cluster_addslots(slots).on(self)
    }
    /// Give ranges of slots to this node.
    ///
    /// `CLUSTER ADDSLOTSRANGE start-slot end-slot [start-slot end-slot ...]`: see [`cluster_addslotsrange()`].
    pub fn cluster_addslotsrange(&self, pairs: impl ToArgs) -> Typed<(), &Self> {
        cluster_addslotsrange(pairs).on(self)
    }
    /// Move this node to a new configuration epoch.
    ///
    /// `CLUSTER BUMPEPOCH`: see [`cluster_bumpepoch()`].
    pub fn cluster_bumpepoch(&self) -> Typed<String, &Self> {
        cluster_bumpepoch().on(self)
    }
    /// Count the nodes that hold another for failed.
    ///
    /// `CLUSTER COUNT-FAILURE-REPORTS node-id`: see [`cluster_count_failure_reports()`].
    pub fn cluster_count_failure_reports(&self, node_id: impl ToArg) -> Typed<i64, &Self> {
        cluster_count_failure_reports(node_id).on(self)
    }
    /// Count the keys of a slot.
    ///
    /// `CLUSTER COUNTKEYSINSLOT slot`: see [`cluster_countkeysinslot()`].
    pub fn cluster_countkeysinslot(&self, slot: impl ToInteger) -> Typed<i64, &Self> {
        cluster_countkeysinslot(slot).on(self)
    }
    /// Make slots unassigned as far as this node knows.
    ///
    /// `CLUSTER DELSLOTS slot [slot ...]`: see [`cluster_delslots()`].
    pub fn cluster_delslots(&self, slots: impl ToArgs) -> Typed<(), &Self> {
        cluster_delslots(slots).on(self)
    }
    /// Make ranges of slots unassigned as far as this node knows.
    ///
    /// `CLUSTER DELSLOTSRANGE start-slot end-slot [start-slot end-slot ...]`: see [`cluster_delslotsrange()`].
    pub fn cluster_delslotsrange(&self, pairs: impl ToArgs) -> Typed<(), &Self> {
        cluster_delslotsrange(pairs).on(self)
    }
    /// Have this replica take over from its primary.
    ///
    /// `CLUSTER FAILOVER [FORCE | TAKEOVER]`: see [`cluster_failover()`].
    pub fn cluster_failover(&self) -> ClusterFailover<(), &Self> {
        cluster_failover().on(self)
    }
    /// Take all slots from this node.
    ///
    /// `CLUSTER FLUSHSLOTS`: see [`cluster_flushslots()`].
    pub fn cluster_flushslots(&self) -> Typed<(), &Self> {
        cluster_flushslots().on(self)
    }
    /// Drop a node from this node's table.
    ///
    /// `CLUSTER FORGET node-id`: see [`cluster_forget()`].
    pub fn cluster_forget(&self, node_id: impl ToArg) -> Typed<(), &Self> {
        cluster_forget(node_id).on(self)
    }
    /// List keys of a slot.
    ///
    /// `CLUSTER GETKEYSINSLOT slot count`: see [`cluster_getkeysinslot()`].
    pub fn cluster_getkeysinslot(&self, slot: impl ToInteger, count: impl ToInteger) -> Typed<Vec<Bytes>, &Self> {
        cluster_getkeysinslot(slot, count).on(self)
    }
    /// Describe the cluster's state.
    ///
    /// `CLUSTER INFO`: see [`cluster_info()`].
    pub fn cluster_info(&self) -> Typed<String, &Self> {
        cluster_info().on(self)
    }
    /// Tell the slot of a key.
    ///
    /// `CLUSTER KEYSLOT key`: see [`cluster_keyslot()`].
    pub fn cluster_keyslot(&self, key: impl ToArg) -> Typed<i64, &Self> {
        cluster_keyslot(key).on(self)
    }
    /// Describe the links to the other nodes.
    ///
    /// `CLUSTER LINKS`: see [`cluster_links()`].
    pub fn cluster_links(&self) -> Typed<Vec<HashMap<Bytes, Reply>>, &Self> {
        cluster_links().on(self)
    }
    /// Introduce this node to another one.
    ///
    /// `CLUSTER MEET ip port [cluster_bus_port]`: see [`cluster_meet()`].
    pub fn cluster_meet(&self, ip: impl ToArg, port: impl ToInteger) -> ClusterMeet<(), &Self> {
        cluster_meet(ip, port).on(self)
    }
    /// Tell the id of this node.
    ///
    /// `CLUSTER MYID`: see [`cluster_myid()`].
    pub fn cluster_myid(&self) -> Typed<Bytes, &Self> {
        cluster_myid().on(self)
    }
    /// Show the nodes table.
    ///
    /// `CLUSTER NODES`: see [`cluster_nodes()`].
    pub fn cluster_nodes(&self) -> Typed<String, &Self> {
        cluster_nodes().on(self)
    }
    /// Describe the replicas of a primary.
    ///
    /// `CLUSTER REPLICAS node-id`: see [`cluster_replicas()`].
    pub fn cluster_replicas(&self, node_id: impl ToArg) -> Typed<Vec<Bytes>, &Self> {
        cluster_replicas(node_id).on(self)
    }
    /// Make this node a replica of another.
    ///
    /// `CLUSTER REPLICATE node-id`: see [`cluster_replicate()`].
    pub fn cluster_replicate(&self, node_id: impl ToArg) -> Typed<(), &Self> {
        cluster_replicate(node_id).on(self)
    }
    /// Make this node leave the cluster and forget it.
    ///
    /// `CLUSTER RESET [HARD | SOFT]`: see [`cluster_reset()`].
    pub fn cluster_reset(&self) -> ClusterReset<(), &Self> {
        cluster_reset().on(self)
    }
    /// Write the nodes table to disk.
    ///
    /// `CLUSTER SAVECONFIG`: see [`cluster_saveconfig()`].
    pub fn cluster_saveconfig(&self) -> Typed<(), &Self> {
        cluster_saveconfig().on(self)
    }
    /// Set the configuration epoch of a fresh node.
    ///
    /// `CLUSTER SET-CONFIG-EPOCH config-epoch`: see [`cluster_set_config_epoch()`].
    pub fn cluster_set_config_epoch(&self, config_epoch: impl ToInteger) -> Typed<(), &Self> {
        cluster_set_config_epoch(config_epoch).on(self)
    }
    /// Bind a slot to a node, or mark it as being migrated or imported.
    ///
    /// `CLUSTER SETSLOT slot <IMPORTING node-id | MIGRATING node-id | NODE node-id | STABLE>`: see [`cluster_setslot()`].
    pub fn cluster_setslot(&self, slot: impl ToInteger) -> ClusterSetslot<(), &Self> {
        cluster_setslot(slot).on(self)
    }
    /// Describe shards, their slots and nodes.
    ///
    /// `CLUSTER SHARDS`: see [`cluster_shards()`].
    pub fn cluster_shards(&self) -> Typed<Vec<HashMap<Bytes, Reply>>, &Self> {
        cluster_shards().on(self)
    }
    /// Describe the replicas of a primary.
    ///
    /// `CLUSTER SLAVES node-id`: see [`cluster_slaves()`].
    pub fn cluster_slaves(&self, node_id: impl ToArg) -> Typed<Vec<Bytes>, &Self> {
        cluster_slaves(node_id).on(self)
    }
    /// List which nodes serve which ranges of slots.
    ///
    /// `CLUSTER SLOTS`: see [`cluster_slots()`].
    pub fn cluster_slots(&self) -> Typed<Vec<Reply>, &Self> {
        cluster_slots().on(self)
    }
}
