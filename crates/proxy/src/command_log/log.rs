//! Requests that took long or were large, the latest of each kind.

use crate::command_log::entry::Entry;
use crate::command_log::latency::Latencies;
use crate::command_log::monitors::Monitors;
use crate::observe::calls::CallCounts;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Which of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Slow,
    LargeRequest,
    LargeReply,
}

impl Kind {
    /// By Valkey's names.
    pub(crate) fn named(word: &[u8]) -> Option<Self> {
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
    pub(crate) entries: VecDeque<Entry>,
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
    /// By their kinds.
    pub(crate) logs: [Log; 3],
    pub(crate) latencies: Latencies,
    pub(crate) calls: CallCounts,
    /// Of a server whose engines have threads of their own: what its workers answer themselves. Engines count the rest.
    pub(crate) of_workers: Option<Arc<Mutex<CallCounts>>>,
    /// Of an engine that shares the keys of a server with others: whether it is the first, which counts what all of them are asked.
    pub(crate) is_first_engine: Option<bool>,
    pub(crate) monitors: Monitors,
    /// The reply to the request that is being done, if its client does not want it: it is counted like any other.
    pub(crate) unwanted: Vec<u8>,
    /// A state of a session has had a request done, which is noted, counted and shown.
    pub(crate) has_noted: bool,
}

impl CommandLog {
    /// What is counted where this worker counts.
    pub(crate) fn calls(&self) -> Cow<'_, CallCounts> {
        match &self.of_workers {
            // Copied: other workers count meanwhile, and some sections of INFO read files.
            Some(calls) => Cow::Owned(calls.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            None => Cow::Borrowed(&self.calls),
        }
    }

    /// Has something counted where this worker counts.
    pub(crate) fn count(&mut self, note: impl FnOnce(&mut CallCounts)) {
        match &self.of_workers {
            Some(calls) => note(&mut calls.lock().unwrap_or_else(PoisonError::into_inner)),
            None => note(&mut self.calls),
        }
    }

    /// `CONFIG RESETSTAT`.
    pub(crate) fn reset_counts(&mut self) {
        self.latencies.commands.clear();
        self.count(CallCounts::reset);
    }

    pub(crate) fn of(&mut self, kind: Kind) -> &mut Log {
        &mut self.logs[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(figure: u64) -> Entry {
        Entry { figure, ..Entry::default() }
    }

    #[test]
    fn the_newest_entries_are_kept_and_numbers_go_on() {
        let mut log = Log::default();
        (0..5).for_each(|figure| log.note(entry(figure), 3));
        assert_eq!(
            log.entries.iter().map(|entry| (entry.id, entry.figure)).collect::<Vec<_>>(),
            [(4, 4), (3, 3), (2, 2)]
        );
        log.entries.clear();
        log.note(entry(9), 3);
        assert_eq!(log.entries.front().map(|entry| entry.id), Some(5), "an emptied log does not begin anew");
        log.note(entry(9), 0);
        assert!(log.entries.is_empty(), "none is kept");
    }

    #[test]
    fn logs_are_known_by_valkeys_names() {
        let mut logs = CommandLog::default();
        for (name, kind) in
            [("slow", Kind::Slow), ("LARGE-REQUEST", Kind::LargeRequest), ("large-reply", Kind::LargeReply)]
        {
            assert_eq!(Kind::named(name.as_bytes()), Some(kind));
            logs.of(kind).note(entry(kind as u64), 1);
            assert_eq!(logs.of(kind).entries.front().map(|entry| entry.figure), Some(kind as u64));
        }
        assert_eq!(logs.logs.map(|log| log.entries.len()), [1; 3]);
        assert_eq!(Kind::named(b"large"), None);
    }
}
