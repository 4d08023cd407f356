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

use super::{Core, Ended, Peer, Wakes};
use crate::fitness::only_reads;
use crate::sizes::{Expected, Sizes};
use crate::{Command, Config};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// What a connection that callers share knows of large requests and replies.
#[derive(Debug, Default)]
pub(super) struct Large {
    sizes: Arc<Sizes>,
    /// The second connection; none on the second itself.
    second: Option<OnceLock<Arc<Core>>>,
    /// On the second itself, the connection that it is beside.
    first: Option<Weak<Core>>,
}

impl Core {
    /// As [`Core::new`], of a connection that callers share: what is large goes beside it.
    pub(crate) fn shared(config: Config) -> Arc<Self> {
        let large = config.large_bytes.map(|_| Large { second: Some(OnceLock::new()), ..Large::default() });
        Self::new_with(config, Instant::now(), large)
    }

    /// The connection by which these requests go, which follow each other on it.
    #[inline]
    pub(crate) fn lane_of<'c>(self: &'c Arc<Self>, commands: &[Command]) -> &'c Arc<Self> {
        let Some(Large { sizes, second: Some(second), .. }) = &self.large else { return self };
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
            let large = Large { sizes: Arc::clone(sizes), second: None, first: Some(Arc::downgrade(self)) };
            // A call that goes from one to the other keeps its times.
            let second = Self::new_with(self.config.clone(), self.began, Some(large));
            second.lock().is_drained = true;
            second
        };
        let second = second.get_or_init(make);
        if self.is_closed() {
            second.close();
        }
        let Some(link) = self.link() else { return self };
        if second.begin_early() && second.leads_to(link.peer()) { second } else { self }
    }

    /// Whether there is a connection, to this server. One to another, which the first has led to before, is ended as soon as no caller
    /// waits there.
    fn leads_to(self: &Arc<Self>, peer: Peer) -> bool {
        let mut wakes = Wakes::default();
        let mut state = self.lock();
        let leads_there = state.link.as_ref().is_some_and(|link| link.peer() == peer);
        if !leads_there && state.link.is_some() && state.slots.waiting() == 0 {
            state.lose_link(&"the connection beside it leads to another server", self.now_us(), &mut wakes);
            state.open_lobby(&mut wakes);
        }
        drop(state);
        wakes.run_on(self);
        leads_there
    }

    /// The connection that this one is beside, if it is a second one.
    pub(crate) fn first(&self) -> Option<&Weak<Self>> {
        self.large.as_ref()?.first.as_ref()
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
