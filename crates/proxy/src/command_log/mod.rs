//! What the commands of the engine in this process took and how often they were called, for `SLOWLOG`, `COMMANDLOG`, `LATENCY` and sections of
//! `INFO`; and `MONITOR`. It is a layer around what every request does, and names no feature; `commands` shows what is noted here.
//!
//! ```text
//!   request -- plain and quick ------------------------> engine     counted; one in 1024 timed, unless the settings ask for every command
//!           '- any other --> clock --> run --> clock --> logs, histogram, samples
//! ```
//!
//! A command that takes long is one of those that are timed: what is plain and quick takes microseconds. The clock belongs to the program
//! around the worker; where it gives none, nothing is timed.

pub(crate) mod entry;
pub(crate) mod latency;
pub(crate) mod log;
pub(crate) mod monitors;
mod show;
pub(crate) mod timed;

use crate::command_log::log::{CommandLog, Kind};
use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::interfaces::call::Cost;
use crate::observe::terms::Terms;
use crate::session::table::Clients;
use crate::session::{Flow, Session};
use entry::{Entry, shortened};
use respool_command::{
    Command, Execute, Flags, GenericCommand, Group, Lane, Row, TransactionsCommand as T, text as texts,
};
use respool_connection::AnswerPosition;
use respool_wire::Args;
use std::borrow::Cow;

/// A request that has been run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedRun {
    /// `None`: nothing is timed.
    pub(crate) begun_us: Option<u64>,
    /// Bytes of replies that waited for its client before.
    pub(crate) before: usize,
    /// Where its answer was to stand.
    pub(crate) position: Option<AnswerPosition>,
    pub(crate) flow: Flow,
}

impl Clients {
    /// What a client was answered since its next answer had this position. Nothing where answers are not counted.
    pub(crate) fn answered(&self, index: ClientId, position: Option<AnswerPosition>) -> &[u8] {
        self.sessions.at(index).zip(position).map_or(&[], |(session, at)| session.down.answer_since(at))
    }
}

impl<E: Execute> Env<E> {
    /// The start time of a request in microseconds; `None` if requests are not timed.
    #[inline]
    pub(crate) fn times_from(&self) -> Option<u64> {
        if self.engine.is_none() { None } else { self.shared.hooks.monotonic_us() }
    }

    /// Where the answer to a client's next request will stand, for [`CommandLog::count_call`]. `None`: it is not to be counted.
    pub(crate) fn answer_position(&mut self, index: ClientId) -> Option<AnswerPosition> {
        self.command_log.unwanted = Vec::new();
        let counts = self.engine.is_some() || self.command_log.of_workers.is_some();
        self.clients.sessions.at(index).filter(|_| counts).map(|session| session.down.answer_position())
    }

    /// Notes a request that has run. One that is read again or parked is not noted.
    pub(crate) fn note_run(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, run: TimedRun) {
        let TimedRun { begun_us, before, position, flow } = run;
        let took = |begun_us| self.shared.hooks.monotonic_us().map_or(0, |now_us| now_us.saturating_sub(begun_us));
        let us = begun_us.map(took);
        if row.runs_scripts && self.waits_for_script(index) {
            // Noted once it has ended.
            self.slices.script.iter_mut().for_each(|late| late.us += us.unwrap_or_default());
            return;
        }
        if flow == Flow::Again {
            return;
        }
        // A request that may wait, and does, is not timed.
        let us = us.filter(|_| flow == Flow::Next || !may_wait(row, args));
        self.command_log.count_call(row, args, self.clients.answered(index, position), us);
        if !row.runs_scripts {
            self.show_to_monitors(index, row, args);
        }
        if let Some(us) = us {
            let reply_bytes = self.clients.waiting_bytes_of(index).saturating_sub(before);
            self.note_cost(index, row, args, Cost { us, reply_bytes });
        }
    }

    /// A request that was parked has been served.
    pub(crate) fn note_served(&mut self, by: ClientHandle, row: &'static Row, args: Args<'_>, reply_bytes: usize) {
        // The client may have left in this turn, and its place may be another's.
        if self.times_from().is_some() && self.clients.sessions.get(by).is_some() {
            self.note_cost(by.index, row, args, Cost { us: 0, reply_bytes });
        }
    }

    /// A plain request has a large reply.
    #[cold]
    pub(crate) fn note_large_reply(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, reply_bytes: usize) {
        if self.times_from().is_some() {
            let noted =
                Noted { session: self.clients.sessions.at(index), row, args, unix_s: self.now.unix_us / 1_000_000 };
            self.command_log.note_large_reply(&self.config.seeing, &noted, reply_bytes as u64);
        }
    }

    /// Among so many bytes may be a request that the engine's log of large ones has.
    #[inline]
    pub(crate) fn may_log_request(&self, bytes: usize) -> bool {
        bytes as u64 >= self.config.seeing.large_requests.bytes_min && self.engine.is_some()
    }

