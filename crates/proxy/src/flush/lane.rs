//! What the loop tells of connections to nodes, and what it is told to do with them.

use crate::env::Env;
use crate::ids::LaneId;
use respool_command::Execute;
use respool_connection::Action;

impl<E: Execute> Env<E> {
    /// Room for what a node sends. `None`: it is not read.
    #[inline(always)]
    pub(super) fn room_of_lane(&mut self, lane: LaneId) -> Option<&mut [u8]> {
        let this = &mut self.lanes[lane];
        let is_unread = this.lease.is_unread() || this.is_closing || self.node_reads.leaves(lane, this);
        (!is_unread).then_some(&mut self.read_buffer)
    }

    /// A node has sent so many bytes.
    #[inline(always)]
    pub(crate) fn note_lane_read(&mut self, lane: LaneId, bytes: usize) {
        self.counters.upstream_reads.add(1);
        self.counters.upstream_bytes_in.add(bytes as u64);
        if bytes == self.read_buffer.len() {
            self.lanes[lane].filled_us = self.now.mono_us;
        }
    }

    /// A connection to a node has been written.
    #[inline(always)]
    pub(super) fn handle_lane_written(&mut self, lane: LaneId, bytes: usize) {
        self.counters.upstream_writes.add(1);
        self.counters.upstream_bytes_out.add(bytes as u64);
        let this = &mut self.lanes[lane];
        let is_whole = bytes == this.up.output().len();
        this.up.handle_written(bytes, self.now.mono_us, &mut self.clients.pool);
        this.is_blocked = !is_whole && !this.up.output().is_empty();
        let has_more = this.up.queued_bytes() > 0;
        if has_more && !this.is_blocked {
            // The next segment, or what it may not be sent yet, is looked at again.
            self.lanes.list(lane);
        }
        if has_more || self.lanes[lane].queue_accounted > 0 {
            self.lanes.account_queue(&self.shared, lane);
        }
        if !self.lanes[lane].throttled.is_empty() {
            self.release_throttled(lane);
        }
    }

    /// A connection to a node can be written again.
    pub(super) fn handle_lane_writable(&mut self, lane: LaneId) {
        let this = &mut self.lanes[lane];
        this.is_blocked = false;
        this.lease.note_flow(self.now.mono_us);
        self.lanes.list(lane);
    }

    /// A dial has reached an address of its node.
    pub(super) fn handle_lane_connected(&mut self, lane: LaneId) {
        if self.lanes.is_outdated(lane) {
            self.dial_anew(lane);
            return;
        }
        self.lanes[lane].up.handle_connected(self.now.mono_us, &mut self.clients.pool);
        self.lanes[lane].is_blocked = false;
        self.lanes.list(lane);
    }

    /// Which address a connection to a node has, or is dialled at.
    pub(super) fn note_lane_address(&mut self, lane: LaneId, address: &str) {
        if let Some(this) = self.lanes.all.get_mut(lane) {
            this.at = Some(address.into());
            let known = &mut self.lanes.nodes[this.node].address;
            known.clear();
            known.push_str(address);
        }
    }

    /// Has the loop close the connection of a lane, once. What the loop tells of it until then is not listened to: the
    /// lane has ended, and a second order to close could meet the next connection in its place.
    pub(crate) fn close_upstream(&mut self, lane: LaneId) {
        if !std::mem::replace(&mut self.lanes[lane].is_closing, true) {
            self.actions.push_back(Action::Close { conn: lane.conn() });
        }
    }
}
