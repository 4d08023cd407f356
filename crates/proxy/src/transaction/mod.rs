//! What a session holds beyond the shared lanes: every such state, how it begins and how it ends.
//!
//! ```text
//!                MULTI                         EXEC: MULTI .. EXEC as one piece down the shared lane
//!   [shared] ------------> [queueing] ---------------------------------------------------> [shared]
//!      |                       |  DISCARD, or EXEC of a spoilt block: forgotten               ^
//!      |                       '--------------------------------------------------------------|
//!      | WATCH: private connection to the keys' node, before the reply                        |
//!      '----> [watching] -- UNWATCH, RESET: cleaned, given back ------------------------------|
//!                 | MULTI                                                                     |
//!                 '----> [watching, queueing] -- DISCARD: cleaned, given back ----------------|
//!                              | EXEC: MULTI .. EXEC as one piece down the private connection |
//!                              '--> [executing] -- reply: given back; in doubt: closed -------'
//!
//!   whatever the state, a client that leaves gives everything back in the same way
//! ```
//!
//! Nothing moves between connections while replies are outstanding: WATCH, and EXEC on a private connection, wait until
//! everything before them has been answered, and what comes behind them waits for their replies. A private connection
//! belongs to the session, then to the task that executes on it, then to the clean-up, and to no other meanwhile.

pub(crate) mod engine;
pub(crate) mod exec;
pub(crate) mod exec_reply;
pub(crate) mod exec_request;
pub(crate) mod multi_probe;
pub(crate) mod pending_watch;
mod queue;
pub(crate) mod reply_parts;
pub(crate) mod state;
pub(crate) mod trial;

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientId, Handle, LaneHandle, LaneKeyId, NodeId};
use crate::interfaces::call::Call;
use crate::nodes::moves::Moves;
use crate::nodes::multi::Multi;
use crate::pool::lane_reset::ResetNeeded;
use crate::pool::{LaneUse, Lanes};
use crate::reply::progress::LostReply;
use crate::session::marks::{Pins, WatchFailure, WatchedLane};
use crate::session::table::Clients;
use crate::session::{Flow, PauseReasons, Session, SessionFlags};
use crate::transaction::pending_watch::PendingWatch;
use crate::transaction::queue::{Destination, QueuedCommands};
use crate::transaction::state::Transaction;
use respool_command::{
    Command, ConnectionCommand, Execute, Flags, Row, ScriptingCommand, TransactionsCommand, is_confidential,
    text as texts,
};
use respool_route::{PlanError, RouteError, RouteScratch};
use respool_wire::{Args, Request, encode_request, replies, request_bulk, request_head};
use std::sync::Arc;

/// What a request of a session that is queueing does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Queueing {
    /// It ends the transaction and is done as any other.
    Leaves,
    /// It is answered.
    Refused(Flow),
    /// It is EXEC.
    Executes,
    /// It is queued, if there is room.
    Queued,
}

impl Session {
    /// What the session holds, made if it holds nothing yet.
    pub(crate) fn pins_mut(&mut self) -> &mut Pins {
        self.pins.get_or_insert_default()
    }

    /// Looks whether the session still holds anything.
    pub(crate) fn settle_pins(&mut self) {
        let Some(pins) = &mut self.pins else { return };
        if pins.watches.lanes.is_empty() && pins.local_watch.is_none() {
            self.flags.remove(SessionFlags::PINNED);
        }
        if pins.queued().is_none() && !pins.is_replying() {
            pins.transaction = None;
            self.flags.remove(SessionFlags::QUEUEING);
        }
        if pins.dedicated.is_none() {
            self.flags.remove(SessionFlags::DEDICATED);
        }
        if pins.is_empty() {
            self.pins = None;
        }
    }

    /// The block that is being queued.
    pub(crate) fn queued_mut(&mut self) -> Option<&mut QueuedCommands> {
        Transaction::queued_in(&mut self.pins.as_mut()?.transaction)
    }
}

impl Lanes {
    /// Whether keys are watched in the database, the dialect and the name of a class. A client with lanes of its own keeps the
    /// number of its class when it selects another database, so the lane itself is asked. One that is lost is whatever it was.
    pub(crate) fn is_pinned_in(&self, pin: &WatchedLane, class: LaneKeyId) -> bool {
        self.find(pin.lane).is_none_or(|lane| self.base(self.all[lane].class) == self.base(class))
    }
}

