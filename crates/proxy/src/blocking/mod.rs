//! The blocking lane: requests that may wait, each on a connection of its own for as long as it waits.
//!
//! ```text
//!               a connection is free                                       reply
//!   [arrived] -----------------------------------------> [waits at node] ---------> answered, next in the queue
//!       | none is; one is dialled if it may be              |  |
//!       '--> [queued] --------- one becomes free ----------'  '- UNBLOCK asked of the node: client left, CLIENT UNBLOCK
//!               |   ^                                          the nodes have changed: asked again elsewhere, see `blocking::reload`
//!               '---'  tried now and then without waiting: MULTI, the request, EXEC on a connection kept for that
//! ```
//!
//! The queue is fair, per node, and bounded. A request's time counts from its arrival: what is left of it is sent, and in
//! the queue it ends here. Within MULTI nothing waits, so those in the queue can be tried without a connection of their own:
//! a client whose element is there is served even while all connections wait for others.
//!
//! A client that leaves while it waits at the node is taken back by CLIENT UNBLOCK over the shared lane, not by closing
//! its connection: the node then says whether the request had already taken something. If it had, and the client is gone,
//! what was taken is put back.

pub(crate) mod engine;
mod fairness;
mod large_element;
pub(crate) mod node_queries;
mod overdue;
pub(crate) mod parking;
mod polling;
pub(crate) mod put_back;
pub(crate) mod queue;
mod release;
mod reload;
pub(crate) mod request;
pub(crate) mod returns;

use crate::blocking::fairness::taken_by;
use crate::blocking::node_queries::{BEFORE, BEGIN, COUNTS, NodeQuery, NodeQueryPurpose, QUEUE};
use crate::blocking::queue::{Blocking, Connection, NodeQueue};
use crate::blocking::request::{
    BlockedRequest, State, Target, WaitsAt, Wording, begins_at_arrival, is_migrate, is_wait, timeout_us,
};
use crate::config::Config;
use crate::env::{Env, waiting_us};
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientId, Handle, LaneHandle, LaneId, LaneKeyId, NodeId};
use crate::interfaces::call::Call;
use crate::interfaces::release::Release;
use crate::limits::UNBLOCKS_AT_ONCE;
use crate::nodes::multi::Multi;
use crate::pool::{LaneEnd, LaneUse};
use crate::reply::task::Tasks;
use crate::session::table::Clients;
use crate::session::{Flow, SessionFlags};
use respool_command::{Execute, Row};
use respool_wire::{ArgsBuf, ReplyKind, Value, elements, encode_request};

/// Connections available to the head of a queue.
enum Found {
    /// A connection.
    Free(LaneHandle),
    /// One that has just begun to be dialled.
    Coming,
    /// Nothing more than what is being dialled already.
    Nothing,
}

fn is_zero(reply: &[u8]) -> bool {
    reply == b":0\r\n"
}

impl Blocking {
    /// Queues a request that may block at a node. The client is not read further before it is answered.
    #[cold]
    pub(crate) fn block_at_node(&mut self, env: &mut Env<impl Execute>, call: Call<'_>) -> Flow {
        let Call { index, row, request } = call;
        let Some(()) = env.clients.settle_before(index) else { return Flow::Again };
        if !env.may_wait(index) {
            return Flow::Stop;
        }
        if self.requests.len() >= env.config.lanes.blocked_commands_max {
            env.counters.blocked_refused.add(1);
            return env.refuse(index, error_text::TOO_MANY_BLOCKED);
        }
        if is_wait(row)
            && let nodes = env.clients.nodes_written(&env.config, index)
            && nodes.len() > 1
        {
            return self.wait_everywhere(env, call, nodes);
        }
        let target = match env.waiting_target(index, row, request.args) {
            Ok(target) => target,
            Err(error) => return env.refuse(index, error),
        };
        env.note_target(&target, row);
        let Some(asker) = env.clients.expect_behind_barrier(index) else { return Flow::Stop };
        let at = WaitsAt::of(&target);
        let words = Wording::of(request.args.iter().collect(), target);
        let blocked = self.enter_queue(env, index, row, words, at, Target::Client { asker });
        self.begin_waiting(env, index, blocked);
        if env.clients.is_leaving(index) { Flow::Stop } else { Flow::Pause }
    }

