//! What a placement knows of a node: its position in the list, its name and its weight; and its position in the list of all pools.

use std::fmt;

/// The position of a node in its topology's list, counted from zero.
///
/// This is what a plan speaks of; addresses and connections belong to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(u16);

impl NodeIndex {
    /// The first node of the list.
    pub const FIRST: Self = Self(0);

    /// Names the node at `index`. Panics beyond 65,535, which no topology reaches (see
    /// [`NODES_MAX`](crate::limits::NODES_MAX)).
    pub const fn new(index: usize) -> Self {
        assert!(index <= u16::MAX as usize, "a topology has at most NODES_MAX nodes");
        Self(index as u16)
    }

    /// The position as an index into lists that run parallel to the topology's.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// The position of a node in the list of all nodes of the settings, those of every pool and replicas among them, counted from
/// zero.
///
/// A pool's primaries are a part of that list; [`Pool::place`](crate::Pool::place) leads from one to the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePlace(u32);

impl NodePlace {
    /// The first node of the list.
    pub const FIRST: Self = Self(0);

    /// Names the node at `index`. Panics beyond 32 bits, which no settings reach.
    pub const fn new(index: usize) -> Self {
        assert!(index <= u32::MAX as usize, "nodes fit into memory");
        Self(index as u32)
    }

    /// The position as an index into lists that run parallel to that of all nodes.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A node as the settings name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `host:port`, a socket's path, or a name of the operator's choice. Placements that hash names (ketama,
    /// rendezvous) keep a node's keys where they are for as long as its name stays the same.
    pub name: String,
    /// Share of the keys relative to the other nodes, from 1 to [`WEIGHT_MAX`](crate::limits::WEIGHT_MAX).
    pub weight: u32,
}

impl Node {
    /// A node of weight one.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), weight: 1 }
    }

    /// The same node with another weight.
    pub fn with_weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }
}
