//! A second connection for large requests and replies, so that small ones do not wait behind them.
//!
//! ```text
//!   caller --small, or nothing is known--> shared connection
//!      |                                        ^
//!      '--large, and reads or is long itself----+--> second connection, once it is there
//! ```
//!
//! A request goes there if it is large itself, or if it only reads and its reply was large before, see [`Sizes`]. What one caller
//! awaits before it goes on stays in order. No call waits for the second connection to be made: until it is there, and if the server
//! does not take another, everything goes by the first.

use super::{Core, Ended};
use crate::fitness::only_reads;
use crate::sizes::{Expected, Sizes};
use crate::{Command, Config};
use std::sync::{Arc, OnceLock};

/// What a connection that callers share knows of large requests and replies.
#[derive(Debug, Default)]
pub(super) struct Large {
    sizes: Arc<Sizes>,
    /// The second connection; none on the second itself.
    second: Option<OnceLock<Arc<Core>>>,
}

impl Core {
    /// As [`Core::new`], of a connection that callers share: what is large goes beside it.
    pub(crate) fn shared(config: Config) -> Arc<Self> {
        let large = config.large_bytes.map(|_| Large { second: Some(OnceLock::new()), ..Large::default() });
        Self::new_with(config, large)
    }

    /// The connection by which these requests go, which follow each other on it.
    #[inline]
    pub(crate) fn lane_of<'c>(self: &'c Arc<Self>, commands: &[Command]) -> &'c Arc<Self> {
        let Some(Large { sizes, second: Some(second) }) = &self.large else { return self };
        if !sizes.is_awake() && commands.iter().all(Command::is_short) {
            return self;
        }
        if self.are_large(sizes, commands) { self.second(sizes, second) } else { self }
    }

    #[cold]
    fn are_large(&self, sizes: &Sizes, commands: &[Command]) -> bool {
        let bytes = commands.iter().filter(|command| !command.is_short()).map(Command::sent_bytes).sum::<usize>();
        if self.is_large(bytes) {
            return true;
        }
        let is_expected = |command: &Command| sizes.expected(command.words()) == Expected::Large;
        commands.iter().any(is_expected) && commands.iter().all(only_reads)
    }

    #[inline]
    fn is_large(&self, bytes: usize) -> bool {
        self.config.large_bytes.is_some_and(|large| bytes >= large)
    }

    /// The second connection if it is there; it is begun otherwise.
    fn second<'c>(self: &'c Arc<Self>, sizes: &Arc<Sizes>, second: &'c OnceLock<Arc<Self>>) -> &'c Arc<Self> {
        let make = || {
            let large = Large { sizes: Arc::clone(sizes), second: None };
            let second = Self::new_with(self.config.clone(), Some(large));
            second.lock().is_drained = true;
            second
        };
        let second = second.get_or_init(make);
        if self.is_closed() {
            second.close();
        }
        if second.begin_early() { second } else { self }
    }

    /// The second connection, if large requests or replies have made one.
    pub(crate) fn second_made(&self) -> Option<&Arc<Self>> {
        self.large.as_ref()?.second.as_ref()?.get()
    }

    /// Replies to these requests have come, in order.
    #[inline]
    pub(crate) fn note_sizes<'e>(
        &self,
        commands: impl Iterator<Item = &'e Command>,
        ended: impl Iterator<Item = &'e Ended>,
    ) {
        let Some(large) = &self.large else { return };
        for (command, ended) in commands.zip(ended) {
            let Ended::Reply(reply) = ended else { continue };
            let is_large = self.is_large(reply.payload());
            if is_large || large.sizes.is_awake() {
                large.note(command, is_large);
            }
        }
    }
}

impl Large {
    #[cold]
    fn note(&self, command: &Command, is_large: bool) {
        // Nothing is remembered of what stays small.
        if is_large || self.sizes.expected(command.words()) != Expected::Unknown {
            self.sizes.note(command.words(), is_large);
        }
    }
}