    /// WAIT asks every node: the client's writes may have gone to any. The least is the answer.
    fn wait_everywhere(&mut self, env: &mut Env<impl Execute>, call: Call<'_>, nodes: Vec<NodeId>) -> Flow {
        let Call { index, row, request } = call;
        let Some(asker) = env.clients.expect_behind_barrier(index) else { return Flow::Stop };
        let chance = env.lanes.chance(&env.counters, env.now);
        let gather = env.scatters.begin(asker, |gather| gather.begin_all(row, request.args, nodes.len(), chance));
        for (part, node) in nodes.into_iter().enumerate() {
            let words = Wording { args: request.args.iter().collect(), said: None };
            let target = Target::Part { gather, part: part as u16 };
            let blocked = self.enter_queue(env, index, row, words, node.into(), target);
            self.begin_waiting(env, index, blocked);
        }
        if env.clients.is_leaving(index) { Flow::Stop } else { Flow::Pause }
    }

    /// A request stands in the queue of its node: it is sent if it can be.
    pub(crate) fn begin_waiting(&mut self, env: &mut Env<impl Execute>, index: ClientId, blocked: Handle) {
        let Some(BlockedRequest { node, row, is_on_own, .. }) = self.requests.get(blocked) else { return };
        let (node, row, is_on_own) = (*node, *row, *is_on_own);
        if env.is_held_at(node, row) {
            // Its node is paused: it is sent when that is over, unless its client has left by then.
            self.begin_trying(env.now.mono_us);
            if env.clients.sessions.at(index).is_some_and(|s| s.details.has_hung_up) {
                self.release_blocked(env, blocked, Release::Vanished);
            }
            return;
        }
        let has_hung_up = env.clients.sessions.at(index).is_some_and(|s| s.details.has_hung_up);
        if has_hung_up && let Some(this) = self.requests.get_mut(blocked) {
            this.release = Some(Release::HalfClosed);
            if !is_on_own {
                // Where it can be tried it does not wait at the node at all.
                self.begin_trying(env.now.mono_us);
                self.try_behind_others(env, blocked);
            }
        }
        if is_on_own {
            self.wait_on_own(env, index, blocked, node);
        } else {
            self.serve_queue(env, node);
        }
        let Some(this) = self.requests.get(blocked).filter(|w| w.state == State::Queued) else { return };
        let begins_now = begins_at_arrival(row, this.args.as_args());
        self.begin_trying(env.now.mono_us);
        if has_hung_up {
            return self.ask_once(env, blocked);
        }
        // What begins now can be neither tried nor asked later: with no connection coming it has been refused.
        if !begins_now && !self.has_one_coming(node) && self.is_first(blocked) {
            self.try_blocked(env, blocked);
        }
    }

    /// Whether a connection is being dialled for each in the queue of a node.
    pub(crate) fn has_one_coming(&mut self, node: NodeId) -> bool {
        let list = self.at(node);
        list.coming() >= list.queue.len()
    }

