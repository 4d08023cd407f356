//! An embedded engine's part of what takes its time: who waits for which key, and that a session watches something.
//!
//! The engine knows nothing of clients. It says that a request would have to wait, and while some wait, every request that
//! may write comes by here: the keys that it names are the ones that may have been waited for. Those who wait are served in
//! the order in which they came, each by running its request again for the key that was written, if that holds what it waits
//! for; within EXEC that happens after the last command. Which keys are watched the engine keeps itself, by the number of
//! the session, and it alone knows whether they have changed.

use crate::session::{Flow, Pause, Special};
use crate::slab::Handle;
use crate::waiter::{Release, State, Target, Wording};
use crate::worker::Worker;
use respool_command::{
    Command, Execute, Flags, KeyPositions, ListCommand as L, Millis, Outcome, Row, SessionView, SortedSetCommand as Z,
    lookup,
};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, ReplyKind, Request, replies};
use std::collections::BTreeMap;

/// Who waits for the keys of an embedded engine.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    waiting: BTreeMap<Box<[u8]>, Vec<Handle>>,
    /// Keys that have been written to since those who wait were last served.
    written: Vec<Box<[u8]>>,
    is_everything_written: bool,
    /// Clients are told of changes.
    pub(crate) is_told: bool,
}

impl Parking {
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
        if !self.may_wait(index) {
            return Flow::Stop;
        }
        let Some(asker) = self.expect_behind_barrier(index) else { return Flow::Stop };
        let is_wanted = self.passes_reply(index);
        let args: ArgsBuf = request.args.iter().collect();
        let mut keys = keys_of(row, request.args);
        if is_move(row) {
            // Where the element goes is not what is waited for.
            keys.truncate(1);
        }
        let words = Wording { args, said: None };
        let waiter = self.enter_queue(index, row, words, 0, Target::Client { asker, is_wanted });
        for key in keys {
            self.parking.waiting.entry(key).or_default().push(waiter);
        }
        self.counters.keys_waited_for.set(self.parking.waiting.len() as u64);
        if self.clients.sessions.at(index).is_some_and(|s| s.cold.has_hung_up) {
            self.release_waiter(waiter, Release::HalfClosed);
        }
        if self.is_leaving(index) { Flow::Stop } else { Flow::Pause }
    }

    /// A request for the engine in this process while clients are told of changes, or while some wait.
    #[cold]
    pub(crate) fn execute_watched(&mut self, index: u32, row: &'static Row, request: &Request<'_>) -> Flow {
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
    fn run_engine(&mut self, index: u32, row: &'static Row, args: Args<'_>, reply: &mut Vec<u8>) -> Option<Outcome> {
        let session = self.clients.sessions.at(index)?;
        let now = Millis(self.now.unix_us / 1000);
        let mut view = SessionView { database: session.database, now, client_id: session.id, ..SessionView::default() };
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
        if self.parking.waiting.is_empty() || !row.flags.has(Flags::WRITE) {
            return;
        }
        self.note_keys(row, args);
        let in_transaction =
            self.clients.sessions.at(index).and_then(|s| s.pins.as_ref()).is_some_and(|p| p.script.is_some());
        if !in_transaction {
            self.serve_parked();
        }
    }

    /// The keys of a request that has been run: those who wait for them may be served.
    fn note_keys(&mut self, row: &'static Row, args: Args<'_>) {
        let keys = keys_of(row, args);
        self.parking.is_everything_written |= keys.is_empty();
        let Parking { waiting, written, .. } = &mut self.parking;
        written.extend(keys.into_iter().filter(|key| waiting.contains_key(key)));
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
        // What it has put somewhere else, others may wait for.
        if outcome == Outcome::Done && row.flags.has(Flags::WRITE) && !reply.starts_with(b"-") {
            self.note_keys(row, args);
        }
        outcome
    }

    fn finish_parked(&mut self, waiter: Handle, reply: &[u8]) {
        self.blocking.leave_queue(0, waiter);
        let kind = if reply.starts_with(b"-") { ReplyKind::Error } else { ReplyKind::Array };
        self.finish_waiter(waiter, kind, reply);
    }

    /// WATCH, for the engine in this process.
    pub(crate) fn watch_engine(&mut self, index: u32, row: &'static Row, args: Args<'_>) -> Flow {
        let Some(session) = self.clients.sessions.at(index) else { return Flow::Stop };
        let mut view = self.view(session.database, session.id);
        let reply = self.ask_quietly(&mut view, row, args);
        if reply == replies::OK
            && let Some(session) = self.clients.sessions.at_mut(index)
        {
            session.special.add(Special::PINNED);
            session.pins_mut().local_watch = Some(LocalWatch { held_bytes: view.watched_bytes });
        }
        self.answer(index, |out| out.raw(&reply));
        self.tell_changes();
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

    fn view(&self, database: u32, client_id: u64) -> SessionView {
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
