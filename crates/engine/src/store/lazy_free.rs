//! Lazy free: deleted values are freed a part at a time, so that no request pays for all of a large one.

use super::pool::Handle;
use super::table::Table;
use super::weighed::Footprint;

/// The rest of a deleted value.
pub(crate) trait Drain: Footprint {
    /// Gives about `budget` parts back, and passes the records among them to `see`; how many parts beside records, and whether
    /// anything is left.
    fn drain(&mut self, budget: usize, see: &mut dyn FnMut(Handle)) -> (usize, bool);

    /// Passes every record to `see`, and returns its bytes, counted anew.
    #[cfg(debug_assertions)]
    fn walk(&self, see: &mut dyn FnMut(Handle)) -> usize;
}

/// A structure whose records are still to be freed.
enum PendingFree<R> {
    Value(R),
    /// Of a database: its records name values that have to go as well.
    Keys(Table),
}

impl<R: Drain> PendingFree<R> {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::Value(remains) => remains.memory_bytes(),
            Self::Keys(table) => table.memory_bytes(),
        }
    }
}

/// Records that wait to be freed.
pub(crate) struct Part {
    /// What it counts, its records included.
    pub(crate) count: usize,
    /// The records are those of keys.
    pub(crate) holds_keys: bool,
}

/// The structures that wait to be freed; the last is freed first.
pub(crate) struct LazyFree<R> {
    all: Vec<PendingFree<R>>,
    /// Bytes that all structures hold from the allocator beside their records.
    bytes: usize,
    /// Records and other parts freed so far.
    freed: u64,
}

impl<R> Default for LazyFree<R> {
    fn default() -> Self {
        Self { all: Vec::new(), bytes: 0, freed: 0 }
    }
}

impl<R: Drain> LazyFree<R> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many structures wait.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Frees the rest of a value later.
    pub(crate) fn push(&mut self, remains: R) {
        self.add(PendingFree::Value(remains));
    }

    /// Frees the keys of a table later, with all that they hold.
    pub(crate) fn push_keys(&mut self, table: Table) {
        self.add(PendingFree::Keys(table));
    }

    fn add(&mut self, pending: PendingFree<R>) {
        self.bytes += pending.memory_bytes();
        self.all.push(pending);
    }

    /// Takes out the values of which this does not hold, for what frees their records; keys are forgotten, whose records go there as
    /// well.
    pub(crate) fn split_off(&mut self, stays: impl Fn(&R) -> bool) -> Self {
        let mut others = Self::default();
        for pending in std::mem::take(&mut self.all) {
            self.bytes -= pending.memory_bytes();
            match pending {
                PendingFree::Value(remains) if stays(&remains) => self.push(remains),
                PendingFree::Value(remains) => others.push(remains),
                PendingFree::Keys(_) => {}
            }
        }
        others
    }

    /// Bytes that all structures hold from the allocator beside their records.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Records and other parts freed so far.
    pub(crate) fn freed(&self) -> u64 {
        self.freed
    }

    /// The records that were taken out have cost as much as so many more.
    pub(crate) fn note_cost(&mut self, records: usize) {
        self.freed += records as u64;
    }

    /// Passes every record, and whether it is that of a key, to `see`, and returns [`LazyFree::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walk(&self, see: &mut dyn FnMut(Handle, bool)) -> usize {
        let mut bytes = 0;
        for pending in &self.all {
            match pending {
                PendingFree::Value(remains) => bytes += remains.walk(&mut |record| see(record, false)),
                PendingFree::Keys(table) => {
                    table.iter().for_each(|record| see(record, true));
                    bytes += table.memory_bytes();
                }
            }
        }
        bytes
    }

    /// Takes a few records out of the last, for the caller to free. `None`: nothing is left.
    pub(crate) fn take_part(&mut self, budget: usize, records: &mut Vec<Handle>) -> Option<Part> {
        let pending = self.all.last_mut()?;
        let before = pending.memory_bytes();
        let mut see = |record| records.push(record);
        let (holds_keys, (others, is_left)) = match pending {
            PendingFree::Value(remains) => (false, remains.drain(budget, &mut see)),
            PendingFree::Keys(table) => (true, (0, table.drain_bucket(see))),
        };
        let left = if is_left { pending.memory_bytes() } else { 0 };
        self.bytes = self.bytes + left - before;
        if !is_left {
            self.all.pop();
        }
        let count = (others + records.len()).max(1);
        self.freed += count as u64;
        Some(Part { count, holds_keys })
    }
}