    /// The session's request waits from now on, in the queue of its node.
    pub(crate) fn enter_queue(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        row: &'static Row,
        words: Wording,
        at: WaitsAt,
        target: Target,
    ) -> Handle {
        let Wording { args, said } = words;
        let WaitsAt { node, stands_for } = at;
        let is_on_own = env.clients.has_noloop_lanes(index);
        let (arrived_us, client_us, waiting_us) = (env.now.mono_us, env.now.client_us, waiting_us(env));
        let session = env.clients.sessions.at_mut(index).expect("it has just been given a place for its reply");
        let timeout_us = timeout_us(row, args.as_args());
        let deadline_of = |since_us: u64| timeout_us.map(|timeout_us| since_us.saturating_add(timeout_us));
        let (deadline_us, client_deadline_us) = (deadline_of(waiting_us), deadline_of(client_us));
        let is_without = env.engine.is_some() || is_migrate(row);
        let takes = if is_without { Vec::new() } else { taken_by(row, args.as_args(), session.database) };
        // An engine keeps the request as well, and its keys once more.
        let bytes_of = |args: &ArgsBuf| args.as_args().iter().map(|arg| 3 * arg.len() + 128).sum::<usize>();
        let held_bytes = size_of::<BlockedRequest>()
            + bytes_of(&args)
            + said.as_ref().map_or(0, bytes_of)
            + fairness::bytes_of(&takes);
        let class = env.lanes.base(session.class);
        let blocked = self.enter(BlockedRequest {
            target,
            client: session.id,
            protocol: session.protocol,
            node,
            stands_for,
            class: env.lanes.use_class(class),
            row,
            args,
            said,
            takes,
            is_on_own,
            turn: 0,
            held_bytes,
            arrived_us,
            deadline_us,
            client_deadline_us,
            due_us: None,
            // An engine has been asked by now.
            is_looked: env.engine.is_some(),
            state: State::Queued,
            release: None,
            released_us: None,
            asked: 0,
            wait: None,
        });
        let pins = session.pins_mut();
        pins.blocked.push(blocked);
        pins.waiting_bytes += held_bytes;
        if pins.blocked.len() == 1 {
            env.counters.blocked_clients.set(env.counters.blocked_clients.value() + 1);
        }
        env.clients.list(index);
        env.is_busy = true;
        blocked
    }

    /// Gives free connections to the first of a node's queue, and refuses requests that would be too late with one that others leave.
    pub(crate) fn serve_queue(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        self.give_connections(env, node);
        self.refuse_late_arrivals(env, node);
    }

    /// What begins at its arrival (`XREAD $`) waits for a connection that is about to be there, and for no other: what is added meanwhile it
    /// would not be told of. One that came before may have taken that connection.
    fn refuse_late_arrivals(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        while let Some(blocked) = self.nodes.get(node).and_then(NodeQueue::late_arrival) {
            let Some(BlockedRequest { row, release, .. }) = self.requests.get(blocked) else { return };
            let (row, release) = (*row, *release);
            if env.is_held_at(node, row) {
                return;
            }
            let error = error_text::no_blocking_connection(&env.lanes.nodes[node].name);
            self.leave_queue(node, blocked);
            match release {
                Some(release) => self.finish_released(env, blocked, release),
                None => self.fail_blocked(env, blocked, error),
            }
        }
    }

    fn give_connections(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        loop {
            let Self { requests, nodes, .. } = &*self;
            let Some(list) = nodes.get(node) else { return };
            let is_of_use = |c: &Connection| c.is_free() || env.lanes.find(c.lane).is_none();
            if list.made() >= env.config.lanes.blocking_max && !list.connections.iter().any(is_of_use) {
                return;
            }
            let is_next = |w: &BlockedRequest| !w.is_on_own && !env.is_held_at(node, w.row);
            let mut queue = list.queue.values().copied();
            let first = queue.find(|w| requests.get(*w).is_some_and(is_next));
            let Some((blocked, this)) = first.and_then(|w| Some((w, requests.get(w)?))) else { return };
            if this.state != State::Queued {
                // It is being tried, and is first again if that was in vain.
                return;
            }
            let class = this.class.id();
            match self.free_connection(env, node, class) {
                Ok(Found::Free(lane)) => {
                    self.leave_queue(node, blocked);
                    self.send_blocked(env, blocked, lane);
                }
                Ok(Found::Coming) => {}
                Ok(Found::Nothing) => return,
                Err(error) => {
                    self.leave_queue(node, blocked);
                    self.fail_blocked(env, blocked, error);
                }
            }
        }
    }

