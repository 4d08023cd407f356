//! The parts of a reply to EXEC that are left.

use crate::reply::progress::ReplyMode;
use respool_command::Row;
use respool_wire::SecretArgs;
use std::collections::VecDeque;

/// One part of the reply to an EXEC that is put together here.
#[derive(Debug)]
pub(crate) enum Part {
    /// The node's replies.
    Remote(Vec<u8>),
    /// The node has selected a database.
    Select(u32),
    /// The proxy executes this, and replies.
    Local(&'static Row, SecretArgs),
}

/// The elements of an EXEC reply that are left; some are executed here. The client is not read before they are done.
#[derive(Debug)]
pub(crate) struct ExecReply {
    pub(crate) parts: VecDeque<Part>,
    /// What the client wants of replies afterwards, if none of these is wanted.
    pub(crate) restored: Option<ReplyMode>,
}
