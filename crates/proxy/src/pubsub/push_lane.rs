//! The push lane: one connection per worker and node for what the node says without being asked.
//!
//! ```text
//!             first subscription            PONG              nothing heard for a while
//!   [none] ---------------------> [dialled] -----> [told all] -------------------------> [PING]
//!                                     ^   HELLO refused: RESP2 from now on                  |
//!                                     '--------- lost, silent, out of step <----------------'
//! ```
//!
//! Its requests have no tickets: what they bring about is acknowledged by pushes, which the book matches. A node that knows
//! no RESP3 is spoken to in RESP2, in which such a connection can do nothing else anyway. Nothing else would notice a peer that
//! has vanished without a word, so a silent one is sent PINGs.

use super::Subscriptions;
use super::delivery::Terms;
use super::routing::{MessageSource, nodes_of_told};
use crate::env::Env;
use crate::error_text;
use crate::limits::{
    PUSH_CHECK_US, PUSH_ORDERS_MAX, PUSH_QUEUE_BYTES_MAX, PUSH_SILENT_US_MAX, RENEW_US, STRUCK_OUT_PER_TURN_MAX,
};
use crate::nodes::id::NodeId;
use crate::pool::key_id::LaneKeyId;
use crate::pool::table::LaneId;
use crate::pool::{Lane, LaneEnd, LaneUse};
use crate::push::frame::{Frame, Kind, Verb};
use crate::push::node_ledger::{OutOfStep, Refusal};
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::{Event, Fault, Phase, Pushes};
use respool_wire::Protocol;

/// A worker's push lane to one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushLane {
    pub(super) lane: LaneId,
    /// When the PING was sent that has not been answered; 0 if none is out.
    pinged_us: u64,
}

impl<E: Execute> Worker<E> {
    /// Sees to it that there is a push lane to a node, or will be. `Err`: there is no hope for now.
    pub(crate) fn prepare_push_lane(&mut self, node: NodeId) -> Result<(), Vec<u8>> {
        let lane = match self.subscriptions.lanes[node] {
            Some(known) => known.lane,
            None => {
                let lane = self.env.lanes.add_unshared(&self.env.config, node, LaneKeyId::PLAIN, LaneUse::Push);
                self.env.lanes[lane].up.set_protocol(Protocol::Resp3);
                self.subscriptions.lanes[node] = Some(PushLane { lane, pinged_us: 0 });
                self.subscriptions.check_at_us = self.env.now.mono_us + PUSH_CHECK_US;
                lane
            }
        };
        if self.env.lanes[lane].up.is_ready() {
            Ok(())
        } else {
            self.env.lanes.prepare(lane, &self.env.config, self.env.now)
        }
    }

    /// The successor of a push lane is ready: it takes over.
    fn succeed_push_lane(&mut self, lane: LaneId) {
        let node = self.env.lanes[lane].node;
        self.forget_push_lane(node);
        self.env.lanes[lane].purpose = LaneUse::Push;
        self.subscriptions.lanes[node] = Some(PushLane { lane, pinged_us: 0 });
    }

    /// Closes the push lane to a node for good.
    pub(super) fn forget_push_lane(&mut self, node: NodeId) {
        let Some(PushLane { lane, .. }) = self.subscriptions.lanes[node] else { return };
        self.env.close_lane(lane);
        self.tell_ended();
        self.subscriptions.lanes[node] = None;
        self.env.lanes.retire(lane);
        // Otherwise its place is free once the loop has closed its connection.
        if !self.env.lanes[lane].is_closing {
            self.env.lanes.release(lane);
        }
    }

    /// A push lane can be used: the node is told everything.
    pub(crate) fn begin_push_lane(&mut self, lane: LaneId) {
        if self.env.lanes[lane].purpose == LaneUse::PushSuccessor {
            self.succeed_push_lane(lane);
        }
        let this = &mut self.env.lanes[lane];
        this.up.set_pushes(Pushes::Only);
        let node = this.node;
        if let Some(this) = &mut self.subscriptions.lanes[node] {
            this.pinged_us = 0;
        }
        self.subscriptions.books[node].begin();
        self.subscriptions.has_news = true;
        self.env.counters.push_lanes.set(self.env.counters.push_lanes.value() + 1);
    }

