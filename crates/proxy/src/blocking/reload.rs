//! Requests that wait when other nodes are configured: asked back from where their keys are not any more, and asked again
//! where they are.
//!
//! ```text
//!   [queued] ------------------------------------------------------> [asked again], with the time that is left
//!   [tried] -- nothing was there ----------------------------------->       |
//!   [waits at node] -- CLIENT UNBLOCK, and the node says nil ------->       |  its node is paused: queued there until RESUME
//!        |   '-- the node has taken something: the client gets it           '- keys on several nodes, no right any more,
//!        |                                                                     `XREAD $`: an error
//!        '-- the node does not answer: its connection is closed, the client hears that the outcome is unknown
//! ```
//!
//! The node is asked to let a request go instead of its connection being closed, because only the node knows whether the request
//! has taken something. A request that follows what comes after its arrival (`$`) is not asked again: what was added between
//! the two arrivals would be left out without a word, so its client is told to try again. `WAIT` is about writes that were
//! made before, so it ends with what is known of them.

use crate::blocking::fairness::taken_by;
use crate::blocking::queue::Blocking;
use crate::blocking::request::{BlockedRequest, State, Target, WaitsAt, Wording, begins_at_arrival, is_wait};
use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientId, Handle, LaneHandle, NodeId};
use crate::interfaces::held_back::WaitsAtNodes;
use crate::interfaces::release::Release;
use crate::nodes::moves::Moves;
use respool_command::{Execute, Row};

impl Blocking {
    /// Other nodes are configured: blocked requests and their connections are with the same server as before.
    pub(crate) fn move_blocked(&mut self, env: &mut Env<impl Execute>, moves: &Moves) {
        if env.engine.is_some() {
            return;
        }
        let lists = std::mem::take(&mut self.nodes);
        for (before, mut list) in lists.into_entries() {
            let connections = std::mem::take(&mut list.connections);
            let looks = std::mem::take(&mut list.looks);
            // Without waiting requests and connections there is nothing to keep.
            if moves.place_of(before) != NodeId::NONE {
                *self.at(moves.place_of(before)) = list;
            }
            // Each connection is with the server that it leads to: where a name moves, those of one node lead to several.
            let place = |lane: LaneHandle| Some(moves.place_on(before, lane)).filter(|place| *place != NodeId::NONE);
            for connection in connections {
                if let Some(place) = place(connection.lane) {
                    self.at(place).connections.push(connection);
                }
            }
            for look in looks {
                if let Some(place) = place(look.lane) {
                    self.at(place).looks.push(look);
                }
            }
        }
        for (_, blocked) in self.requests.iter_mut() {
            blocked.node = match blocked.state {
                State::Sent(lane) => moves.place_on(blocked.node, lane),
                State::Queued | State::Tried => moves.place_of(blocked.node),
            };
            debug_assert!(blocked.node != NodeId::NONE, "nodes at which a request waits stay");
            // Without the node that has its keys it is as if it belonged where it waits, unless other settings say otherwise.
            blocked.stands_for =
                blocked.stands_for.map(|home| moves.place_of(home)).filter(|home| *home != NodeId::NONE);
        }
        let homes = self.stood_for.drain(..).map(|home| moves.place_of(home));
        self.stood_for = homes.filter(|home| *home != NodeId::NONE).collect();
    }

    /// Takes back requests that are blocked where their keys are not any more: their node has gone, or keys are placed or named in another
    /// way now (`has_other_ways`).
    pub(crate) fn recall_blocked(&mut self, env: &mut Env<impl Execute>, has_other_ways: bool) {
        if env.engine.is_some() {
            return;
        }
        let is_astray = |blocked: &BlockedRequest| has_other_ways || env.lanes.nodes[blocked.node].is_removed;
        for blocked in self.in_turn(is_astray) {
            if !self.is_at_home(env, blocked) {
                self.recall(env, blocked);
            }
        }
    }

    /// Some requests, those that came first before the others.
    fn in_turn(&self, is_one: impl Fn(&BlockedRequest) -> bool) -> Vec<Handle> {
        let requests = &self.requests;
        let those = requests.iter().filter(|(_, blocked)| is_one(blocked));
        let mut those: Vec<(u64, Handle)> =
            those.filter_map(|(index, blocked)| Some((blocked.turn, requests.handle(index)?))).collect();
        those.sort_unstable_by_key(|(turn, _)| *turn);
        those.into_iter().map(|(_, blocked)| blocked).collect()
    }

    /// Whether a request waits where it would be sent if it was asked now.
    fn is_at_home(&mut self, env: &mut Env<impl Execute>, blocked: Handle) -> bool {
        let Some(this) = self.requests.get(blocked) else { return true };
        if env.lanes.nodes[this.node].is_removed {
            return false;
        }
        let Target::Client { asker, .. } = this.target else { return true };
        if is_wait(this.row) || env.clients.sessions.get(asker.session).is_none() {
            return true;
        }
        let (node, row, said) = (this.node, this.row, this.said.as_ref().unwrap_or(&this.args).clone());
        let Ok(target) = env.waiting_target(asker.session.index, row, said.as_args()) else { return false };
        let args = target.args(said.as_args());
        let is_sent_so = |this: &BlockedRequest| this.args.as_args().iter().eq(args.iter());
        target.node == node && self.requests.get(blocked).is_some_and(is_sent_so)
    }

