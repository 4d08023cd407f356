//! One numbered database: a table of key records, and the list of those that have a deadline.

use crate::store::pool::Handle;
use crate::store::table::Table;

/// A key that has a deadline, listed so that the active cycle finds it without looking at every key.
#[derive(Clone, Copy)]
pub(crate) struct Expiring {
    pub(crate) record: Handle,
    /// The deadline's second, so that the cycle need not touch the record before it is due. Saturated.
    pub(crate) second: u32,
}

/// See the module's text.
#[derive(Default)]
pub(crate) struct Database {
    pub(crate) table: Table,
    pub(crate) expiring: Vec<Expiring>,
    /// Where in `expiring` the active cycle goes on.
    pub(crate) swept: usize,
}

/// The coarse form of a deadline: never later than the deadline itself.
pub(crate) fn second_of(deadline_ms: i64) -> u32 {
    u32::try_from((deadline_ms / 1000).max(0)).unwrap_or(u32::MAX)
}

impl Database {
    /// Bytes that the database holds from the allocator beside its records.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.expiring.capacity() * size_of::<Expiring>()
    }
}
