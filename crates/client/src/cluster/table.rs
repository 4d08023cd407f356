//! The table by which callers find a node: immutable, and read without a lock.
//!
//! A caller keeps the table that it has used last, with its version, in its thread. As long as the version is the same it compares
//! one number. A new table is taken under a lock that is held to copy a pointer.

use crate::cluster::reads::Reads;
use crate::topology::Node;
use respool_route::cluster::{Address, Health, Member, SlotMap};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// For each slot its nodes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// 0 for the table that is there before the first report.
    pub(crate) version: u64,
    map: Option<Arc<SlotMap>>,
    /// As the map numbers them.
    shards: Box<[Shard]>,
}

/// The nodes of one shard.
#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) primary: Arc<Node>,
    /// With whether they are up, as the cluster says.
    replicas: Box<[(Arc<Node>, bool)]>,
    /// One of its slots: the shard is found by it in later tables, if its primary is another then.
    pub(crate) slot: u16,
}

impl Table {
    pub(super) fn new(map: Arc<SlotMap>, mut node: impl FnMut(&Address) -> Arc<Node>) -> Self {
        let mut slots = vec![None; map.shards().len()];
        for slot in (0..respool_route::SLOTS).rev() {
            if let Some(index) = map.index_of(slot) {
                slots[index.get()] = Some(slot);
            }
        }
        let is_up = |member: &Member| member.health == Health::Online;
        let shards = map.shards().iter().zip(slots).map(|(shard, slot)| Shard {
            primary: node(&shard.primary.address),
            replicas: shard.replicas.iter().map(|member| (node(&member.address), is_up(member))).collect(),
            slot: slot.unwrap_or_default(),
        });
        Self { version: 0, shards: shards.collect(), map: Some(map) }
    }

    /// Whether there was a report.
    pub(crate) fn is_known(&self) -> bool {
        self.map.is_some()
    }

    pub(crate) fn has(&self, address: &Address) -> bool {
        self.map.iter().any(|map| map.members().any(|member| member.address == *address))
    }

    /// All shards, in the order of their first slots.
    pub(crate) fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The shard of a slot.
    #[inline]
    pub(crate) fn shard_of(&self, slot: u16) -> Option<&Shard> {
        self.shards.get(self.map.as_ref()?.index_of(slot)?.get())
    }

    /// Whether a node has slots.
    pub(super) fn is_primary(&self, node: &Arc<Node>) -> bool {
        self.shards.iter().any(|shard| Arc::ptr_eq(&shard.primary, node))
    }

    /// Any primary.
    pub(crate) fn any(&self, chance: u64) -> Option<&Arc<Node>> {
        let count = self.shards.len() as u64;
        (count > 0).then(|| &self.shards[(chance % count) as usize].primary)
    }
}

impl Shard {
    /// The node that answers a request that a replica may answer, and whether it is one of the replicas. One that cannot be reached is
    /// left out while there is another.
    pub(crate) fn reader(&self, reads: Reads, chance: u64) -> (&Arc<Node>, bool) {
        let primary = reads.weight_of_primary();
        let fit = || self.replicas.iter().filter(|(node, is_up)| *is_up && !node.is_down()).map(|(node, _)| node);
        let weight = fit().count() as u64 * reads.weight_of_replica();
        if weight == 0 {
            return (&self.primary, false);
        }
        let primary = if self.primary.is_down() { 0 } else { primary };
        let at = chance % (primary + weight);
        match at.checked_sub(primary) {
            None => (&self.primary, false),
            Some(at) => match fit().nth((at / reads.weight_of_replica()) as usize) {
                Some(node) => (node, true),
                None => (&self.primary, false),
            },
        }
    }

    /// All members, the primary first.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&Arc<Node>, bool)> {
        let replicas = self.replicas.iter().filter(|(_, is_up)| *is_up).map(|(node, _)| (node, true));
        std::iter::once((&self.primary, false)).chain(replicas)
    }
}

/// The table that holds.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Differs from that of any other client of the process.
    id: u64,
    version: AtomicU64,
    table: Mutex<Arc<Table>>,
}

/// Numbers snapshots.
static IDS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The table that this thread has used last: whose, which, and the table, which is not kept alive by it.
    static LAST: RefCell<(u64, u64, Weak<Table>)> = const { RefCell::new((u64::MAX, 0, Weak::new())) };
}

impl Default for Snapshot {
    fn default() -> Self {
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        Self { id, version: AtomicU64::new(0), table: Mutex::default() }
    }
}

impl Snapshot {
    #[inline]
    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn load(&self) -> Arc<Table> {
        let wanted = (self.id, self.version());
        let current = || Arc::clone(&self.table.lock().unwrap_or_else(PoisonError::into_inner));
        let loaded = LAST.try_with(|last| {
            let (id, version, table) = &mut *last.borrow_mut();
            if (*id, *version) == wanted
                && let Some(table) = table.upgrade()
            {
                return table;
            }
            let current = current();
            (*id, *version, *table) = (self.id, current.version, Arc::downgrade(&current));
            current
        });
        // A thread that ends has none of its own any more.
        loaded.unwrap_or_else(|_| current())
    }

    /// Only one at a time: under the lock of the refresh state.
    pub(super) fn store(&self, mut table: Arc<Table>) {
        let version = self.version() + 1;
        if let Some(table) = Arc::get_mut(&mut table) {
            table.version = version;
        }
        let mut held = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *held, table);
        drop(held);
        self.version.store(version, Ordering::Release);
        drop(old);
    }
}
