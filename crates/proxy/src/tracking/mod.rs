//! CLIENT TRACKING: which clients are told of changes to which keys.
//!
//! A node tells the connection that reads, and reads of all clients share connections. So the push lane has every node tell of
//! every change (`CLIENT TRACKING ON BCAST`), for as long as any client of the worker tracks, and the worker remembers which
//! client has read which key.
//!
//! ```text
//!   GET k --> remembered, before it is sent --> node
//!                    |                           |  a client changes k
//!   invalidate k <---'<-- behind the reply <-----'  on the push lane
//! ```
//!
//! A key is remembered before its reading leaves, and an invalidation never overtakes the reply to a reading that is under
//! way: what a client stores, it is told of later. A request that waits at a node (`BLPOP`) holds no invalidation up. If it reads what
//! has changed (`XREAD BLOCK`), its reply may have been on the way already, so its client is told of that once more behind it. In doubt (a lane was lost, or is not there) clients are told to forget
//! everything. Which of several clients on a shared connection made a change cannot be known: a client that must not hear of its
//! own has connections to itself, see [`crate::tracking::noloop`].

pub(crate) mod engine_changes;
mod invalidation;
pub(crate) mod noloop;
pub(crate) mod noloop_lanes;
mod redirect;
pub(crate) mod routed_keys;
pub(crate) mod state;
pub(crate) mod table;
mod table_limit;

use crate::env::Env;
use crate::ids::{Asker, ClientHandle, ClientId, LaneKeyId, NodeId};
use crate::interfaces::read_tracker::ReadTracker;
use crate::limits::TRACKED_TRANSACTION_KEYS_MAX;
use crate::pool::key_id::LaneKey;
use crate::push;
use crate::push::pending_changes::PendingChange;
use crate::push::subscriber::Subscriber;
use crate::push::subscriptions::TrackedKeys;
use crate::reply::progress::ReplyMode;
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, SessionFlags};
use crate::tracking::state::{Mode, RedirectSearch, Tracking, TrackingOptions, WaitingRead};
use crate::tracking::table::TrackingTable;
use respool_access::User;
use respool_command::{Command, Execute, Flags, Group, KeyPositions, Lane, Row, TransactionsCommand, text as texts};
use respool_connection::Seq;
use respool_connection::push::frame::Kind;
use respool_connection::push::node_ledger::NodeLedger;
use respool_wire::Args;

/// What becomes of a CLIENT TRACKING.
#[derive(Debug)]
pub(crate) enum TrackingStep {
    Done(Flow),
    /// The client is told of changes from now on.
    Begin {
        seq: Seq,
        wanted: TrackingOptions,
    },
    /// The client to which it redirects its invalidations is looked for in all workers.
    Search {
        asker: Option<Asker>,
        search: RedirectSearch,
    },
}

/// The subscriptions of one worker's clients, and the keys that they track.
pub(crate) type Subscriptions = push::subscriptions::Subscriptions<TrackingTable>;

impl Subscriptions {
    /// CLIENT TRACKING.
    pub(crate) fn client_tracking(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        args: Args<'_>,
    ) -> TrackingStep {
        let (mut wanted, redirect) = match TrackingOptions::read(args.from(3)) {
            Ok(read) => read,
            Err(words) => return TrackingStep::Done(env.refuse(index, words)),
        };
        let is_on = match args.at(2).to_ascii_uppercase().as_slice() {
            b"ON" => true,
            b"OFF" => false,
            _ => return TrackingStep::Done(env.refuse(index, texts::SYNTAX)),
        };
        // Connections that it has to itself, or is to have, are changed when nothing is owed on them.
        let changes_lanes = env.engine.is_none() && (is_on && wanted.is_noloop || env.clients.has_noloop_lanes(index));
        if changes_lanes && env.clients.settle_before(index).is_none() {
            return TrackingStep::Done(Flow::Again);
        }
        if !is_on {
            self.end_tracking(env, index);
            return TrackingStep::Done(env.confirm(index));
        }
        let Some(session) = env.clients.sessions.at_mut(index) else { return TrackingStep::Done(Flow::Stop) };
        let now = Tracking::of(&session.subscriber);
        if let Err(words) = wanted.fits(now) {
            return TrackingStep::Done(env.refuse(index, words));
        }
        // What is read from now on has to be tracked, so nothing is read before it is.
        wanted.is_reply_wanted = session.reply_mode == ReplyMode::On;
        session.reply_mode.pass();
        session.pause.add(PauseReasons::BARRIER);
        let seq = session.down.expect();
        env.clients.list(index);
        match redirect {
            Some(id) => {
                let is_wanted = wanted.is_reply_wanted;
                let asker = env.clients.sessions.handle(index).map(|session| Asker { session, seq, is_wanted });
                env.is_busy = true;
                TrackingStep::Search { asker, search: RedirectSearch { id, wanted } }
            }
            None => TrackingStep::Begin { seq, wanted },
        }
    }