    /// A free connection of the blocking lane. If there is none, one is dialled for each in the queue, as
    /// long as there may be more: whichever is ready first is for the request that came first, so none overtakes meanwhile.
    fn free_connection(
        &mut self,
        env: &mut Env<impl Execute>,
        node: NodeId,
        class: LaneKeyId,
    ) -> Result<Found, ErrorReply> {
        let Env { lanes, config, .. } = &*env;
        let list = self.at(node);
        list.connections.retain(|c| lanes.find(c.lane).is_some());
        let fits = |c: &&mut Connection| {
            let lane = &lanes[c.lane.index];
            c.is_free() && lane.class == class && !lane.is_stale
        };
        if let Some(free) = list.connections.iter_mut().find(fits) {
            free.is_taken = true;
            return Ok(Found::Free(free.lane));
        }
        if list.coming() >= list.queue.len() {
            return Ok(Found::Nothing);
        }
        if list.made() >= config.lanes.blocking_max {
            // One for another database or dialect gives its place.
            let Some(at) = list.connections.iter().position(Connection::is_free) else { return Ok(Found::Nothing) };
            let other = list.connections.swap_remove(at);
            env.close_lane(other.lane.index);
        }
        let lane = env.lanes.dial_unshared(&env.config, node, class, LaneUse::Blocking, env.now)?;
        let handle = env.lanes.handle(lane);
        self.at(node).connections.push(Connection {
            lane: handle,
            is_taken: false,
            is_own: false,
            is_coming: true,
            unblocks: 0,
            id: None,
        });
        // It is made for a request, which reaches the node together with this question.
        env.ask_number(handle);
        Ok(Found::Coming)
    }

    /// A client that is not to hear of its own changes waits on its own connection, on which nothing else of it is owed.
    fn wait_on_own(&mut self, env: &mut Env<impl Execute>, index: ClientId, blocked: Handle, node: NodeId) {
        let Some(class) = env.clients.sessions.at(index).map(|session| session.class) else { return };
        self.leave_queue(node, blocked);
        let place = env.lanes.lane(&env.config, node, class);
        if let Err(error) = env.lanes.admit(place, &env.config, env.now) {
            return self.fail_blocked(env, blocked, error);
        }
        let lane = env.lanes.handle(place);
        env.lanes[place].is_waiting = true;
        let connections = &mut self.at(node).connections;
        connections.retain(|connection| connection.lane != lane);
        let id = env.lanes[place].number;
        connections.push(Connection { lane, is_taken: true, is_own: true, is_coming: false, unblocks: 0, id });
        if id.is_none() {
            env.ask_number(lane);
        }
        self.send_blocked(env, blocked, lane);
    }

    /// The request waits at the node from now on.
    fn send_blocked(&mut self, env: &mut Env<impl Execute>, blocked: Handle, lane: LaneHandle) {
        self.note_sent(blocked, lane);
        let task = env.tasks.begin(NodeQuery::new(NodeQueryPurpose::Request { blocked, lane }));
        let place = lane.index;
        let Env { lanes, clients, now, .. } = env;
        let Some(this) = self.requests.get_mut(blocked) else { return };
        this.begin_late(*now);
        if is_wait(this.row) {
            // WAIT is about all that had been written when its connection was last asked something: with this it is
            // everything that this client has written, on whatever connection, and has an answer for. A WAIT for nothing is answered at
            // once, also by a node that refuses PING: to this user, or since its disk is full.
            let write = |out: &mut Vec<u8>| encode_request(out, [&b"WAIT"[..], b"0", b"0"].into_iter());
            lanes.push(place, Tasks::owner(task, BEFORE), *now, &mut clients.pool, write);
        }
        let write = |out: &mut Vec<u8>| this.encode(*now, out);
        lanes.push(place, Tasks::owner(task, COUNTS), *now, &mut clients.pool, write);
        if this.release.is_some() {
            env.is_busy = true;
            self.unblock(env, blocked);
        }
    }

