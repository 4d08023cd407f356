//! What the commands of the engine in this process took: `SLOWLOG`, `COMMANDLOG`, `LATENCY`.
//!
//! ```text
//!   request -- plain and quick ------------------------> engine     not timed, unless the settings ask for every command
//!           '- any other --> clock --> run --> clock --> logs, histogram, samples
//! ```
//!
//! A command that takes long is one of those that are timed: what is plain and quick takes microseconds. The clock belongs to the program
//! around the worker; where it gives none, nothing is timed.

mod entry;
mod latency;
mod verbs;

use crate::env::Env;
use crate::limits::{LARGE_ENTRIES_MAX, LOGGED_REPLY_BYTES, LOGGED_REQUEST_BYTES};
use crate::session::Flow;
use crate::session::id::ClientId;
use crate::worker::Worker;
use entry::{Entry, shortened};
pub(crate) use latency::Latencies;
use respool_command::{Execute, Flags, Lane, Row};
use respool_wire::{Args, Request};
use std::collections::VecDeque;

/// Which of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Slow,
    LargeRequest,
    LargeReply,
}

impl Kind {
    /// By Valkey's names.
    fn named(word: &[u8]) -> Option<Self> {
        match &*word.to_ascii_lowercase() {
            b"slow" => Some(Self::Slow),
            b"large-request" => Some(Self::LargeRequest),
            b"large-reply" => Some(Self::LargeReply),
            _ => None,
        }
    }
}

/// One log, the newest entry first.
#[derive(Debug, Default)]
struct Log {
    entries: VecDeque<Entry>,
    next_id: u64,
}

impl Log {
    fn note(&mut self, entry: Entry, entries_max: usize) {
        self.entries.push_front(Entry { id: self.next_id, ..entry });
        self.next_id += 1;
        self.entries.truncate(entries_max);
    }
}

/// The logs of one engine.
#[derive(Debug, Default)]
pub(crate) struct CommandLog {
    slow: Log,
    large_request: Log,
    large_reply: Log,
    pub(crate) latencies: Latencies,
    /// A request that goes on in later turns, by its client's number, and what it has taken so far.
    unfinished: Option<(u64, u64)>,
}

impl CommandLog {
    fn of(&self, kind: Kind) -> &Log {
        match kind {
            Kind::Slow => &self.slow,
            Kind::LargeRequest => &self.large_request,
            Kind::LargeReply => &self.large_reply,
        }
    }

    fn of_mut(&mut self, kind: Kind) -> &mut Log {
        match kind {
            Kind::Slow => &mut self.slow,
            Kind::LargeRequest => &mut self.large_request,
            Kind::LargeReply => &mut self.large_reply,
        }
    }
}

/// What one request took.
#[derive(Clone, Copy, Debug)]
struct Cost {
    us: u64,
    reply_bytes: usize,
}

impl<E: Execute> Worker<E> {
    /// Runs a request and notes what it took.
    pub(crate) fn run_timed(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
        begun_us: u64,
    ) -> Flow {
        let before = self.env.reply_bytes_of(index);
        let flow = self.run_untimed(index, row, request);
        let us = self.env.shared.hooks.monotonic_us().map_or(0, |now_us| now_us.saturating_sub(begun_us));
        let Some(session) = self.env.clients.sessions.at(index) else { return flow };
        let id = session.id;
        // A request that may wait, and does.
        let is_parked = flow != Flow::Next && row.lane(request.args) == Lane::Blocking;
        let log = &mut self.env.command_log;
        let so_far = log.unfinished.take_if(|(client, _)| *client == id).map_or(0, |(_, us)| us);
        if flow == Flow::Again {
            log.unfinished = Some((id, so_far + us));
        } else if !is_parked {
            let reply_bytes = self.env.reply_bytes_of(index).saturating_sub(before);
            self.env.note_cost(index, row, request.args, Cost { us: so_far + us, reply_bytes });
        }
        flow
    }
}

impl<E: Execute> Env<E> {
    /// The time at which a request begins, if it is to be timed.
    #[inline]
    pub(crate) fn times_from(&self) -> Option<u64> {
        if self.engine.is_none() { None } else { self.shared.hooks.monotonic_us() }
    }

    fn reply_bytes_of(&self, index: ClientId) -> usize {
        self.clients.sessions.at(index).map_or(0, |session| session.down.waiting_bytes())
    }

    /// A request that was parked has been served.
    pub(crate) fn note_served(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, reply_bytes: usize) {
        if self.times_from().is_some() {
            self.note_cost(index, row, args, Cost { us: 0, reply_bytes });
        }
    }

    /// A plain request has a large reply.
    #[cold]
    pub(crate) fn note_large_reply(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, reply_bytes: usize) {
        if self.times_from().is_some() {
            let entry = self.entry(index, row, args, reply_bytes as u64);
            self.command_log.large_reply.note(entry, LARGE_ENTRIES_MAX);
        }
    }

    fn note_cost(&mut self, index: ClientId, row: &'static Row, args: Args<'_>, cost: Cost) {
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
        let request_bytes: usize = args.iter().map(<[u8]>::len).sum();
        if request_bytes > LOGGED_REQUEST_BYTES {
            let entry = self.entry(index, row, args, request_bytes as u64);
            self.command_log.large_request.note(entry, LARGE_ENTRIES_MAX);
        }
        if cost.reply_bytes > LOGGED_REPLY_BYTES {
            let entry = self.entry(index, row, args, cost.reply_bytes as u64);
            self.command_log.large_reply.note(entry, LARGE_ENTRIES_MAX);
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