    /// The nodes that a client may read from: those that routes can lead it to. Others do not have to tell it of anything.
    pub(crate) fn nodes_read(&self, env: &Env<impl Execute>, index: ClientId) -> Vec<NodeId> {
        if env.config.routes.are_plain() {
            return env.config.topology_ids().filter(|node| self.books.get(*node).is_some()).collect();
        }
        env.config.routes.nodes_for(env.clients.user_of(index)).into_iter().map(NodeId::at).collect()
    }

    /// Whether every node that a client may read from tells of every change. Those that are to, from now on, are dialled.
    fn tells_of_changes(&mut self, env: &mut Env<impl Execute>, index: ClientId) -> bool {
        if !self.is_routed {
            return self.books.iter().all(NodeLedger::is_tracking);
        }
        let silent = |node: &NodeId| !self.books.get(*node).is_some_and(NodeLedger::is_tracking);
        let silent: Vec<NodeId> = self.nodes_read(env, index).into_iter().filter(silent).collect();
        for node in &silent {
            if self.lanes.get(*node).is_some_and(Option::is_none) {
                // The client may be led elsewhere than before. What is refused now the timers try again.
                let _ = self.prepare_push_lane(env, *node);
                env.is_busy = true;
            }
        }
        silent.is_empty()
    }

    /// The client is told OK once all nodes that it may read from tell of changes; those that are not there do so later.
    pub(crate) fn begin_tracking(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        seq: Seq,
        wanted: TrackingOptions,
    ) {
        let Some(handle) = env.clients.sessions.handle(index) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        self.subscriber(&mut session.subscriber, handle);
        if env.engine.is_none() && wanted.is_noloop {
            return self.begin_tracking_noloop(env, index, handle, seq, wanted);
        }
        self.is_tracking_wanted = true;
        let nodes = self.nodes_read(env, index);
        let nodes: Vec<NodeId> = nodes.into_iter().filter(|node| !self.books[*node].is_tracking()).collect();
        let pending = PendingChange::for_tracking(
            handle,
            seq,
            wanted.is_reply_wanted,
            nodes.len(),
            env.now.mono_us,
            Box::new(wanted),
        );
        let pending = self.pending.insert(pending);
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return };
        subscriber.pending.push_back(pending);
        for node in &nodes {
            self.books[*node].await_acknowledgements(pending, Kind::Channel);
            self.has_pending_updates = true;
            if self.prepare_push_lane(env, *node).is_err() {
                // What is read while it is not there is in doubt, and everything is when it is there again.
                self.books[*node].forget_pending(pending);
                self.progress(pending, &mut env.clients);
            } else if let Err(error) = self.check_push_dialect(env, *node) {
                self.fail(pending, &error, &mut env.clients, &env.config);
            }
        }
        env.is_busy |= !nodes.is_empty();
        self.answer(handle, &mut env.clients);
        self.account_subscriptions(env);
    }

    /// The same for a client that is not to hear of its own changes.
    fn begin_tracking_noloop(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        handle: ClientHandle,
        seq: Seq,
        wanted: TrackingOptions,
    ) {
        let nodes = self.nodes_read(env, index).len();
        let pending = PendingChange::for_tracking(
            handle,
            seq,
            wanted.is_reply_wanted,
            nodes,
            env.now.mono_us,
            Box::new(wanted.clone()),
        );
        let pending = self.pending.insert(pending);
        let Some(subscriber) = env.clients.sessions.at_mut(index).and_then(|s| Subscriber::of_mut(&mut s.subscriber))
        else {
            return;
        };
        subscriber.pending.push_back(pending);
        if let Err(error) = self.begin_noloop(env, index, Some(pending), &wanted) {
            self.fail(pending, &error, &mut env.clients, &env.config);
        }
        env.is_busy = true;
        self.answer(handle, &mut env.clients);
        self.account_subscriptions(env);
    }

    /// The client is told of nothing any more. If it has connections to itself for that, nothing is owed on them.
    pub(crate) fn end_tracking(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        env.leave_noloop(index);
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        session.flags.remove(SessionFlags::TRACKING);
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return };
        if self.tracked.end(subscriber) {
            self.has_pending_updates = true;
            self.account_subscriptions(env);
        }
    }

    fn remember_all(&mut self, env: &mut Env<impl Execute>, index: ClientId, handle: ClientHandle, keys: &[Box<[u8]>]) {
        let Some(session) = env.clients.sessions.at_mut(index).filter(|_| !keys.is_empty()) else { return };
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return };
        keys.iter().for_each(|key| self.tracked.remember(subscriber, handle, key));
        let bounds = env.shared.table_bounds(&env.config);
        self.evict(bounds, keys.len(), &mut env.clients);
        self.tracked.show(&env.counters);
    }
}

