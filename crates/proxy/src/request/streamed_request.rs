//! A large request that a connection is being sent while it arrives: what is known of it. See [`crate::session::large_request`].

use crate::ids::ClientHandle;
use respool_command::Row;
use respool_connection::Seq;
use respool_wire::{ArgsBuf, RequestTail};

/// What a lane knows of the request that is being passed on over it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamedRequest {
    pub(crate) client: ClientHandle,
    /// The place of its reply among the client's.
    pub(crate) seq: Seq,
    /// What waited when it was looked at last, in bytes.
    pub(crate) seen_bytes: usize,
    /// When that last changed.
    pub(crate) moved_us: u64,
}

/// What its client knows of it.
#[derive(Debug)]
pub(crate) struct StreamedHead {
    /// The way to its end.
    pub(crate) tail: RequestTail,
    pub(crate) row: &'static Row,
    /// Its arguments up to its key, as the client said them, and as the node was sent them if the key has another name there.
    pub(crate) said: ArgsBuf,
    pub(crate) sent: Option<ArgsBuf>,
}

impl StreamedHead {
    /// Memory held for it.
    pub(crate) fn held_bytes(&self) -> usize {
        self.said.capacity() + self.sent.as_ref().map_or(0, ArgsBuf::capacity)
    }
}
