//! The bound of the table of tracked keys, and the eviction of keys beyond it.
//!
//! The bound is Redis' `tracking-table-max-keys`, for each worker's table: from the settings, or from a later CONFIG SET of
//! a client that all nodes have taken. An evicted key is invalidated for its readers as if it had changed. If the bound is lowered by a million, keys
//! are evicted in slices, with requests of other clients between them.

use crate::config::Config;
use crate::env::Env;
use crate::ids::ClientId;
use crate::integer::integer;
use crate::limits::{STRUCK_OUT_PER_TURN_MAX, TRACKED_BYTES_MAX, TRACKED_SHARE_DIVISOR};
use crate::push::subscriptions::TrackedKeys;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, JointReply, TaskReply};
use crate::session::Flow;
use crate::session::table::Clients;
use crate::tracking::Subscriptions;
use crate::tracking::table::{TableBounds, TrackingTable};
use crate::workers::shared::Shared;
use respool_command::{Execute, Row};
use respool_route::Gather;
use respool_wire::{Args, encode_request};
use std::sync::Arc;
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

/// A CONFIG SET of the bound on its way to the nodes.
#[derive(Debug)]
pub(crate) struct TrackedKeysBound {
    reply: JointReply,
    keys_max: usize,
    is_refused: bool,
}

impl InternalTask for TrackedKeysBound {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.is_refused |= reply.kind.is_error();
        self.reply.take(reply, clients)
    }
}

/// The bound that a CONFIG SET sets, if it sets one.
fn bound_in(pairs: Args<'_>) -> Option<usize> {
    let places = (0..pairs.len().saturating_sub(1)).step_by(2);
    let mut values =
        places.filter(|place| pairs.at(*place).eq_ignore_ascii_case(NAME)).map(|place| pairs.at(place + 1));
    values.next_back().and_then(integer).and_then(|count| usize::try_from(count).ok())
}

impl<E: Execute> Env<E> {
    /// A permitted CONFIG SET of the bound: it holds here once all nodes have taken it, which track keys for clients with connections of
    /// their own. `None`: it is about something else, or goes to no node.
    pub(crate) fn set_tracked_keys_max(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let keys_max = bound_in(args.from(2))?;
        let nodes = self.nodes_of(index, row, args);
        let class = self.clients.sessions.at(index)?.class;
        if nodes.is_empty() {
            return None;
        }
        let Some(asker) = self.clients.expect_reply(index) else { return Some(Flow::Stop) };
        let mut gather = Gather::new();
        gather.begin_all(row, args, nodes.len(), 0);
        let config = Arc::clone(&self.config);
        gather.name_parts(|part| &config.nodes[nodes[part].index()].name);
        let reply = JointReply { asker, gather };
        let task = self.tasks.begin(TrackedKeysBound { reply, keys_max, is_refused: false });
        let mut fullest = None;
        for (part, node) in nodes.into_iter().enumerate() {
            let lane = self.lanes.lane(&self.config, node, class);
            self.send_for_task(task, part as u16, lane, |out| encode_request(out, args.iter()));
            fullest = Some(self.lanes.fuller(fullest, lane));
        }
        Some(self.keep_pace_of_all(index, fullest, args))
    }

    /// All nodes have answered.
    pub(crate) fn conclude_tracked_keys_max(&mut self, bound: &TrackedKeysBound) {
        if !bound.is_refused {
            self.shared.tracked_keys_said.store(bound.keys_max.saturating_add(1), Ordering::Relaxed);
            self.is_busy = true;
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
    use super::*;
    use crate::testing::{env_with_node, request};
    use respool_wire::ReplyKind;

    /// What the bound is once a node has answered a CONFIG SET so.
    fn bound(said: &str, kind: ReplyKind, reply: &[u8]) -> usize {
        let mut env = env_with_node();
        env.shared.tracked_keys_said.store(8, Ordering::Relaxed);
        let keys_max = request(&format!("CONFIG SET {said}"), |_, args| bound_in(args.from(2)));
        if let Some(keys_max) = keys_max {
            let mut gather = Gather::new();
            request(&format!("CONFIG SET {said}"), |row, args| gather.begin_all(row, args, 1, 0));
            let reply_to_none = JointReply { asker: None, gather };
            let mut task = TrackedKeysBound { reply: reply_to_none, keys_max, is_refused: false };
            let progress = task.handle_reply(TaskReply { step: 0, kind, bytes: reply }, &mut env.clients);
            assert_eq!(progress, Progress::Through);
            env.conclude_tracked_keys_max(&task);
        }
        env.shared.tracked_keys_max(&env.config)
    }

    #[test]
    fn the_bound_is_the_one_that_was_said_last_and_none_is_none() {
        for (said, expected) in [
            ("tracking-table-max-keys 9", 9),
            ("maxmemory 5", 7),
            ("Tracking-Table-Max-Keys many", 7),
            ("tracking-table-max-keys 3 maxmemory 5 TRACKING-TABLE-MAX-KEYS 9", 9),
            ("tracking-table-max-keys 0", usize::MAX),
        ] {
            assert_eq!(bound(said, ReplyKind::Simple, b"+OK\r\n"), expected, "{said}");
            assert_eq!(bound(said, ReplyKind::Error, b"-ERR no\r\n"), 7, "{said} is refused");
        }
    }
}
