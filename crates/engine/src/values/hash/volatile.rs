//! A hash of which some fields have deadlines: a table of fields, and the deadlines in order.
//!
//! A field whose deadline has passed does not exist, whether it has been removed or not: the heap knows what time it is. Removing
//! such fields is the keyspace's task, which does a bounded number at a time.

use std::collections::BTreeSet;

use crate::keyspace::key::Expiry;
use crate::store::heap::{Heap, KeyHasher};
use crate::store::listpack::Element;
use crate::store::pool::{Handle, Pool};
use crate::store::record::{self, Field};
use crate::store::table::{Place, Table};

/// The place of a hash that is in no list of hashes with deadlines.
pub(crate) const NOT_LISTED: u32 = u32::MAX;
/// Draws for a random field before the fields are counted: most fields of a hash have not expired.
const DRAWS: usize = 100;
/// Deadlines that are dropped at a time when the hash is freed.
const DROPPED_AT_ONCE: usize = 64;
/// About the bytes of one deadline in the ordered set, whose nodes are two thirds full.
const DEADLINE_COST_BYTES: usize = 20;

/// A deadline and the record of its field. The halves of the deadline are apart so that no bytes are lost to alignment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    high: i32,
    low: u32,
    record: Handle,
}

impl Due {
    fn new(deadline: i64, record: Handle) -> Self {
        Self { high: (deadline >> 32) as i32, low: deadline as u32, record }
    }

    fn deadline(self) -> i64 {
        i64::from(self.high) << 32 | i64::from(self.low)
    }
}

/// See the module documentation.
pub(crate) struct Volatile {
    table: Table,
    deadlines: BTreeSet<Due>,
    /// Position in the database's list of hashes with deadlines, or [`NOT_LISTED`].
    pub(crate) listed: u32,
}

/// Whether a field of this deadline no longer exists.
fn is_past(deadline: Option<i64>, now: i64) -> bool {
    deadline.is_some_and(|deadline| now > deadline)
}

fn hash_of(hasher: &KeyHasher, pool: &Pool, record: Handle) -> u64 {
    hasher.hash(record::field(pool, record).name)
}

impl Volatile {
    /// The fields of a table, none of which has a deadline yet.
    pub(super) fn new(table: Table) -> Self {
        Self { table, deadlines: BTreeSet::new(), listed: NOT_LISTED }
    }

    /// The table, if no field has a deadline any more.
    pub(super) fn take_table(&mut self) -> Option<Table> {
        self.deadlines.is_empty().then(|| std::mem::take(&mut self.table))
    }

    /// The number of records, those of expired fields included.
    pub(super) fn records(&self) -> usize {
        self.table.len()
    }

    /// The number of deadlines.
    pub(crate) fn deadlines(&self) -> usize {
        self.deadlines.len()
    }

    /// The number of fields.
    pub(super) fn len(&self, now: i64) -> usize {
        self.table.len() - self.past(now).count()
    }

