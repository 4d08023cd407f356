//! What is done with the bytes of a node: handshakes, replies for their owners, and what becomes of a connection that sends anything
//! else.

use crate::env::Env;
use crate::ids::{Handle, LaneId};
use crate::interfaces::changed_keys::ChangeSource;
use crate::limits::PART_LOOKED_AT_BYTES;
use crate::pool::{LaneEnd, LaneUse};
use crate::reply::owner::Owner;
use crate::session::selecting::Selecting;
use crate::session::table::Clients;
use respool_command::Execute;
use respool_connection::{Event, Fault, Shake};
use respool_wire::Protocol;

impl<E: Execute> Env<E> {
    /// Gives replies to their owners, and what a node says of changed keys to `hear`. Returns the fault of the connection, if
    /// it has one, and whether anything had been waited for.
    #[inline]
    pub(crate) fn deliver(
        &mut self,
        lane: LaneId,
        bytes: &[u8],
        mut hear: impl FnMut(ChangeSource<'_>, Option<Owner>, &[u8], &mut Clients),
    ) -> (Option<Fault>, bool) {
        let Self { lanes, clients, scatters, tasks, config, counters, now, .. } = self;
        let Some(this) = lanes.all.get_mut(lane) else { return (None, false) };
        let mut rest = bytes;
        let mut was_awaited = false;
        // This owner's reply is passed on as it arrives.
        let mut part_for = None;
        let fault = loop {
            match this.up.next_event(&mut rest, &config.reply_limits, now.mono_us) {
                Ok(None) => break None,
                Err(fault) => break Some(fault),
                Ok(Some(event)) => match event {
                    Event::Reply { ticket: Owner::Client { index, generation, seq }, bytes, .. } => {
                        was_awaited = true;
                        clients.feed_at_once(Handle { index, generation }, seq, bytes, true);
                    }
                    Event::Piece { ticket: &Owner::Client { index, generation, seq }, bytes } => {
                        was_awaited = true;
                        let client = Handle { index, generation };
                        clients.feed_at_once(client, seq, bytes, false);
                        part_for = Some(client);
                    }
                    // Only what goes straight to a client is passed on in pieces.
                    Event::Piece { .. } => {}
                    Event::Reply { ticket: Owner::Part { gather, generation, part }, bytes, kind } => {
                        was_awaited = true;
                        scatters.feed(Handle { index: gather, generation }, part, kind, bytes, clients);
                    }
                    Event::Reply { ticket: owner @ Owner::Task { task, generation, step }, bytes, kind } => {
                        was_awaited |= !tasks.follows(owner);
                        tasks.feed(Handle { index: task, generation }, step, kind, bytes, clients);
                        if let Some(multi) = tasks.take_known() {
                            this.multi = multi;
                        }
                        if tasks.take_out_of_step() {
                            break Some(Fault::Unsolicited);
                        }
                    }
                    Event::Push { bytes, .. } => {
                        if let Some(reader) = this.lease.reader() {
                            let frame = bytes.to_vec();
                            let next = this.up.tickets().front().copied();
                            let at = ChangeSource { reader, node: this.node, config };
                            hear(at, next, &frame, clients);
                        }
                    }
                    Event::Reply { ticket: Owner::Unanswered { index, generation }, bytes, .. } => {
                        counters.replies_swallowed.add(1);
                        clients.end_unanswered(Handle { index, generation }, bytes.len());
                    }
                    Event::Reply { ticket: Owner::Discard, .. } => counters.replies_swallowed.add(1),
                },
            }
        };
        if let Some(client) = part_for {
            self.note_large(lane, client);
        }
        (fault, was_awaited)
    }

    /// What has come from a node has been dealt with, as far as there was nothing wrong with it. Returns whether the connection
    /// has ended.
    #[inline]
    pub(crate) fn finish_replies(&mut self, lane: LaneId, fault: Option<Fault>, was_awaited: bool) -> bool {
        let this = &mut self.lanes.all[lane];
        if was_awaited {
            this.late_since_us = None;
        }
        let sample_us = this.up.take_sample_us();
        if sample_us > 0 {
            self.lanes.nodes[this.node].latency_of(&self.shared).record(sample_us);
        }
        let held = this.up.partial_held_bytes();
        if held != this.accounted {
            self.shared.ledger.account(this.accounted, held);
            this.accounted = held;
            if held > PART_LOOKED_AT_BYTES {
                self.bound_partial(lane);
            }
        }
        let this = &self.lanes[lane];
        if this.lease.reader().is_some() {
            self.pace_lane(lane);
        }
        if self.lanes.has_behind && self.lanes[lane].is_settled() {
            self.lanes.may_go_on = true;
        }
        let Some(fault) = fault else { return false };
        self.counters.unsolicited_replies.add(u64::from(fault == Fault::Unsolicited));
        if fault == Fault::OutOfStep {
            self.note_out_of_step(lane);
        }
        self.close_upstream(lane);
        self.end_lane(lane, LaneEnd::Fault(fault));
        true
    }

    /// A node has answered a handshake. `Some`: that was the last answer, and this waited for it.
    pub(crate) fn shake(&mut self, lane: LaneId, bytes: &[u8]) -> Option<Vec<Selecting>> {
        let this = &mut self.lanes[lane];
        match this.up.shake(bytes, &self.config.reply_limits, self.now.mono_us, &mut self.clients.pool) {
            Ok(Shake::Continues) => self.lanes.list(lane),
            Ok(Shake::Ready) => {
                if matches!(this.purpose, LaneUse::Push | LaneUse::PushSuccessor) && this.up.is_old() {
                    this.up.set_protocol(Protocol::Resp2);
                }
                return Some(std::mem::take(&mut this.selects));
            }
            Err(fault) => {
                self.close_upstream(lane);
                self.end_lane(lane, LaneEnd::Fault(fault));
            }
        }
        None
    }

    /// A lane is ready.
    pub(crate) fn note_lane_ready(&mut self, lane: LaneId) {
        let this = &self.lanes[lane];
        let purpose = this.purpose;
        if this.up.is_old() && !matches!(purpose, LaneUse::Push | LaneUse::PushSuccessor) {
            self.lanes.begin_converting(lane);
        }
        if purpose == LaneUse::Successor {
            self.lanes.succeed(lane);
        }
        self.lanes.end_dial(lane);
        self.lanes[lane].ready_us = self.now.mono_us;
        self.note_kind(lane);
        self.note_entry(lane);
    }

    /// A lane is ready, and its node is there.
    pub(crate) fn note_node_ready(&mut self, lane: LaneId) {
        if self.lanes.is_at_its_node(lane) && !self.lanes.nodes[self.lanes[lane].node].is_removed {
            self.note_back(lane);
        }
        self.shared.databases.note(self.lanes.class_database(lane));
        self.lanes.list(lane);
        self.counters.upstreams.add(1);
    }

    fn note_back(&mut self, lane: LaneId) {
        let this = &self.lanes[lane];
        let (node, class, is_shared) = (this.node, self.lanes.state_of(this.class), this.purpose == LaneUse::Shared);
        let health = &mut self.lanes.nodes[node].health;
        let is_back = health.note_ready(class);
        let was_away = is_back || is_shared && health.take_lost();
        self.lanes.begin_slowly(&self.config, self.now, lane, was_away);
        if is_back {
            self.tell_back(node);
            self.dial_idle_lanes(node);
        }
    }
}
