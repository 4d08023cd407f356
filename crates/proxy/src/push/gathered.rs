//! Clients whose outboxes have got messages, which are written at the end of the turn or a moment later with more
//! ([`MessageGathering`]).
//!
//! A message that is held waits for the turn in which it is held, however long that is: with an engine, for a long command. A reply to
//! the same client, or 16 KB in its outbox, end that for it.

use crate::ids::ClientId;
use respool_connection::flush::{FLUSH_LIMITS, MessageGathering};

/// Clients whose outboxes have got messages since they were written.
#[derive(Debug, Default)]
pub(crate) struct GatheredPushes {
    /// Each once, by a mark in its [`crate::push::subscriber::Subscriber`].
    pub(crate) clients: Vec<ClientId>,
    pub(crate) policy: MessageGathering,
}

impl GatheredPushes {
    /// Whether messages are held: the loop looks for more to read, or waits for nodes alone.
    #[inline]
    pub(crate) fn is_holding(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Whether an outbox of so many bytes may be held back.
    #[inline]
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        bytes < FLUSH_LIMITS.bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_outbox_is_not_held_back() {
        let gathered = GatheredPushes::default();
        assert!(!gathered.is_holding());
        assert!(gathered.takes(FLUSH_LIMITS.bytes_max - 1) && !gathered.takes(FLUSH_LIMITS.bytes_max));
    }
}
