//! One connection of the load, and what is kept for each of its requests until it is answered.

use respool_connection::{FlushPolicy, Identity, Ticket, Upstream};

/// One connection.
pub(super) struct Connection {
    pub(super) upstream: Upstream<Sent>,
    /// Its node.
    pub(super) node: usize,
    /// When the first piece of its batch was written, in a closed loop.
    pub(super) written_ns: Option<u64>,
    /// It is among those that may have something to write.
    pub(super) is_listed: bool,
    /// It was there once.
    pub(super) was_ready: bool,
    /// It was lost, and is dialled again with the next look.
    pub(super) is_to_be_dialled: bool,
}

impl Connection {
    pub(super) fn new(node: usize, identity: &Identity) -> Self {
        Self {
            upstream: Upstream::new(identity.clone(), FlushPolicy::EachTurn),
            node,
            written_ns: None,
            is_listed: false,
            was_ready: false,
            is_to_be_dialled: false,
        }
    }
}

/// A request that is not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// When it was due; 0 in a closed loop, where the time of its write counts.
    pub(super) due_ns: u64,
    /// The key that its reply has to prove.
    pub(super) key: u64,
    pub(super) operation: u16,
    /// The reply is looked at.
    pub(super) is_proven: bool,
    pub(super) is_tombstone: bool,
}

impl Ticket for Sent {
    fn tombstone() -> Self {
        Self { due_ns: 0, key: 0, operation: 0, is_proven: false, is_tombstone: true }
    }

    fn takes_pieces(&self) -> bool {
        !self.is_proven
    }
}
