//! NOLOOP: a client that is not to hear of its own changes has connections of its own to all nodes.
//!
//! Whose a change was only the node knows, and it knows connections. So everything that such a client asks for goes over
//! connections of its own (see [`crate::pool::session_mode`]), and the node tells of changes there.
//!
//! ```text
//!   itself         client === own lane === node    CLIENT TRACKING ON NOLOOP, in the handshake; told between the replies
//!   another one    client === own lane === node    CLIENT TRACKING ON REDIRECT 7 NOLOOP
//!                             listener --- node    its number is 7: told here, and passed on to the client that it has named
//!
//!   CLIENT TRACKING ON --> [dialled] -- all nodes have said OK --> [told] -- OFF, RESET, leaving --> closed
//!                              |  ^                                  |
//!                  cannot be   |  '---- dialled again, null ---------' one is lost: null, and after each reading until
//!                  had: error  v                                       it is there again: null
//! ```
//!
//! HELLO changes what is spoken on these connections and nothing else, so what nodes remember of the client stays: in RESP2
//! it is told nothing, unless it has named another client, and goes on being told in RESP3.
//!
//! A node remembers what is read on such a connection, so what scripts and transactions read is as exact as there. CLIENT
//! CACHING is passed on before the request that it is about; should that never be sent, a PING takes it back before the next.

use super::noloop_lanes::{Listener, ListenerId, NoLoopLanes, ProtocolSwitch};
use super::routed_keys;
use super::state::{Mode, TrackingOptions};
use crate::config::Config;
use crate::ended::Ended;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, Handle, LaneId, LaneKeyId, NodeId, NodeRange, PerNode};
use crate::integer::integer;
use crate::interfaces::changed_keys::{ChangeSource, LostListener};
use crate::limits::{PUSH_CHECK_US, PUSH_SILENT_US_MAX};
use crate::pool::key_id::{KeyOwner, LaneKey};
use crate::pool::{LaneEnd, LaneUse, Lanes};
use crate::push::subscriber::Subscriber;
use crate::reply::owner::Owner;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply, Tasks};
use crate::session::table::Clients;
use crate::session::{Flow, Session};
use crate::tracking::Subscriptions;
use crate::tracking::state::{Tracking, TrackingClient};
use respool_command::Execute;
use respool_connection::push::frame::{Frame, bulk};
use respool_connection::{Phase, Pushes};
use respool_wire::{Protocol, ReplyKind, elements, encode_request};
use std::sync::Arc;

fn noloop_of(session: &Session) -> Option<&NoLoopLanes> {
    TrackingClient::of(Subscriber::of(&session.subscriber)?)?.noloop.as_deref()
}

/// Its connections are the client's no more.
fn take_noloop(session: &mut Session) -> Option<Box<NoLoopLanes>> {
    TrackingClient::of_mut(Subscriber::of_mut(&mut session.subscriber)?)?.noloop.take()
}

fn noloop_mut(session: &mut Session) -> Option<&mut NoLoopLanes> {
    TrackingClient::of_mut(Subscriber::of_mut(&mut session.subscriber)?)?.noloop.as_deref_mut()
}

impl Subscriptions {
    /// A node has pushed something on a connection of one client, before the reply that `next` is owed there.
    pub(crate) fn hear(&mut self, at: ChangeSource<'_>, next: Option<Owner>, frame: &[u8], clients: &mut Clients) {
        let of = at.reader;
        let Frame::Invalid(keys) = Frame::read(ReplyKind::Push, frame) else { return };
        let Some(session) = clients.sessions.get_mut(of) else { return };
        // If the reply that comes next there is the one that the client gets next, this comes before it as well.
        let is_first = match next {
            Some(Owner::Client { seq, .. }) => session.down.is_next(seq),
            Some(_) => session.down.outstanding() == 1,
            None => false,
        };
        let Some(tracking) = Tracking::of_mut(&mut session.subscriber) else { return };
        let after = tracking.after;
        if is_first {
            tracking.after = None;
        }
        self.pass_on_heard(at, keys, clients);
        let Some(session) = clients.sessions.get_mut(of) else { return };
        if let Some(tracking) = Tracking::of_mut(&mut session.subscriber) {
            tracking.after = after;
        }
    }

