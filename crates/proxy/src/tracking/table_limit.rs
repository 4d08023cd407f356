//! The bound of the table of tracked keys, and the eviction of keys beyond it.
//!
//! The bound is Redis' `tracking-table-max-keys`, for each worker's table: from the settings, or from a later CONFIG SET of
//! a client. An evicted key is invalidated for its readers as if it had changed. If the bound is lowered by a million, keys
//! are evicted in slices, with requests of other clients between them.

use crate::config::Config;
use crate::env::Env;
use crate::integer::integer;
use crate::limits::{STRUCK_OUT_PER_TURN_MAX, TRACKED_BYTES_MAX, TRACKED_SHARE_DIVISOR};
use crate::push::subscriptions::TrackedKeys;
use crate::session::table::Clients;
use crate::tracking::Subscriptions;
use crate::tracking::table::{TableBounds, TrackingTable};
use crate::workers::shared::Shared;
use respool_command::Execute;
use respool_wire::Args;
use std::sync::atomic::Ordering;

/// Redis' name of the bound.
const NAME: &[u8] = b"tracking-table-max-keys";

impl TrackingTable {
    /// Whether the table is over its bounds.
    pub(super) fn is_over_bounds(&self, bounds: TableBounds) -> bool {
        self.keys.len() > bounds.keys_max || self.key_bytes() > bounds.bytes_max
    }
}

impl Subscriptions {
    /// Evicts keys while the table is over its bounds, `most` at most.
    pub(super) fn evict(&mut self, bounds: TableBounds, most: usize, clients: &mut Clients) {
        for _ in 0..most {
            let Some(victim) = self.tracked.next_victim(bounds) else { return };
            self.invalidate_key(victim, clients);
        }
    }

    /// Evicts a slice of keys at the end of a turn if the table is over its bounds.
    #[inline]
    pub(crate) fn evict_tracked(&mut self, env: &mut Env<impl Execute>) {
        if self.tracked.is_too_large(env) {
            self.evict_some(env);
        } else if self.is_account_stale() {
            self.account_subscriptions(env);
        }
    }

    #[cold]
    fn evict_some(&mut self, env: &mut Env<impl Execute>) {
        let bounds = env.shared.table_bounds(&env.config);
        self.evict(bounds, STRUCK_OUT_PER_TURN_MAX, &mut env.clients);
        self.account_subscriptions(env);
    }
}

impl<E: Execute> Env<E> {
    /// Takes over the bound from a permitted CONFIG SET. The command goes to the nodes as well: they track keys for clients
    /// with connections of their own.
    pub(crate) fn note_tracked_keys_max(&mut self, pairs: Args<'_>) {
        for place in (0..pairs.len().saturating_sub(1)).step_by(2) {
            if pairs.at(place).eq_ignore_ascii_case(NAME)
                && let Some(keys_max) = integer(pairs.at(place + 1)).and_then(|count| usize::try_from(count).ok())
            {
                self.shared.tracked_keys_said.store(keys_max.saturating_add(1), Ordering::Relaxed);
                self.is_busy = true;
            }
        }
    }
}

impl Shared {
    /// The bounds of this worker's table. All workers' tables have a share of what the process may hold: to evict a key costs an invalidation
    /// of it, and all clients would wait otherwise.
    pub(super) fn table_bounds(&self, config: &Config) -> TableBounds {
        let share = config.budgets.process / TRACKED_SHARE_DIVISOR / self.workers().count().max(1);
        TableBounds { keys_max: self.tracked_keys_max(config), bytes_max: share.min(TRACKED_BYTES_MAX) }
    }

    /// The bound of the number of keys. A setting of 0 means none.
    fn tracked_keys_max(&self, config: &Config) -> usize {
        let said = self.tracked_keys_said.load(Ordering::Relaxed);
        let keys_max = said.checked_sub(1).unwrap_or(config.subscriptions.tracked_keys_max);
        if keys_max == 0 { usize::MAX } else { keys_max }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{env_with_node, request};

    #[test]
    fn the_bound_is_the_one_that_was_said_last_and_none_is_none() {
        let mut env = env_with_node();
        let told = env.config.subscriptions.tracked_keys_max;
        assert_eq!(env.shared.tracked_keys_max(&env.config), if told == 0 { usize::MAX } else { told });
        for (said, bound) in [
            ("tracking-table-max-keys 7", 7),
            ("maxmemory 5", 7),
            ("Tracking-Table-Max-Keys many", 7),
            ("maxmemory 5 TRACKING-TABLE-MAX-KEYS 9", 9),
            ("tracking-table-max-keys 0", usize::MAX),
        ] {
            request(&format!("CONFIG SET {said}"), |_, args| env.note_tracked_keys_max(args.from(2)));
            assert_eq!(env.shared.tracked_keys_max(&env.config), bound, "{said}");
        }
    }
}