    /// A push lane is gone. Waiting requests go on waiting if it was there: it will be again, or their time ends.
    pub(crate) fn lose_push_lane(&mut self, node: NodeId, was_ready: bool, error: &[u8]) {
        let this = &mut self.subscriptions;
        let (book, registries) = this.book(node);
        book.lose(registries);
        if was_ready {
            self.env.counters.push_lanes.set(self.env.counters.push_lanes.value().saturating_sub(1));
        }
        let error = error.into();
        for pending in this.books[node].take_pending() {
            // What is given up is given up with the connection; who tracks is told to forget everything when it is back.
            match this.change_of(pending) {
                _ if this.is_tracking_request(pending) => this.progress(pending, &mut self.env.clients),
                Some((Verb::Unsubscribe, _)) => this.progress(pending, &mut self.env.clients),
                Some((Verb::Subscribe, kind)) if was_ready => this.books[node].await_acknowledgements(pending, kind),
                Some((Verb::Subscribe, _)) => this.fail_later(pending, &error),
                // Its client has left.
                None => {}
            }
        }
        self.account_subscriptions();
    }

    /// Bytes have come on a push lane.
    pub(crate) fn take_pushes(&mut self, lane: LaneId, bytes: &[u8]) {
        let Self { env: Env { lanes, clients, config, counters, now, shared, .. }, subscriptions, .. } = self;
        let this = &mut lanes[lane];
        let node = this.node;
        this.up.note_heard(now.mono_us);
        if let Some(push_lane) = &mut subscriptions.lanes[node] {
            push_lane.pinged_us = 0;
        }
        let terms = Terms {
            ledger: &shared.ledger,
            bytes_max: config.subscriptions.output_bytes,
            slow: config.subscriptions.slow,
        };
        let mut rest = bytes;
        let fault = loop {
            let (kind, bytes) = match this.up.next_event(&mut rest, &config.reply_limits, now.mono_us) {
                Ok(None) => break None,
                Err(fault) => break Some(fault),
                Ok(Some(Event::Push { kind, bytes })) => (kind, bytes),
                // A push lane has no tickets.
                Ok(Some(Event::Reply { .. } | Event::Piece { .. })) => break Some(Fault::Unsolicited),
            };
            let step = match Frame::read(kind, bytes) {
                Frame::Message { kind, name } => {
                    counters.messages_received.add(1);
                    subscriptions.deliver_from(config, MessageSource { node, kind, name }, bytes, clients, terms);
                    Ok(())
                }
                Frame::Done { kind, verb, name: Some(name) } => {
                    let (book, registries) = subscriptions.book(node);
                    let step = book.acknowledge(registries, kind, verb, name);
                    if step.is_err() && kind == Kind::Shard && verb == Verb::Unsubscribe {
                        subscriptions.retract(config, MessageSource { node, kind, name });
                        Ok(())
                    } else {
                        step
                    }
                }
                Frame::Refused(words) => match subscriptions.refuse(node) {
                    Ok(Refusal::Channel(kind, told)) => {
                        counters.subscriptions_refused.add(1);
                        for id in subscriptions.called(kind, told) {
                            for pending in subscriptions.pending_of_channel(kind, id, clients) {
                                subscriptions.fail(pending, words, clients, config);
                            }
                        }
                        let (_, registries) = subscriptions.book(node);
                        registries[kind as usize].release(told);
                        Ok(())
                    }
                    Ok(Refusal::Tracking) => {
                        for pending in subscriptions.pending_of_tracking() {
                            subscriptions.fail(pending, words, clients, config);
                        }
                        Ok(())
                    }
                    Ok(Refusal::Nothing) => Ok(()),
                    Err(out_of_step) => Err(out_of_step),
                },
                Frame::Ok => subscriptions.books[node].acknowledge_tracking().map(|is_on| {
                    // Changes that were made meanwhile went untold.
                    if is_on {
                        subscriptions.invalidate_node(config, node, clients);
                    }
                }),
                Frame::Invalid(keys) => {
                    subscriptions.invalidate(config, node, keys, clients);
                    Ok(())
                }
                Frame::SubscriberPing => subscriptions.books[node].acknowledge_ping(),
                Frame::Other => Ok(()),
                Frame::Done { name: None, .. } | Frame::Nonsense => Err(OutOfStep),
            };
            if step.is_err() {
                break Some(Fault::Unsolicited);
            }
            while let Some(over) = subscriptions.books[node].next_over() {
                subscriptions.progress(over, clients);
            }
        };
        subscriptions.has_news |= subscriptions.books[node].has_news();
        subscriptions.account(&shared.ledger);
        subscriptions.tracked.show(counters);
        let held = this.up.partial_held_bytes();
        if held != this.accounted {
            shared.ledger.account(this.accounted, held);
            this.accounted = held;
        }
        let has_redirected = !subscriptions.redirected.is_empty();
        if let Some(fault) = fault {
            counters.unsolicited_replies.add(u64::from(fault == Fault::Unsolicited));
            self.env.close_upstream(lane);
            self.env.end_lane(lane, LaneEnd::Fault(fault));
            self.tell_ended();
        }
        if has_redirected {
            self.pass_on_redirected();
        }
    }