    fn pass_on_heard(&mut self, at: ChangeSource<'_>, keys: Option<&[u8]>, clients: &mut Clients) {
        let of = at.reader;
        let Some(session) = clients.sessions.get_mut(of) else { return };
        let client = Subscriber::of(&session.subscriber).and_then(TrackingClient::of);
        let Some(TrackingClient { tracking: Some(tracking), noloop: Some(_) }) = client else { return };
        let Some(keys) = keys else { return self.invalidate_client(of, clients) };
        let keys = elements(keys).into_iter().flatten().filter_map(bulk);
        let keys: Vec<Box<[u8]>> = match self.is_routed {
            false => keys.map(Box::from).collect(),
            true => routed_keys::names_for(&at.config.routes, at.node, session.user_name(), &keys.collect::<Vec<_>>()),
        };
        match tracking.mode {
            _ if keys.is_empty() => {}
            Mode::Broadcast => self.tell_by_prefix(of, &keys.iter().map(|key| &**key).collect::<Vec<_>>(), clients),
            Mode::Read | Mode::OptIn | Mode::OptOut => self.tell_invalid(of, Some(keys), clients),
        }
    }

    /// Gives a client, of which nothing is outstanding but perhaps the request that `pending` stands for, connections of its own
    /// on which all nodes tell of others' changes. `Err`: they cannot be had.
    pub(super) fn begin_noloop(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        pending: Option<Handle>,
        wanted: &TrackingOptions,
    ) -> Result<(), ErrorReply> {
        let options = env.clients.options_for(&env.config, index, wanted);
        if !env.clients.has_noloop_lanes(index) {
            env.leave_large(index);
            env.forfeit_watches(index);
            if !env.own_all(index) {
                return Err(error_text::TOO_MANY_OWNERS.into());
            }
        }
        let (nodes, read) = (env.config.nodes_heard(), self.nodes_read(env, index));
        let is_redirected = wanted.redirect.is_some();
        if !is_redirected {
            env.close_listeners(index);
        }
        let handle = env.clients.sessions.handle(index);
        let has_stored =
            env.clients.has_noloop_lanes(index) && handle.is_some_and(|handle| env.clients.may_have_stored(handle));
        let Some(session) = env.clients.sessions.at_mut(index) else { return Ok(()) };
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return Ok(()) };
        let Some(client) = TrackingClient::begun(subscriber) else { return Ok(()) };
        let noloop = client.noloop.get_or_insert_default();
        if has_stored && (noloop.is_redirected != is_redirected || noloop.options != options) {
            // Other connections ask for it, and nodes forget what was read on those before.
            self.tracked.doubtful.extend(handle);
        }
        noloop.pending = pending;
        noloop.is_redirected = is_redirected;
        noloop.options = options;
        noloop.is_told = PerNode::new(nodes.map(|node| !read.contains(&node)));
        if self.check_at_us == 0 {
            self.check_at_us = env.now.mono_us + PUSH_CHECK_US;
        }
        env.name_requests(index);
        self.note_told(env, index);
        self.ensure_noloop_lanes(env, index)
    }

    /// Whether all nodes tell a client of changes.
    pub(super) fn hears_all(&self, env: &Env<impl Execute>, index: ClientId) -> bool {
        let Some(class) = env.clients.sessions.at(index).map(|session| session.class) else { return false };
        self.nodes_read(env, index).into_iter().all(|node| env.lanes.is_telling(class, node))
    }

    /// Counts the nodes that tell already for the request that waits for all.
    fn note_told(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        for node in env.config.nodes_heard() {
            let Some(class) = env.clients.sessions.at(index).map(|session| session.class) else { return };
            if env.lanes.is_telling(class, node) {
                self.note_told_of(env, index, node);
            }
        }
    }

    /// A node tells of changes from now on. `false`: that was not waited for.
    fn note_told_of(&mut self, env: &mut Env<impl Execute>, index: ClientId, node: NodeId) -> bool {
        let Some(noloop) = env.clients.sessions.at_mut(index).and_then(noloop_mut) else { return false };
        let Some(pending) = noloop.pending else { return false };
        if let Some(is_told) = noloop.is_told.get_mut(node)
            && !std::mem::replace(is_told, true)
        {
            self.progress(pending, &mut env.clients);
        }
        true
    }

    /// Has every connection made that a client needs, and those that say something else to their nodes replaced as soon as
    /// nothing is owed on them. `Err`: one cannot be had for now.
    pub(super) fn ensure_noloop_lanes(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
    ) -> Result<(), ErrorReply> {
        let mut result = Ok(());
        let class = env.clients.sessions.at(index).map_or(LaneKeyId::PLAIN, |session| session.class);
        for node in self.nodes_read(env, index) {
            let mended = env.ensure_listener(index, node).and_then(|()| env.ensure_own_lane(index, node));
            if mended.is_err() && env.lanes.nodes[node].takes_no_dial(env.lanes.state_of(class), env.now) {
                // No client waits for it. What is read meanwhile is in doubt, and everything is when it is there again.
                self.note_told_of(env, index, node);
            } else {
                result = result.and(mended);
            }
        }
        result
    }

    /// The number of a connection has come, or will not.
    pub(crate) fn conclude_listening(&mut self, env: &mut Env<impl Execute>, listening: ListenerId) {
        let ListenerId { session, node, lane, id: Some(id) } = listening else { return };
        if let Some(place) = env.lanes.find(lane) {
            env.lanes[place].number = Some(id);
        }
        let Some(this) = env.clients.sessions.get_mut(session) else { return };
        let listener = noloop_mut(this).and_then(|noloop| noloop.listeners.get_mut(node));
        let Some(listener) = listener.filter(|listener| listener.lane == Some(lane)) else { return };
        listener.id = Some(id);
        env.name_requests(session.index);
        if let Err(error) = env.ensure_own_lane(session.index, node) {
            self.fail_noloop(env, session, &error);
        }
    }

    /// A client asks for something. `Some`: not before its connections say to their nodes what they should.
    pub(crate) fn settle_noloop(&mut self, env: &mut Env<impl Execute>, index: ClientId) -> Option<Flow> {
        let session = env.clients.sessions.at(index)?;
        noloop_of(session)?;
        let class = session.class;
        let is_wrong = |node: NodeId| {
            let known = env.lanes.known(node, class).map(|lane| &env.lanes[lane]);
            let request = env.lanes.request_for(class, node);
            request.is_some() && known.is_some_and(|lane| lane.up.identity().tracking != request && !lane.is_settled())
        };
        if !env.config.nodes_heard().any(is_wrong) {
            return None;
        }
        if env.clients.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        // What cannot be had now the timers try again.
        let _ = self.ensure_noloop_lanes(env, index);
        None
    }

    /// A connection of a client that is told of changes can be used.
    pub(crate) fn begin_hearing(&mut self, env: &mut Env<impl Execute>, lane: LaneId) {
        let this = &env.lanes[lane];
        let Some(reader) = this.lease.reader() else { return };
        let node = this.node;
        if this.up.is_old() {
            let error = error_text::no_tracking(&env.lanes.nodes[node].told.name);
            self.fail_noloop(env, reader, &error);
            env.close_lane(lane);
            self.hear_ended(env);
        } else if this.purpose == LaneUse::Own {
            // By it a request that waits there can be let go.
            env.ask_number_of(reader, node, lane);
            if !self.note_told_of(env, reader.index, node) && env.clients.may_have_stored(reader) {
                // Changes that were made meanwhile went untold.
                self.invalidate_client(reader, &mut env.clients);
            }
        }
    }

    /// Such a connection is gone.
    pub(super) fn end_hearing(&mut self, env: &mut Env<impl Execute>, ended: Ended) {
        let Ended::Listener { reader, node, is_listener, was_ready, refusal } = ended else { return };
        let Some(session) = env.clients.sessions.get_mut(reader) else { return };
        let Some(noloop) = noloop_mut(session) else { return };
        if is_listener && let Some(listener) = noloop.listeners.get_mut(node) {
            *listener = Listener::default();
            env.name_requests(reader.index);
        }
        if was_ready {
            self.invalidate_client(reader, &mut env.clients);
        }
        match refusal {
            Some(error) => self.fail_noloop(env, reader, &error),
            // It is not there: no client waits for it, and all stored keys are invalid when it is back.
            None => _ = self.note_told_of(env, reader.index, node),
        }
    }

    /// The request to track that waits for all nodes has failed, if there is one.
    fn fail_noloop(&mut self, env: &mut Env<impl Execute>, session: ClientHandle, error: &ErrorReply) {
        let pending =
            env.clients.sessions.get_mut(session).and_then(noloop_mut).and_then(|noloop| noloop.pending.take());
        if let Some(pending) = pending {
            self.fail(pending, error, &mut env.clients, &env.config);
        }
    }

    /// A client speaks another dialect from now on and is the same otherwise: its own connections do, too. Nothing is owed on
    /// them. `false`: it has none, or is not the same.
    pub(crate) fn speak_otherwise(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        class: LaneKeyId,
        state: LaneKey,
    ) -> bool {
        let before = env.lanes.state_of(class);
        if !env.clients.has_noloop_lanes(index)
            || before == state
            || (LaneKey { protocol: state.protocol, ..before }) != state
        {
            return false;
        }
        env.lanes.set_state_of(class, state);
        let version = state.protocol.version().to_string();
        let mut is_whole = true;
        for lane in env.lanes.own_lanes(class) {
            let this = &mut env.lanes[lane];
            if !this.up.is_ready() {
                // It has not been said yet what is spoken there, or just so.
                env.close_lane(lane);
                self.hear_ended(env);
                is_whole = false;
                continue;
            }
            this.up.set_protocol(state.protocol);
            this.up.set_pushes(Pushes::Delivered);
            let task = env.tasks.begin(ProtocolSwitch);
            let write = |out: &mut Vec<u8>| encode_request(out, [b"HELLO", version.as_bytes()].into_iter());
            env.lanes.push(lane, Tasks::owner(task, 0), env.now, &mut env.clients.pool, write);
            env.is_busy = true;
        }
        if !is_whole {
            // What cannot be had now the timers try again.
            let _ = self.ensure_noloop_lanes(env, index);
        }
        true
    }

    /// A client has other connections than before, because it selected another database.
    pub(crate) fn restart_noloop(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let Some(handle) = env.clients.sessions.handle(index) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        if noloop_of(session).is_none() {
            return;
        }
        self.fail_noloop(env, handle, &error_text::NODES_CHANGED.into());
        self.invalidate_client(handle, &mut env.clients);
        env.close_listeners(index);
        env.name_requests(index);
        // What cannot be had now the timers try again.
        let _ = self.ensure_noloop_lanes(env, index);
    }

    /// Other nodes are configured.
    pub(crate) fn restart_all_noloop(&mut self, env: &mut Env<impl Execute>) {
        let mut all = env.clients.sessions.places(|_| true);
        all.retain(|index| env.clients.has_noloop_lanes(*index));
        all.into_iter().for_each(|index| self.restart_noloop(env, index));
    }

    /// Closes NOLOOP lanes that their clients do not need.
    pub(super) fn part(&mut self, env: &mut Env<impl Execute>) {
        for handle in std::mem::take(&mut self.tracked.parting) {
            let Some(session) = env.clients.sessions.get_mut(handle) else { continue };
            let tracking = Tracking::of(&session.subscriber);
            if !tracking.is_some_and(|tracking| tracking.is_noloop) {
                env.leave_noloop(handle.index);
            }
        }
    }

    /// Dials what was lost, and probes connections that have been silent.
    pub(super) fn check_noloop(&mut self, env: &mut Env<impl Execute>) {
        let numbers: Vec<u32> = self.tracked.noloop.ids().collect();
        for number in numbers {
            let Some(handle) = self.subscribers.at(number).copied() else { continue };
            let Some(session) = env.clients.sessions.get_mut(handle) else { continue };
            let class = session.class;
            let listeners = noloop_of(session).map(|noloop| noloop.listeners.clone()).unwrap_or_default();
            if env.drain_until_us.is_none() {
                // Refused only while a node's pause lasts, or there are too many.
                let _ = self.ensure_noloop_lanes(env, handle.index);
            }
            let mut lanes = env.lanes.own_lanes(class);
            lanes.extend(listeners.iter().filter_map(|listener| env.lanes.find(listener.lane?)));
            lanes.into_iter().for_each(|lane| env.ask_silent(lane));
        }
    }
}

