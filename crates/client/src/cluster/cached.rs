//! The caches of a cluster: one for each node that has slots, which hears of changes of the keys that the node has.
//!
//! A node that gives a slot away tells that the slot's keys have changed, since it deletes them, and says nothing of them from then on. So
//! what was read at a node is for as long as the table says that it has the slot: a reader looks whether there is a new table first, and what was
//! read of slots that are elsewhere in it is forgotten. A key that was not there at its node is not known elsewhere, and is not kept.

use super::{Cluster, Table};
use crate::cache::{CacheStats, Caching, Membership, Shared};
use crate::topology::Node;
use respool_route::cluster::slot_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The caches of a cluster.
#[derive(Debug)]
pub(crate) struct Caches {
    cluster: Arc<Cluster>,
    caching: Caching,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// By which the caches hold what they hold.
    table: Arc<Table>,
    nodes: Vec<(Arc<Node>, Arc<Shared>)>,
    /// What those of nodes that have no slots any longer have done.
    gone: CacheStats,
}

/// Whether a slot is at the same node in both tables.
fn stays(slot: u16, old: &Table, new: &Table) -> bool {
    match (old.shard_of(slot), new.shard_of(slot)) {
        (Some(old), Some(new)) => Arc::ptr_eq(&old.primary, &new.primary),
        _ => false,
    }
}

impl Caches {
    pub(crate) fn new(cluster: &Arc<Cluster>, caching: Caching) -> Arc<Self> {
        let state = State { table: cluster.table(), nodes: Vec::new(), gone: CacheStats::default() };
        Arc::new(Self { cluster: Arc::clone(cluster), caching, state: Mutex::new(state) })
    }

    /// The cluster.
    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cache of the node that has a key; `None` if no node is known for it, or if the node cannot be reached.
    pub(crate) fn of(&self, key: &[u8]) -> Option<Arc<Shared>> {
        let slot = slot_of(key);
        let mut state = self.lock();
        state.follow(&self.cluster.table(), &self.caching);
        let table = Arc::clone(&state.table);
        let node = &table.shard_of(slot)?.primary;
        if node.is_down() {
            return None;
        }
        if let Some((_, cache)) = state.nodes.iter().find(|(other, _)| Arc::ptr_eq(other, node)) {
            return Some(Arc::clone(cache));
        }
        let membership = Membership { cluster: Arc::downgrade(self.cluster.shared()), address: node.address() };
        let caching = self.caching.clone().bytes(self.caching.share(table.shards().len()));
        let cache = Shared::new(node.core.config.clone(), caching, Some(membership));
        self.cluster.config.caches.add(&cache);
        if self.cluster.is_closed() {
            cache.close();
        }
        state.nodes.push((Arc::clone(node), Arc::clone(&cache)));
        Some(cache)
    }

    /// Those that there are.
    pub(crate) fn each(&self) -> Vec<Arc<Shared>> {
        self.lock().nodes.iter().map(|(_, cache)| Arc::clone(cache)).collect()
    }

    /// What they have done together, and hold.
    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.lock();
        state.nodes.iter().fold(state.gone, |stats, (_, cache)| stats.with(&cache.stats()))
    }
}

impl State {
    /// The table holds from now on, if it is newer. While a table is replaced a reader may be given the old one behind another that was given the
    /// new one.
    fn follow(&mut self, table: &Arc<Table>, caching: &Caching) {
        if table.version <= self.table.version {
            return;
        }
        let old = std::mem::replace(&mut self.table, Arc::clone(table));
        let share = caching.share(table.shards().len());
        let Self { nodes, gone, .. } = self;
        nodes.retain(|(node, cache)| {
            let is_primary = table.is_primary(node);
            if is_primary {
                cache.retain(|key| stays(slot_of(key), &old, table));
                cache.resize(share);
            } else {
                // Its thread ends when the calls that wait there have gone.
                cache.forget_all();
                *gone = gone.with(&CacheStats { entries: 0, bytes: 0, ..cache.stats() });
            }
            is_primary
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_reader_that_is_given_an_older_table_takes_nothing_back() {
        let cluster = Cluster::of(&Config::from_url("redis+cluster://127.0.0.1:1").unwrap()).unwrap();
        cluster.show(&[(1, 8_191), (2, 16_383)]);
        let old = cluster.table();
        let caches = Caches::new(&cluster, Caching::new());
        cluster.show(&[(3, 8_191), (2, 16_383)]);
        let cache = caches.of(b"foo").unwrap();
        caches.lock().follow(&old, &caches.caching);
        assert!(Arc::ptr_eq(&caches.lock().table, &cluster.table()));
        assert!(caches.each().iter().any(|other| Arc::ptr_eq(other, &cache)));
        // What is newer holds.
        cluster.show(&[(1, 8_191), (2, 16_383)]);
        caches.lock().follow(&cluster.table(), &caches.caching);
        assert!(Arc::ptr_eq(&caches.lock().table, &cluster.table()));
    }
}
