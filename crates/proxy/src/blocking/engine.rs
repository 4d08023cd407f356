//! An embedded engine's part of what takes its time: who waits for which key, and that a session watches something.
//!
//! The engine knows nothing of clients. It says that a request would have to wait, and while some wait, every request that
//! may write comes by here: the keys that it names are the ones that may have been waited for. Those who wait are served in
//! the order in which they came, each by running its request again for the key that was written, if that holds what it waits
//! for; within EXEC that happens after the last command. Which keys are watched the engine keeps itself, by the number of
//! the session, and it alone knows whether they have changed.

use crate::blocking::request::{Release, Target, Wording};
use crate::nodes::id::NodeId;
use crate::session::id::ClientId;
use crate::session::{Flow, Pause, SessionFlags};
use crate::slab::Handle;
use crate::worker::Worker;
use respool_command::{
    Command, Execute, Flags, KeyPositions, ListCommand as L, Millis, Outcome, Row, SessionView, SortedSetCommand as Z,
    StreamCommand, lookup,
};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, ReplyKind, Request, Value, replies};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Who waits for the keys of an embedded engine.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// By key, and by database.
    waiting: BTreeMap<Arc<[u8]>, BTreeMap<u32, Waiting>>,
    /// Where each of them stands.
    places: BTreeMap<Handle, Place>,
    /// Keys that have been written to since those who wait were last served.
    written: Vec<Arc<[u8]>>,
    is_everything_written: bool,
    /// Streams that blocked requests read for groups (XREADGROUP), by the time in milliseconds at which they expire.
    expiries: BTreeSet<(u64, u32, Arc<[u8]>)>,
    /// Clients are told of changes.
    pub(crate) is_told: bool,
}

/// The requests that wait for one key of a database.
#[derive(Debug, Default)]
struct Waiting {
    /// In the order in which they came.
    turns: BTreeMap<u64, Handle>,
    /// How many of them read for a group: these end when the stream is deleted.
    group_readers: usize,
    /// When the stream expires, if it does, in milliseconds since the epoch. Known while some read it for a group.
    expires_ms: Option<u64>,
}

/// Where a request waits: for these keys of a database.
#[derive(Debug)]
struct Place {
    turn: u64,
    database: u32,
    keys: Vec<Arc<[u8]>>,
    is_group_reader: bool,
}

impl Parking {
    /// A request waits from now on.
    fn enter(&mut self, blocked: Handle, place: Place) {
        for key in &place.keys {
            let waiting = self.waiting.entry(Arc::clone(key)).or_default().entry(place.database).or_default();
            // A key may be named twice.
            let is_new = waiting.turns.insert(place.turn, blocked).is_none();
            waiting.group_readers += usize::from(is_new && place.is_group_reader);
        }
        self.places.insert(blocked, place);
    }

    /// It does so no longer.
    pub(crate) fn leave(&mut self, blocked: Handle) {
        let Some(Place { turn, database, keys, is_group_reader }) = self.places.remove(&blocked) else { return };
        for key in &keys {
            let Some(of_key) = self.waiting.get_mut(key) else { continue };
            if let Some(waiting) = of_key.get_mut(&database) {
                let is_there = waiting.turns.remove(&turn).is_some();
                waiting.group_readers -= usize::from(is_there && is_group_reader);
                if waiting.group_readers == 0
                    && let Some(expires_ms) = waiting.expires_ms.take()
                {
                    self.expiries.remove(&(expires_ms, database, Arc::clone(key)));
                }
                if waiting.turns.is_empty() {
                    of_key.remove(&database);
                }
            }
            if of_key.is_empty() {
                self.waiting.remove(key);
            }
        }
    }

    /// Notes when a stream that is read for a group expires; `None`: never.
    fn set_expiry(&mut self, database: u32, key: &[u8], expires_ms: Option<u64>) {
        let Some(key) = self.waiting.get_key_value(key).map(|(key, _)| Arc::clone(key)) else { return };
        let Some(waiting) = self.waiting.get_mut(&key).and_then(|of_key| of_key.get_mut(&database)) else { return };
        let before = std::mem::replace(&mut waiting.expires_ms, expires_ms);
        if let Some(before) = before {
            self.expiries.remove(&(before, database, Arc::clone(&key)));
        }
        self.expiries.extend(expires_ms.map(|expires_ms| (expires_ms, database, key)));
    }