impl<E: Execute> Env<E> {
    /// A request of the pinned lane of a session that is not queueing. `None`: it is WATCH at the engine in this process.
    #[cold]
    pub(crate) fn transaction_command(&mut self, call: Call<'_>) -> Option<Flow> {
        let Call { index, row, request } = call;
        use TransactionsCommand as T;
        Some(match row.command {
            Command::Transactions(T::Multi) => self.begin_queueing(index),
            Command::Transactions(T::Exec) => self.refuse(index, texts::EXEC_WITHOUT_MULTI),
            Command::Transactions(T::Discard) => self.refuse(index, texts::DISCARD_WITHOUT_MULTI),
            Command::Transactions(T::Watch) if self.engine.is_some() => return None,
            Command::Transactions(T::Watch) => self.watch_at_nodes(index, row, request),
            Command::Transactions(T::Unwatch) => {
                self.leave_watches(index);
                self.confirm(index)
            }
            _ => self.refuse_unsupported(index, row, "it needs a connection of its own"),
        })
    }

    /// WATCH: the keys of each node are watched on a private connection to it, and the client is read on once all nodes
    /// have said so. What it reads afterwards, on whatever connection, is read after the watching began.
    fn watch_at_nodes(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let Some(()) = self.clients.settle_before(index) else { return Flow::Again };
        let keys = match self.watched_keys(index, row, request.args) {
            Ok(keys) => keys,
            Err(error) => return self.refuse(index, error),
        };
        let mut by_node: Vec<(NodeId, Vec<&[u8]>)> = Vec::new();
        for (node, key) in keys.iter().map(|(node, key)| (*node, key.as_slice())) {
            match by_node.iter_mut().find(|(n, _)| *n == node) {
                Some((_, keys)) => keys.push(key),
                None => by_node.push((node, vec![key])),
            }
        }
        let session = self.clients.sessions.at(index);
        let has_watched =
            session.and_then(|session| session.pins.as_ref()).is_some_and(|pins| !pins.watches.lanes.is_empty());
        let mut lanes = Vec::new();
        for (node, _) in &by_node {
            match self.pin(index, *node) {
                Ok(lane) => lanes.push(lane),
                Err(error) => {
                    // What was pinned just now watches nothing, and goes with the rest.
                    let Some(asker) = self.clients.expect_behind_barrier(index) else { return Flow::Stop };
                    if let Some(session) = self.clients.sessions.at_mut(index) {
                        session.pins_mut().watches.failure.note(has_watched);
                    }
                    self.clients.fill(asker, error.as_bytes());
                    return Flow::Pause;
                }
            }
        }
        let Some(asker) = self.clients.expect_behind_barrier(index) else { return Flow::Stop };
        let watching = PendingWatch { asker, awaited: by_node.len(), error: None, has_watched };
        let task = self.tasks.begin(watching);
        for ((_, keys), lane) in by_node.iter().zip(lanes) {
            self.try_before_watching(lane);
            let write = |out: &mut Vec<u8>| {
                request_head(out, keys.len() + 1);
                request_bulk(out, b"WATCH");
                keys.iter().for_each(|key| request_bulk(out, key));
            };
            match self.lanes.find(lane) {
                Some(place) => _ = self.send_for_task(task, 0, place, write),
                None => self.tasks.fail(task, 0, LostReply::Unsent, &error_text::PIN_LOST.into(), &mut self.clients),
            }
        }
        Flow::Pause
    }

    /// Other nodes are configured. Keys that were watched at a node that has gone, or that are placed or named in another way now
    /// (`has_other_ways`), count as changed: others change them elsewhere from now on.
    pub(crate) fn move_pins(&mut self, moves: &Moves, has_other_ways: bool) {
        let mut touched = Vec::new();
        for (index, session) in self.clients.sessions.iter_mut() {
            let Some(pins) = session.pins.as_deref_mut() else { continue };
            let is_touched =
                pins.watches.lanes.iter().any(|pin| has_other_ways || moves.has_left_on(pin.node, pin.lane));
            pins.watches.lanes.iter_mut().for_each(|pin| pin.node = moves.place_on(pin.node, pin.lane));
            if let Some(queued) = Transaction::queued_in(&mut pins.transaction)
                && !(is_touched || pins.is_touched)
            {
                queued.move_to(moves, has_other_ways);
            }
            touched.extend(is_touched.then_some(index));
        }
        touched.into_iter().for_each(|index| self.touch_watches(index));
    }

