//! What the ticket of a request at a node stands for.

use crate::ids::ClientId;
use respool_connection::{Seq, Ticket};

/// Whose request a ticket stands for. Handles carry a generation: a handle whose owner has gone meets another generation
/// in its place and is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A request of a client as a whole.
    Client {
        /// The client's place in the worker's table.
        index: ClientId,
        /// Which client of those that had the place.
        generation: u32,
        /// The reply's place among the client's replies.
        seq: Seq,
    },
    /// One part of a request that was split.
    Part {
        /// The place of what joins the parts in the worker's table.
        gather: u32,
        /// Which of those that had the place.
        generation: u32,
        /// The part's number.
        part: u16,
    },
    /// One request of a task of the worker's own, which reads its reply before any client does.
    Task {
        /// The task's place in the worker's table.
        task: u32,
        /// Which of those that had the place.
        generation: u32,
        /// Which of the task's requests.
        step: u16,
    },
    /// A request of a client that wants no reply: the reply is swallowed, and the client counts one less.
    Unanswered {
        /// The client's place in the worker's table.
        index: ClientId,
        /// Which client of those that had the place.
        generation: u32,
    },
    /// The reply is swallowed.
    Discard,
}

impl Ticket for Owner {
    fn tombstone() -> Self {
        Self::Discard
    }

    /// Requests of one pipeline, and the parts of one request.
    #[inline]
    fn is_of_same_sender(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Client { index, .. }, Self::Client { index: other, .. }) => index == other,
            (Self::Part { gather, .. }, Self::Part { gather: other, .. }) => gather == other,
            _ => false,
        }
    }

    /// What a client gets as it is passes through. Parts and tasks read their replies whole.
    #[inline]
    fn takes_pieces(&self) -> bool {
        matches!(self, Self::Client { .. } | Self::Unanswered { .. } | Self::Discard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slab::id_vec::Id;

    #[test]
    fn a_sender_is_a_client_or_a_request_that_was_split() {
        let client = |index, seq| Owner::Client { index: ClientId::nth(index), generation: 0, seq: Seq(seq) };
        let part = |gather, part| Owner::Part { gather, generation: 0, part };
        assert!(client(1, 2).is_of_same_sender(&client(1, 1)) && part(1, 1).is_of_same_sender(&part(1, 0)));
        assert!(!client(1, 2).is_of_same_sender(&client(2, 1)) && !part(1, 1).is_of_same_sender(&part(2, 0)));
        assert!(!client(1, 0).is_of_same_sender(&part(1, 0)) && !Owner::Discard.is_of_same_sender(&Owner::Discard));
    }

    #[test]
    fn a_ticket_is_small() {
        assert!(size_of::<Owner>() <= 16);
    }
}
