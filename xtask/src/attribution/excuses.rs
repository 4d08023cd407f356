//! What errors say of a node, and which of that each fault can have brought about.

use std::time::Duration;

/// After its end a fault is still to be felt: what waited for its deadline is told, and lanes are dialled with pauses. Time in which
/// the proxy stood still is no part of it.
pub(super) const GRACE: Duration = Duration::from_millis(1_500);

/// What an error says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Says {
    /// Something took too long.
    Late,
    /// The time of a pop was over before its node could be asked.
    Unasked,
    /// A connection could not be made.
    Refused,
    /// A connection has ended before a request was sent on it.
    Unsent,
    /// A connection has ended, and requests on it.
    Closed,
    /// A node has no connection to give.
    Full,
    /// Too many requests wait for a node, or too many clients have connections to it.
    Overloaded,
    /// A node has its data read, or follows another one.
    Loading,
    /// A node does not know a script.
    NoScript,
    /// What was watched is not watched any more, or a transaction was given up before it was sent.
    Unwatched,
    /// A transaction ended in a way that no transaction ends.
    Doubt,
    /// Other settings hold, or another place.
    Changed,
    /// An operator has drained the node.
    Drained,
}

impl Says {
    /// For how long after its end a fault may still bring this about: dials have pauses of 200 ms at most, and what waited for a deadline
    /// may be followed by more that did.
    pub(super) fn grace(self) -> Duration {
        match self {
            Self::Refused | Self::Unsent | Self::Closed | Self::Full | Self::Drained => Duration::from_millis(700),
            _ => GRACE,
        }
    }

    pub(super) fn of(error: &str) -> Option<Says> {
        let known = WORDS.iter().find(|(words, _)| match words.strip_prefix('-') {
            Some(_) => error.starts_with(words),
            None => error.contains(words),
        });
        known.map(|(_, says)| *says)
    }
}

/// Words by which errors are told apart: those with a hyphen begin them. The first that fit count.
const WORDS: [(&str, Says); 27] = [
    ("did not answer within", Says::Late),
    ("could not be reached in time", Says::Late),
    ("could not be asked in time", Says::Unasked),
    ("has been silent for too long", Says::Late),
    ("was drained by an operator", Says::Drained),
    ("max number of clients", Says::Full),
    ("is overloaded", Says::Overloaded),
    ("-ERR all connections to node", Says::Overloaded),
    ("-LOADING ", Says::Loading),
    ("(LOADING ", Says::Loading),
    ("-MASTERDOWN ", Says::Loading),
    ("-READONLY ", Says::Loading),
    ("-NOSCRIPT ", Says::NoScript),
    ("-ERR the connection on which keys were watched is lost;", Says::Unwatched),
    ("-EXECABORT Transaction discarded because of", Says::Unwatched),
    ("-ERR the node's answer does not fit", Says::Doubt),
    ("-ERR the nodes were changed meanwhile; try again", Says::Changed),
    ("-CROSSSLOT Watched keys and the transaction's keys", Says::Changed),
    ("-UNBLOCKED ", Says::Changed),
    ("is not configured any more", Says::Changed),
    ("was changed", Says::Changed),
    ("could not be reached (", Says::Refused),
    ("is not available", Says::Unsent),
    ("-TRYAGAIN the nodes could not be asked whether they have the command", Says::Closed),
    ("closed the connection", Says::Closed),
    ("broke the connection", Says::Closed),
    ("the command may or may not have been executed", Says::Closed),
];

/// A node that dies and comes back.
pub(super) const DEATH: &[Says] = &[
    Says::Late,
    Says::Unasked,
    Says::Refused,
    Says::Unsent,
    Says::Closed,
    Says::Overloaded,
    Says::Loading,
    Says::NoScript,
    Says::Unwatched,
    Says::Doubt,
];
/// One that says nothing: its connections may be given up, and others can be made.
pub(super) const SILENCE: &[Says] =
    &[Says::Late, Says::Unasked, Says::Unsent, Says::Closed, Says::Overloaded, Says::Unwatched, Says::Doubt];
/// One whose connections end, and that has others to give.
pub(super) const DISCONNECT: &[Says] =
    &[Says::Late, Says::Unasked, Says::Unsent, Says::Closed, Says::Overloaded, Says::Unwatched, Says::Doubt];
/// The same, and it has no others to give.
pub(super) const FULL: &[Says] = &[
    Says::Late,
    Says::Unasked,
    Says::Unsent,
    Says::Closed,
    Says::Full,
    Says::Overloaded,
    Says::Unwatched,
    Says::Doubt,
];
/// Another server is the node.
pub(super) const MOVE: &[Says] = &[Says::Changed, Says::Closed, Says::NoScript, Says::Unwatched, Says::Overloaded];
/// Nothing more is sent to it.
pub(super) const DRAIN: &[Says] = &[Says::Drained, Says::Unasked, Says::Changed, Says::Unwatched, Says::Closed];
/// It has another address, of the same server: what was being passed on to the former one is given up.
pub(super) const ADDRESS: &[Says] = &[Says::Changed];
/// Clients are not to be told of it.
pub(super) const NOTHING: &[Says] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart_by_their_words() {
        for (error, says) in [
            ("-ERR node a did not answer within 250 ms; the command may or may not have been executed", Says::Late),
            ("-ERR node a is not available: could not be reached (refused); the command was not sent", Says::Refused),
            ("-ERR node a is not available: closed the connection; the command was not sent", Says::Unsent),
            ("-ERR node a is not available: it was drained by an operator; the command was not sent", Says::Drained),
            ("-ERR node a closed the connection; the command may or may not have been executed", Says::Closed),
            ("-ERR node a is not available: ERR max number of clients reached; the command was not sent", Says::Full),
            ("-ERR node a closed the connection; the transaction was not executed", Says::Closed),
            ("-EXECABORT Transaction discarded because of previous errors.", Says::Unwatched),
        ] {
            assert_eq!(Says::of(error), Some(says), "{error}");
        }
        assert_eq!(Says::of("-WRONGTYPE x"), None);
    }
}