    /// Counts the streams that are read for groups and have expired among the written keys.
    fn take_expired(&mut self, now: Millis) {
        while self.expiries.first().is_some_and(|(expires_ms, ..)| *expires_ms < now.0)
            && let Some((_, database, key)) = self.expiries.pop_first()
        {
            if let Some(waiting) = self.waiting.get_mut(&key).and_then(|of_key| of_key.get_mut(&database)) {
                waiting.expires_ms = None;
            }
            self.written.push(key);
        }
    }

    /// The databases in which a key is waited for.
    fn databases(&self, key: &[u8]) -> Vec<u32> {
        self.waiting.get(key).map_or_else(Vec::new, |of_key| of_key.keys().copied().collect())
    }

    /// Who is next behind a turn.
    fn behind(&self, database: u32, key: &[u8], turn: u64) -> Option<(u64, Handle)> {
        let mut behind = self.waiting.get(key)?.get(&database)?.turns.range(turn + 1..);
        behind.next().map(|(turn, blocked)| (*turn, *blocked))
    }

    /// Whether a request waits that reads a key for a group.
    fn has_group_readers(&self, database: u32, key: &[u8]) -> bool {
        self.waiting.get(key).and_then(|of_key| of_key.get(&database)).is_some_and(|waiting| waiting.group_readers > 0)
    }

    /// How many keys are waited for.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && !self.is_told
    }
}

/// A session watches something in an embedded engine, which keeps what.
#[derive(Debug)]
pub(crate) struct LocalWatch {
    /// Bytes that the engine keeps for it.
    held_bytes: usize,
}

impl LocalWatch {
    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

impl<E: Execute> Worker<E> {
    /// A request that may wait, for the engine in this process.
    pub(crate) fn park(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.settle_before(index).is_none() {
            return Flow::Again;
        }
        let mut reply = Vec::new();
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let in_transaction = session.pins.as_ref().is_some_and(|p| p.exec_reply.is_some());
        if self.ask_engine(index, row, request.args, &mut reply) == Outcome::Done {
            self.answer(index, |out| out.raw(&reply));
            return Flow::Next;
        }
        if in_transaction {
            // Nothing waits there: as if its time had run out.
            self.answer(index, |out| if is_move(row) { out.null() } else { out.null_array() });
            return Flow::Next;
        }
        if self.blocking.requests.len() >= self.config.lanes.blocked_commands_max {
            self.counters.blocked_refused.add(1);
            self.answer(index, |out| out.raw(&crate::error_text::too_many_blocked()));
            return Flow::Next;
        }
        if !self.may_wait(index) {
            return Flow::Stop;
        }
        let Some(asker) = self.expect_behind_barrier(index) else { return Flow::Stop };
        let is_wanted = self.passes_reply(index);
        // The engine may have rewritten the request: `$` becomes the last id of the stream at the arrival of the request.
        let args: ArgsBuf = words_of(&reply).unwrap_or_else(|| request.args.iter().collect());
        let mut keys = keys_of(row, request.args);
        if is_move(row) {
            // Where the element goes is not what is waited for.
            keys.truncate(1);
        }
        let words = Wording { args, said: None };
        let blocked = self.enter_queue(index, row, words, NodeId::at(0), Target::Client { asker, is_wanted });
        let database = self.clients.sessions.at(index).map_or(0, |session| session.database);
        let turn = self.blocking.requests.get(blocked).map_or(0, |blocked| blocked.turn);
        let keys: Vec<Arc<[u8]>> = keys.into_iter().map(Arc::from).collect();
        let is_group_reader = is_group_read(row);
        let streams = if is_group_reader { keys.clone() } else { Vec::new() };
        self.parking.enter(blocked, Place { turn, database, keys, is_group_reader });
        streams.iter().for_each(|key| self.note_expiry(database, key));
        self.counters.keys_waited_for.set(self.parking.waiting.len() as u64);
        if self.clients.sessions.at(index).is_some_and(|s| s.details.has_hung_up) {
            self.release_blocked(blocked, Release::HalfClosed);
        }
        if self.is_leaving(index) { Flow::Stop } else { Flow::Pause }
    }

    /// A request for the engine in this process while clients are told of changes, or while some wait.
    #[cold]
    pub(crate) fn execute_watched(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let flow = if !self.parking.waiting.is_empty() && row.flags.has(Flags::WRITE) {
            self.park(index, row, request)
        } else {
            let mut reply = Vec::new();
            // Only what may wait is parked.
            let _: Option<Outcome> = self.run_engine(index, row, request.args, &mut reply);
            self.answer(index, |out| out.raw(&reply));
            Flow::Next
        };
        self.tell_changes();
        self.keep_room(index, flow)
    }

