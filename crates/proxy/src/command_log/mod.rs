//! What the commands of the engine in this process took and how often they were called: `SLOWLOG`, `COMMANDLOG`, `LATENCY`, and sections of
//! `INFO`; and `MONITOR`.
//!
//! ```text
//!   request -- plain and quick ------------------------> engine     counted; one in 1024 timed, unless the settings ask for every command
//!           '- any other --> clock --> run --> clock --> logs, histogram, samples
//! ```
//!
//! A command that takes long is one of those that are timed: what is plain and quick takes microseconds. The clock belongs to the program
//! around the worker; where it gives none, nothing is timed.

pub(crate) mod calls;
mod entry;
pub(crate) mod latency;
pub(crate) mod log;
pub(crate) mod monitors;
mod show;
mod verbs;

use crate::env::Env;
use crate::session::Flow;
use crate::session::id::{ClientHandle, ClientId};
use entry::{Entry, shortened};
use respool_command::{Command, Execute, Flags, Lane, Row, TransactionsCommand as T, text as texts};
use respool_wire::Args;

/// What one request took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) us: u64,
    pub(crate) reply_bytes: usize,
}

/// A request that has been run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedRun {
    pub(crate) begun_us: u64,
    /// Bytes of replies that waited for its client before.
    pub(crate) before: usize,
    /// Where its answer was to stand.
    pub(crate) position: Option<usize>,
    pub(crate) flow: Flow,
}

impl<E: Execute> Env<E> {
    /// The start time of a request in microseconds; `None` if requests are not timed.
    #[inline]
    pub(crate) fn times_from(&self) -> Option<u64> {
        if self.engine.is_none() { None } else { self.shared.hooks.monotonic_us() }
    }

    /// Where the answer to a client's next request will stand, for [`Self::count_call`]. `None`: it is not to be counted.
    pub(crate) fn answer_position(&self, index: ClientId) -> Option<usize> {
        self.engine.as_ref().and_then(|_| self.clients.sessions.at(index)?.down.answer_position())
    }

    /// A request was run whose answer, if there is one by now, is at this position.
    pub(crate) fn count_call(&mut self, index: ClientId, row: &'static Row, position: Option<usize>, us: Option<u64>) {
        let Self { clients, command_log, .. } = self;
        let session = clients.sessions.at(index);
        let reply = session.zip(position).map_or(&[][..], |(session, position)| session.down.answer_since(position));
        command_log.calls.end(row, reply, us);
    }

    /// A request was refused before it was run, if it has an answer at this position.
    pub(crate) fn count_refused(&mut self, index: ClientId, row: Option<&'static Row>, position: Option<usize>) {
        let Self { clients, command_log, .. } = self;
        if let Some((session, position)) = clients.sessions.at(index).zip(position) {
            command_log.calls.reject(row, session.down.answer_since(position));
        }
    }

    /// A session's states have dealt with a request: it was refused, queued or put off, or it is one that they answer themselves.
    pub(crate) fn count_special(
        &mut self,
        index: ClientId,
        row: &'static Row,
        position: Option<usize>,
        (args, was_queueing): (Args<'_>, bool),
    ) {
        let Self { clients, command_log, .. } = self;
        let Some((session, position)) = clients.sessions.at(index).zip(position) else { return };
        let reply = session.down.answer_since(position);
        let ends = matches!(row.command, Command::Transactions(T::Exec | T::Discard | T::Multi | T::Watch));
        let is_run = if was_queueing { ends && !texts::is_refusal(reply) } else { !reply.starts_with(b"-") };
        if is_run && !reply.is_empty() {
            command_log.calls.end(row, reply, None);
            self.show_to_monitors(index, row, args);
        } else {
            command_log.calls.reject(Some(row), reply);
        }
    }

    pub(crate) fn reply_bytes_of(&self, index: ClientId) -> usize {
        self.clients.sessions.at(index).map_or(0, |session| session.down.waiting_bytes())
    }

    /// Notes a request that has run. One that is read again or parked is not noted.
    pub(crate) fn note_run(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, run: TimedRun) {
        let TimedRun { begun_us, before, position, flow } = run;
        let us = self.shared.hooks.monotonic_us().map_or(0, |now_us| now_us.saturating_sub(begun_us));
        if row.runs_scripts && self.waits_for_script(index) {
            // Noted once it has ended.
            self.slices.script.iter_mut().for_each(|late| late.us += us);
            return;
        }
        // A request that may wait, and does.
        let is_parked = flow != Flow::Next && row.lane(args) == Lane::Blocking;
        if flow != Flow::Again {
            self.count_call(index, row, position, Some(us).filter(|_| !is_parked));
            if !row.runs_scripts {
                self.show_to_monitors(index, row, args);
            }
        }
        if flow != Flow::Again && !is_parked {
            let reply_bytes = self.reply_bytes_of(index).saturating_sub(before);
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
            let entry = self.entry(index, row, args, reply_bytes as u64);
            self.command_log.large_reply.note(entry, self.config.seeing.large_replies.entries_max);
        }
    }

    /// Among so many bytes may be a request that the engine's log of large ones has.
    #[inline]
    pub(crate) fn may_log_request(&self, bytes: usize) -> bool {
        bytes as u64 >= self.config.seeing.large_requests.bytes_min && self.engine.is_some()
    }

    pub(crate) fn note_cost(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, cost: Cost) {
        let terms = self.config.seeing;
        if terms.tracks_latency {
            self.command_log.latencies.count(row, cost.us);
        }
        let event = if row.flags.has(Flags::FAST) { "fast-command" } else { "command" };
        self.note_latency(event, cost.us);
        // What passwords may stand in.
        if row.flags.has(Flags::SKIP_SLOWLOG) {
            return;
        }
        if cost.us >= terms.slow_us {
            let entry = self.entry(index, row, args, cost.us);
            self.command_log.slow.note(entry, terms.slow_entries);
            self.counters.slow_requests.add(1);
        }
        let request_bytes = canonical_bytes(args);
        if request_bytes >= terms.large_requests.bytes_min {
            let entry = self.entry(index, row, args, request_bytes);
            self.command_log.large_request.note(entry, terms.large_requests.entries_max);
        }
        let reply_bytes = cost.reply_bytes as u64;
        if reply_bytes >= terms.large_replies.bytes_min {
            let entry = self.entry(index, row, args, reply_bytes);
            self.command_log.large_reply.note(entry, terms.large_replies.entries_max);
        }
    }

    #[cold]
    fn entry(&self, index: ClientId, row: &Row, args: Args<'_>, figure: u64) -> Entry {
        let details = self.clients.sessions.at(index).map(|session| &session.details);
        Entry {
            id: 0,
            unix_s: self.now.unix_us / 1_000_000,
            figure,
            arguments: shortened(row, args),
            address: details.map_or_else(String::new, |details| details.peer.address.clone()),
            name: details.map_or_else(String::new, |details| details.name.to_string()),
        }
    }

    /// Something has taken so long.
    pub(crate) fn note_latency(&mut self, event: &'static str, us: u64) {
        let threshold_ms = self.config.seeing.latency_ms;
        let ms = us / 1000;
        if threshold_ms > 0 && ms >= threshold_ms {
            self.command_log.latencies.note(event, self.now.unix_us / 1_000_000, ms);
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
    use respool_wire::{ArgsBuf, encode_request};

    use super::canonical_bytes;

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
