//! Channels that clients have given up, while messages for them may still be on their way.
//!
//! A client that gives a channel up is told so behind what was published before. The node sends that on the push lane ahead of
//! its acknowledgement, or of its answer to a PING where other clients of the worker keep the channel. Until then the client
//! is here, and the messages that come are passed on to it.
//!
//! ```text
//!   UNSUBSCRIBE news --> node: UNSUBSCRIBE news, or PING
//!        |                          |
//!     [here] <-- message news <-----|   passed on
//!        '------ acknowledged <-----'   told: unsubscribe news
//! ```

use respool_connection::push::frame::Kind;
use std::collections::BTreeSet;

/// One channel of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PendingUnsubscribe {
    pub(crate) kind: Kind,
    /// The channel's number as nodes are told of it.
    pub(crate) told: u32,
    /// The client's number.
    pub(crate) subscriber: u32,
    /// The channel's number as the client calls it.
    pub(crate) id: u32,
}

/// All such channels of a worker's clients.
#[derive(Debug, Default)]
pub(crate) struct PendingUnsubscribes(BTreeSet<PendingUnsubscribe>);

impl PendingUnsubscribes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether it was not there before.
    pub(crate) fn begin(&mut self, departure: PendingUnsubscribe) -> bool {
        self.0.insert(departure)
    }

    pub(crate) fn end(&mut self, departure: PendingUnsubscribe) -> bool {
        self.0.remove(&departure)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The clients that are still to get the messages of a channel.
    pub(crate) fn of(&self, kind: Kind, told: u32) -> impl Iterator<Item = PendingUnsubscribe> + '_ {
        let at = |subscriber, id| PendingUnsubscribe { kind, told, subscriber, id };
        self.0.range(at(0, 0)..=at(u32::MAX, u32::MAX)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departure(told: u32, subscriber: u32, id: u32) -> PendingUnsubscribe {
        PendingUnsubscribe { kind: Kind::Channel, told, subscriber, id }
    }

    #[test]
    fn messages_go_to_the_clients_that_leave_this_channel_alone() {
        let mut pending = PendingUnsubscribes::default();
        let all = [departure(1, u32::MAX, 4), departure(1, 0, 0), departure(2, 3, 4), departure(0, 3, 4)];
        all.into_iter().for_each(|one| assert!(pending.begin(one)));
        assert!(
            pending.begin(PendingUnsubscribe { kind: Kind::Pattern, ..all[0] }),
            "a pattern has numbers of its own"
        );
        assert_eq!(pending.of(Kind::Channel, 1).collect::<Vec<_>>(), [all[1], all[0]]);
        assert_eq!(pending.of(Kind::Shard, 1).count(), 0);
    }

    #[test]
    fn a_departure_begins_and_ends_once() {
        let mut pending = PendingUnsubscribes::default();
        let one = departure(1, 2, 3);
        assert!(pending.begin(one));
        assert!(!pending.begin(one));
        assert!(pending.end(one));
        assert!(!pending.end(one));
        assert!(pending.is_empty());
    }
}
