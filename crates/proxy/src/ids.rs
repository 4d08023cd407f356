//! The ids of what a worker keeps in tables, and the vectors that are indexed by them.
//!
//! An id is a place in one of its worker's tables, so only the table makes one: that of sessions when a client is accepted, that of
//! lanes when one is built, that of classes when there is one class more. Places are used again; a handle says which of those that
//! were in a place is meant. The nodes of a worker have their places from the settings: those that are configured come first, in the
//! order of the settings, and those that have gone stand behind them while they still owe something. This file alone knows that,
//! and turns places of the settings into ids.

use crate::slab::id_vec::{IdVec, id};
use respool_connection::{ConnId, Seq};
use respool_route::{NodeIndex, NodePlace, Pool};
use std::fmt::{Display, Formatter};
use std::ops::Range;

/// Where something is kept, and which of those that were kept there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Handle<I = u32> {
    /// The place.
    pub(crate) index: I,
    /// The place's generation.
    pub(crate) generation: u32,
}

/// The place of a client in its worker's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(u32);

id!(ClientId, u32);

/// One of the clients that were in a place, and none of the others.
pub(crate) type ClientHandle = Handle<ClientId>;

impl ClientId {
    /// The client of a connection that the loop names.
    #[inline(always)]
    pub(crate) fn of(conn: ConnId) -> Self {
        Self(conn.index() as u32)
    }

    /// As the loop knows its connection.
    #[inline(always)]
    pub(crate) fn conn(self) -> ConnId {
        ConnId::client(self.0)
    }
}

/// The number by which clients know each other (`CLIENT ID`): no other client of the process has had it, whichever worker it is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientNumber(u64);

impl ClientNumber {
    /// The client of a number that was given out, or that a request names.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, to be shown.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Display for ClientNumber {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// The client and place of a reply that takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker {
    pub(crate) session: ClientHandle,
    /// The place of the reply.
    pub(crate) seq: Seq,
    /// The client has not switched replies off; otherwise nothing is written in the place.
    pub(crate) is_wanted: bool,
}

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

/// The place of a lane in its worker's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneId(u32);

id!(LaneId, u32);

/// One of the lanes that were in a place, and none of the others.
pub(crate) type LaneHandle = Handle<LaneId>;

impl LaneId {
    /// No lane.
    pub(crate) const NONE: Self = Self(u32::MAX);

    /// The lane of a connection that the loop names.
    #[inline(always)]
    pub(crate) fn of(conn: ConnId) -> Self {
        Self(conn.index() as u32)
    }

    /// As the loop knows its connection.
    #[inline(always)]
    pub(crate) fn conn(self) -> ConnId {
        ConnId::upstream(self.0)
    }

    /// The number, to be shown or mixed into something.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// All lanes of one worker in their places.
pub(crate) type LaneTable<L> = IdVec<LaneId, L>;

/// The number of a class of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneKeyId(u16);

id!(LaneKeyId, u16);

impl LaneKeyId {
    /// The first, in which every client begins.
    pub(crate) const PLAIN: Self = Self(0);

    /// How many classes there may be.
    pub(crate) const COUNT_MAX: usize = u16::MAX as usize + 1;
}

/// Something for each class.
pub(crate) type PerKey<T> = IdVec<LaneKeyId, T>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::id_vec::Id;

    #[test]
    fn a_connection_of_the_loop_leads_back_to_its_client() {
        for place in [0, 7, 1 << 20] {
            let client = ClientId::nth(place);
            assert!(!client.conn().is_upstream());
            assert_eq!((ClientId::of(client.conn()), client.index()), (client, place));
        }
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
