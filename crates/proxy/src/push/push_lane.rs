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

use crate::config::Config;
use crate::ended::Ended;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{LaneId, LaneKeyId, NodeId};
use crate::limits::{
    PUSH_CHECK_US, PUSH_ORDERS_MAX, PUSH_QUEUE_BYTES_MAX, PUSH_SILENT_US_MAX, RENEW_US, STRUCK_OUT_PER_TURN_MAX,
};
use crate::pool::{Lane, LaneEnd, LaneUse, Lanes};
use crate::push::delivery::Recipients;
use crate::push::lane::PushLane;
use crate::push::routing::{MessageSource, nodes_of_told};
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use respool_command::Execute;
use respool_connection::push::frame::{Frame, Kind, Verb};
use respool_connection::push::look_ahead::look_ahead;
use respool_connection::push::node_ledger::{OutOfStep, Refusal};
use respool_connection::{Event, Fault, Now, Phase, Pushes};
use respool_wire::Protocol;
use std::sync::Arc;

impl<T: TrackedKeys> Subscriptions<T> {
    /// Sees to it that there is a push lane to a node, or will be. `Err`: there is no hope for now.
    pub(crate) fn prepare_push_lane(&mut self, env: &mut Env<impl Execute>, node: NodeId) -> Result<(), ErrorReply> {
        let lane = match self.lanes[node] {
            Some(known) => known.lane,
            None => {
                let lane = env.lanes.add_unshared(&env.config, node, LaneKeyId::PLAIN, LaneUse::Push);
                env.lanes[lane].up.set_protocol(Protocol::Resp3);
                self.lanes[node] = Some(PushLane { lane, pinged_us: 0 });
                self.check_at_us = env.now.mono_us + PUSH_CHECK_US;
                lane
            }
        };
        if env.lanes[lane].up.is_ready() { Ok(()) } else { env.lanes.prepare(lane, &env.config, env.now) }
    }

    /// The successor of a push lane is ready: it takes over.
    fn succeed_push_lane(&mut self, env: &mut Env<impl Execute>, lane: LaneId) {
        let node = env.lanes[lane].node;
        self.forget_push_lane(env, node);
        env.lanes[lane].purpose = LaneUse::Push;
        self.lanes[node] = Some(PushLane { lane, pinged_us: 0 });
    }

    /// Closes the push lane to a node for good.
    pub(crate) fn forget_push_lane(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        let Some(PushLane { lane, .. }) = self.lanes[node] else { return };
        env.close_lane(lane);
        self.hear_ended(env);
        self.lanes[node] = None;
        env.lanes.retire(lane);
        // Otherwise its place is free once the loop has closed its connection.
        if !env.lanes[lane].is_closing {
            env.lanes.release(lane);
        }
    }

    /// A push lane can be used: the node is told everything.
    pub(crate) fn begin_push_lane(&mut self, env: &mut Env<impl Execute>, lane: LaneId) {
        if env.lanes[lane].purpose == LaneUse::PushSuccessor {
            self.succeed_push_lane(env, lane);
        }
        let this = &mut env.lanes[lane];
        this.up.set_pushes(Pushes::Only);
        let node = this.node;
        if let Some(this) = &mut self.lanes[node] {
            this.pinged_us = 0;
        }
        self.books[node].begin();
        self.has_pending_updates = true;
        env.counters.push_lanes.set(env.counters.push_lanes.value() + 1);
    }

    /// A push lane is gone. `refusal`: nothing takes its place, so requests that wait for it fail. Without one they go on waiting: it
    /// will be there again, or their time ends.
    fn lose_push_lane(&mut self, env: &mut Env<impl Execute>, node: NodeId, refusal: Option<&ErrorReply>) {
        let (book, registries) = self.book(node);
        book.lose(registries);
        let refusal = refusal.cloned().map(Arc::new);
        for pending in self.books[node].take_pending() {
            // What is given up is given up with the connection; clients that track are told to forget everything when it is back.
            match self.change_of(pending) {
                _ if self.pending.of_tracking.contains(&pending) => self.progress(pending, &mut env.clients),
                Some((Verb::Unsubscribe, _)) => self.progress(pending, &mut env.clients),
                Some((Verb::Subscribe, kind)) => match &refusal {
                    None => self.books[node].await_acknowledgements(pending, kind),
                    Some(refusal) => self.fail_later(pending, refusal),
                },
                // Its client has left.
                None => {}
            }
        }
        self.account_subscriptions(env);
    }

