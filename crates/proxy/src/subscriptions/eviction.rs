//! How many keys are remembered for the clients that track them, and who is told when there are too many.
//!
//! The bound is Redis' `tracking-table-max-keys`, of each worker's table: as the settings say, or as a client has said since with
//! CONFIG SET. A key beyond it is forgotten, and those who have read it are told as if it had changed. When the bound is
//! lowered by a million, that is done in slices, with the requests of others between them.

use super::Subscriptions;
use super::tracking::Tracked;
use crate::clients::Clients;
use crate::limits::{STRUCK_OUT_PER_TURN_MAX, TRACKED_BYTES_MAX};
use crate::local::integer;
use crate::worker::Worker;
use respool_command::Execute;
use respool_wire::Args;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The name that Redis has for the bound.
const NAME: &[u8] = b"tracking-table-max-keys";

/// What a client has said of the bound, for all workers.
#[derive(Debug)]
pub(crate) struct Said(AtomicUsize);

/// Nothing has been said.
const UNSAID: usize = usize::MAX;

impl Default for Said {
    fn default() -> Self {
        Self(AtomicUsize::new(UNSAID))
    }
}

impl Tracked {
    /// Whether more keys are remembered than may be.
    pub(super) fn is_too_large(&self, keys_max: usize) -> bool {
        self.keys.len() > keys_max || self.bytes() > TRACKED_BYTES_MAX
    }
}

impl Subscriptions {
    /// Forgets keys while there are too many, `most` at most.
    pub(super) fn evict(&mut self, keys_max: usize, most: usize, clients: &mut Clients) {
        for _ in 0..most {
            let Some(victim) = self.tracked.next_victim(keys_max) else { return };
            self.invalidate_key(victim, clients);
        }
    }
}

impl<E: Execute> Worker<E> {
    /// The bound of this worker's table. 0 says that there is none.
    pub(super) fn tracked_keys_max(&self) -> usize {
        let said = self.shared.tracked_keys_said.0.load(Ordering::Relaxed);
        let keys_max = if said == UNSAID { self.config.subscriptions.tracked_keys_max } else { said };
        if keys_max == 0 { usize::MAX } else { keys_max }
    }

    /// Whether keys are to be forgotten.
    pub(super) fn has_tracked_too_many(&self) -> bool {
        self.subscriptions.tracked.keys.len() > 0 && self.subscriptions.tracked.is_too_large(self.tracked_keys_max())
    }

    /// Forgets some keys at the end of a turn if there are too many.
    #[inline]
    pub(crate) fn evict_tracked(&mut self) {
        if self.has_tracked_too_many() {
            self.evict_some();
        }
    }

    #[cold]
    fn evict_some(&mut self) {
        let keys_max = self.tracked_keys_max();
        self.subscriptions.evict(keys_max, STRUCK_OUT_PER_TURN_MAX, &mut self.clients);
        self.account_subscriptions();
    }

    /// A CONFIG SET that clients may send: what it says of the bound holds here, and at the nodes, which remember keys for clients with
    /// connections of their own.
    pub(crate) fn note_tracked_keys_max(&mut self, pairs: Args<'_>) {
        for place in (0..pairs.len().saturating_sub(1)).step_by(2) {
            if pairs.at(place).eq_ignore_ascii_case(NAME)
                && let Some(keys_max) = integer(pairs.at(place + 1)).and_then(|count| usize::try_from(count).ok())
            {
                self.shared.tracked_keys_said.0.store(keys_max.min(UNSAID - 1), Ordering::Relaxed);
                self.is_busy = true;
            }
        }
    }
}