impl ReadTracker for Subscriptions {
    /// A tracking client asks for something: the keys that it reads are remembered before the request leaves.
    fn track_request(&mut self, env: &mut Env<impl Execute>, index: ClientId, row: &'static Row, args: Args<'_>) {
        let Some(handle) = env.clients.sessions.handle(index) else { return };
        let (has_noloop, has_engine) = (env.clients.has_noloop_lanes(index), env.engine.is_some());
        let is_told = if has_noloop { self.hears_all(env, index) } else { self.tells_of_changes(env, index) };
        let routed = if has_noloop || !self.is_routed { None } else { env.scoped_keys(index, row, args) };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        let is_queueing = session.flags.has(SessionFlags::QUEUEING);
        let (place, is_behind) = (session.down.next_place(), !session.down.is_settled());
        let place_before = session.down.last_place();
        let will_run = session.pins.as_ref().is_some_and(|pins| pins.may_run());
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return };
        let Some(tracking) = Tracking::of_subscriber_mut(subscriber) else { return };
        // A script that was refused before it could run has read nothing.
        tracking.script_keys = None;
        if !is_queueing || row.command == Command::Transactions(TransactionsCommand::Discard) {
            // Keys of a transaction that has ended, in whatever way.
            tracking.forget_queued();
        }
        let is_exec = row.command == Command::Transactions(TransactionsCommand::Exec);
        let is_about_transaction = matches!(row.command, Command::Transactions(_)) && !is_exec;
        let is_about_client = row.group == Group::Connection && row.name.starts_with("CLIENT ");
        if is_exec || !row.keys.is_none() {
            let waits = !has_engine && !is_queueing && row.lane(args) == Lane::Blocking;
            // The engine of this process answers in no place, unless others are outstanding, or else waits. A node may be waited at for
            // ever: what was read before is told of meanwhile.
            tracking.after = (!has_engine || is_behind).then_some(if waits { place_before } else { place });
            let may_have_read = waits && !has_noloop && reads(row);
            tracking.waiting_read = may_have_read.then(|| WaitingRead::new(place, row, args));
        }
        let was_marked = tracking.is_marked;
        let is_wanted = tracking.wants(was_marked);
        tracking.is_exec_marked = was_marked && is_exec;
        // As in Redis, CLIENT CACHING is about the next command, or about the whole transaction that follows.
        tracking.is_marked &= is_queueing && !is_exec || is_about_client || is_about_transaction;
        let is_spent = was_marked && !tracking.is_marked;
        tracking.spent_by = if is_spent { env.counters.requests.value() } else { 0 };
        if has_noloop || tracking.mode == Mode::Broadcast {
            // What is read is remembered by nodes, or need not be.
            if !is_told && (is_exec || reads(row)) {
                self.tracked.doubtful.push(handle);
            }
            if has_noloop && (is_spent || tracking.has_passed_mark) {
                env.pass_on_mark(index, is_spent);
            }
            return;
        }
        let runs_here = has_engine && row.runs_scripts && !is_queueing;
        let mut keys = Vec::new();
        if is_exec {
            // EXEC may be put back and read again: what changes meanwhile is forgotten, and has to be remembered anew.
            if will_run {
                // The engine of this process remembers them command by command, unless other names were queued than it is given.
                if !has_engine || self.is_routed {
                    keys.extend(tracking.queued_keys.iter().cloned());
                }
                self.tracked.doubtful.extend(tracking.is_transaction_in_doubt.then_some(handle));
            }
        } else if let Some(routed) = routed {
            keys = if is_wanted { routed } else { keys };
        } else if reads(row) && is_wanted {
            let mut positions = KeyPositions::new();
            if row.keys.positions(args, &mut positions).is_ok() {
                keys.extend(positions.iter().filter_map(|p| args.get(p.index as usize)).map(Box::from));
            }
        }
        if runs_here {
            tracking.script_keys = is_wanted.then_some(keys);
            return;
        }
        if keys.is_empty() {
            return;
        }
        if is_queueing && !is_exec {
            if tracking.queued_keys.len() + keys.len() <= TRACKED_TRANSACTION_KEYS_MAX {
                tracking.queued_keys.extend(keys);
            } else {
                // It is told to forget everything after its transaction.
                tracking.is_transaction_in_doubt = true;
            }
            return;
        }
        self.remember_all(env, index, handle, &keys);
        if !is_told {
            self.tracked.doubtful.push(handle);
        }
    }

    /// A command of a transaction is about to be run by the engine of this process. The keys that it reads are remembered now, so that
    /// what the transaction has changed before is no change of what is read. Whether they are is as the transaction has left it: it may
    /// have begun or ended tracking itself, or said CLIENT CACHING.
    fn track_part(&mut self, env: &mut Env<impl Execute>, index: ClientId, row: &'static Row, args: Args<'_>) {
        let mut positions = KeyPositions::new();
        if env.engine.is_none() || !reads(row) || row.keys.positions(args, &mut positions).is_err() {
            return;
        }
        let Some(handle) = env.clients.sessions.handle(index) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return };
        let Some(tracking) = Tracking::of_subscriber_mut(subscriber) else { return };
        if !tracking.wants(tracking.is_marked || tracking.is_exec_marked) {
            return;
        }
        if self.is_routed {
            // The client knows its keys by the names that it has queued. Without any it did not track them then, and is told to forget
            // everything.
            tracking.is_transaction_in_doubt |= tracking.queued_keys.is_empty();
            return;
        }
        let keys: Vec<Box<[u8]>> = positions.iter().filter_map(|p| args.get(p.index as usize)).map(Box::from).collect();
        if row.runs_scripts {
            // It is known to have read them once it has ended.
            tracking.script_keys = Some(keys);
            return;
        }
        self.remember_all(env, index, handle, &keys);
    }

    /// The engine of this process has run a whole transaction: what was said for it is over.
    fn end_parts(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let Some(handle) = env.clients.sessions.handle(index).filter(|_| env.engine.is_some()) else { return };
        let Some(session) = env.clients.sessions.at_mut(index) else { return };
        let Some(tracking) = Tracking::of_mut(&mut session.subscriber) else { return };
        (tracking.is_marked, tracking.is_exec_marked) = (false, false);
        let is_in_doubt = std::mem::take(&mut tracking.is_transaction_in_doubt);
        let keys: Vec<_> = std::mem::take(&mut tracking.queued_keys).into();
        if self.is_routed {
            // What it has changed before it has read it was forgotten with that.
            self.tracked.doubtful.extend(is_in_doubt.then_some(handle));
            self.remember_all(env, index, handle, &keys);
        }
    }

    fn hear_out(&mut self, env: &mut Env<impl Execute>, index: ClientId) -> Option<Flow> {
        Self::hear_out(self, env, index)
    }

    fn speak_otherwise(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        class: LaneKeyId,
        state: LaneKey,
    ) -> bool {
        Self::speak_otherwise(self, env, index, class, state)
    }

    fn restart_noloop(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        Self::restart_noloop(self, env, index);
    }

    /// A client has authenticated as another user. Under routes, invalidations of its keys come from other nodes from now on, so the keys that it
    /// has read before are invalidated.
    fn forget_read_as_other(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let is_tracking = env.clients.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::TRACKING));
        if self.is_routed
            && is_tracking
            && let Some(handle) = env.clients.sessions.handle(index)
        {
            self.invalidate_client(handle, &mut env.clients);
        }
    }

    fn has_forbidden_subscription(&self, env: &Env<impl Execute>, index: ClientId, user: &User) -> bool {
        Self::has_forbidden_subscription(self, env, index, user)
    }
}