    /// A request has cost so much.
    pub(crate) fn note_cost(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, cost: Cost) {
        let noted = Noted { session: self.clients.sessions.at(index), row, args, unix_s: self.now.unix_us / 1_000_000 };
        if self.command_log.note_cost(&self.config.seeing, &noted, cost) {
            self.counters.slow_requests.add(1);
        }
    }
}

/// Whether a request may be answered in a later turn than it is run in.
fn may_wait(row: &Row, args: Args<'_>) -> bool {
    row.lane(args) == Lane::Blocking || row.command == Command::Generic(GenericCommand::Migrate)
}

/// A request that is noted, and its client, if that is there still.
struct Noted<'r> {
    session: Option<&'r Session>,
    row: &'static Row,
    args: Args<'r>,
    unix_s: u64,
}

impl Noted<'_> {
    #[cold]
    fn entry(&self, figure: u64) -> Entry {
        let details = self.session.map(|session| &session.details);
        Entry {
            id: 0,
            unix_s: self.unix_s,
            figure,
            arguments: shortened(self.row, self.args),
            address: details.map_or_else(String::new, |details| details.peer.address.clone()),
            name: details.map_or_else(String::new, |details| details.name.to_string()),
        }
    }
}

impl CommandLog {
    /// What a request was answered with, or would have been if its client wanted replies.
    fn wanted_or_not<'r>(&mut self, reply: &'r [u8]) -> Cow<'r, [u8]> {
        let unwanted = std::mem::take(&mut self.unwanted);
        if reply.is_empty() { unwanted.into() } else { reply.into() }
    }

    /// A request was run that has this reply, as far as there is one by now.
    pub(crate) fn count_call(&mut self, row: &'static Row, args: Args<'_>, reply: &[u8], us: Option<u64>) {
        let reply = &*self.wanted_or_not(reply);
        // What an engine answers it counts; what all are asked, the first one.
        let is_here = self.of_workers.is_none() || !reply.is_empty() || row.is_of_connection(args);
        let is_counted = self.is_first_engine == Some(false) && row.goes_to_all(args);
        if is_here && !is_counted && !self.leaves_to_worker(row, args, reply) {
            self.count(|calls| calls.end(row, reply, us));
        }
    }

    /// A request was refused with this reply before it was run. `None`: there is no such command.
    #[cold]
    pub(crate) fn reject(&mut self, row: Option<&'static Row>, args: Args<'_>, reply: &[u8]) {
        let reply = &*self.wanted_or_not(reply);
        if !row.is_some_and(|row| self.leaves_to_worker(row, args, reply)) {
            self.count(|calls| calls.reject(row, reply));
        }
    }

    /// A session's states have dealt with a request: it was refused, queued or put off, or it is one that they answer themselves.
    /// Returns whether it was run.
    pub(crate) fn count_special(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        reply: &[u8],
        was_queueing: bool,
    ) -> bool {
        let reply = &*self.wanted_or_not(reply);
        let ends = matches!(row.command, Command::Transactions(T::Exec | T::Discard | T::Multi | T::Watch));
        let is_run = if was_queueing { ends && !texts::is_refusal(reply) } else { !reply.starts_with(b"-") };
        // A worker does not see what an engine replies, nor is an array seen that a client of the engine does not want.
        if is_run && (!reply.is_empty() || ends) {
            self.count_call(row, args, reply, None);
            return true;
        }
        self.reject(Some(row), args, reply);
        false
    }

    /// Whether this is an engine of several, and a request one that the worker of its client counts, unless it is part of a transaction.
    /// Of errors to a transaction the worker knows nothing.
    fn leaves_to_worker(&self, row: &Row, args: Args<'_>, reply: &[u8]) -> bool {
        let is_unseen = || row.group == Group::Transactions && reply.starts_with(b"-");
        self.is_first_engine.is_some() && row.is_of_connection(args) && !is_unseen()
    }

    fn note_large_reply(&mut self, terms: &Terms, noted: &Noted<'_>, reply_bytes: u64) {
        self.of(Kind::LargeReply).note(noted.entry(reply_bytes), terms.large_replies.entries_max);
    }

    /// A request has cost so much. Returns whether it was slow.
    fn note_cost(&mut self, terms: &Terms, noted: &Noted<'_>, cost: Cost) -> bool {
        let row = noted.row;
        if terms.tracks_latency {
            self.latencies.count(row, cost.us);
        }
        let event = if row.flags.has(Flags::FAST) { "fast-command" } else { "command" };
        self.note_latency(terms, event, noted.unix_s, cost.us);
        // What passwords may stand in.
        if row.flags.has(Flags::SKIP_SLOWLOG) {
            return false;
        }
        let is_slow = cost.us >= terms.slow_us;
        if is_slow {
            self.of(Kind::Slow).note(noted.entry(cost.us), terms.slow_entries);
        }
        let request_bytes = canonical_bytes(noted.args);
        if request_bytes >= terms.large_requests.bytes_min {
            self.of(Kind::LargeRequest).note(noted.entry(request_bytes), terms.large_requests.entries_max);
        }
        let reply_bytes = cost.reply_bytes as u64;
        if reply_bytes >= terms.large_replies.bytes_min {
            self.note_large_reply(terms, noted, reply_bytes);
        }
        is_slow
    }

    /// Something has taken so long.
    pub(crate) fn note_latency(&mut self, terms: &Terms, event: &'static str, unix_s: u64, us: u64) {
        let ms = us / 1000;
        if terms.latency_ms > 0 && ms >= terms.latency_ms {
            self.latencies.note(event, unix_s, ms);
        }
    }
}