impl<E: Execute> Env<E> {
    fn ensure_own_lane(&mut self, index: ClientId, node: NodeId) -> Result<(), ErrorReply> {
        let Some(class) = self.clients.sessions.at(index).map(|session| session.class) else { return Ok(()) };
        let Some(request) = self.lanes.request_for(class, node) else { return Ok(()) };
        if let Some(known) = self.lanes.known(node, class)
            && self.lanes[known].up.identity().tracking.as_ref() != Some(&request)
        {
            if !self.lanes.is_replaceable(&self.clients, known) {
                return Ok(());
            }
            // The caller tells the client what follows from that.
            self.disown(self.lanes.handle(known));
        }
        let lane = self.lanes.lane(&self.config, node, class);
        if matches!(self.lanes[lane].up.phase(), Phase::Idle) {
            self.is_busy = true;
            self.lanes.prepare(lane, &self.config, self.now)?;
        }
        Ok(())
    }

    /// Its connections to itself are closed: a client tracks no more, or hears of its own changes as well.
    pub(crate) fn leave_noloop(&mut self, index: ClientId) {
        self.close_listeners(index);
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let class = session.class;
        if take_noloop(session).is_none() {
            return;
        }
        if let KeyOwner::Client(owner) = &mut self.lanes.owners[class] {
            owner.tracking = None;
        }
        self.stop_owning(index);
    }