    /// Whether a node's push lane can tell of changed keys.
    pub(crate) fn check_push_dialect(&self, node: NodeId) -> Result<(), Vec<u8>> {
        let Some(push_lane) = self.subscriptions.lanes[node] else { return Ok(()) };
        match self.env.lanes[push_lane.lane].up.identity().protocol {
            Protocol::Resp3 => Ok(()),
            Protocol::Resp2 => Err(error_text::no_tracking(&self.env.lanes.nodes[node].told.name)),
        }
    }

    /// The end of a turn: nodes are told what has changed, in as few commands as it takes and no more than they keep up with.
    #[inline(always)]
    pub(crate) fn tell_nodes(&mut self) {
        let subscriptions = &self.subscriptions;
        if subscriptions.has_news || subscriptions.is_striking_out() || subscriptions.has_to_tell() {
            self.tell_nodes_what_there_is();
        }
    }

    #[cold]
    fn tell_nodes_what_there_is(&mut self) {
        if self.subscriptions.is_striking_out() {
            let Self { env: Env { clients, config, .. }, subscriptions, .. } = self;
            let failed = subscriptions.fail_some(STRUCK_OUT_PER_TURN_MAX, clients, config);
            subscriptions.strike_out(config, STRUCK_OUT_PER_TURN_MAX.saturating_sub(failed));
            self.account_subscriptions();
        }
        if self.subscriptions.has_news {
            self.tell_news();
        }
        if self.subscriptions.has_to_tell() {
            self.settle_doubts();
            self.pass_on_redirected();
        }
    }

    #[cold]
    fn tell_news(&mut self) {
        let Self { subscriptions, .. } = self;
        subscriptions.has_news = false;
        let is_tracking = subscriptions.tracked.is_any() || subscriptions.has_pending_of_tracking();
        subscriptions.is_tracking_wanted = is_tracking;
        self.want_changes(is_tracking);
        let Self { env: Env { lanes, clients, config, now, .. }, subscriptions, .. } = self;
        subscriptions.books.iter_mut().for_each(|book| book.want_tracking(is_tracking));
        let Subscriptions { books, registries, at_nodes, lanes: push_lanes, .. } = subscriptions;
        let is_routed = at_nodes.is_some();
        let registries = at_nodes.as_deref_mut().unwrap_or(registries);
        for (node, book) in books.entries_mut() {
            let Some(push_lane) = push_lanes[node].filter(|_| book.is_live() && book.has_news()) else { continue };
            let up = &mut lanes[push_lane.lane].up;
            let room = PUSH_QUEUE_BYTES_MAX.saturating_sub(up.queued_bytes());
            // With acknowledgements due there will be another occasion.
            if book.owed() >= PUSH_ORDERS_MAX || room == 0 {
                continue;
            }
            let belongs = |kind: Kind, told: &[u8]| nodes_of_told(config, kind, told, is_routed).has(node);
            up.tell(now.mono_us, &mut clients.pool, |out| book.write(registries, belongs, room, out));
            lanes.list(push_lane.lane);
        }
        for node in self.subscriptions.books.ids() {
            while let Some(over) = self.subscriptions.books[node].next_over() {
                self.subscriptions.progress(over, &mut self.env.clients);
            }
        }
        self.account_subscriptions();
    }

    /// When this has to run next, if anything is due by time alone.
    #[inline]
    pub(crate) fn subscriptions_due_us(&self) -> Option<u64> {
        let this = &self.subscriptions;
        if this.is_striking_out() || !this.refilling.is_empty() || self.has_tracked_too_many() {
            return Some(self.env.now.mono_us);
        }
        (this.check_at_us > 0).then_some(this.check_at_us)
    }

    /// Whether the push lanes are to be looked at.
    #[inline]
    pub(crate) fn subscriptions_are_due(&self) -> bool {
        let at_us = self.subscriptions.check_at_us;
        at_us > 0 && self.env.now.mono_us >= at_us
    }