    /// Runs a request of a session. `None`: one of them is not there.
    fn run_engine(
        &mut self,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
        reply: &mut Vec<u8>,
    ) -> Option<Outcome> {
        let session = self.clients.sessions.at(index)?;
        let view = self.view(session.database, session.id);
        self.run_engine_as(view, index, row, args, reply)
    }

    /// [`Self::run_engine`] with a given view of the session.
    pub(crate) fn run_engine_as(
        &mut self,
        mut view: SessionView,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
        reply: &mut Vec<u8>,
    ) -> Option<Outcome> {
        let session = self.clients.sessions.at(index)?;
        let engine = self.engine.as_mut()?;
        let outcome = engine.execute(row, args, &mut view, &mut Encoder::new(reply, session.protocol));
        if self.parking.is_told {
            self.collect_changes(self.clients.sessions.handle(index));
        }
        Some(outcome)
    }

    /// Has the engine run a request of a session, and those served who waited for what it wrote.
    fn ask_engine(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, reply: &mut Vec<u8>) -> Outcome {
        let Some(outcome) = self.run_engine(index, row, args, reply) else { return Outcome::Done };
        if outcome == Outcome::Done && !reply.starts_with(b"-") {
            // Those who wait hear of the change before they are served; who has made it, behind its reply.
            if !self.clients.sessions.at(index).is_some_and(|s| s.flags.has(SessionFlags::TRACKING)) {
                self.tell_changes();
            }
            self.note_written(index, row, args);
        }
        outcome
    }

    /// A request that may write has been run for a session, and did not fail.
    #[cold]
    pub(crate) fn note_written(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) {
        if self.parking.waiting.is_empty() || !row.flags.has(Flags::WRITE) {
            return;
        }
        self.note_keys(row, args);
        let in_transaction =
            self.clients.sessions.at(index).and_then(|s| s.pins.as_ref()).is_some_and(|p| p.exec_reply.is_some());
        if !in_transaction {
            self.serve_parked();
        }
    }

    /// A script has been run, which may have written to any key.
    pub(crate) fn note_script_run(&mut self, index: Option<ClientId>) {
        if self.parking.is_empty() {
            return;
        }
        self.tell_changes();
        self.parking.is_everything_written |= !self.parking.waiting.is_empty();
        let session = index.and_then(|index| self.clients.sessions.at(index));
        if session.and_then(|s| s.pins.as_ref()).is_none_or(|p| p.exec_reply.is_none()) {
            self.serve_parked();
        }
    }

    /// The keys of a request that has been run: those who wait for them may be served.
    fn note_keys(&mut self, row: &'static Row, args: Args<'_>) {
        if !may_serve(row) {
            return;
        }
        let keys = keys_of(row, args);
        self.parking.is_everything_written |= keys.is_empty();
        let Parking { waiting, written, .. } = &mut self.parking;
        written.extend(keys.iter().filter_map(|key| waiting.get_key_value(&**key)).map(|(key, _)| Arc::clone(key)));
    }

    /// Serves those who wait for keys that have been written to.
    pub(crate) fn serve_parked(&mut self) {
        // The engine would answer each of them that it is busy. The end of the script brings them here again.
        while !self.is_amid_late_script() {
            let keys = match std::mem::take(&mut self.parking.is_everything_written) {
                true => self.parking.waiting.keys().cloned().collect(),
                false => std::mem::take(&mut self.parking.written),
            };
            if keys.is_empty() {
                return;
            }
            for key in keys {
                self.serve_key(&key);
            }
        }
    }

    /// Serves requests that read streams for groups which have expired.
    pub(crate) fn serve_expired(&mut self, now: Millis) {
        if !self.parking.expiries.is_empty() {
            self.parking.take_expired(now);
            self.serve_parked();
        }
    }

    /// Notes when a stream expires if it is read for a group. Every write to it leads here again.
    fn note_expiry(&mut self, database: u32, key: &[u8]) {
        if self.parking.has_group_readers(database, key) {
            let reply = self.ask_about(database, b"PEXPIRETIME", key);
            let expires_ms = match Value::parse(&reply) {
                Ok(Value::Integer(expires_ms)) => u64::try_from(expires_ms).ok(),
                _ => None,
            };
            self.parking.set_expiry(database, key, expires_ms);
        }
    }

    /// Serves those who wait for one key, as long as it holds something of the type that they wait for. As in Redis, what else
    /// they wait for has no part in it: not an earlier key that holds another type by now.
    fn serve_key(&mut self, key: &[u8]) {
        for database in self.parking.databases(key) {
            self.serve_key_in(database, key);
        }
    }

