//! Lanes by their ids: the table of places in which the lanes of one worker stand.
//!
//! Only the table makes an id, so an id is of a place that exists. A place is used again after its lane has ended; a handle
//! says of which of them it is.

use crate::nodes::id::NodeId;
use crate::pool::key_id::LaneKeyId;
use crate::slab::Handle;
use respool_connection::ConnId;
use std::fmt::{Display, Formatter};
use std::ops::{Index, IndexMut};

/// The place of a lane in its worker's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LaneId(u32);

/// One of the lanes that were in a place, and none of the others.
pub(crate) type LaneHandle = Handle<LaneId>;

impl LaneId {
    /// No lane.
    const NONE: Self = Self(u32::MAX);

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

impl Display for LaneId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// All lanes of one worker in their places.
#[derive(Debug)]
pub(crate) struct LaneTable<L>(Vec<L>);

impl<L> Default for LaneTable<L> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<L> LaneTable<L> {
    /// Puts a lane into a place of its own.
    pub(super) fn push(&mut self, lane: L) -> LaneId {
        let id = LaneId(self.0.len() as u32);
        self.0.push(lane);
        id
    }

    /// The place that the next lane gets if none is free.
    pub(crate) fn next_id(&self) -> LaneId {
        LaneId(self.0.len() as u32)
    }

    pub(crate) fn get(&self, lane: LaneId) -> Option<&L> {
        self.0.get(lane.0 as usize)
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, lane: LaneId) -> Option<&mut L> {
        self.0.get_mut(lane.0 as usize)
    }

    /// All places that there are now.
    pub(crate) fn ids(&self) -> impl Iterator<Item = LaneId> + use<L> {
        (0..self.0.len() as u32).map(LaneId)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, L> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, L> {
        self.0.iter_mut()
    }

    /// All lanes with their places.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (LaneId, &L)> {
        self.ids().zip(&self.0)
    }

    /// The first lane for which `is_fit` holds.
    pub(crate) fn position(&self, is_fit: impl FnMut(&L) -> bool) -> Option<LaneId> {
        self.0.iter().position(is_fit).map(|place| LaneId(place as u32))
    }
}

impl<L> Index<LaneId> for LaneTable<L> {
    type Output = L;

    #[inline(always)]
    fn index(&self, lane: LaneId) -> &L {
        &self.0[lane.0 as usize]
    }
}

impl<L> IndexMut<LaneId> for LaneTable<L> {
    #[inline(always)]
    fn index_mut(&mut self, lane: LaneId) -> &mut L {
        &mut self.0[lane.0 as usize]
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
        class.place() * self.nodes + node.index()
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
        let start = class.place() * self.nodes;
        let cells = self.cells.get(start..start + self.nodes).unwrap_or_default();
        cells.iter().copied().filter(|lane| *lane != LaneId::NONE)
    }
}