    /// A node is drained: it is sent no transaction for keys that are watched there.
    pub(crate) fn leave_watches_at(&mut self, node: NodeId) {
        let is_there =
            |session: &Session| session.pins.iter().flat_map(|p| &p.watches.lanes).any(|pin| pin.node == node);
        self.clients.sessions.places(is_there).into_iter().for_each(|index| self.touch_watches(index));
    }

    /// What a client watches counts as changed: the reply to its next EXEC says so, and nothing is sent for it.
    fn touch_watches(&mut self, index: ClientId) {
        let Some(pins) = self.clients.sessions.at_mut(index).and_then(|session| session.pins.as_deref_mut()) else {
            return;
        };
        pins.is_touched = true;
        if let Some(queued) = Transaction::queued_in(&mut pins.transaction) {
            queued.unbind();
        }
        let watches = std::mem::take(&mut pins.watches.lanes);
        self.leave_touched(index, watches);
    }

    /// What was watched is given back where nothing is owed. Elsewhere WATCH may still be on its way, and what cleans up after it
    /// comes later, with EXEC or UNWATCH.
    fn leave_touched(&mut self, index: ClientId, watches: Vec<WatchedLane>) {
        let is_watching = |pin: &WatchedLane| {
            let lane = self.lanes.find(pin.lane).map(|lane| &self.lanes[lane]);
            lane.is_some_and(|lane| lane.purpose != LaneUse::Leaving && !lane.is_settled())
        };
        let (kept, left): (Vec<WatchedLane>, Vec<WatchedLane>) = watches.into_iter().partition(is_watching);
        if let Some(pins) = self.clients.sessions.at_mut(index).and_then(|session| session.pins.as_deref_mut()) {
            pins.watches.lanes = kept;
        }
        self.give_back_watches(left);
    }

    /// The session watches nothing any more.
    pub(crate) fn leave_watches(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let Some(pins) = &mut session.pins else { return };
        pins.watches.failure = WatchFailure::None;
        pins.is_touched = false;
        let watches = std::mem::take(&mut pins.watches.lanes);
        let id = session.id;
        if pins.local_watch.take().is_some() {
            self.leave_local_watch(id);
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.settle_pins();
        self.give_back_watches(watches);
    }

    /// What the session watches counts as changed: its next transaction will not run where it is watched.
    pub(crate) fn forfeit_watches(&mut self, index: ClientId) {
        let Some(pins) = self.clients.sessions.at_mut(index).and_then(|session| session.pins.as_deref_mut()) else {
            return;
        };
        let watches = pins.watches.forfeit(|_| true);
        self.give_back_watches(watches);
    }

    /// All replies of a client have been given. If a WATCH failed, no request followed it, and the client does not pipeline, then
    /// the client has read the error: its next requests do not rely on watched keys. They may come from another user of the
    /// client's connection pool.
    #[cold]
    pub(crate) fn settle_watch_failure(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let has_sent_more = session.input.is_some() || session.details.runs_ahead;
        let Some(pins) = session.pins.as_deref_mut().filter(|pins| pins.watches.failure == WatchFailure::Fresh) else {
            return;
        };
        if has_sent_more {
            pins.watches.failure = WatchFailure::Unseen;
            return;
        }
        self.leave_watches(index);
    }

    fn give_back_watches(&mut self, watches: Vec<WatchedLane>) {
        for pin in watches {
            self.clients.unpin();
            self.give_back(pin.lane, ResetNeeded { is_watching: true, ..ResetNeeded::default() });
        }
    }

    /// Ends a transaction, and the watching that comes before it.
    pub(crate) fn leave_transaction(&mut self, index: ClientId) {
        self.clients.discard_queued(index);
        self.leave_watches(index);
    }

    /// A client has left: what it held is given back. Returns its requests that wait at nodes.
    pub(crate) fn forget_pins(&mut self, session: &mut Session) -> Vec<Handle> {
        if session.pause.has(PauseReasons::HELD) {
            self.clients.unmark_held(1);
        }
        let Some(pins) = session.pins.take() else { return Vec::new() };
        pins.count_out(&self.shared.ledger, &self.counters);
        self.give_back_watches(pins.watches.lanes);
        if pins.local_watch.is_some() {
            self.leave_local_watch(session.id);
        }
        pins.blocked
    }

    pub(crate) fn begin_queueing(&mut self, index: ClientId) -> Flow {
        let now_us = self.now.mono_us;
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.flags.add(SessionFlags::QUEUEING);
            let pins = session.pins_mut();
            pins.since_us = now_us;
            if let Some(transaction) = Transaction::begun(&mut pins.transaction) {
                transaction.queued = Some(QueuedCommands::default());
            }
        }
        self.confirm(index)
    }