    fn close_listeners(&mut self, index: ClientId) {
        let Some(noloop) = self.clients.sessions.at_mut(index).and_then(noloop_mut) else { return };
        let listeners = std::mem::take(&mut noloop.listeners);
        self.end_listeners(listeners);
    }

    fn end_listeners(&mut self, listeners: PerNode<Listener>) {
        listeners.iter().filter_map(|listener| listener.lane).for_each(|lane| self.disown(lane));
    }

    /// A client has left.
    pub(crate) fn forget_noloop(&mut self, session: &mut Session) {
        self.end_listeners(take_noloop(session).map(|noloop| noloop.listeners).unwrap_or_default());
    }

    /// Sets the CLIENT TRACKING request of each node. A node whose listener has no id yet has none.
    fn name_requests(&mut self, index: ClientId) {
        let nodes = self.config.nodes_heard();
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let class = session.class;
        let Some(noloop) = noloop_mut(session) else { return };
        noloop.listeners.resize(if noloop.is_redirected { nodes.clone().count() } else { 0 });
        let request = |node: NodeId| match noloop.listeners.get(node) {
            None => Some(noloop.request(None)),
            Some(listener) => listener.id.map(|id| noloop.request(Some(id))),
        };
        let by_node = PerNode::new(nodes.map(request));
        if let KeyOwner::Client(owner) = &mut self.lanes.owners[class] {
            owner.tracking = Some(by_node);
        }
    }

