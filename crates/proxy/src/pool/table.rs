//! Lanes by their ids: the table of places in which the lanes of one worker stand, and which of them a class has to a node.

use crate::ids::{LaneId, LaneKeyId, NodeId};
use crate::slab::id_vec::{Id, IdVec};

/// All lanes of one worker in their places.
pub(crate) type LaneTable<L> = IdVec<LaneId, L>;

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
