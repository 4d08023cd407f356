//! Which connections wait for their turn to be dialled.

use crate::ids::{LaneHandle, LaneId, NodeId, PerNode};
use crate::pool::DialRefusal;
use std::collections::VecDeque;

/// What waits for one node.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pub(crate) waiting: VecDeque<LaneHandle>,
    /// Dials under way.
    pub(crate) in_flight: usize,
    /// No lane is dialled before then.
    pub(crate) look_us: u64,
}

/// The dials of one worker.
#[derive(Debug, Default)]
pub(crate) struct DialQueue {
    /// By node.
    pub(crate) queues: PerNode<Queue>,
    /// Lanes that wait, for whatever node.
    pub(crate) waiting: usize,
    /// Something has changed since it was last found that none of them can be dialled.
    pub(crate) has_news: bool,
}

/// The decision about a lane in the dial queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DialDecision {
    /// It is dialled now.
    Dial(LaneId),
    /// It is not, for this reason.
    Refused(LaneId, DialRefusal),
}

impl DialQueue {
    /// Whether a lane may have its turn.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    /// Another turn of the loop: pauses may be over.
    #[inline]
    pub(crate) fn look_again(&mut self) {
        self.has_news = self.waiting > 0;
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether a node is being dialled, or a lane waits for that.
    pub(crate) fn is_tried(&self, node: NodeId) -> bool {
        self.queues.get(node).is_some_and(|queue| queue.in_flight > 0 || !queue.waiting.is_empty())
    }

    pub(crate) fn at(&mut self, node: NodeId) -> &mut Queue {
        self.queues.get_or_default(node)
    }

    pub(crate) fn enter(&mut self, node: NodeId, lane: LaneHandle) {
        self.at(node).waiting.push_back(lane);
        self.waiting += 1;
        self.has_news = true;
    }

    pub(crate) fn leave(&mut self, node: NodeId, lane: LaneHandle) {
        let queue = self.at(node);
        let before = queue.waiting.len();
        queue.waiting.retain(|waiting| *waiting != lane);
        let gone = before - queue.waiting.len();
        self.waiting -= gone;
    }

    /// A lane in the handshake has become one of a node that has gone: it does not count among the dials of its node any more.
    pub(crate) fn leave_in_flight(&mut self, node: NodeId) {
        let queue = self.at(node);
        queue.in_flight = queue.in_flight.saturating_sub(1);
        self.has_news = self.waiting > 0;
    }

    /// Nodes have other places.
    pub(crate) fn place_anew(&mut self, moved: impl Fn(NodeId) -> NodeId) {
        for (before, queue) in std::mem::take(&mut self.queues).into_entries() {
            match moved(before) {
                now if now != NodeId::NONE => *self.at(now) = Queue { look_us: 0, ..queue },
                // A node that is dropped has no lanes.
                _ => self.waiting -= queue.waiting.len(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LaneTable;

    fn lane(generation: u32) -> LaneHandle {
        LaneHandle { index: LaneTable::<()>::default().next_id(), generation }
    }

    #[test]
    fn a_lane_that_leaves_its_queue_is_not_waited_for() {
        let (mut dials, node) = (DialQueue::default(), NodeId::nth(2));
        dials.enter(node, lane(0));
        dials.enter(node, lane(1));
        dials.leave(node, lane(0));
        dials.leave(node, lane(0));
        assert_eq!(dials.waiting(), 1);
        assert!(dials.is_tried(node) && !dials.is_tried(NodeId::nth(0)));
        dials.leave(node, lane(1));
        assert!(!dials.is_tried(node));
        dials.look_again();
        assert!(!dials.has_news(), "no lane may have a turn");
    }

    #[test]
    fn queues_move_and_end_with_their_nodes() {
        let mut dials = DialQueue::default();
        for place in 0..3 {
            dials.enter(NodeId::nth(place), lane(place as u32));
            dials.at(NodeId::nth(place)).look_us = 9;
        }
        let moved = [NodeId::nth(1), NodeId::NONE, NodeId::nth(0)];
        dials.place_anew(|before| moved[before.index()]);
        assert_eq!(dials.waiting(), 2);
        assert_eq!(dials.at(NodeId::nth(1)).waiting, [lane(0)]);
        assert_eq!(dials.at(NodeId::nth(0)).waiting, [lane(2)]);
        assert_eq!(dials.at(NodeId::nth(0)).look_us, 0, "the pause was the other address's");
    }
}
