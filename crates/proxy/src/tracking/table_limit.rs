//! The bound of the table of tracked keys, and the eviction of keys beyond it.
//!
//! The bound is Redis' `tracking-table-max-keys`, for each worker's table: from the settings, or from a later CONFIG SET of
//! a client that all nodes have taken. An evicted key is invalidated for its readers as if it had changed. If the bound is lowered by a million, keys
//! are evicted in slices, with requests of other clients between them.

use crate::config::Config;
use crate::env::Env;
use crate::limits::{STRUCK_OUT_PER_TURN_MAX, TRACKED_BYTES_MAX, TRACKED_SHARE_DIVISOR};
use crate::push::subscriptions::TrackedKeys;
use crate::session::table::Clients;
use crate::tracking::Subscriptions;
use crate::tracking::table::{TableBounds, TrackingTable};
use crate::workers::shared::Shared;
use respool_command::Execute;
use std::sync::atomic::Ordering;

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

impl Shared {
    /// The bounds of this worker's table. All workers' tables have a share of what the process may hold: to evict a key costs an invalidation
    /// of it, and all clients would wait otherwise.
    pub(super) fn table_bounds(&self, config: &Config) -> TableBounds {
        let share = config.budgets.process / TRACKED_SHARE_DIVISOR / self.workers().count().max(1);
        TableBounds { keys_max: self.tracked_keys_max(config), bytes_max: share.min(TRACKED_BYTES_MAX) }
    }

    /// The bound of the number of keys. A setting of 0 means none.
    pub(crate) fn tracked_keys_max(&self, config: &Config) -> usize {
        let said = self.tracked_keys_said.load(Ordering::Relaxed);
        let keys_max = said.checked_sub(1).unwrap_or(config.subscriptions.tracked_keys_max);
        if keys_max == 0 { usize::MAX } else { keys_max }
    }
}
