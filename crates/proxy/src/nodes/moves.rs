//! Which node takes the place of which when other nodes are configured.

use crate::nodes::id::{NodeId, PerNode};
use crate::pool::table::LaneHandle;
use std::collections::BTreeMap;

/// What has become of the nodes of before when other settings came.
#[derive(Debug)]
pub(crate) struct Moves {
    /// For each node before, where it stands now if it is still that server; one that has gone stands behind the others while
    /// something is owed by it, and then at `NodeId::NONE`.
    pub(crate) place: PerNode<NodeId>,
    /// For each node before, where the node of the same name stands now, wherever that is reached; `NodeId::NONE` if there is
    /// none.
    pub(crate) named: PerNode<NodeId>,
    /// The numbers of nodes whose credentials have changed.
    pub(crate) entered_anew: Vec<NodeId>,
    /// The node whose name resolves to another address; `None` if other settings are the reason.
    pub(crate) left: Option<NodeId>,
    /// The number of the node of each of its lanes: those to addresses among the answers stay with it.
    pub(crate) lanes: BTreeMap<LaneHandle, NodeId>,
    /// How many nodes are configured now.
    pub(crate) count: usize,
}

impl Moves {
    /// Where a node of before stands now, as the server that it was. `NodeId::NONE`: nowhere.
    pub(crate) fn place_of(&self, node: NodeId) -> NodeId {
        self.place.get(node).copied().unwrap_or(NodeId::NONE)
    }

    /// The same for what is bound to one lane to that node.
    pub(crate) fn place_on(&self, node: NodeId, lane: LaneHandle) -> NodeId {
        self.lanes.get(&lane).copied().unwrap_or_else(|| self.place_of(node))
    }

    /// The node that has the name now of one before.
    pub(crate) fn namesake_of(&self, node: NodeId) -> Option<NodeId> {
        self.named.get(node).copied().filter(|now| *now != NodeId::NONE)
    }

    /// Whether a node of before is not configured any more as the server that it was.
    pub(crate) fn has_left(&self, node: NodeId) -> bool {
        self.place_of(node).place() >= self.count
    }

    /// The same for what is bound to one lane to that node.
    pub(crate) fn has_left_on(&self, node: NodeId, lane: LaneHandle) -> bool {
        self.place_on(node, lane).place() >= self.count
    }

    /// Whether every node is the server that it was, in its place.
    pub(crate) fn is_none(&self) -> bool {
        self.place.len() == self.count && self.place.entries().all(|(before, now)| before == *now)
    }
}