    /// Re-executes the blocked requests of one key in their order while the key has the type that they wait for. Those that
    /// read for a group are re-executed without a stream as well: it does not come back with its groups, so they get an
    /// error. After one that gets nothing, no other of its group is re-executed.
    fn serve_key_in(&mut self, database: u32, key: &[u8]) {
        let mut kind = self.ask_about(database, b"TYPE", key);
        let (mut last, mut spent) = (0, BTreeSet::<Vec<u8>>::new());
        while (kind != NO_KEY || self.parking.has_group_readers(database, key))
            && let Some((turn, blocked)) = self.parking.behind(database, key, last)
        {
            last = turn;
            let Some(this) = self.blocking.requests.get_mut(blocked) else { continue };
            let Target::Client { asker, .. } = this.target else { continue };
            let row = this.row;
            let group = if is_group_read(row) { this.args.as_args().get(GROUP_AT) } else { None };
            let is_in_vain = group.map_or(kind != awaited_type(row), |group| spent.contains(group));
            if is_in_vain {
                continue;
            }
            let group = group.map(<[u8]>::to_vec);
            let args = for_key(row, this.args.as_args(), key);
            let mut reply = Vec::new();
            if self.ask_engine_quietly(asker.session.index, row, args.as_args(), &mut reply) == Outcome::Done {
                self.finish_parked(blocked, &reply);
                kind = self.ask_about(database, b"TYPE", key);
            } else {
                spent.extend(group);
            }
        }
        self.note_expiry(database, key);
    }

    /// As [`Self::ask_engine`], but who waits for what this writes is served by the caller.
    fn ask_engine_quietly(
        &mut self,
        index: ClientId,
        row: &'static Row,
        args: Args<'_>,
        reply: &mut Vec<u8>,
    ) -> Outcome {
        let Some(session) = self.clients.sessions.at(index) else { return Outcome::Parked };
        let view = SessionView { has_waited: true, ..self.view(session.database, session.id) };
        let Some(outcome) = self.run_engine_as(view, index, row, args, reply) else { return Outcome::Parked };
        // What it has put somewhere else, others may wait for.
        if outcome == Outcome::Done && row.flags.has(Flags::WRITE) && !reply.starts_with(b"-") {
            self.note_keys(row, args);
        }
        outcome
    }

    fn finish_parked(&mut self, blocked: Handle, reply: &[u8]) {
        self.blocking.leave_queue(NodeId::at(0), blocked);
        let kind = if reply.starts_with(b"-") { ReplyKind::Error } else { ReplyKind::Array };
        self.finish_blocked(blocked, kind, reply);
    }

    /// WATCH, for the engine in this process.
    pub(crate) fn watch_engine(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let mut view = self.view(session.database, session.id);
        let reply = self.ask_quietly(&mut view, row, args);
        if reply == replies::OK
            && let Some(session) = self.clients.sessions.at_mut(index)
        {
            session.flags.add(SessionFlags::PINNED);
            session.pins_mut().local_watch = Some(LocalWatch { held_bytes: view.watched_bytes });
        }
        self.answer(index, |out| out.raw(&reply));
        self.tell_changes();
        self.keep_memory(index)
    }

    /// What a client watches is in no outbox: it is read on only as long as the process has room for it.
    fn keep_memory(&mut self, index: ClientId) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        session.account(&self.shared.ledger);
        if self.shared.ledger.held_bytes() <= self.config.budgets.process {
            return Flow::Next;
        }
        session.pause.add(Pause::PRESSURE);
        self.is_busy = true;
        Flow::Pause
    }

    pub(crate) fn view(&self, database: u32, client_id: u64) -> SessionView {
        SessionView { database, now: Millis(self.now.unix_us / 1000), client_id, ..SessionView::default() }
    }

    /// Asks the engine about a key, for no session.
    fn ask_about(&mut self, database: u32, command: &[u8], key: &[u8]) -> Vec<u8> {
        let args: ArgsBuf = [command, key].into_iter().collect();
        let mut view = self.view(database, 0);
        lookup(command).map_or_else(Vec::new, |row| self.ask_quietly(&mut view, row, args.as_args()))
    }

    /// Asks the engine what no client is answered with as it is.
    fn ask_quietly(&mut self, view: &mut SessionView, row: &'static Row, args: Args<'_>) -> Vec<u8> {
        let mut reply = Vec::new();
        let Some(engine) = &mut self.engine else { return reply };
        let _: Outcome = engine.execute(row, args, view, &mut Encoder::new(&mut reply, Protocol::Resp2));
        if self.parking.is_told {
            self.collect_changes(None);
        }
        reply
    }

