//! Bytes of nodes: which feature they are for.

use crate::ids::LaneId;
use crate::pool::LaneUse;
use crate::session::selecting::Selecting;
use crate::worker::Worker;
use respool_command::Execute;

impl<E: Execute> Worker<E> {
    /// Bytes have come from a node.
    pub(crate) fn take_replies(&mut self, lane: LaneId, bytes: &[u8]) {
        self.env.look_at(lane, bytes);
        let Some(this) = self.env.lanes.all.get_mut(lane) else { return };
        if !this.up.is_ready() {
            return self.shake(lane, bytes);
        }
        match this.purpose {
            LaneUse::Push => return self.subscriptions.take_pushes(&mut self.env, lane, bytes),
            LaneUse::Dedicated => return self.dedicated.handle_bytes(&mut self.env, lane, bytes),
            _ => {}
        }
        this.up.note_heard(self.env.now.mono_us);
        let (fault, was_awaited) = if this.beside.is_some() {
            self.env.take_beside(lane, bytes)
        } else {
            let subscriptions = &mut self.subscriptions;
            self.env.deliver(lane, bytes, |at, next, frame, clients| subscriptions.hear(at, next, frame, clients))
        };
        if self.env.finish_replies(lane, fault, was_awaited) {
            self.tell_ended();
        }
    }

    fn shake(&mut self, lane: LaneId, bytes: &[u8]) {
        if let Some(selects) = self.env.shake(lane, bytes) {
            self.note_ready(lane, selects);
        }
        self.tell_ended();
    }

    /// A lane is ready: its node is there. `selects`: what waited for it.
    fn note_ready(&mut self, lane: LaneId, selects: Vec<Selecting>) {
        let this = &self.env.lanes[lane];
        let is_hearing = this.purpose == LaneUse::Listen || this.up.identity().tracking.is_some();
        if matches!(this.purpose, LaneUse::Push | LaneUse::PushSuccessor) {
            self.subscriptions.begin_push_lane(&mut self.env, lane);
        }
        self.env.note_lane_ready(lane);
        if let Some(node) = self.env.lanes.node_left_by(&self.env.config, lane) {
            self.leave_address(node);
        }
        self.env.note_node_ready(lane);
        for selecting in selects {
            self.env.finish_select(&mut self.subscriptions, selecting, lane);
        }
        if is_hearing {
            self.subscriptions.begin_hearing(&mut self.env, lane);
        }
    }
}