    fn ensure_listener(&mut self, index: ClientId, node: NodeId) -> Result<(), ErrorReply> {
        let Some(session) = self.clients.sessions.handle(index) else { return Ok(()) };
        let Some(this) = self.clients.sessions.at(index) else { return Ok(()) };
        let class = this.class;
        let Some(listener) = noloop_of(this).and_then(|noloop| noloop.listeners.get(node)) else { return Ok(()) };
        if listener.lane.is_some_and(|lane| self.lanes.find(lane).is_some()) {
            return Ok(());
        }
        let lane = self.lanes.dial_unshared(&self.config, node, class, LaneUse::Listen, self.now)?;
        let made = &mut self.lanes[lane];
        made.up.set_protocol(Protocol::Resp3);
        made.up.set_pushes(Pushes::Delivered);
        made.lease.set_reader(Some(session));
        let handle = self.lanes.handle(lane);
        self.ask_number_of(session, node, lane);
        if let Some(noloop) = self.clients.sessions.at_mut(index).and_then(noloop_mut)
            && let Some(listener) = noloop.listeners.get_mut(node)
        {
            *listener = Listener { lane: Some(handle), id: None };
        }
        Ok(())
    }

    /// Asks a node for its number of a connection.
    fn ask_number_of(&mut self, session: ClientHandle, node: NodeId, lane: LaneId) {
        let handle = self.lanes.handle(lane);
        let task = self.tasks.begin(ListenerId { session, node, lane: handle, id: None });
        let write = |out: &mut Vec<u8>| encode_request(out, [&b"CLIENT"[..], b"ID"].into_iter());
        self.lanes.push(lane, Tasks::owner(task, 0), self.now, &mut self.clients.pool, write);
        self.is_busy = true;
    }

