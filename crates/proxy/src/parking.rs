//! An embedded engine's part of what takes its time: who waits for which key, and who watches which.
//!
//! The engine knows nothing of clients. It says that a request would have to wait, and every request that may write comes
//! by here: the keys that it names are the ones that somebody may have waited for or watched. Those who wait are served in
//! the order in which they came, each by running its request again for the key that was written, if that holds what it waits
//! for; within EXEC that happens after the last command. That a
//! request fails changes nothing, and one that may have changed a key counts as if it had: a transaction may then fail that
//! need not have, but never succeed that must not.

use crate::session::{Flow, Pause, Session, Special};
use crate::slab::Handle;
use crate::waiter::{Release, State, Target};
use crate::worker::Worker;
use respool_command::{
    Command, Execute, Flags, GenericCommand as G, KeyPositions, ListCommand as L, Millis, Outcome, Row, ServerCommand,
    SessionView, SortedSetCommand as Z, lookup,
};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, ReplyKind, Request, replies};
use std::collections::BTreeMap;

/// Who waits for the keys of an embedded engine, and who watches them.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    waiting: BTreeMap<Box<[u8]>, Vec<Handle>>,
    watching: BTreeMap<Box<[u8]>, Vec<Handle>>,
    /// Keys that have been written to since those who wait were last served.
    written: Vec<Box<[u8]>>,
    is_everything_written: bool,
    /// Clients are told of changes.
    pub(crate) is_told: bool,
}

impl Parking {
    /// How many keys somebody waits for or watches.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len() + self.watching.len()
    }
}

/// What a session watches in an embedded engine.
#[derive(Debug, Default)]
pub(crate) struct LocalWatch {
    /// For each key in a database, whether it was there when the watching began: if it is not any more, its time has come.
    keys: BTreeMap<(Box<[u8]>, u32), bool>,
    key_bytes: usize,
    is_stale: bool,
}

/// What keeping a key takes beside its bytes, about, in bytes.
const KEY_COST: usize = 128;

impl LocalWatch {
    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.key_bytes + self.keys.len() * KEY_COST
    }

    /// Whether a key that is watched is meant: this one, or any; in this database, or in any.
    fn has(&self, key: Option<&[u8]>, database: Option<u32>) -> bool {
        match (key, database) {
            (Some(key), Some(database)) => self.keys.contains_key(&(key.into(), database)),
            (Some(key), None) => self.keys.range((key.into(), 0)..=(key.into(), u32::MAX)).next().is_some(),
            (None, Some(database)) => self.keys.keys().any(|(_, of)| *of == database),
            (None, None) => !self.keys.is_empty(),
        }
    }
}

impl Parking {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.watching.is_empty() && !self.is_told
    }

    /// Whether somebody waits for keys or watches them.
    fn has_anybody(&self) -> bool {
        !(self.waiting.is_empty() && self.watching.is_empty())
    }
}

/// The database may be another than the session's.
fn reaches_other_databases(row: &Row) -> bool {
    matches!(
        row.command,
        Command::Generic(G::Move | G::Copy) | Command::Server(ServerCommand::Swapdb | ServerCommand::Flushall)
    )
}

impl<E: Execute> Worker<E> {
    /// A request that may wait, for the engine in this process.
    pub(crate) fn park(&mut self, index: u32, row: &'static Row, request: &Request<'_>) -> Flow {
        if self.settle_before(index).is_none() {
            return Flow::Again;
        }
        let mut reply = Vec::new();
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let in_transaction = session.pins.as_ref().is_some_and(|p| p.script.is_some());
        if self.ask_engine(index, row, request.args, &mut reply) == Outcome::Done {
            self.answer(index, |out| out.raw(&reply));
            return Flow::Next;
        }
        if in_transaction {
            // Nothing waits there: as if its time had run out.
            self.answer(index, |out| if is_move(row) { out.null() } else { out.null_array() });
            return Flow::Next;
        }
        if self.blocking.waiters.len() >= self.config.lanes.waiters_max {
            self.counters.waiters_refused.add(1);
            self.answer(index, |out| out.raw(&crate::text::too_many_waiters()));
            return Flow::Next;
        }
        let Some(asker) = self.expect_behind_barrier(index) else { return Flow::Stop };
        let is_wanted = self.passes_reply(index);
        let args: ArgsBuf = request.args.iter().collect();
        let mut keys = keys_of(row, request.args);
        if is_move(row) {
            // Where the element goes is not what is waited for.
            keys.truncate(1);
        }
        let waiter = self.enter_queue(index, row, args, 0, Target::Client { asker, is_wanted });
        for key in keys {
            self.parking.waiting.entry(key).or_default().push(waiter);
        }
        self.counters.keys_waited_for.set(self.parking.waiting.len() as u64);
        if self.clients.sessions.at(index).is_some_and(|s| s.cold.has_hung_up) {
            self.release_waiter(waiter, Release::Vanished);
        }
        Flow::Pause
    }

