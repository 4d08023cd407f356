//! Requests that wait no longer although nothing has come: their clients have left, or CLIENT UNBLOCK names them.
//!
//! A request that waits at a node is taken back by CLIENT UNBLOCK over the shared lane. The node says whether it had already taken
//! something; then its reply is on the way, and is put back if the client is gone.

use crate::blocking::node_queries::{COUNTS, NodeQuery, NodeQueryPurpose};
use crate::blocking::queue::Blocking;
use crate::blocking::request::{State, begins_at_arrival, is_migrate, is_wait};
use crate::env::Env;
use crate::ids::{ClientId, Handle, LaneHandle, LaneKeyId};
use crate::interfaces::client_query::ClientFilter;
use crate::interfaces::release::Release;
use crate::limits::{ASK_ONCE_US_MAX, AT_ONCE_US, UNBLOCKS_MAX};
use crate::session::PauseReasons;
use respool_command::{Execute, text as texts};
use respool_wire::{Encoder, ReplyKind, encode_request};

impl Blocking {
    pub(crate) fn finish_released(&mut self, env: &mut Env<impl Execute>, blocked: Handle, release: Release) {
        if release == Release::Moved {
            return self.ask_again(env, blocked);
        }
        let Some(this) = self.requests.get_mut(blocked) else { return };
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, this.protocol);
        let kind = match release {
            Release::Timeout if is_wait(this.row) => {
                encoder.integer(0);
                ReplyKind::Integer
            }
            Release::Timeout => {
                encoder.null_array();
                ReplyKind::Null
            }
            Release::Error => {
                encoder.error(texts::UNBLOCKED.as_bytes());
                ReplyKind::Error
            }
            Release::HalfClosed | Release::Vanished | Release::Drained | Release::Moved => ReplyKind::Null,
        };
        self.finish_blocked(env, blocked, kind, &reply);
    }

    /// A request is to wait no longer.
    pub(crate) fn release_blocked(&mut self, env: &mut Env<impl Execute>, blocked: Handle, release: Release) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        if this.release.is_some_and(Release::drops_client) && release != Release::Vanished {
            // The node has been asked already.
            return;
        }
        let (node, row, state) = (this.node, this.row, this.state);
        let may_be_asked = env.engine.is_none() && !env.is_held_at(node, row);
        let Some(this) = self.requests.get_mut(blocked) else { return };
        match state {
            State::Queued if release == Release::HalfClosed && may_be_asked => self.ask_once(env, blocked),
            State::Queued => {
                this.release = Some(release);
                self.leave_queue(node, blocked);
                self.finish_released(env, blocked, release);
            }
            State::Tried => this.release = Some(release),
            State::Sent(_) => {
                this.release = Some(release);
                env.is_busy = true;
                self.unblock(env, blocked);
            }
        }
    }

    /// A client has closed its side right behind a request that has not reached its node: it is asked there all the same, as it
    /// may have what the request is for, and let go at once.
    pub(super) fn ask_once(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        this.release = Some(Release::HalfClosed);
        let is_never_tried = is_wait(this.row) || is_migrate(this.row);
        let can_be_tried = !is_never_tried && !begins_at_arrival(this.row, this.args.as_args());
        let node = this.node;
        if can_be_tried || self.has_one_coming(node) {
            self.hasten(blocked, env.now, ASK_ONCE_US_MAX);
            self.begin_trying(env.now.mono_us);
            self.try_behind_others(env, blocked);
        } else {
            self.leave_queue(node, blocked);
            self.finish_released(env, blocked, Release::HalfClosed);
        }
    }

    /// Asks the node to let a request go.
    pub(crate) fn unblock(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        let (node, release, asked) = (this.node, this.release, this.asked);
        let State::Sent(lane) = this.state else { return };
        if is_migrate(this.row) {
            // No node takes that back. It ends by itself, within its timeout.
            return;
        }
        let since_us = *this.released_us.get_or_insert(env.now.mono_us);
        let place = env.lanes.find(lane).filter(|place| !env.lanes[*place].up.tickets().is_empty());
        let Some(place) = place else {
            // The reply has arrived, or the connection has ended: the outcome is about to be concluded.
            return;
        };
        let is_sent = env.lanes[place].up.is_ready();
        let known = self.connection(node, lane);
        let (id, is_being_asked) = known.map_or((None, false), |c| (c.id, c.unblocks > 0));
        if let Some(release) = release.filter(|_| !is_sent) {
            // Nothing can have been taken for a request that has not been sent. What is asked again has another connection.
            env.close_lane(place);
            self.finish_released(env, blocked, release);
            self.serve_queue(env, node);
            return;
        }
        if is_being_asked {
            // The answer comes, or that there is none. One question is enough for a node that is busy.
            return;
        }
        let due_us = env.lag.due_us(env.now.mono_us, env.config.timeouts.response_us);
        if env.is_answering(lane, due_us) {
            // The node has let it go, and what it has taken is on its way.
            return;
        }
        // The number is about to come, as long as other answers may take, and the timers ask again.
        let is_late = due_us.is_some_and(|due_us| since_us <= due_us);
        let Some(id) = id.filter(|_| asked < UNBLOCKS_MAX) else {
            if asked >= UNBLOCKS_MAX || is_late {
                self.give_up_waiting(env, blocked);
            }
            return;
        };
        if let Some(this) = self.requests.get_mut(blocked) {
            this.asked += 1;
        }
        let id = id.to_string();
        let mut words: Vec<&[u8]> = vec![b"CLIENT", b"UNBLOCK", id.as_bytes()];
        if release == Some(Release::Error) {
            words.push(b"ERROR");
        }
        if let Some(connection) = self.connection(node, lane) {
            connection.unblocks += 1;
        }
        let task = env.tasks.begin(NodeQuery::new(NodeQueryPurpose::Unblock { blocked, lane }));
        let other = env.lanes.lane_for_aftermath(&env.config, env.now, node, LaneKeyId::PLAIN);
        env.send_for_task(task, COUNTS, other, |out| encode_request(out, words.iter().copied()));
    }

    /// Whether the node has unblocked a request, or will, is not known: its connection must not serve others.
    pub(super) fn give_up_unblock(&mut self, env: &mut Env<impl Execute>, blocked: Handle, lane: LaneHandle) {
        self.give_up_waiting(env, blocked);
        if let Some(place) = env.lanes.find(lane) {
            env.close_lane(place);
        }
    }

    /// A client has left: what it waits for is not wanted.
    pub(crate) fn release_all_of(&mut self, env: &mut Env<impl Execute>, requests: Vec<Handle>) {
        for blocked in requests {
            self.release_blocked(env, blocked, Release::Vanished);
        }
    }

    /// Whether a request of a client that closes its side has had the time to be answered if it could be.
    fn release_of(&self, env: &Env<impl Execute>, blocked: Handle) -> Release {
        let arrived_us = self.requests.get(blocked).map_or(0, |blocked| blocked.arrived_us);
        // A stall of the event loop is no time in which it could have been answered.
        let arrived_us = env.lag.attended_us(arrived_us);
        let has_waited = env.now.mono_us.saturating_sub(arrived_us) > AT_ONCE_US;
        if has_waited { Release::Vanished } else { Release::HalfClosed }
    }

    /// A client has closed its side. What it waits for may never come.
    #[cold]
    pub(crate) fn handle_hung_up(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        session.details.has_hung_up = true;
        let is_held = session.pause.has(PauseReasons::HELD) || session.pause.has(PauseReasons::SUSPENDED);
        let blocked = session.pins.as_ref().map(|p| p.blocked.clone()).unwrap_or_default();
        for blocked in blocked {
            let release = self.release_of(env, blocked);
            self.release_blocked(env, blocked, release);
        }
        if is_held {
            env.clients.drop_rest(index);
        }
    }

    /// Lets the waiting clients of this worker go that are meant. Returns how many.
    pub(crate) fn unblock_clients(
        &mut self,
        env: &mut Env<impl Execute>,
        filter: &ClientFilter,
        release: Release,
    ) -> usize {
        let Some(ids) = &filter.ids else { return 0 };
        let meant = |s: &crate::session::Session| ids.has(s.id);
        let of = |s: &crate::session::Session| s.pins.as_ref().map(|p| p.blocked.clone()).unwrap_or_default();
        let found: Vec<Vec<Handle>> =
            env.clients.sessions.iter().filter(|(_, s)| meant(s)).map(|(_, s)| of(s)).collect();
        let mut released = 0;
        for requests in found.into_iter().filter(|w| !w.is_empty()) {
            released += 1;
            requests.into_iter().for_each(|blocked| self.release_blocked(env, blocked, release));
        }
        released
    }

    /// Ends all waiting requests: the worker is about to end.
    pub(crate) fn unblock_all(&mut self, env: &mut Env<impl Execute>) {
        let all: Vec<u32> = self.requests.iter().map(|(index, _)| index).collect();
        for index in all {
            if let Some(blocked) = self.requests.handle(index) {
                self.release_blocked(env, blocked, Release::Drained);
            }
        }
    }
}