    /// Takes notice at once of what has ended of its own; features are told of the rest as usual.
    pub(crate) fn hear_ended(&mut self, env: &mut Env<impl Execute>) {
        let mut place = 0;
        while let Some(ended) = env.ended.get_mut(place) {
            match ended {
                Ended::PushLane { .. } | Ended::Listener { .. } => {
                    if let Some(ended) = env.ended.remove(place) {
                        self.handle_ended(env, ended);
                    }
                    continue;
                }
                Ended::Client { subscriber, .. } => self.forget(subscriber.take()),
                Ended::SilentNode { .. } | Ended::Wait { .. } | Ended::Dedicated { .. } | Ended::Select { .. } => {}
            }
            place += 1;
        }
    }

    /// A connection has ended, as [`crate::ended`] says.
    pub(crate) fn handle_ended(&mut self, env: &mut Env<impl Execute>, ended: Ended) {
        match ended {
            Ended::PushLane { node, was_ready, is_given_up, error } => {
                if was_ready {
                    env.counters.push_lanes.set(env.counters.push_lanes.value().saturating_sub(1));
                }
                self.lose_push_lane(env, node, (!was_ready && !is_given_up).then_some(&error));
            }
            ended @ Ended::Listener { .. } => T::handle_listener_ended(self, env, ended),
            Ended::Client { .. }
            | Ended::SilentNode { .. }
            | Ended::Wait { .. }
            | Ended::Dedicated { .. }
            | Ended::Select { .. } => {}
        }
    }

