//! What a session holds beyond the shared lanes, and remembers for features: connections on which keys are watched, or that serve its client for good, how the client has
//! left, and what it wanted the session to be.

use crate::ids::{Handle, LaneHandle, NodeId};
use crate::observe::counters::Counters;
use crate::workers::budget::ProcessBudget;
use std::any::Any;
use std::fmt::Debug;

/// What a session holds. Boxed, and only there while it holds something.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// Requests that wait for EXEC, or what is left of its reply.
    pub(crate) transaction: Option<Box<dyn SessionTransaction>>,
    pub(crate) since_us: u64,
    pub(crate) watches: Watches,
    /// It watches something in the engine of this process, which keeps so many bytes for that.
    pub(crate) local_watch: Option<usize>,
    /// Keys were watched where they are not any more: EXEC is answered as if one of them had changed.
    pub(crate) is_touched: bool,
    /// How the client has left while the reply to an EXEC was being put together.
    pub(crate) departure: Option<Departure>,
    /// A request of that EXEC took time that those behind it did not see pass.
    pub(crate) has_taken_time: bool,
    /// Requests that wait: one, or one for each node.
    pub(crate) blocked: Vec<Handle>,
    /// Bytes of those requests.
    pub(crate) waiting_bytes: usize,
    /// Bytes of keys that are on their way to another server for it.
    pub(crate) moving_bytes: usize,
    /// It has connections for good.
    pub(crate) dedicated: Option<DedicatedMark>,
}

/// What a session's transaction is to others: its requests and replies are known to `transaction` alone.
pub(crate) trait SessionTransaction: Any + Debug + Send {
    /// Bytes held for it.
    fn held_bytes(&self) -> usize;

    /// How many requests wait for EXEC; `None` if none are queued.
    fn queued(&self) -> Option<usize>;

    /// Whether requests are queued, and none was refused.
    fn is_whole(&self) -> bool;

    /// Whether the reply to EXEC is being put together.
    fn is_replying(&self) -> bool;
}

/// What the subscriptions of a session are to others: what they are to, and what is on its way, is known to the feature alone.
pub(crate) trait SessionSubscriber: Any + Debug + Send {
    /// How many channels, patterns and sharded channels it subscribes to.
    fn counts(&self) -> [usize; 3];

    /// Bytes of messages that wait for it outside its outbox.
    fn backlog_bytes(&self) -> usize;

    /// How many these are.
    fn backlog_len(&self) -> usize;

    /// Bytes of what it subscribes to and tracks, as if none of it were shared with others: that goes with the client.
    fn named_bytes(&self) -> usize;

    /// Whether it subscribes to anything.
    fn is_subscribed(&self) -> bool {
        self.counts() != [0; 3]
    }
}

impl Pins {
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + self.waiting_bytes
            + self.transaction_bytes()
            + self.moving_bytes
            + self.local_watch.unwrap_or(0)
            + self.dedicated.map_or(0, |dedicated| dedicated.bytes)
    }

    /// The client has left. Its requests wait no longer, but keys that are on their way go on without it.
    pub(crate) fn count_out(&self, ledger: &ProcessBudget, counters: &Counters) {
        ledger.account(0, self.moving_bytes);
        if !self.blocked.is_empty() {
            counters.blocked_clients.set(counters.blocked_clients.value().saturating_sub(1));
        }
    }

    /// How many requests wait for EXEC; `None` if none are queued.
    pub(crate) fn queued(&self) -> Option<usize> {
        self.transaction.as_ref()?.queued()
    }

    /// Bytes of the requests that wait for EXEC, and of what belongs to them.
    pub(crate) fn transaction_bytes(&self) -> usize {
        self.transaction.as_ref().map_or(0, |transaction| transaction.held_bytes())
    }

    /// Whether the reply to an EXEC is being put together.
    pub(crate) fn is_replying(&self) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.is_replying())
    }

    /// Whether an EXEC would have requests to run, as far as is known here.
    pub(crate) fn may_run(&self) -> bool {
        let is_whole = self.transaction.as_ref().is_some_and(|transaction| transaction.is_whole());
        is_whole && !self.is_touched && self.watches.failure == WatchFailure::None
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.transaction.is_none()
            && self.watches.lanes.is_empty()
            && self.dedicated.is_none()
            && self.local_watch.is_none()
            && self.blocked.is_empty()
            && self.moving_bytes == 0
            && !self.is_touched
            && self.watches.failure == WatchFailure::None
    }
}

