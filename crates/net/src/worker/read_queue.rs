//! Connections that are read without a new edge, and how much is read of clients in one turn.
//!
//! What clients sent is copied into the outboxes of nodes, which are written at the end of a turn. So the bytes that are read of
//! clients in one turn bound the turn's length, the memory of those outboxes, and the time that nodes wait for their first request.
//! When a turn has read enough, clients that are ready wait for the next one, in which replies of nodes and mail come first.
//!
//! ```text
//!   edge, the turn has read enough ----> deferred: read first in the next turn
//!   a read that filled its buffer, ----> again: read behind those that an edge tells of, at least one client in each turn
//!   or Action::Resume
//! ```

use crate::limits::CLIENT_BYTES_PER_TURN;
use respool_connection::ConnId;
use std::collections::VecDeque;

/// Connections that are read although no new edge came.
#[derive(Debug, Default)]
pub(super) struct ReadQueue {
    pub(super) nodes: Vec<ConnId>,
    /// Clients of which an edge told in a turn that had read enough.
    pub(super) deferred: VecDeque<ConnId>,
    /// Clients that may have more than one read took, or may be read again.
    pub(super) again: VecDeque<ConnId>,
    /// Bytes that were read of clients in this turn.
    client_bytes: usize,
}

impl ReadQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.deferred.is_empty() && self.again.is_empty()
    }

    #[inline]
    pub(super) fn begin_turn(&mut self) {
        self.client_bytes = 0;
    }

    #[inline]
    pub(super) fn note_read(&mut self, bytes: usize) {
        self.client_bytes += bytes;
    }

    /// Whether this turn may read more of clients.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.client_bytes < CLIENT_BYTES_PER_TURN
    }
}