    /// Bytes have come on a push lane.
    pub(crate) fn take_pushes(&mut self, env: &mut Env<impl Execute>, lane: LaneId, bytes: &[u8]) {
        let Env { lanes, clients, config, counters, now, shared, .. } = env;
        let this = &mut lanes[lane];
        let node = this.node;
        this.up.note_heard(now.mono_us);
        if let Some(push_lane) = &mut self.lanes[node] {
            push_lane.pinged_us = 0;
        }
        let (mut rest, mut behind) = (bytes, bytes);
        let fault = loop {
            if rest.len() <= behind.len() && !self.has_ways() {
                behind = look_ahead(&self.books[node], &self.registries, rest);
            }
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
                    let mut to = Recipients { clients, ledger: &shared.ledger, settings: &config.subscriptions };
                    self.deliver_from(config, MessageSource { node, kind, name }, bytes, &mut to);
                    Ok(())
                }
                Frame::Done { kind, verb, name: Some(name) } => {
                    let (book, registries) = self.book(node);
                    let step = book.acknowledge(registries, kind, verb, name);
                    if step.is_err() && kind == Kind::Shard && verb == Verb::Unsubscribe {
                        self.retract(config, MessageSource { node, kind, name });
                        Ok(())
                    } else {
                        step
                    }
                }
                Frame::Refused(error) => match self.refuse(node) {
                    Ok(Refusal::Channel(kind, told)) => {
                        counters.subscriptions_refused.add(1);
                        for id in self.called(kind, told) {
                            for pending in self.pending_of_channel(kind, id, clients) {
                                self.fail(pending, &ErrorReply::of_reply(error), clients, config);
                            }
                        }
                        let (_, registries) = self.book(node);
                        registries[kind as usize].release(told);
                        Ok(())
                    }
                    Ok(Refusal::Tracking) => {
                        for pending in self.pending.of_tracking.clone() {
                            self.fail(pending, &ErrorReply::of_reply(error), clients, config);
                        }
                        Ok(())
                    }
                    Ok(Refusal::Nothing) => Ok(()),
                    Err(out_of_step) => Err(out_of_step),
                },
                Frame::Ok => self.books[node].acknowledge_tracking().map(|is_on| {
                    // Changes that were made meanwhile went untold.
                    if is_on {
                        T::handle_invalid(self, config, node, None, clients);
                    }
                }),
                Frame::Invalid(keys) => {
                    T::handle_invalid(self, config, node, keys, clients);
                    Ok(())
                }
                Frame::SubscriberPing => self.books[node].acknowledge_ping(),
                Frame::Other => Ok(()),
                Frame::Done { name: None, .. } | Frame::Nonsense => Err(OutOfStep),
            };
            if step.is_err() {
                break Some(Fault::Unsolicited);
            }
            while let Some(over) = self.books[node].next_over() {
                self.progress(over, clients);
            }
        };
        self.has_pending_updates |= self.books[node].has_updates();
        self.account(&shared.ledger);
        self.tracked.show(counters);
        let held = this.up.partial_held_bytes();
        if held != this.accounted {
            shared.ledger.account(this.accounted, held);
            this.accounted = held;
        }
        if let Some(fault) = fault {
            counters.unsolicited_replies.add(u64::from(fault == Fault::Unsolicited));
            env.close_upstream(lane);
            env.end_lane(lane, LaneEnd::Fault(fault));
            self.hear_ended(env);
        }
        T::pass_on_redirected(self, env);
    }

    /// Whether a node's push lane can tell of changed keys.
    pub(crate) fn check_push_dialect(&self, env: &Env<impl Execute>, node: NodeId) -> Result<(), ErrorReply> {
        let Some(push_lane) = self.lanes[node] else { return Ok(()) };
        match env.lanes[push_lane.lane].up.identity().protocol {
            Protocol::Resp3 => Ok(()),
            Protocol::Resp2 => Err(error_text::no_tracking(&env.lanes.nodes[node].told.name)),
        }
    }

    /// Whether nodes are to be told something at the end of a turn, or clients are, or something is to be struck out.
    #[inline(always)]
    pub(crate) fn has_anything_to_tell(&self) -> bool {
        self.has_pending_updates || self.is_striking_out() || self.tracked.has_to_tell()
    }

    /// Strikes out subscriptions, and answers requests that are to fail: a part of them at the end of each turn.
    pub(crate) fn strike_out_some(&mut self, env: &mut Env<impl Execute>) {
        if self.is_striking_out() {
            let Env { clients, config, .. } = env;
            let failed = self.fail_some(STRUCK_OUT_PER_TURN_MAX, clients, config);
            self.strike_out(config, STRUCK_OUT_PER_TURN_MAX.saturating_sub(failed));
            self.account_subscriptions(env);
        }
    }

    /// Whether nodes, or the engine of this process, are to tell of changed keys from now on. `None`: nothing is new.
    pub(crate) fn take_pending_updates(&mut self) -> Option<bool> {
        std::mem::take(&mut self.has_pending_updates).then(|| {
            self.is_tracking_wanted = self.tracked.is_any() || !self.pending.of_tracking.is_empty();
            self.is_tracking_wanted
        })
    }

    /// Nodes are told what has changed, in as few commands as it takes and no more than they keep up with.
    pub(crate) fn send_updates(&mut self, env: &mut Env<impl Execute>) {
        let is_tracking = self.is_tracking_wanted;
        let Env { lanes, clients, config, now, .. } = env;
        self.books.iter_mut().for_each(|book| book.want_tracking(is_tracking));
        let Subscriptions { books, registries, at_nodes, lanes: push_lanes, .. } = self;
        let is_routed = at_nodes.is_some();
        let registries = at_nodes.as_deref_mut().unwrap_or(registries);
        for (node, book) in books.entries_mut() {
            let Some(push_lane) = push_lanes[node].filter(|_| book.is_live() && book.has_updates()) else { continue };
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
        for node in self.books.ids() {
            while let Some(over) = self.books[node].next_over() {
                self.progress(over, &mut env.clients);
            }
        }
        self.account_subscriptions(env);
    }

    /// Clients are told to forget what they have read, or others in their place.
    pub(crate) fn tell_clients(&mut self, env: &mut Env<impl Execute>) {
        if self.tracked.has_to_tell() {
            T::settle_doubts(self, env);
            T::pass_on_redirected(self, env);
        }
    }

    /// When this has to run next, if anything is due by time alone.
    #[inline]
    pub(crate) fn subscriptions_due_us(&self, env: &Env<impl Execute>) -> Option<u64> {
        if self.is_striking_out() || !self.refilling.is_empty() || self.tracked.is_too_large(env) {
            return Some(env.now.mono_us);
        }
        (self.check_at_us > 0).then_some(self.check_at_us)
    }

    /// Whether the push lanes are to be looked at.
    #[inline]
    pub(crate) fn subscriptions_are_due(&self, env: &Env<impl Execute>) -> bool {
        let at_us = self.check_at_us;
        at_us > 0 && env.now.mono_us >= at_us
    }

    /// Looks for push lanes that have fallen silent, and for ones that are to be dialled again.
    #[cold]
    pub(crate) fn check_push_lanes(&mut self, env: &mut Env<impl Execute>) {
        self.check_at_us = env.now.mono_us + PUSH_CHECK_US;
        T::check_lanes(self, env);
        let now_us = env.now.mono_us;
        let silence_due_us = env.lag.due_us(now_us, env.config.timeouts.silence_us);
        for node in self.lanes.ids() {
            let Some(PushLane { lane, pinged_us }) = self.lanes[node] else { continue };
            if matches!(env.lanes[lane].up.phase(), Phase::Idle) {
                if self.is_push_lane_wanted(env, node) {
                    // Refused only while the node's pause lasts.
                    let _ = self.prepare_push_lane(env, node);
                    env.is_busy = true;
                }
                continue;
            }
            let up = &mut env.lanes[lane].up;
            match up.phase() {
                Phase::Ready if pinged_us > 0 && silence_due_us.is_some_and(|due_us| pinged_us <= due_us) => {
                    env.close_upstream(lane);
                    env.end_lane(lane, LaneEnd::Silent);
                    self.hear_ended(env);
                }
                Phase::Ready if pinged_us == 0 && now_us.saturating_sub(up.last_heard_us()) > PUSH_SILENT_US_MAX => {
                    let book = &mut self.books[node];
                    up.tell(now_us, &mut env.clients.pool, |out| book.ping(out));
                    env.lanes.list(lane);
                    self.lanes[node] = Some(PushLane { lane, pinged_us: now_us });
                }
                _ => {}
            }
        }
    }

    /// Whether there is a subscription that a node has to know of.
    pub(crate) fn is_push_lane_wanted(&self, env: &Env<impl Execute>, node: NodeId) -> bool {
        let is_wanted = self.books[node].is_wanted() || self.is_tracking_wanted;
        env.drain_until_us.is_none() && is_wanted
    }

    /// Clients that have waited too long for a node's word are told so.
    /// Returns whether any still wait.
    pub(crate) fn expire_subscriptions(&mut self, env: &mut Env<impl Execute>) -> bool {
        if self.pending.len() == 0 {
            return false;
        }
        let Some(due_us) = env.lag.due_us(env.now.mono_us, env.config.timeouts.response_us) else {
            return true;
        };
        let response_us = env.config.timeouts.response_us;
        let names = &env.lanes.nodes;
        let name = |node| names.get(node).map_or("", |node| &node.name);
        let error = |node: NodeId| error_text::timed_out(name(node), response_us);
        let expired = self.expire(due_us, error, &mut env.clients, &env.config);
        env.counters.timeouts.add(expired as u64);
        true
    }
}