/// The bytes of a request as most clients send it.
fn canonical_bytes(args: Args<'_>) -> u64 {
    // A sign, the digits of a number and the end of its line.
    let line = |number: usize| 3 + u64::from(number.max(1).ilog10() + 1);
    line(args.len()) + args.iter().map(|arg| line(arg.len()) + arg.len() as u64 + 2).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::QUICK_COMMAND_US;
    use crate::observe::terms::LargeTerms;
    use respool_command::lookup;
    use respool_wire::{ArgsBuf, encode_request};

    fn noted<'a>(row: &'static Row, args: &'a ArgsBuf) -> Noted<'a> {
        Noted { session: None, row, args: args.as_args(), unix_s: 7 }
    }

    fn lens(log: &CommandLog) -> [usize; 3] {
        log.logs.each_ref().map(|log| log.entries.len())
    }

    #[test]
    fn a_request_is_in_every_log_whose_bound_it_passes() {
        let large = LargeTerms { bytes_min: 1_000, entries_max: 8 };
        let terms = Terms {
            slow_us: QUICK_COMMAND_US,
            slow_entries: 8,
            large_requests: large,
            large_replies: large,
            ..Terms::default()
        };
        let row = lookup(b"SET").expect("a known command");
        let small: ArgsBuf = ["SET", "k", "v"].iter().collect();
        let value = "v".repeat(1_000);
        let large: ArgsBuf = ["SET", "k", value.as_str()].iter().collect();
        let mut log = CommandLog::default();
        let cost = |us, reply_bytes| Cost { us, reply_bytes };
        assert!(!log.note_cost(&terms, &noted(row, &small), cost(QUICK_COMMAND_US - 1, 999)));
        assert_eq!(lens(&log), [0; 3], "nothing is past its bound");
        assert!(log.note_cost(&terms, &noted(row, &small), cost(QUICK_COMMAND_US, 0)));
        assert_eq!(lens(&log), [1, 0, 0]);
        assert!(!log.note_cost(&terms, &noted(row, &large), cost(0, 0)));
        assert_eq!(lens(&log), [1, 1, 0]);
        assert!(!log.note_cost(&terms, &noted(row, &small), cost(0, 1_000)));
        assert_eq!(lens(&log), [1, 1, 1]);
        let entry = log.of(Kind::LargeRequest).entries.front().expect("it was noted");
        assert!(entry.arguments.iter().map(Vec::len).sum::<usize>() < 1_000, "a log keeps it shortened");
        assert_eq!((entry.unix_s, entry.address.as_str()), (7, ""), "its client has left");
    }

    #[test]
    fn exec_is_in_no_log_and_its_time_is_sampled() {
        let terms = Terms { slow_us: 0, slow_entries: 8, latency_ms: 1, ..Terms::default() };
        let row = lookup(b"EXEC").expect("a known command");
        let args: ArgsBuf = ["EXEC"].iter().collect();
        let mut log = CommandLog::default();
        assert!(!log.note_cost(&terms, &noted(row, &args), Cost { us: 5_000, reply_bytes: usize::MAX }));
        assert_eq!(lens(&log), [0; 3]);
        assert_eq!(log.latencies.events.len(), 1, "it took long");
    }

    #[test]
    fn latencies_are_kept_from_the_threshold_on() {
        let mut log = CommandLog::default();
        log.note_latency(&Terms::default(), "command", 1, u64::MAX);
        assert!(log.latencies.events.is_empty(), "there is no threshold");
        let terms = Terms { latency_ms: 2, ..Terms::default() };
        log.note_latency(&terms, "command", 1, 1_999);
        assert!(log.latencies.events.is_empty());
        log.note_latency(&terms, "command", 1, 2_000);
        assert_eq!(log.latencies.events.get("command").map(|event| event.most_ms), Some(2));
    }

    #[test]
    fn a_request_counts_with_its_framing() {
        for lengths in [&[4][..], &[3, 0, 9, 10], &[1; 10], &[3, 99, 100, 12_345]] {
            let arguments: Vec<Vec<u8>> = lengths.iter().map(|len| vec![b'x'; *len]).collect();
            let mut sent = Vec::new();
            encode_request(&mut sent, arguments.iter().map(Vec::as_slice));
            let args: ArgsBuf = arguments.iter().map(Vec::as_slice).collect();
            assert_eq!(canonical_bytes(args.as_args()), sent.len() as u64, "{lengths:?}");
        }
    }
}