    /// Looks whether what a queued request waits for is there already.
    pub(crate) fn try_blocked(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        if is_wait(this.row) || is_migrate(this.row) {
            return;
        }
        let (node, class) = (this.node, this.class.id());
        // Otherwise it stands in the queue as before.
        let Some(lane) = self.lane_to_look(env, node, class) else { return };
        let handle = env.lanes.handle(lane);
        let query = NodeQuery::new(NodeQueryPurpose::Try { blocked, lane: handle });
        let task = env.tasks.begin(NodeQuery { reply_bytes_max: Some(env.config.budgets.client_output_hard), ..query });
        let Env { lanes, clients, now, .. } = env;
        let Some(this) = self.requests.get_mut(blocked) else { return };
        this.state = State::Tried;
        let mut push = |step: u16, write: &dyn Fn(&mut Vec<u8>)| {
            lanes.push(lane, Tasks::owner(task, step), *now, &mut clients.pool, |out| write(out));
        };
        push(BEGIN, &|out| encode_request(out, [&b"MULTI"[..]].into_iter()));
        push(QUEUE, &|out| this.encode_at_once(out));
        push(COUNTS, &|out| encode_request(out, [&b"EXEC"[..]].into_iter()));
        env.is_busy = true;
    }

    /// As [`Self::try_blocked`] for a request that cannot wait for its turn: requests queued before it for the same keys are
    /// tried first.
    pub(crate) fn try_behind_others(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        self.before(blocked).into_iter().for_each(|before| self.try_blocked(env, before));
        self.try_blocked(env, blocked);
    }

    /// A task about a request that waits is through.
    pub(crate) fn conclude_node_query(&mut self, env: &mut Env<impl Execute>, wait: NodeQuery) {
        let (kind, reply) = wait.reply.unwrap_or((ReplyKind::Error, Vec::new()));
        match wait.purpose {
            NodeQueryPurpose::Number { lane } => {
                env.counters.blocked_dialling.set(env.counters.blocked_dialling.value().saturating_sub(1));
                let id = match Value::parse(&reply) {
                    Ok(Value::Integer(id)) => Some(id),
                    _ => None,
                };
                let mut place = None;
                if let Some((node, connection)) = self.find_connection(lane) {
                    connection.id = id;
                    connection.is_coming = false;
                    place = Some(node);
                }
                let is_released = |w: &Handle| self.requests.get(*w).is_some_and(|w| w.release.is_some());
                if let Some(blocked) = self.sent.get(&lane).copied().filter(is_released) {
                    self.unblock(env, blocked);
                }
                if let Some(node) = place {
                    self.forget_lost(env, node);
                    self.serve_queue(env, node);
                }
            }
            NodeQueryPurpose::Request { blocked, lane } => {
                self.returns.end_arriving(lane);
                let Some(this) = self.requests.get_mut(blocked) else { return };
                if wait.is_lost && this.release == Some(Release::HalfClosed) {
                    // What has become of it is not known: it may have been waiting.
                    this.release = Some(Release::Vanished);
                }
                let (node, release) = (this.node, this.release);
                this.is_looked |= kind.is_null();
                // What is asked again may wait on the same connection at once.
                let own = env.lanes.find(lane).filter(|place| env.lanes[*place].is_waiting);
                if let Some(place) = own {
                    self.end_wait_on_own(env, node, place, lane);
                }
                match env.lanes.find(lane).filter(|_| own.is_none()) {
                    Some(place) if env.lanes[place].up.tickets().is_empty() => {
                        if let Some(connection) = self.connection(node, lane) {
                            connection.is_taken = false;
                        }
                    }
                    Some(place) => env.close_lane(place),
                    None => {}
                }
                match release {
                    // Nothing was taken for it.
                    Some(Release::Moved) if kind.is_null() => self.ask_again(env, blocked),
                    _ => self.finish_blocked(env, blocked, kind, &reply),
                }
                self.forget_lost(env, node);
                self.serve_queue(env, node);
            }
            NodeQueryPurpose::Try { blocked, lane } => {
                if !wait.has_begun
                    && let Some(place) = env.lanes.find(lane)
                {
                    env.lanes[place].multi = Multi::Unknown;
                }
                self.conclude_try(env, blocked, kind, &reply);
            }
            NodeQueryPurpose::Unblock { blocked, lane } => {
                let node = self.end_unblock(lane);
                // 1: its reply is on the way. 0: it has come already, or the request had not: it is asked again, first at once,
                // as it may come just now, and then by the timers.
                if kind != ReplyKind::Integer {
                    self.give_up_unblock(env, blocked, lane);
                } else if self.requests.get(blocked).is_some_and(|w| w.asked < UNBLOCKS_AT_ONCE) && is_zero(&reply) {
                    self.unblock(env, blocked);
                }
                if let Some(node) = node {
                    self.serve_queue(env, node);
                }
            }
        }
    }