    /// Has the engine end what a session watches, by a command without arguments; its reply.
    fn end_watching(&mut self, id: u64, command: &'static str) -> Vec<u8> {
        let args: ArgsBuf = [command].into_iter().collect();
        let mut view = self.view(0, id);
        lookup(command.as_bytes()).map_or_else(Vec::new, |row| self.ask_quietly(&mut view, row, args.as_args()))
    }

    /// A session's transaction is to run, and it watches something here, which ends. Whether it must not run.
    pub(crate) fn has_watched_in_vain(&mut self, id: u64) -> bool {
        !self.end_watching(id, "EXEC").is_empty()
    }

    /// A session watches nothing here any more.
    pub(crate) fn leave_local_watch(&mut self, id: u64) {
        self.end_watching(id, "UNWATCH");
    }

    /// A request waits no longer.
    pub(crate) fn leave_parking(&mut self, blocked: Handle) {
        self.parking.leave(blocked);
        self.counters.keys_waited_for.set(self.parking.waiting.len() as u64);
    }
}

/// The place of the group's name in a request as rewritten by the engine.
const GROUP_AT: usize = 2;
/// What `TYPE` says of a key that is not there.
const NO_KEY: &[u8] = b"+none\r\n";

/// Whether a request moves an element from one list to another.
fn is_move(row: &Row) -> bool {
    matches!(row.command, Command::List(L::Blmove | L::Brpoplpush))
}

/// Whether a request reads a stream for a group.
fn is_group_read(row: &Row) -> bool {
    row.command == Command::Stream(StreamCommand::Xreadgroup)
}

/// Whether blocked requests may be served after a write of this kind. Of those to streams Redis serves its readers after new
/// entries and the end of a group alone: not after a higher last id, which looks like new entries (XSETID, XGROUP SETID).
fn may_serve(row: &Row) -> bool {
    match row.command {
        Command::Stream(command) => matches!(command, StreamCommand::Xadd | StreamCommand::XgroupDestroy),
        _ => true,
    }
}

/// What `TYPE` says of a key that a request may take something from.
fn awaited_type(row: &Row) -> &'static [u8] {
    match row.command {
        Command::SortedSet(_) => b"+zset\r\n",
        Command::Stream(_) => b"+stream\r\n",
        _ => b"+list\r\n",
    }
}

/// The arguments of a request that the engine has rewritten.
fn words_of(request: &[u8]) -> Option<ArgsBuf> {
    let Ok(Value::Array(words)) = Value::parse(request) else { return None };
    words.iter().map(|word| if let Value::Bulk(word) = word { Some(word) } else { None }).collect()
}

/// A request that may wait, for one of its keys alone.
fn for_key(row: &Row, args: Args<'_>, key: &[u8]) -> ArgsBuf {
    let count = |index: usize| std::str::from_utf8(args.get(index)?).ok()?.parse::<usize>().ok();
    match row.command {
        Command::List(L::Blpop | L::Brpop) | Command::SortedSet(Z::Bzpopmin | Z::Bzpopmax) => {
            [&args[0], key, &args[args.len() - 1]].into_iter().collect()
        }
        Command::List(L::Blmpop) | Command::SortedSet(Z::Bzmpop) => {
            let rest = count(2).map_or(args.len(), |keys| keys.saturating_add(3));
            [&args[0], &args[1], b"1", key].into_iter().chain(args.from(rest).iter()).collect()
        }
        Command::Stream(_) => {
            // If a key is named twice, the first id counts.
            let Some((keys_at, keys)) = streams_of(row, args) else { return args.iter().collect() };
            let place = (0..keys).find(|number| args.get(keys_at + number) == Some(key)).unwrap_or(0);
            args.first(keys_at).iter().chain([key, args.at(keys_at + keys + place)]).collect()
        }
        _ => args.iter().collect(),
    }
}

/// The place of the first stream name in XREAD or XREADGROUP, and the number of names. As many ids follow.
fn streams_of(row: &Row, args: Args<'_>) -> Option<(usize, usize)> {
    let mut positions = KeyPositions::default();
    row.keys.positions(args, &mut positions).ok()?;
    let first = positions.iter().next()?.index as usize;
    Some((first, args.len().checked_sub(first)? / 2))
}

fn keys_of(row: &Row, args: Args<'_>) -> Vec<Box<[u8]>> {
    let mut positions = KeyPositions::default();
    if row.keys.positions(args, &mut positions).is_err() {
        return Vec::new();
    }
    positions.iter().filter_map(|key| args.get(key.index as usize)).map(Into::into).collect()
}
