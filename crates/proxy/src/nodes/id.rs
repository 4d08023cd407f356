//! The ids of a worker's nodes, and what is kept for each of them.
//!
//! Nodes that are configured come first, in the order of the settings; those that have gone stand behind them while they still owe
//! something. This file alone knows that, and turns places of the settings into ids.

use crate::slab::id_vec::{IdVec, id};
use respool_route::{NodeIndex, NodePlace, Pool};
use std::ops::Range;

/// A node of one worker, until the next reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

id!(NodeId, u32);

impl NodeId {
    /// No node: what something is bound to whose node has gone, and owes nothing.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// The node of a topology that is the list of all nodes.
    #[inline(always)]
    pub(crate) const fn of(index: NodeIndex) -> Self {
        Self::nth(index.get())
    }

    /// The node at a place of the list of all nodes.
    #[inline(always)]
    pub(crate) const fn at(place: NodePlace) -> Self {
        Self::nth(place.get())
    }

    /// The node that comes behind so many others.
    #[inline(always)]
    pub(crate) const fn nth(before: usize) -> Self {
        Self(before as u32)
    }

    /// Where it stands in the list of all nodes, if it is configured.
    #[inline(always)]
    pub(crate) const fn place(self) -> NodePlace {
        NodePlace::new(self.0 as usize)
    }

    /// How many nodes come before it.
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The primaries of a pool, in order.
    pub(crate) fn of_pool(pool: &Pool) -> NodeRange {
        let first = pool.first.get();
        NodeRange(first..first + pool.topology.node_count())
    }

    /// Whether it is one of the primaries of a pool.
    pub(crate) fn is_in(self, pool: &Pool) -> bool {
        pool.has(self.place())
    }
}

/// Nodes that stand next to each other in the list of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct NodeRange(Range<usize>);

impl NodeRange {
    /// One node.
    pub(crate) fn one(node: NodeId) -> Self {
        Self(node.index()..node.index() + 1)
    }

    /// Whether a node is one of them.
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.0.contains(&node.index())
    }

    /// The first nodes, so many.
    pub(crate) fn first(count: usize) -> Self {
        Self(0..count)
    }

    /// None at all.
    pub(crate) fn none() -> Self {
        Self(0..0)
    }
}

impl Iterator for NodeRange {
    type Item = NodeId;

    #[inline]
    fn next(&mut self) -> Option<NodeId> {
        self.0.next().map(NodeId::nth)
    }
}

/// Something for each node.
pub(crate) type PerNode<T> = IdVec<NodeId, T>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_place_in_the_settings() {
        let node = NodeId::nth(5);
        assert_eq!(NodeId::at(node.place()), node);
        let range = NodeRange::one(node);
        assert!(range.has(node) && !range.has(NodeId::nth(4)));
        assert_eq!((range.count(), NodeRange::none().count(), NodeRange::first(3).count()), (1, 0, 3));
    }
}
