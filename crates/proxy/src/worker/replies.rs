//! Bytes of nodes: whose they are.

use crate::env::Env;
use crate::limits::PART_LOOKED_AT_BYTES;
use crate::pool::table::LaneId;
use crate::pool::{LaneEnd, LaneUse};
use crate::reply::owner::Owner;
use crate::slab::Handle;
use crate::tracking::noloop_lanes::ChangeSource;
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::{Event, Fault, Shake};

impl<E: Execute> Worker<E> {
    /// Bytes have come from a node.
    pub(crate) fn take_replies(&mut self, lane: LaneId, bytes: &[u8]) {
        if self.env.is_worth_a_look(lane) {
            self.env.look(lane, bytes);
        }
        if bytes.first() == Some(&b'-') {
            self.env.look_at_error(lane, bytes);
        }
        let Self { env: Env { lanes, clients, scatters, tasks, config, counters, now, .. }, subscriptions, .. } = self;
        let Some(this) = lanes.all.get_mut(lane) else { return };
        if !this.up.is_ready() {
            self.shake(lane, bytes);
            return;
        }
        if matches!(this.purpose, LaneUse::Push | LaneUse::Dedicated) {
            return match this.purpose {
                LaneUse::Push => self.subscriptions.take_pushes(&mut self.env, lane, bytes),
                _ => self.dedicated.handle_bytes(&mut self.env, lane, bytes),
            };
        }
        this.up.note_heard(now.mono_us);
        if this.beside.is_some() {
            let (fault, was_awaited) = self.env.take_beside(lane, bytes);
            return self.finish_replies(lane, fault, was_awaited);
        }
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
                        if let Some(reader) = this.reader {
                            let frame = bytes.to_vec();
                            let next = this.up.tickets().front().copied();
                            let at = ChangeSource { reader, node: this.node, config };
                            subscriptions.hear(at, next, &frame, clients);
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
            self.env.note_large(lane, client);
        }
        self.finish_replies(lane, fault, was_awaited);
    }

    /// What has come from a node has been dealt with, as far as there was nothing wrong with it.
    #[inline]
    fn finish_replies(&mut self, lane: LaneId, fault: Option<Fault>, was_awaited: bool) {
        let this = &mut self.env.lanes.all[lane];
        if was_awaited {
            this.late_since_us = None;
        }
        let sample_us = this.up.take_sample_us();
        if sample_us > 0 {
            self.env.lanes.nodes[this.node].latency_of(&self.env.shared).record(sample_us);
        }
        let held = this.up.partial_held_bytes();
        if held != this.accounted {
            self.env.shared.ledger.account(this.accounted, held);
            this.accounted = held;
            if held > PART_LOOKED_AT_BYTES {
                self.env.bound_partial(lane);
            }
        }
        let this = &self.env.lanes[lane];
        if this.reader.is_some() {
            self.env.pace_lane(lane);
        }
        if self.env.lanes.has_behind && self.env.lanes[lane].is_settled() {
            self.env.lanes.may_go_on = true;
        }
        if let Some(fault) = fault {
            self.env.counters.unsolicited_replies.add(u64::from(fault == Fault::Unsolicited));
            if fault == Fault::OutOfStep {
                self.env.note_out_of_step(lane);
            }
            self.env.close_upstream(lane);
            self.env.end_lane(lane, LaneEnd::Fault(fault));
            self.tell_ended();
        }
    }

    fn shake(&mut self, lane: LaneId, bytes: &[u8]) {
        let this = &mut self.env.lanes[lane];
        let shaken =
            this.up.shake(bytes, &self.env.config.reply_limits, self.env.now.mono_us, &mut self.env.clients.pool);
        match shaken {
            Ok(Shake::Continues) => self.env.lanes.list(lane),
            Ok(Shake::Ready) => {
                let is_push = matches!(this.purpose, LaneUse::Push | LaneUse::PushSuccessor);
                let selects = std::mem::take(&mut this.selects);
                let is_successor = this.purpose == LaneUse::Successor;
                let is_hearing = this.purpose == LaneUse::Listen || this.up.identity().tracking.is_some();
                if is_push {
                    if this.up.is_old() {
                        this.up.set_protocol(respool_wire::Protocol::Resp2);
                    }
                    self.subscriptions.begin_push_lane(&mut self.env, lane);
                } else if self.env.lanes[lane].up.is_old() {
                    self.env.begin_converting(lane);
                }
                if is_successor {
                    self.env.lanes.succeed(lane);
                }
                self.note_lane_ready(lane);
                self.env.shared.databases.note(self.env.lanes.class_database(lane));
                self.env.lanes.list(lane);
                self.env.counters.upstreams.add(1);
                for selecting in selects {
                    self.env.finish_select(&mut self.subscriptions, selecting, lane);
                }
                if is_hearing {
                    self.subscriptions.begin_hearing(&mut self.env, lane);
                }
                self.tell_ended();
            }
            Err(fault) => {
                self.env.close_upstream(lane);
                self.env.end_lane(lane, LaneEnd::Fault(fault));
                self.tell_ended();
            }
        }
    }

    /// A lane is ready: its node is there.
    pub(crate) fn note_lane_ready(&mut self, lane: LaneId) {
        self.env.lanes.end_dial(lane);
        self.env.lanes[lane].ready_us = self.env.now.mono_us;
        self.env.note_kind(lane);
        self.env.note_entry(lane);
        self.note_address(lane);
        if !self.env.lanes.is_at_its_node(lane) || self.env.lanes.nodes[self.env.lanes[lane].node].is_gone {
            return;
        }
        let this = &self.env.lanes[lane];
        let (node, class, is_shared) =
            (this.node, self.env.lanes.state_of(this.class), this.purpose == LaneUse::Shared);
        let health = &mut self.env.lanes.nodes[node].health;
        let is_back = health.note_ready(class);
        let was_away = is_back || is_shared && health.take_lost();
        self.env.begin_slowly(lane, was_away);
        if is_back {
            self.env.tell_back(node);
            self.env.dial_idle_lanes(node);
        }
    }
}
