//! What a session remembers for features: connections on which keys are watched, or that serve its client for good, how the client has
//! left, and what it wanted the session to be.

use crate::ids::{LaneHandle, NodeId};

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