impl Lanes {
    /// Dials the successor of a stale push lane, unless a dial is under way.
    pub(crate) fn renew_push_lane(&mut self, config: &Config, now: Now, lane: LaneId) {
        let this = &mut self[lane];
        if now.mono_us < this.renew_at_us {
            return;
        }
        this.renew_at_us = now.mono_us + RENEW_US;
        let (node, protocol) = (this.node, this.up.identity().protocol);
        let is_successor = |other: &Lane| other.purpose == LaneUse::PushSuccessor && other.node == node;
        if self.all.iter().any(|other| is_successor(other) && !other.is_retired) {
            return;
        }
        if let Ok(successor) = self.dial_unshared(config, node, LaneKeyId::PLAIN, LaneUse::PushSuccessor, now) {
            self[successor].up.set_protocol(protocol);
        }
    }

    /// The node knows no RESP3: its push lane speaks RESP2 from now on, and is dialled again at once.
    pub(crate) fn lower_push_lane(&mut self, config: &Config, now: Now, lane: LaneId, words: &str) -> bool {
        let is_unknown = words.starts_with("ERR unknown command") || words.starts_with("NOPROTO");
        let this = &mut self[lane];
        if this.purpose != LaneUse::Push || this.up.identity().protocol == Protocol::Resp2 || !is_unknown {
            return false;
        }
        this.up.set_protocol(Protocol::Resp2);
        // Cannot be refused: nothing is queued, and no failure has been noted.
        let _ = self.prepare(lane, config, now);
        true
    }
}
