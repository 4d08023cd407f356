//! The ids of a worker's nodes, and what is kept for each of them.
//!
//! Nodes that are configured come first, in the order of the settings; those that have gone stand behind them while they still owe
//! something. This file alone knows that, and turns places of the settings into ids.

use respool_route::{NodeIndex, NodePlace, Pool};
use std::fmt::{Display, Formatter};
use std::ops::{Index, IndexMut, Range};

/// A node of one worker, until the next reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

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

impl Display for NodeId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, f)
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
#[derive(Clone, Debug)]
pub(crate) struct PerNode<T>(Vec<T>);

impl<T> Default for PerNode<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerNode<T> {
    /// For the first nodes, as many as `all` has.
    pub(crate) fn new(all: impl IntoIterator<Item = T>) -> Self {
        Self(all.into_iter().collect())
    }

    /// For one more node.
    pub(crate) fn push(&mut self, of: T) -> NodeId {
        self.0.push(of);
        NodeId::nth(self.0.len() - 1)
    }

    /// What there is for a node; made, with that for all nodes before it, if there is nothing.
    pub(crate) fn get_or_default(&mut self, node: NodeId) -> &mut T
    where
        T: Default,
    {
        debug_assert!(node != NodeId::NONE, "only nodes have something");
        if self.0.len() <= node.index() {
            self.0.resize_with(node.index() + 1, T::default);
        }
        &mut self.0[node.index()]
    }

    /// For so many nodes, from now on.
    pub(crate) fn resize(&mut self, nodes: usize)
    where
        T: Default,
    {
        self.0.resize_with(nodes, T::default);
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<&T> {
        self.0.get(node.index())
    }

    pub(crate) fn get_mut(&mut self, node: NodeId) -> Option<&mut T> {
        self.0.get_mut(node.index())
    }

    /// For how many nodes there is something.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The nodes for which there is something.
    pub(crate) fn ids(&self) -> NodeRange {
        NodeRange(0..self.0.len())
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// All with their nodes.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (NodeId, &T)> {
        self.ids().zip(&self.0)
    }

    /// All with their nodes.
    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut T)> {
        self.ids().zip(&mut self.0)
    }

    /// All with their nodes.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (NodeId, T)> {
        self.ids().zip(self.0)
    }
}

impl<T> Index<NodeId> for PerNode<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, node: NodeId) -> &T {
        &self.0[node.index()]
    }
}

impl<T> IndexMut<NodeId> for PerNode<T> {
    #[inline(always)]
    fn index_mut(&mut self, node: NodeId) -> &mut T {
        &mut self.0[node.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_something_for_each_node_up_to_the_last_that_was_asked_for() {
        let mut per_node: PerNode<u8> = PerNode::default();
        *per_node.get_or_default(NodeId::nth(2)) = 7;
        assert_eq!(per_node.iter().copied().collect::<Vec<_>>(), [0, 0, 7]);
        assert_eq!(per_node.push(9), NodeId::nth(3));
        assert_eq!(per_node.get(NodeId::nth(4)), None);
        assert_eq!(per_node.get(NodeId::NONE), None);
        per_node.resize(1);
        assert_eq!((per_node.len(), per_node[NodeId::nth(0)]), (1, 0));
    }

    #[test]
    fn a_node_keeps_its_place_in_the_settings() {
        let node = NodeId::nth(5);
        assert_eq!(NodeId::at(node.place()), node);
        let range = NodeRange::one(node);
        assert!(range.has(node) && !range.has(NodeId::nth(4)));
        assert_eq!((range.count(), NodeRange::none().count(), NodeRange::first(3).count()), (1, 0, 3));
    }
}
