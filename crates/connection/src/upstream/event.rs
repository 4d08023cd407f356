//! What a connection that is ready brings: replies to tickets, pieces of large ones, and pushes.

use respool_wire::ReplyKind;

/// What has come from a node.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a, T> {
    /// A reply, or the last piece of one.
    Reply {
        /// Of the request that it answers.
        ticket: T,
        /// The reply with its line ends, as the node sent it.
        bytes: &'a [u8],
        /// The kind of the whole reply; [`ReplyKind::Push`] if a push has ended the request, see [`crate::Ticket::is_ended_by`].
        kind: ReplyKind,
    },
    /// A piece of a large reply, in the order in which they come: more of it follows, and [`Event::Reply`] with its last bytes.
    Piece {
        /// Of the request that it answers.
        ticket: &'a T,
        /// The piece.
        bytes: &'a [u8],
    },
    /// A whole message that answers no request. It comes only where [`Pushes`] says so.
    Push {
        /// The message with its line ends.
        bytes: &'a [u8],
        /// [`ReplyKind::Push`], or with [`Pushes::Only`] whatever the node sent.
        kind: ReplyKind,
    },
}

/// What becomes of messages that answer no request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pushes {
    /// They are dropped. In RESP2 there are none: one ends the connection.
    #[default]
    Dropped,
    /// They come as [`Event::Push`], between replies.
    Delivered,
    /// As [`Self::Delivered`], and so does everything that comes while no reply is owed: in RESP2 a message of a subscription is a reply
    /// by its form. For a connection that exists to be pushed to, on which nothing is asked by [`crate::Upstream::send`].
    Only,
}