    /// Looks for push lanes that have fallen silent, and for ones that are to be dialled again.
    #[cold]
    pub(crate) fn check_push_lanes(&mut self) {
        self.subscriptions.check_at_us = self.env.now.mono_us + PUSH_CHECK_US;
        self.check_noloop();
        let now_us = self.env.now.mono_us;
        let silence_due_us = self.env.lag.due_us(now_us, self.env.config.timeouts.silence_us);
        for node in self.subscriptions.lanes.ids() {
            let Some(PushLane { lane, pinged_us }) = self.subscriptions.lanes[node] else { continue };
            if matches!(self.env.lanes[lane].up.phase(), Phase::Idle) {
                if self.is_push_lane_wanted(node) {
                    // Refused only while the node's pause lasts.
                    let _ = self.prepare_push_lane(node);
                    self.env.is_busy = true;
                }
                continue;
            }
            let up = &mut self.env.lanes[lane].up;
            match up.phase() {
                Phase::Ready if pinged_us > 0 && silence_due_us.is_some_and(|due_us| pinged_us <= due_us) => {
                    self.env.close_upstream(lane);
                    self.env.end_lane(lane, LaneEnd::Silent);
                    self.tell_ended();
                }
                Phase::Ready if pinged_us == 0 && now_us.saturating_sub(up.last_heard_us()) > PUSH_SILENT_US_MAX => {
                    let book = &mut self.subscriptions.books[node];
                    up.tell(now_us, &mut self.env.clients.pool, |out| book.ping(out));
                    self.env.lanes.list(lane);
                    self.subscriptions.lanes[node] = Some(PushLane { lane, pinged_us: now_us });
                }
                _ => {}
            }
        }
    }

    /// Whether there is a subscription that a node has to know of.
    pub(super) fn is_push_lane_wanted(&self, node: NodeId) -> bool {
        let is_wanted = self.subscriptions.books[node].is_wanted() || self.subscriptions.is_tracking_wanted;
        self.env.drain_until_us.is_none() && is_wanted
    }

    /// Clients that have waited too long for a node's word are told so.
    /// Returns whether any still wait.
    pub(crate) fn expire_subscriptions(&mut self) -> bool {
        if !self.subscriptions.has_pending_changes() {
            return false;
        }
        let Some(due_us) = self.env.lag.due_us(self.env.now.mono_us, self.env.config.timeouts.response_us) else {
            return true;
        };
        let response_us = self.env.config.timeouts.response_us;
        let names = &self.env.lanes.nodes;
        let error =
            |node: NodeId| names.get(node).map_or_else(Vec::new, |n| error_text::timed_out(&n.name, response_us));
        let expired = self.subscriptions.expire(due_us, error, &mut self.env.clients, &self.env.config);
        self.env.counters.timeouts.add(expired as u64);
        true
    }
}

impl<E: Execute> Env<E> {
    /// Dials the successor of a stale push lane, unless a dial is under way.
    pub(crate) fn renew_push_lane(&mut self, lane: LaneId) {
        let this = &mut self.lanes[lane];
        if self.now.mono_us < this.renew_at_us {
            return;
        }
        this.renew_at_us = self.now.mono_us + RENEW_US;
        let (node, protocol) = (this.node, this.up.identity().protocol);
        let is_successor = |other: &Lane| other.purpose == LaneUse::PushSuccessor && other.node == node;
        if self.lanes.all.iter().any(|other| is_successor(other) && !other.is_retired) {
            return;
        }
        let successor = self.lanes.add_unshared(&self.config, node, LaneKeyId::PLAIN, LaneUse::PushSuccessor);
        self.lanes[successor].up.set_protocol(protocol);
        if self.lanes.prepare(successor, &self.config, self.now).is_err() {
            self.lanes.release(successor);
        }
    }

    /// The node knows no RESP3: its push lane speaks RESP2 from now on, and is dialled again at once.
    pub(crate) fn lower_push_lane(&mut self, lane: LaneId, words: &str) -> bool {
        let is_unknown = words.starts_with("ERR unknown command") || words.starts_with("NOPROTO");
        let this = &mut self.lanes[lane];
        if this.purpose != LaneUse::Push || this.up.identity().protocol == Protocol::Resp2 || !is_unknown {
            return false;
        }
        this.up.set_protocol(Protocol::Resp2);
        // Cannot be refused: nothing is queued, and no failure has been noted.
        let _ = self.lanes.prepare(lane, &self.config, self.now);
        true
    }
}
