//! One numbered database: a table of key records, the list of those that have a deadline, and that of hashes whose fields have some.

use super::key::KeyRecord;
use crate::limits;
use crate::store::pool::Handle;
use crate::store::table::Table;

/// A key that has a deadline, listed so that the active cycle finds it without looking at every key.
#[derive(Clone, Copy)]
pub(crate) struct Expiring {
    pub(crate) record: Handle,
    /// The deadline's second, so that the cycle need not touch the record before it is due. Saturated.
    pub(crate) second: u32,
}

/// Keys with deadlines, in no order. Each key knows its position.
#[derive(Default)]
pub(crate) struct Deadlines {
    pub(crate) entries: Vec<Expiring>,
    /// Where in `entries` the active cycle goes on.
    pub(crate) swept: usize,
}

impl Deadlines {
    /// Adds a key; its position.
    pub(crate) fn push(&mut self, entry: Expiring) -> u32 {
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    /// Takes an entry out; the last one moves into its place and is returned.
    pub(crate) fn remove(&mut self, position: u32) -> Option<Expiring> {
        self.entries.swap_remove(position as usize);
        if self.entries.capacity() > limits::EXPIRING_SLACK && self.entries.len() * 4 < self.entries.capacity() {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        self.entries.get(position as usize).copied()
    }
}

/// See the module documentation.
#[derive(Default)]
pub(crate) struct Database {
    pub(crate) table: Table,
    /// Keys with a deadline of their own.
    pub(crate) keys: Deadlines,
    /// Hashes with deadlines of fields, each by its earliest.
    pub(crate) hashes: Deadlines,
    /// What the keyspace has counted of [`Database::memory_bytes`].
    pub(crate) counted_bytes: usize,
}

/// The coarse form of a deadline: never later than the deadline itself.
pub(crate) fn second_of(deadline_ms: i64) -> u32 {
    u32::try_from((deadline_ms / 1000).max(0)).unwrap_or(u32::MAX)
}

/// When a second begins, in milliseconds since the Unix epoch.
pub(crate) fn begin_of(second: u32) -> u64 {
    u64::from(second) * 1000
}

impl Database {
    /// Whether a key may hold fields whose deadlines have passed.
    #[inline]
    pub(crate) fn may_expire_fields(&self, record: KeyRecord<'_>) -> bool {
        record.is_hash() && !self.hashes.entries.is_empty()
    }

    /// Bytes that the database holds from the allocator beside its records.
    pub(crate) fn memory_bytes(&self) -> usize {
        let listed = self.keys.entries.capacity() + self.hashes.entries.capacity();
        self.table.memory_bytes() + listed * size_of::<Expiring>()
    }
}