    fn past(&self, now: i64) -> impl Iterator<Item = Due> + '_ {
        self.deadlines.iter().copied().take_while(move |due| now > due.deadline())
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        self.deadlines.first().map(|due| due.deadline())
    }

    /// Whether the deadline of some field has passed.
    pub(crate) fn has_past(&self, now: i64) -> bool {
        is_past(self.next_deadline(), now)
    }

    /// Whether the deadlines of all fields have passed.
    pub(crate) fn all_past(&self, now: i64) -> bool {
        self.deadlines.len() == self.table.len() && is_past(self.deadlines.last().map(|due| due.deadline()), now)
    }

    fn place(&self, heap: &Heap, name: &[u8]) -> Option<Place> {
        self.table.place(heap.hasher.hash(name), |handle| record::field(&heap.pool, handle).name == name)
    }

    /// The field of a name.
    pub(super) fn get<'a>(&'a self, heap: &'a Heap, name: &[u8]) -> Option<Field<'a>> {
        let hash = heap.hasher.hash(name);
        let handle = self.table.find(hash, |handle| record::field(&heap.pool, handle).name == name)?;
        let field = record::field(&heap.pool, handle);
        (!is_past(field.deadline, heap.now)).then_some(field)
    }

    /// Sets a field; returns whether it is new.
    pub(super) fn set(&mut self, heap: &mut Heap, name: &[u8], value: &[u8], expiry: Expiry) -> bool {
        let Some(place) = self.place(heap, name) else {
            let deadline = if let Expiry::At(deadline) = expiry { Some(deadline) } else { None };
            let Heap { pool, hasher, .. } = heap;
            let record = record::new_field(pool, Field { name, value, deadline });
            self.table.insert(hasher.hash(name), record, |moved| hash_of(hasher, pool, moved));
            self.note(None, record, deadline);
            return true;
        };
        let old = self.table.at(place);
        let old_deadline = record::field(&heap.pool, old).deadline;
        let is_new = is_past(old_deadline, heap.now);
        let deadline = match expiry {
            Expiry::At(deadline) => Some(deadline),
            Expiry::Keep if !is_new => old_deadline,
            Expiry::Keep | Expiry::Never => None,
        };
        let record = record::set_field(&mut heap.pool, old, Field { name, value, deadline });
        self.table.replace(place, record);
        self.note(old_deadline.map(|deadline| Due::new(deadline, old)), record, deadline);
        is_new
    }

    /// Replaces what the ordered deadlines have of a record.
    fn note(&mut self, old: Option<Due>, record: Handle, deadline: Option<i64>) {
        let new = deadline.map(|deadline| Due::new(deadline, record));
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.deadlines.remove(&old);
        }
        self.deadlines.extend(new);
    }

    /// Sets or removes the deadline of a field; returns whether the field exists.
    pub(super) fn set_deadline(&mut self, heap: &mut Heap, name: &[u8], deadline: Option<i64>) -> bool {
        let Some(place) = self.place(heap, name) else { return false };
        let old = self.table.at(place);
        let old_deadline = record::field(&heap.pool, old).deadline;
        if is_past(old_deadline, heap.now) {
            return false;
        }
        let record = record::set_field_deadline(&mut heap.pool, old, deadline);
        self.table.replace(place, record);
        self.note(old_deadline.map(|deadline| Due::new(deadline, old)), record, deadline);
        true
    }

    /// Removes a field; returns whether it existed.
    pub(super) fn remove(&mut self, heap: &mut Heap, name: &[u8]) -> bool {
        let Some(place) = self.place(heap, name) else { return false };
        let record = self.table.remove(place);
        let deadline = record::field(&heap.pool, record).deadline;
        self.note(deadline.map(|deadline| Due::new(deadline, record)), record, None);
        heap.pool.free(record);
        !is_past(deadline, heap.now)
    }

    /// Removes up to `budget` fields whose deadlines have passed, the earliest first; returns how many.
    pub(crate) fn expire(&mut self, heap: &mut Heap, budget: usize) -> usize {
        let mut removed = 0;
        while removed < budget
            && let Some(due) = self.deadlines.first().copied().filter(|due| heap.now > due.deadline())
        {
            self.deadlines.pop_first();
            let hash = hash_of(&heap.hasher, &heap.pool, due.record);
            if let Some(place) = self.table.place(hash, |handle| handle == due.record) {
                self.table.remove(place);
            }
            heap.pool.free(due.record);
            removed += 1;
        }
        removed
    }

    /// Passes every field to `see`.
    pub(super) fn each<'a>(&'a self, heap: &'a Heap, mut see: impl FnMut(Field<'a>)) {
        self.table.iter().for_each(|handle| see_field(heap, handle, &mut see));
    }

    /// Passes the fields after `cursor` to `see`, until about `count` were visited; returns the next cursor.
    pub(super) fn scan(&self, heap: &Heap, cursor: u64, count: usize, mut see: impl FnMut(Field<'_>)) -> u64 {
        self.table.scan_many(cursor, count, |handle| see_field(heap, handle, &mut see))
    }

    /// Passes a random field to `see`, each with the same chance.
    pub(super) fn random(&self, heap: &mut Heap, see: impl FnOnce(Element<'_>, Element<'_>)) {
        let is_live = |heap: &Heap, handle: Handle| !is_past(record::field(&heap.pool, handle).deadline, heap.now);
        let mut drawn = None;
        for _ in 0..DRAWS {
            drawn = self.table.random(&mut heap.random).filter(|handle| is_live(heap, *handle));
            if drawn.is_some() {
                break;
            }
        }
        if drawn.is_none() {
            let live = self.len(heap.now) as u64;
            let index = if live > 0 { heap.random.below(live) as usize } else { 0 };
            drawn = self.table.iter().filter(|handle| is_live(heap, *handle)).nth(index);
        }
        if let Some(handle) = drawn {
            let Field { name, value, .. } = record::field(&heap.pool, handle);
            see(Element::Bytes(name), Element::Bytes(value));
        }
    }

    /// Whether more records are those of expired fields than of others: a draw among all of them is likely to be in vain.
    pub(super) fn is_mostly_past(&self, now: i64) -> bool {
        2 * self.len(now) < self.records()
    }

    /// The records of the fields that are left: of those that have not expired.
    pub(super) fn live(&self, heap: &Heap) -> Vec<Handle> {
        let is_live = |handle: &Handle| !is_past(record::field(&heap.pool, *handle).deadline, heap.now);
        self.table.iter().filter(is_live).collect()
    }

    /// A copy of the fields and their deadlines, without those that have passed.
    pub(super) fn duplicate(&self, heap: &mut Heap) -> Self {
        let mut copy = Self::new(Table::default());
        for handle in self.table.iter() {
            let Field { name, value, deadline } = record::field(&heap.pool, handle);
            if !is_past(deadline, heap.now) {
                let (name, value) = (name.to_vec(), value.to_vec());
                copy.set(heap, &name, &value, deadline.map_or(Expiry::Never, Expiry::At));
            }
        }
        copy
    }

    /// Passes every record to `see`.
    #[cfg(debug_assertions)]
    pub(crate) fn each_record(&self, see: impl FnMut(Handle)) {
        self.table.iter().for_each(see);
    }

    /// Gives the records of some fields of a deleted hash to `see`; returns whether anything is left to be freed.
    pub(crate) fn drain(&mut self, see: impl FnMut(Handle)) -> bool {
        if self.table.drain_bucket(see) {
            return true;
        }
        for _ in 0..DROPPED_AT_ONCE {
            self.deadlines.pop_first();
        }
        !self.deadlines.is_empty()
    }

    /// The table of its fields' records.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Bytes held from the allocator beside the records; of the ordered deadlines as they are on average.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.table.memory_bytes() + self.deadlines.len() * DEADLINE_COST_BYTES
    }
}

fn see_field<'a>(heap: &'a Heap, handle: Handle, see: &mut impl FnMut(Field<'a>)) {
    let field = record::field(&heap.pool, handle);
    if !is_past(field.deadline, heap.now) {
        see(field);
    }
}
