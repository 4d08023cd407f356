//! Requests that took long or were large, the latest of each kind.

use crate::command_log::calls::CallCounts;
use crate::command_log::entry::Entry;
use crate::command_log::latency::Latencies;
use crate::command_log::monitors::Monitors;
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
    pub(super) fn named(word: &[u8]) -> Option<Self> {
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
pub(crate) struct Log {
    pub(super) entries: VecDeque<Entry>,
    next_id: u64,
}

impl Log {
    pub(crate) fn note(&mut self, entry: Entry, entries_max: usize) {
        self.entries.push_front(Entry { id: self.next_id, ..entry });
        self.next_id += 1;
        self.entries.truncate(entries_max);
    }
}

/// The logs of one engine.
#[derive(Debug, Default)]
pub(crate) struct CommandLog {
    pub(crate) slow: Log,
    pub(crate) large_request: Log,
    pub(crate) large_reply: Log,
    pub(crate) latencies: Latencies,
    pub(crate) calls: CallCounts,
    pub(crate) monitors: Monitors,
}

impl CommandLog {
    pub(super) fn of(&self, kind: Kind) -> &Log {
        match kind {
            Kind::Slow => &self.slow,
            Kind::LargeRequest => &self.large_request,
            Kind::LargeReply => &self.large_reply,
        }
    }

    pub(super) fn of_mut(&mut self, kind: Kind) -> &mut Log {
        match kind {
            Kind::Slow => &mut self.slow,
            Kind::LargeRequest => &mut self.large_request,
            Kind::LargeReply => &mut self.large_reply,
        }
    }
}