    fn queue(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let routes = Arc::clone(&self.config.routes);
        // Copied, because the block that is changed belongs to the same session. Without routes the user does not matter.
        let user = if routes.are_plain() { String::new() } else { self.clients.user_of(index).to_owned() };
        let database = self.clients.sessions.at(index).map_or(0, |session| session.database);
        if is_confidential(row) {
            self.note_secret();
        }
        // Which scripts the engine has, it is asked at EXEC and during a pause only.
        let is_asked_later = self.engine.is_some() && row.command == Command::Scripting(ScriptingCommand::Evalsha);
        let may_change = !is_asked_later && self.may_change(row, request.args);
        let is_script = self.engine.is_none() && matches!(row.command, Command::Scripting(_));
        let named = if is_script { self.shared.scripts().named(row, request.args) } else { None };
        let mut to = Destination {
            routes: &routes,
            user: &user,
            database,
            scratch: self.scratch.get_or_insert_default(),
            limits: &self.config.lanes,
            has_engine: self.engine.is_some(),
            is_server: self.config.is_server,
        };
        let Some(queued) = self.clients.sessions.at_mut(index).and_then(Session::queued_mut) else { return Flow::Stop };
        queued.may_change |= may_change;
        match queued.queue(row, request, &mut to) {
            Ok(()) => {
                if let Some(named) = named {
                    queued.note_script(named, &self.config.lanes);
                }
                self.answer(index, |reply| reply.raw(replies::QUEUED))
            }
            Err(error) => self.refuse(index, error),
        }
    }