    /// Tells nodes what CLIENT CACHING says of the request that comes next, or takes back what it said of the last.
    pub(super) fn pass_on_mark(&mut self, index: ClientId, is_marked: bool) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let class = session.class;
        let tracking = Tracking::of_mut(&mut session.subscriber);
        let Some(tracking) = tracking else { return };
        let has_passed = std::mem::replace(&mut tracking.has_passed_mark, is_marked);
        let word: &[u8] = if tracking.mode == Mode::OptIn { b"YES" } else { b"NO" };
        for node in self.config.nodes_heard() {
            let lane = self.lanes.known(node, class).filter(|_| self.lanes.is_telling(class, node));
            let Some(lane) = lane else { continue };
            let mut push = |words: &[&[u8]]| {
                let write = |out: &mut Vec<u8>| encode_request(out, words.iter().copied());
                self.lanes.push(lane, Owner::Discard, self.now, &mut self.clients.pool, write);
            };
            if has_passed {
                push(&[b"PING"]);
            }
            if is_marked {
                push(&[b"CLIENT", b"CACHING", word]);
            }
        }
    }

    fn ask_silent(&mut self, lane: LaneId) {
        let this = &self.lanes[lane];
        let is_silent = self.now.mono_us.saturating_sub(this.up.last_heard_us()) > PUSH_SILENT_US_MAX;
        if !is_silent || !this.up.is_ready() || !this.is_settled() || this.is_waiting || this.lease.is_unread() {
            return;
        }
        let ping = |out: &mut Vec<u8>| encode_request(out, [b"PING".as_slice()].into_iter());
        self.lanes.push(lane, Owner::Discard, self.now, &mut self.clients.pool, ping);
        self.is_busy = true;
    }
}

impl Config {
    /// The nodes that may hold what a client reads.
    pub(super) fn nodes_heard(&self) -> NodeRange {
        if self.routes.are_plain() { self.topology_ids() } else { self.node_ids() }
    }
}