impl<E: Execute> Env<E> {
    /// CLIENT CACHING.
    pub(crate) fn client_caching(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let tracking = Tracking::of_mut(&mut session.subscriber);
        let Some(tracking) = tracking else {
            return self.refuse(index, texts::CACHING_WITHOUT_OPT);
        };
        match (args.at(2).to_ascii_uppercase().as_slice(), tracking.mode) {
            (b"YES", Mode::OptIn) | (b"NO", Mode::OptOut) => tracking.is_marked = true,
            (b"YES", _) => return self.refuse(index, texts::CACHING_YES_WITHOUT_OPTIN),
            (b"NO", _) => return self.refuse(index, texts::CACHING_NO_WITHOUT_OPTOUT),
            _ => return self.refuse(index, texts::SYNTAX),
        }
        self.confirm(index)
    }

    /// CLIENT TRACKINGINFO.
    pub(crate) fn client_trackinginfo(&mut self, index: ClientId) -> Flow {
        let redirection = self.clients.redirection_of(index);
        let tracking = self.clients.tracking(index);
        let mut flags = Vec::new();
        let mut prefixes: Vec<Box<[u8]>> = Vec::new();
        match tracking {
            None => flags.push("off"),
            Some(tracking) => {
                flags.push("on");
                match tracking.mode {
                    Mode::Read => {}
                    Mode::Broadcast => flags.push("bcast"),
                    Mode::OptIn => {
                        flags.extend(["optin"].into_iter().chain(tracking.is_marked.then_some("caching-yes")))
                    }
                    Mode::OptOut => {
                        flags.extend(["optout"].into_iter().chain(tracking.is_marked.then_some("caching-no")))
                    }
                }
                flags.extend(tracking.is_noloop.then_some("noloop"));
                flags.extend(tracking.is_redirect_broken.then_some("broken_redirect"));
                prefixes = tracking.prefixes.clone();
                prefixes.sort_unstable();
            }
        }
        self.answer(index, |reply| {
            reply.map(3);
            reply.bulk(b"flags");
            reply.set(flags.len());
            flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
            reply.bulk(b"redirect");
            reply.integer(redirection);
            reply.bulk(b"prefixes");
            reply.array(prefixes.len());
            prefixes.iter().for_each(|prefix| reply.bulk(prefix));
        })
    }
}