    /// Connections of the blocking lane to a node that have ended are not remembered.
    fn forget_lost(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        let lanes = &env.lanes;
        self.at(node).connections.retain(|connection| lanes.find(connection.lane).is_some());
    }

    /// A client's own connection has nothing more to wait for.
    fn end_wait_on_own(&mut self, env: &mut Env<impl Execute>, node: NodeId, place: LaneId, lane: LaneHandle) {
        let connections = &mut self.at(node).connections;
        let known = connections.iter().position(|connection| connection.lane == lane);
        let is_asked = known.is_some_and(|at| connections.swap_remove(at).unblocks > 0);
        env.lanes[place].is_waiting = false;
        // The node may be about to let go whatever waits there next.
        if is_asked || !env.lanes[place].up.tickets().is_empty() {
            env.close_lane(place);
        }
    }

    fn conclude_try(&mut self, env: &mut Env<impl Execute>, blocked: Handle, kind: ReplyKind, reply: &[u8]) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        let node = this.node;
        this.state = State::Queued;
        let element = match elements(reply).and_then(|mut all| all.next()) {
            Some(element) if !kind.is_error() => element,
            _ => {
                self.leave_queue(node, blocked);
                self.finish_blocked(env, blocked, ReplyKind::Error, reply);
                return self.serve_queue(env, node);
            }
        };
        let is_nothing = matches!(element, b"*-1\r\n" | b"$-1\r\n" | b"_\r\n");
        if !is_nothing {
            let next = self.leave_queue(node, blocked);
            let kind = if element.starts_with(b"-") { ReplyKind::Error } else { ReplyKind::Array };
            self.finish_blocked(env, blocked, kind, element);
            // Further elements may be there for the requests behind it.
            self.serve_queue(env, node);
            return next.into_iter().for_each(|next| self.try_next(env, next));
        } else if let Some(release) = self.release_of_looked(env, blocked) {
            self.leave_queue(node, blocked);
            self.finish_released(env, blocked, release);
        }
        // Those behind it were not served before it.
        self.serve_queue(env, node);
    }

    /// A request has become the first for a key because the one before it was served.
    fn try_next(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let Some(this) = self.requests.get(blocked).filter(|this| this.state == State::Queued) else { return };
        if !this.is_on_own && !env.is_held_at(this.node, this.row) {
            self.try_blocked(env, blocked);
        }
    }

    /// Answers a request that waits no longer with an error, and forgets it.
    pub(crate) fn fail_blocked(&mut self, env: &mut Env<impl Execute>, blocked: Handle, error: impl Into<ErrorReply>) {
        self.finish_blocked(env, blocked, ReplyKind::Error, error.into().as_bytes());
    }

    /// Answers a request that waits no longer, and forgets it.
    pub(crate) fn finish_blocked(
        &mut self,
        env: &mut Env<impl Execute>,
        blocked: Handle,
        kind: ReplyKind,
        reply: &[u8],
    ) {
        let Some(this) = self.remove(blocked) else { return };
        this.wait.into_iter().for_each(|wait| self.leave_parking(env, wait));
        if env.engine.is_some() && kind == ReplyKind::Error {
            env.command_log.calls.fail_waiting(this.row, reply);
        }
        let is_served = this.is_served_by(kind, reply);
        let drops_client = this.release.is_some_and(Release::drops_client);
        let has_waited = this.is_put_back();
        let index = match this.target {
            Target::Client { asker } => {
                let is_there = env.clients.sessions.get_mut(asker.session).is_some();
                let is_put_back = (has_waited || !is_there) && self.put_back(env, &this, reply);
                if !is_there {
                    return;
                }
                let is_told = (is_served || !drops_client) && !is_put_back;
                env.clients.fill(asker, if is_told { reply } else { &[] });
                Some(asker.session.index)
            }
            Target::Part { gather, .. } if drops_client && !is_served => {
                env.scatters.abandon(gather, &mut env.clients).map(|asker| asker.session.index)
            }
            Target::Part { gather, part } => {
                env.scatters.feed(gather, part, kind, reply, &mut env.clients);
                None
            }
        };
        let index = index.or_else(|| env.clients.sessions.iter().find(|(_, s)| s.id == this.client).map(|(i, _)| i));
        let Some(index) = index else { return };
        env.clients.forget_blocked(index, blocked, this.held_bytes);
        if drops_client && (has_waited || !is_served) {
            env.clients.drop_rest(index);
        }
    }

    /// The node does not let the request go: its connection is closed, which ends it in any case.
    fn give_up_waiting(&mut self, env: &mut Env<impl Execute>, blocked: Handle) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        let State::Sent(lane) = this.state else { return };
        if let Some(place) = env.lanes.find(lane) {
            env.close_lane(place);
        }
    }

    /// Time has passed for requests without a connection: some have timed out, and some are tried.
    #[cold]
    pub(crate) fn handle_blocked_deadlines(&mut self, env: &mut Env<impl Execute>) {
        let now_us = env.now.mono_us;
        for blocked in self.take_overdue(waiting_us(env)) {
            // One that is being tried is told behind that, unless there is another reason to let it go.
            let Some(this) = self.requests.get(blocked) else { continue };
            match (this.release, this.state) {
                (None, State::Queued) if !this.may_end_unasked() => self.ask_late(env, blocked),
                (None, _) => self.release_blocked(env, blocked, Release::Timeout),
                (Some(Release::HalfClosed), State::Queued) => {
                    let node = this.node;
                    self.leave_queue(node, blocked);
                    self.finish_released(env, blocked, Release::HalfClosed);
                }
                _ => {}
            }
        }
        let Some(tries) = self.take_tries(now_us) else { return };
        let is_fit = |w: &BlockedRequest| w.state == State::Queued && !(w.is_looked && w.is_overdue(now_us));
        for (node, chosen) in tries.into_entries() {
            self.serve_queue(env, node);
            self.stop_looking(env, node);
            for blocked in chosen {
                if self.requests.get(blocked).is_some_and(|w| is_fit(w) && !env.is_held_at(node, w.row)) {
                    self.try_blocked(env, blocked);
                }
            }
        }
    }

    /// Checks requests that wait at nodes. Returns whether any has to be checked again.
    pub(crate) fn check_queues(&mut self, env: &mut Env<impl Execute>) -> bool {
        let now_us = env.now.mono_us;
        let due_us = env.lag.due_us(now_us, env.config.timeouts.response_us);
        let (mut stuck, mut asked) = (Vec::new(), Vec::new());
        for handle in self.sent.values().copied() {
            let Some(blocked) = self.requests.get(handle) else { continue };
            if blocked.release.is_some() {
                asked.push(handle);
            } else if env.is_given_up(blocked, due_us) {
                stuck.push(handle);
            }
        }
        stuck.into_iter().for_each(|blocked| self.give_up_waiting(env, blocked));
        asked.into_iter().for_each(|blocked| self.unblock(env, blocked));
        if env.engine.is_some() {
            return false;
        }
        let is_any_coming = self.check_coming(env);
        for node in self.nodes.ids() {
            self.serve_queue(env, node);
        }
        let Self { requests, sent, .. } = &*self;
        // A request that is blocked at a node needs no look at the clock, but for being taken back.
        is_any_coming
            || requests.len() > sent.len()
            || sent.values().any(|w| requests.get(*w).is_some_and(|w| w.release.is_some()))
    }

    /// Ends connections whose nodes are too long silent about their numbers: those in the queue would wait for them, and no others
    /// would be made. Returns whether a number is owed.
    fn check_coming(&self, env: &mut Env<impl Execute>) -> bool {
        let due_us = env.lag.due_us(env.now.mono_us, env.config.timeouts.silence_us);
        let connections = self.nodes.iter().flat_map(|list| &list.connections);
        let coming: Vec<LaneId> = connections.filter(|c| c.is_coming).filter_map(|c| env.lanes.find(c.lane)).collect();
        for lane in &coming {
            let this = &env.lanes[*lane];
            // That its turn to be dialled does not come, or the dial lasts, says nothing of the node.
            let is_late = |since_us| due_us.is_some_and(|due_us| since_us <= due_us);
            if this.up.is_ready() && !this.is_left && this.silent_since_us().is_some_and(is_late) {
                env.close_upstream(*lane);
                env.end_lane(*lane, LaneEnd::Silent);
            }
        }
        !coming.is_empty()
    }

    /// A node does not answer any more: waiting requests end.
    pub(crate) fn end_waiting(&mut self, env: &mut Env<impl Execute>, node: NodeId) {
        let lanes: Vec<LaneHandle> = self.at(node).connections.iter().map(|c| c.lane).collect();
        for lane in lanes {
            if let Some(place) = env.lanes.find(lane) {
                env.close_lane(place);
            }
        }
    }
}