/// The connections on which a session watches keys, and what has become of that.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    pub(crate) lanes: Vec<WatchedLane>,
    /// Whether what the client thinks that it watches is not watched.
    pub(crate) failure: WatchFailure,
}

impl Watches {
    /// These connections are the session's no more: a client that has watched there must not execute as if it still did.
    pub(crate) fn forfeit(&mut self, is_lost: impl Fn(LaneHandle) -> bool) -> Vec<WatchedLane> {
        let lost: Vec<WatchedLane> = self.lanes.extract_if(.., |watched| is_lost(watched.lane)).collect();
        if !lost.is_empty() {
            self.failure = WatchFailure::Unseen;
        }
        lost
    }
}

/// A private connection on which keys are watched.
#[derive(Debug)]
pub(crate) struct WatchedLane {
    pub(crate) node: NodeId,
    pub(crate) lane: LaneHandle,
    pub(crate) since_us: u64,
}

/// What went wrong with the watching of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WatchFailure {
    /// Nothing.
    #[default]
    None,
    /// WATCH was answered with an error. The client has sent no request behind it so far.
    Fresh,
    /// The client may think that it watches: it has sent more before it could read that WATCH had failed, or the watching has
    /// ended since. EXEC must not succeed as if the keys had been watched.
    Unseen,
}

impl WatchFailure {
    /// A WATCH has failed. What was watched before it may be lost with it.
    pub(crate) fn note(&mut self, has_watched: bool) {
        *self = if has_watched || *self == Self::Unseen { Self::Unseen } else { Self::Fresh };
    }
}

/// How a client has left in the midst of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Departure {
    /// The connection is open and will be closed.
    Closing,
    /// The connection is closed.
    Gone,
}

/// A client has connections for good. They are in [`crate::dedicated`], which alone writes this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DedicatedMark {
    pub(crate) role: DedicatedRole,
    /// Bytes held.
    pub(crate) bytes: usize,
}

/// What such connections make of their client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DedicatedRole {
    /// Nothing yet.
    None,
    /// It is shown what nodes are asked.
    Monitors,
    /// It follows a node.
    Follows,
}

/// What a client wanted its session to be, and what it is not: a user, a database, a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedState {
    Database = 1,
    User = 2,
    Dialect = 4,
}

/// Those of them that a session has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UnmetStates(pub(crate) u8);

impl UnmetStates {
    pub(crate) fn has(self, wish: WantedState) -> bool {
        self.0 & wish as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_or_lost_watch_is_held_although_no_lane_is() {
        assert!(Pins::default().is_empty());
        assert!(!Pins { is_touched: true, ..Default::default() }.is_empty());
        assert!(
            !Pins { watches: Watches { failure: WatchFailure::Fresh, ..Watches::default() }, ..Default::default() }
                .is_empty()
        );
    }

    #[test]
    fn requests_that_wait_count_as_memory() {
        let without = Pins::default().held_bytes();
        assert_eq!(Pins { waiting_bytes: 1000, ..Default::default() }.held_bytes(), without + 1000);
        let moves = Pins { moving_bytes: 1000, ..Default::default() };
        assert_eq!((moves.held_bytes(), moves.is_empty()), (without + 1000, false));
    }

    #[test]
    fn a_state_that_is_not_met_says_nothing_of_the_others() {
        let unmet = UnmetStates(WantedState::Database as u8 | WantedState::Dialect as u8);
        let has = [WantedState::Database, WantedState::User, WantedState::Dialect].map(|wanted| unmet.has(wanted));
        assert_eq!(has, [true, false, true]);
        assert!(!UnmetStates::default().has(WantedState::User));
    }

    #[test]
    fn a_watch_that_fails_behind_another_is_never_forgotten() {
        let noted = |mut failure: WatchFailure, has_watched| {
            failure.note(has_watched);
            failure
        };
        assert_eq!(noted(WatchFailure::None, false), WatchFailure::Fresh);
        assert_eq!(noted(WatchFailure::Fresh, false), WatchFailure::Fresh);
        assert_eq!(noted(WatchFailure::None, true), WatchFailure::Unseen, "what was watched may be lost");
        assert_eq!(noted(WatchFailure::Unseen, false), WatchFailure::Unseen);
    }
}