impl Clients {
    /// A request is read again later, by this number among all of the worker's: what CLIENT CACHING said of it still holds.
    pub(crate) fn keep_mark(&mut self, index: ClientId, number: u64) {
        let tracking = self.sessions.at_mut(index).and_then(|s| Tracking::of_mut(&mut s.subscriber));
        if let Some(tracking) = tracking {
            tracking.is_marked |= std::mem::take(&mut tracking.spent_by) == number;
        }
    }

    /// A request was refused: CLIENT CACHING was about that one, as in Redis, unless it is about a whole transaction.
    pub(crate) fn spend_mark(&mut self, index: ClientId) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        let is_queueing = session.flags.has(SessionFlags::QUEUEING);
        if let Some(tracking) = Tracking::of_mut(&mut session.subscriber) {
            tracking.is_marked &= is_queueing;
        }
    }

    /// CLIENT GETREDIR, and the figure of CLIENT LIST: -1 without tracking, 0 without a redirection.
    pub(crate) fn redirection_of(&self, index: ClientId) -> i64 {
        self.tracking(index).map_or(-1, |t| t.redirect.map_or(0, |r| r.id.get() as i64))
    }

    /// The flags that tracking adds to CLIENT LIST.
    pub(crate) fn tracking_flags(&self, index: ClientId) -> &'static str {
        match self.tracking(index) {
            None => "",
            Some(t) => match (t.is_redirect_broken, t.mode == Mode::Broadcast) {
                (false, false) => "t",
                (true, false) => "tR",
                (false, true) => "tB",
                (true, true) => "tRB",
            },
        }
    }
}

/// Whether a request reads its keys, as far as tracking cares. What a script reads is what it was told of.
pub(crate) fn reads(row: &Row) -> bool {
    row.flags.has(Flags::READONLY) || row.group == Group::Scripting && !row.keys.is_none()
}