impl<E: Execute> Env<E> {
    /// Asks a node for its number of a connection.
    fn ask_number(&mut self, lane: LaneHandle) {
        self.counters.blocked_dialling.set(self.counters.blocked_dialling.value() + 1);
        let task = self.tasks.begin(NodeQuery::new(NodeQueryPurpose::Number { lane }));
        let write = |out: &mut Vec<u8>| encode_request(out, [&b"CLIENT"[..], b"ID"].into_iter());
        let owner = Tasks::owner(task, COUNTS);
        self.lanes.push(lane.index, owner, self.now, &mut self.clients.pool, write);
    }
}

impl Clients {
    /// The nodes that may have a client's writes. Under routes those of all pools: which of them the client has been led to
    /// is not remembered, and one that is left out might be the one that lags.
    fn nodes_written(&self, config: &Config, index: ClientId) -> Vec<NodeId> {
        let is_routed = self.sessions.at(index).is_some_and(|session| session.flags.has(SessionFlags::ROUTED));
        if !is_routed {
            return config.topology_ids().collect();
        }
        config.routes.pools().iter().flat_map(NodeId::of_pool).collect()
    }

    fn forget_blocked(&mut self, index: ClientId, blocked: Handle, held_bytes: usize) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        let Some(pins) = &mut session.pins else { return };
        pins.blocked.retain(|w| *w != blocked);
        pins.waiting_bytes = pins.waiting_bytes.saturating_sub(held_bytes);
        if pins.blocked.is_empty() {
            self.counters.blocked_clients.set(self.counters.blocked_clients.value().saturating_sub(1));
        }
        session.settle_pins();
    }
}