    /// Takes back requests that are blocked at another node in place of one that is of use again: others write there from now on.
    pub(crate) fn recall_from_stand_ins(&mut self, env: &mut Env<impl Execute>) {
        let Env { lanes, .. } = &*env;
        let blocking = &mut *self;
        let is_back = |home: NodeId| lanes.nodes.get(home).is_none_or(|node| !node.is_unhealthy());
        let requests = blocking.requests.iter();
        let astray = requests.filter(|(_, blocked)| blocked.stands_for.is_some_and(is_back));
        let mut astray: Vec<(u64, Handle)> =
            astray.filter_map(|(index, blocked)| Some((blocked.turn, blocking.requests.handle(index)?))).collect();
        blocking.stood_for.retain(|home| !is_back(*home));
        astray.sort_unstable_by_key(|(turn, _)| *turn);
        for (_, blocked) in astray {
            if let Some(this) = self.requests.get_mut(blocked) {
                this.stands_for = None;
            }
            self.recall(env, blocked);
        }
    }

    /// Whether a node is of use again for which requests wait elsewhere.
    pub(crate) fn has_stood_in(&self, env: &Env<impl Execute>) -> bool {
        let is_back = |home: &NodeId| env.lanes.nodes.get(*home).is_none_or(|node| !node.is_unhealthy());
        self.stood_for.iter().any(is_back)
    }

    fn recall(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        if this.state == State::Queued {
            // Whatever it is to be let go for, it has not been sent.
            this.release = None;
        } else if this.release.is_some() {
            return;
        }
        let release = match this.target {
            Target::Client { .. } if !is_wait(this.row) => Release::Moved,
            _ => Release::Timeout,
        };
        env.counters.blocked_recalled.add(1);
        self.release_blocked(env, blocked, release);
    }

    /// A request has been let go, and nothing was taken for it: it is asked as if its client had just done so, but for the time
    /// that has passed.
    pub(crate) fn ask_again(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let now_us = env.now.mono_us;
        let Some(this) = self.requests.get_mut(blocked) else { return };
        let Target::Client { asker, .. } = this.target else {
            return self.fail_blocked(env, blocked, error_text::NODES_CHANGED);
        };
        if env.clients.sessions.get(asker.session).is_none() {
            return self.finish_released(env, blocked, Release::Vanished);
        }
        // A look at the former node says nothing of the present one.
        let ends_unasked = is_wait(this.row) || begins_at_arrival(this.row, this.args.as_args());
        if this.is_overdue(now_us) && ends_unasked {
            return self.finish_released(env, blocked, Release::Timeout);
        }
        let (index, row) = (asker.session.index, this.row);
        let said = this.said.take().unwrap_or_else(|| this.args.clone());
        if begins_at_arrival(row, said.as_args()) {
            return self.fail_blocked(env, blocked, error_text::UNBLOCKED_BY_CHANGE);
        }
        let denial = env.denial_of(index, row, said.as_args());
        let target = denial.map_or_else(|| env.waiting_target(index, row, said.as_args()), Err);
        let target = match target {
            Ok(target) => target,
            Err(error) => return self.fail_blocked(env, blocked, error),
        };
        let at = WaitsAt::of(&target);
        self.enter_anew(env, index, blocked, Wording::of(said, target), at);
    }

    /// Puts a request into the queue of another node. Its place among blocked requests stays; what is still said of it as it was
    /// before reaches no client.
    fn enter_anew(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        blocked: Handle,
        words: Wording,
        at: WaitsAt,
    ) {
        let is_on_own = env.clients.has_noloop_lanes(index);
        let Some(this) = self.remove(blocked) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        let class = env.lanes.base(session.class);
        let Wording { args, said } = words;
        let WaitsAt { node, stands_for } = at;
        let takes = taken_by(this.row, args.as_args(), session.database);
        let is_looked = this.is_looked && (this.node, this.class.id()) == (node, class) && this.args == args;
        let class = env.lanes.use_class(class);
        let this = BlockedRequest { state: State::Queued, release: None, released_us: None, asked: 0, ..this };
        let again = BlockedRequest { node, stands_for, class, args, said, takes, is_on_own, is_looked, ..this };
        let again = self.enter(again);
        let known = session.pins_mut().blocked.iter_mut().find(|known| **known == blocked);
        if let Some(known) = known {
            *known = again;
        }
        env.is_busy = true;
        self.begin_waiting(env, index, again);
    }
}

impl WaitsAtNodes for Blocking {
    fn go_on_waiting(&mut self, env: &mut Env<impl Execute>) {
        if env.engine.is_some() {
            return;
        }
        for blocked in self.in_turn(|blocked| blocked.is_on_own && blocked.state == State::Queued) {
            let Some(Target::Client { asker, .. }) = self.requests.get(blocked).map(|w| w.target) else {
                continue;
            };
            self.begin_waiting(env, asker.session.index, blocked);
        }
        for node in self.nodes.ids() {
            self.serve_queue(env, node);
        }
    }

    fn recall_blocked_from(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        let there = self.in_turn(|blocked| blocked.node == node);
        there.into_iter().for_each(|blocked| self.recall(env, blocked));
    }
}

impl<E: Execute> Env<E> {
    /// Whether requests of this kind to a node are held back.
    pub(crate) fn is_held_at(&self, node: NodeId, row: &'static Row) -> bool {
        self.is_all_paused
            || self.lanes.nodes.get(node).is_some_and(|node| node.is_paused)
            || self.client_pause.is_some_and(|hold| hold.holds(row))
    }
}
