//! Classes of lanes: the key of a class (the state that its clients share), its number, its owner, and its lane to each node.
//!
//! A number that is free is another class's later.

use crate::ids::{ClientHandle, LaneId, LaneKeyId, NodeId, PerKey, PerNode};
use crate::slab::id_vec::Id;
use crate::users::quota::UserQuota;
use respool_wire::Protocol;
use std::sync::Arc;

/// A class that is in use for as long as this is kept: its number is not another class's meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct LaneKeyUse {
    class: LaneKeyId,
    _held: Arc<()>,
}

impl LaneKeyUse {
    pub(super) fn new(class: LaneKeyId, held: &Arc<()>) -> Self {
        Self { class, _held: Arc::clone(held) }
    }

    #[cfg(test)]
    pub(crate) fn of_plain() -> Self {
        Self { class: LaneKeyId::PLAIN, _held: Arc::default() }
    }

    pub(crate) fn id(&self) -> LaneKeyId {
        self.class
    }
}

/// The session state that a lane's users share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneKey {
    pub(crate) database: u32,
    pub(crate) protocol: Protocol,
    /// The node user: 0 for the credentials that each node is configured with, else one of the worker's node users, counted from 1.
    pub(crate) node_user: u16,
}

/// Owner of a lane key: shared, shared by scripts, one client, or free.
#[derive(Debug)]
pub(crate) enum KeyOwner {
    /// Shared by all clients with the same database, dialect and name at the nodes.
    Shared,
    /// The same, for scripts beside this class, see [`crate::scripts::lanes`].
    Scripts { beside: LaneKeyId },
    /// One client.
    Client(Box<Owner>),
    /// The number is free.
    Free,
}

/// A client with lanes of its own.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) session: ClientHandle,
    /// The class that it would be in if it shared.
    pub(crate) base: LaneKeyId,
    /// The nodes to which it has its own; `None`: all.
    pub(crate) nodes: Option<Vec<NodeId>>,
    /// Its user's bounds.
    pub(crate) allowance: Option<Arc<UserQuota>>,
    /// If nodes tell it of changed keys: by node, the request that has them do so; `None` where that is not known yet.
    pub(crate) tracking: Option<PerNode<Option<Arc<[u8]>>>>,
}

impl Owner {
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.contains(&node))
    }
}

/// The lane of each class and node.
#[derive(Debug, Default)]
pub(crate) struct LaneGrid {
    /// Class by class; `NONE` where there is no lane yet.
    cells: Vec<LaneId>,
    nodes: usize,
}

impl LaneGrid {
    /// Without lanes.
    pub(super) fn new(classes: usize, nodes: usize) -> Self {
        Self { cells: vec![LaneId::NONE; classes * nodes], nodes }
    }

    /// There are more classes.
    pub(super) fn resize(&mut self, classes: usize) {
        self.cells.resize(classes * self.nodes, LaneId::NONE);
    }

    #[inline(always)]
    fn cell(&self, node: NodeId, class: LaneKeyId) -> usize {
        class.index() * self.nodes + node.index()
    }

    /// The lane of a node and class, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, node: NodeId, class: LaneKeyId) -> Option<LaneId> {
        self.cells.get(self.cell(node, class)).copied().filter(|lane| *lane != LaneId::NONE)
    }

    /// Puts a lane, or none, in the place of a node and class.
    pub(super) fn put(&mut self, node: NodeId, class: LaneKeyId, lane: Option<LaneId>) {
        let cell = self.cell(node, class);
        self.cells[cell] = lane.unwrap_or(LaneId::NONE);
    }

    /// Takes a lane out, unless another is in its place.
    pub(super) fn take_out(&mut self, node: NodeId, class: LaneKeyId, lane: LaneId) {
        if self.get(node, class) == Some(lane) {
            self.put(node, class, None);
        }
    }

    /// The lanes of a class.
    pub(crate) fn of_class(&self, class: LaneKeyId) -> impl Iterator<Item = LaneId> + '_ {
        let start = class.index() * self.nodes;
        let cells = self.cells.get(start..start + self.nodes).unwrap_or_default();
        cells.iter().copied().filter(|lane| *lane != LaneId::NONE)
    }
}

/// How many classes for scripts are beside one class.
const WAYS: usize = 2;

/// Classes for scripts by the class beside which they are.
#[derive(Debug, Default)]
pub(crate) struct ScriptClasses {
    pub(crate) beside: PerKey<[Option<LaneKeyId>; WAYS]>,
}

impl ScriptClasses {
    /// There are none beside a class any more.
    pub(crate) fn forget(&mut self, class: LaneKeyId) {
        self.beside.get_mut(class).into_iter().for_each(|ways| *ways = Default::default());
    }
}