impl Clients {
    /// What nodes are asked for, with what is tracked already.
    fn options_for(&self, config: &Config, index: ClientId, wanted: &TrackingOptions) -> Vec<Box<[u8]>> {
        match wanted.mode() {
            Mode::Broadcast => {}
            Mode::Read => return Vec::new(),
            Mode::OptIn => return vec![b"OPTIN".as_slice().into()],
            Mode::OptOut => return vec![b"OPTOUT".as_slice().into()],
        }
        let tracking = self.tracking(index);
        let known = tracking.into_iter().flat_map(|tracking| &tracking.prefixes);
        let all: Vec<&Box<[u8]>> = known.chain(&wanted.prefixes).collect();
        let is_for_all = wanted.prefixes.is_empty() || all.iter().any(|prefix| prefix.is_empty());
        let mut options: Vec<Box<[u8]>> = vec![b"BCAST".as_slice().into()];
        // Under routes keys have other names at nodes, so beginnings are compared here alone.
        if !is_for_all && config.routes.are_plain() {
            all.into_iter().for_each(|prefix| options.extend([b"PREFIX".as_slice().into(), prefix.clone()]));
        }
        options
    }

    /// Whether a client has connections of its own because it is not to hear of its own changes.
    pub(crate) fn has_noloop_lanes(&self, index: ClientId) -> bool {
        self.sessions.at(index).is_some_and(|session| noloop_of(session).is_some())
    }

    /// Whether a client may have read keys whose invalidations it receives.
    fn may_have_stored(&self, client: ClientHandle) -> bool {
        let tracking = self.sessions.get(client).and_then(|session| Tracking::of(&session.subscriber));
        tracking.is_some_and(|tracking| tracking.mode == Mode::Broadcast || tracking.has_read())
    }
}

impl Lanes {
    /// The CLIENT TRACKING request that a class of lanes sends to its node, if its options are known.
    fn request_for(&self, class: LaneKeyId, node: NodeId) -> Option<Arc<[u8]>> {
        match &self.owners[class] {
            KeyOwner::Client(owner) => owner.tracking.as_ref()?.get(node)?.clone(),
            _ => None,
        }
    }

    /// Whether a node tells a client of changes on its own lane.
    fn is_telling(&self, class: LaneKeyId, node: NodeId) -> bool {
        let Some(request) = self.request_for(class, node) else { return false };
        let lane = self.known(node, class).map(|lane| &self[lane].up);
        lane.is_some_and(|up| up.is_ready() && up.identity().tracking.as_ref() == Some(&request))
    }

    /// Whether an own lane may be closed without a client missing anything.
    fn is_replaceable(&self, clients: &Clients, lane: LaneId) -> bool {
        let this = &self[lane];
        this.is_settled() && !this.is_waiting && !self.is_watched_on(clients, lane)
    }

    /// The tracking client that loses its listener with this lane.
    pub(crate) fn lost_listener_of(&self, lane: LaneId, ending: &LaneEnd) -> Option<LostListener> {
        let this = &self[lane];
        let is_listener = this.purpose == LaneUse::Listen;
        let is_asked = is_listener || this.purpose == LaneUse::Own && this.up.identity().tracking.is_some();
        let reader = this.lease.reader().filter(|_| is_asked)?;
        let refusal = match ending {
            LaneEnd::Fault(
                respool_connection::Fault::Refused(words) | respool_connection::Fault::NoDatabase(words),
            ) => Some(error_text::verbatim(words)),
            _ => None,
        };
        Some(LostListener { reader, is_listener, refusal })
    }
}

impl InternalTask for ListenerId {
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        let digits = reply.bytes.strip_prefix(b":").and_then(|r| r.strip_suffix(b"\r\n"));
        self.id = digits.filter(|_| reply.kind == ReplyKind::Integer).and_then(integer);
        Progress::Through
    }

    fn handle_loss(&mut self, _: TaskLoss<'_>, _: &mut Clients) -> Progress {
        Progress::Through
    }
}

impl InternalTask for ProtocolSwitch {
    /// If it will not, what comes next would be taken for something else.
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        if reply.kind == ReplyKind::Error { Progress::OutOfStep } else { Progress::Through }
    }

    fn handle_loss(&mut self, _: TaskLoss<'_>, _: &mut Clients) -> Progress {
        Progress::Through
    }
}