    /// What a request of a session that is queueing does.
    pub(crate) fn while_queueing(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Queueing {
        use TransactionsCommand as T;
        match row.command {
            Command::Connection(ConnectionCommand::Quit | ConnectionCommand::Reset) => Queueing::Leaves,
            Command::Transactions(T::Multi) => Queueing::Refused(self.refuse(index, texts::NESTED_MULTI)),
            Command::Transactions(T::Watch) => Queueing::Refused(self.refuse(index, texts::WATCH_INSIDE_MULTI)),
            Command::Transactions(T::Discard) => {
                self.clients.discard_queued(index);
                self.leave_watches(index);
                Queueing::Refused(self.confirm(index))
            }
            Command::Transactions(T::Exec) => Queueing::Executes,
            _ if row.is_admin(args) && !row.flags.has(Flags::NO_MULTI) && self.refuses_to_steer(row) => {
                Queueing::Refused(self.refuse_for_ours(index, error_text::admin_refused(row.name)))
            }
            _ => Queueing::Queued,
        }
    }

    /// Queues a request, unless it is one that its client may not use.
    pub(crate) fn queue_allowed(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.refuses_debug(index, row) {
            return self.refuse_unread(index, error_text::DEBUG_NOT_ALLOWED);
        }
        self.note_script(row, request.args);
        self.queue(index, row, request)
    }

    /// MULTI is tried in the round trip of the first WATCH on a connection: once keys are watched it would end that.
    fn try_before_watching(&mut self, lane: LaneHandle) {
        let Some(place) = self.lanes.find(lane) else { return };
        // If it takes no requests, WATCH will say so.
        if self.lanes[place].multi == Multi::Unknown && self.lanes.admit(place, &self.config, self.now).is_ok() {
            self.try_multi(place, None);
        }
    }

    /// The keys of a WATCH, each with its node and by the name that it has there.
    fn watched_keys(
        &self,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
    ) -> Result<Vec<(NodeId, Vec<u8>)>, ErrorReply> {
        let routes = &self.config.routes;
        let mut scratch = RouteScratch::default();
        match routes.plan_keys(self.clients.subject(index, row), args, &mut scratch) {
            // Keys at several places are no fault here: each node watches its own.
            Ok(_) | Err(RouteError::Plan(PlanError::CrossSlot { .. })) => {
                let keys = scratch.keys(routes, args).into_iter();
                Ok(keys.map(|key| (NodeId::at(key.place.node), key.name)).collect())
            }
            Err(error) => Err(ErrorReply::written(|reply| error.write(routes, row, args, reply))),
        }
    }

    /// The private connection on which a session watches keys of a node, borrowed if there is none yet.
    fn pin(&mut self, index: ClientId, node: NodeId) -> Result<LaneHandle, ErrorReply> {
        let now_us = self.now.mono_us;
        let Some(session) = self.clients.sessions.at_mut(index) else { return Err(error_text::PIN_LOST.into()) };
        let class = session.class;
        let is_known = |pin: &&WatchedLane| pin.node == node && self.lanes.is_pinned_in(pin, class);
        if let Some(pin) = session.pins.iter().flat_map(|pins| &pins.watches.lanes).find(is_known) {
            return if self.lanes.find(pin.lane).is_some() { Ok(pin.lane) } else { Err(error_text::PIN_LOST.into()) };
        }
        let lane = self.private_for(index, node)?;
        if let Some(place) = self.lanes.find(lane) {
            self.lanes[place].multi.doubt();
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Err(error_text::PIN_LOST.into()) };
        session.flags.add(SessionFlags::PINNED);
        session.pins_mut().watches.lanes.push(WatchedLane { node, lane, since_us: now_us });
        self.counters.pinned.set(self.counters.pinned.value() + 1);
        Ok(lane)
    }

    /// Refuses a WATCH with an error, without sending it. Keys watched before stay watched.
    pub(crate) fn refuse_watch(&mut self, index: ClientId, error: &ErrorReply) -> Flow {
        let Some(()) = self.clients.settle_before(index) else { return Flow::Again };
        let Some(asker) = self.clients.expect_behind_barrier(index) else { return Flow::Stop };
        if let Some(session) = self.clients.sessions.at_mut(index) {
            let pins = session.pins_mut();
            let has_watched = !pins.watches.lanes.is_empty() || pins.local_watch.is_some();
            pins.watches.failure.note(has_watched);
        }
        self.clients.fill(asker, error.as_bytes());
        Flow::Pause
    }
}

impl Clients {
    /// A request that should have been queued was refused: EXEC will run nothing.
    pub(crate) fn spoil_transaction(&mut self, index: ClientId) {
        if let Some(queued) = self.sessions.at_mut(index).and_then(Session::queued_mut) {
            queued.refuse();
        }
    }

    /// The same for a reason that a server would not have.
    pub(crate) fn spoil_transaction_for_ours(&mut self, index: ClientId) {
        if let Some(queued) = self.sessions.at_mut(index).and_then(Session::queued_mut) {
            queued.refuse_for_ours();
        }
    }

    /// Forgets what was queued.
    pub(crate) fn discard_queued(&mut self, index: ClientId) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        let pins = session.pins.as_mut();
        if let Some(transaction) = pins.and_then(|pins| Transaction::of_mut(&mut pins.transaction)) {
            transaction.queued = None;
        }
        session.settle_pins();
    }

    pub(crate) fn unpin(&mut self) {
        self.counters.pinned.set(self.counters.pinned.value().saturating_sub(1));
    }
}

/// Encodes a request of fixed words.
pub(crate) fn say(words: &[&[u8]]) -> impl FnOnce(&mut Vec<u8>) {
    move |out| encode_request(out, words.iter().copied())
}
