//! What scripts call, kept for clients that monitor until the host takes it. Nothing is kept while there are none.

use respool_command::{Flags, Row};
use respool_wire::{Args, ArgsBuf};

use crate::limits::WATCHED_CALLS_BYTES;

/// The calls since the host has last taken them, with the databases.
#[derive(Default)]
pub(crate) struct WatchedCalls {
    is_watched: bool,
    calls: Vec<(u32, ArgsBuf)>,
    bytes: usize,
}

impl WatchedCalls {
    /// Whether calls are kept from now on.
    pub(crate) fn watch(&mut self, is_watched: bool) {
        *self = Self { is_watched, ..Self::default() };
    }

    /// A script calls a command, which it may.
    pub(crate) fn note(&mut self, row: &Row, database: u32, args: Args<'_>) {
        if self.is_watched && !row.flags.has(Flags::ADMIN) && !row.flags.has(Flags::SKIP_MONITOR) {
            self.bytes += size_of::<ArgsBuf>() + args.iter().map(<[u8]>::len).sum::<usize>();
            self.calls.push((database, args.iter().collect()));
        }
    }

    /// Whether there is so much that the host has to take it before the script goes on.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= WATCHED_CALLS_BYTES
    }

    pub(crate) fn take(&mut self) -> Vec<(u32, ArgsBuf)> {
        self.bytes = 0;
        std::mem::take(&mut self.calls)
    }
}