    /// A request for the engine in this process while clients are told of changes, or while somebody waits or watches.
    #[cold]
    pub(crate) fn execute_watched(&mut self, index: u32, row: &'static Row, request: &Request<'_>) -> Flow {
        let flow = if self.parking.has_anybody() && row.flags.has(Flags::WRITE) {
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
    fn run_engine(&mut self, index: u32, row: &'static Row, args: Args<'_>, reply: &mut Vec<u8>) -> Option<Outcome> {
        let session = self.clients.sessions.at(index)?;
        let now = Millis(self.now.unix_us / 1000);
        let mut view = SessionView { database: session.database, now, client_id: session.id };
        let engine = self.engine.as_mut()?;
        let outcome = engine.execute(row, args, &mut view, &mut Encoder::new(reply, session.protocol));
        if self.parking.is_told {
            self.collect_changes(self.clients.sessions.handle(index));
        }
        Some(outcome)
    }

    /// Has the engine run a request of a session, and those served who waited for what it wrote.
    fn ask_engine(&mut self, index: u32, row: &'static Row, args: Args<'_>, reply: &mut Vec<u8>) -> Outcome {
        let Some(outcome) = self.run_engine(index, row, args, reply) else { return Outcome::Done };
        if outcome == Outcome::Done && !reply.starts_with(b"-") {
            // Those who wait hear of the change before they are served; who has made it, behind its reply.
            if !self.clients.sessions.at(index).is_some_and(|s| s.special.has(Special::TRACKING)) {
                self.tell_changes();
            }
            self.note_written(index, row, args);
        }
        outcome
    }

    /// A request that may write has been run for a session, and did not fail.
    #[cold]
    pub(crate) fn note_written(&mut self, index: u32, row: &'static Row, args: Args<'_>) {
        if !self.parking.has_anybody() || !row.flags.has(Flags::WRITE) {
            return;
        }
        self.note_keys(index, row, args);
        let in_transaction =
            self.clients.sessions.at(index).and_then(|s| s.pins.as_ref()).is_some_and(|p| p.script.is_some());
        if !in_transaction {
            self.serve_parked();
        }
    }

    /// The keys of a request that has been run for a session: what is watched of them has changed, and who waits for them may
    /// be served.
    fn note_keys(&mut self, index: u32, row: &'static Row, args: Args<'_>) {
        let of_session = self.clients.sessions.at(index).map_or(0, |s| s.database);
        let database = if reaches_other_databases(row) { None } else { Some(of_session) };
        let keys = keys_of(row, args);
        if keys.is_empty() {
            self.parking.is_everything_written = true;
        }
        let Self { parking, clients, .. } = self;
        let mut spoil = |watchers: &[Handle], key: Option<&[u8]>| {
            for watcher in watchers {
                if let Some(watch) = clients.sessions.get_mut(*watcher).and_then(Session::local_watch_mut) {
                    watch.is_stale |= watch.has(key, database);
                }
            }
        };
        for key in keys {
            if let Some(watchers) = parking.watching.get(&key) {
                spoil(watchers, Some(&key));
            }
            if parking.waiting.contains_key(&key) {
                parking.written.push(key);
            }
        }
        if parking.is_everything_written {
            parking.watching.values().for_each(|watchers| spoil(watchers, None));
        }
    }

    /// Serves those who wait for keys that have been written to.
    pub(crate) fn serve_parked(&mut self) {
        loop {
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

    /// Serves those who wait for one key, as long as it holds something of the type that they wait for. As in Redis, what else
    /// they wait for has no part in it: not an earlier key that holds another type by now.
    fn serve_key(&mut self, key: &[u8]) {
        let Some(waiters) = self.parking.waiting.remove(key) else { return };
        let mut left = Vec::new();
        let mut held: Option<(u32, Vec<u8>)> = None;
        for waiter in waiters {
            let Some(this) = self.blocking.waiters.get_mut(waiter) else { continue };
            let Target::Client { asker, .. } = this.target else { continue };
            let (row, args) = (this.row, for_key(this.row, this.args.as_args(), key));
            let Some(database) = self.clients.sessions.get(asker.session).map(|s| s.database) else { continue };
            if held.as_ref().is_none_or(|(of, _)| *of != database) {
                held = Some((database, self.ask_about(database, b"TYPE", key)));
            }
            let has_it = held.as_ref().is_some_and(|(_, kind)| kind.as_slice() == awaited_type(row));
            let mut reply = Vec::new();
            match has_it {
                true => match self.ask_engine_quietly(asker.session.index, row, args.as_args(), &mut reply) {
                    Outcome::Done => {
                        held = None;
                        self.finish_parked(waiter, &reply);
                    }
                    Outcome::Parked => left.push(waiter),
                },
                false => left.push(waiter),
            }
        }
        if !left.is_empty() {
            self.parking.waiting.entry(key.into()).or_default().splice(0..0, left);
        }
    }

    /// As [`Self::ask_engine`], but who waits for what this writes is served by the caller.
    fn ask_engine_quietly(&mut self, index: u32, row: &'static Row, args: Args<'_>, reply: &mut Vec<u8>) -> Outcome {
        let Some(outcome) = self.run_engine(index, row, args, reply) else { return Outcome::Parked };
        // What it has taken, or put somewhere else, others may watch or wait for.
        if outcome == Outcome::Done && row.flags.has(Flags::WRITE) && !reply.starts_with(b"-") {
            self.note_keys(index, row, args);
        }
        outcome
    }

    fn finish_parked(&mut self, waiter: Handle, reply: &[u8]) {
        self.blocking.leave_queue(0, waiter);
        let kind = if reply.starts_with(b"-") { ReplyKind::Error } else { ReplyKind::Array };
        self.finish_waiter(waiter, kind, reply);
    }

    /// WATCH, for the engine in this process.
    pub(crate) fn watch_engine(&mut self, index: u32, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let database = session.database;
        let Some(handle) = self.clients.sessions.handle(index) else { return Flow::Stop };
        for key in args.from(1).iter() {
            let was_there = self.is_there(database, key);
            let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
            session.special.add(Special::PINNED);
            let watch = session.pins_mut().local_watch.get_or_insert_default();
            // What is watched already is watched since then.
            if watch.has(Some(key), Some(database)) {
                continue;
            }
            watch.keys.insert((key.into(), database), was_there);
            watch.key_bytes += key.len();
            let watchers = self.parking.watching.entry(key.into()).or_default();
            if !watchers.contains(&handle) {
                watchers.push(handle);
            }
        }
        self.answer(index, |reply| reply.raw(replies::OK));
        self.keep_memory(index)
    }

    /// What a client watches is in no outbox: it is read on only as long as the process has room for it.
    fn keep_memory(&mut self, index: u32) -> Flow {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        let held = session.held_bytes();
        self.shared.ledger.account(session.accounted, held);
        session.accounted = held;
        if self.shared.ledger.held_bytes() <= self.config.budgets.process {
            return Flow::Next;
        }
        session.pause.add(Pause::PRESSURE);
        self.is_busy = true;
        Flow::Pause
    }

    fn is_there(&mut self, database: u32, key: &[u8]) -> bool {
        self.ask_about(database, b"EXISTS", key) == b":1\r\n"
    }

    /// Asks the engine about a key, for nobody.
    fn ask_about(&mut self, database: u32, command: &[u8], key: &[u8]) -> Vec<u8> {
        let args: ArgsBuf = [command, key].into_iter().collect();
        let mut reply = Vec::new();
        let (Some(engine), Some(row)) = (&mut self.engine, lookup(command)) else { return reply };
        let now = Millis(self.now.unix_us / 1000);
        let mut view = SessionView { database, now, client_id: 0 };
        let _: Outcome = engine.execute(row, args.as_args(), &mut view, &mut Encoder::new(&mut reply, Protocol::Resp2));
        if self.parking.is_told {
            self.collect_changes(None);
        }
        reply
    }

    /// Ends what a session watches here. Whether any of it may have changed.
    pub(crate) fn leave_local_watch(&mut self, handle: Handle, watch: LocalWatch) -> bool {
        let mut is_stale = watch.is_stale;
        for ((key, database), was_there) in watch.keys {
            is_stale |= was_there && !self.is_there(database, &key);
            if let Some(watchers) = self.parking.watching.get_mut(&key) {
                watchers.retain(|w| *w != handle);
                if watchers.is_empty() {
                    self.parking.watching.remove(&key);
                }
            }
        }
        is_stale
    }

    /// A client has left: nobody is told of what it watched.
    pub(crate) fn forget_local_watch(&mut self, watch: LocalWatch) {
        let Self { parking, clients, .. } = self;
        for (key, _) in watch.keys.into_keys() {
            if let Some(watchers) = parking.watching.get_mut(&key) {
                watchers.retain(|w| clients.sessions.get_mut(*w).is_some());
                if watchers.is_empty() {
                    parking.watching.remove(&key);
                }
            }
        }
    }

    /// Strikes out who waits no longer.
    pub(crate) fn sweep_parking(&mut self) {
        let Self { parking, blocking, counters, .. } = self;
        parking.waiting.retain(|_, waiters| {
            waiters.retain(|w| blocking.waiters.get_mut(*w).is_some_and(|w| w.state == State::Queued));
            !waiters.is_empty()
        });
        counters.keys_waited_for.set(parking.waiting.len() as u64);
    }
}

/// Whether a request moves an element from one list to another.
fn is_move(row: &Row) -> bool {
    matches!(row.command, Command::List(L::Blmove | L::Brpoplpush))
}

/// What `TYPE` says of a key that a request may take something from.
fn awaited_type(row: &Row) -> &'static [u8] {
    if matches!(row.command, Command::SortedSet(_)) { b"+zset\r\n" } else { b"+list\r\n" }
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
        _ => args.iter().collect(),
    }
}

fn keys_of(row: &Row, args: Args<'_>) -> Vec<Box<[u8]>> {
    let mut positions = KeyPositions::default();
    if row.keys.positions(args, &mut positions).is_err() {
        return Vec::new();
    }
    positions.iter().filter_map(|key| args.get(key.index as usize)).map(Into::into).collect()
}
