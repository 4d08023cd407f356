//! Hashes with deadlines of fields: the list of them, and removing fields whose deadlines have passed.
//!
//! Every look-up of such a hash removes a bounded number of fields first, and the whole key if no field is left. Fields beyond the
//! bound are only skipped by reads, and removed by the active cycle.

use super::database::Expiring;
use super::expiry::Swept;
use super::{At, Found, Handle, KeyRecord, Keyspace, Kind, Value, events, second_of};
use crate::limits;
use crate::values::hash::NOT_LISTED;
use crate::values::{Hash, Object, Volatile};

impl Keyspace {
    fn volatile(&self, record: KeyRecord<'_>) -> Option<&Volatile> {
        match record.value() {
            Value::Object(Kind::Hash, number) => match self.objects.get(number)? {
                Object::Hash(hash) => hash.volatile(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The hash of a record, for what takes and frees no memory.
    fn hash_mut(&mut self, record: Handle) -> Option<&mut Hash> {
        match KeyRecord::new(self.heap.pool.get(record)).value() {
            Value::Object(Kind::Hash, number) => match self.objects.get_mut_in_place(number)? {
                Object::Hash(hash) => Some(hash),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a key no longer exists although its record does.
    pub(super) fn is_past(&self, record: KeyRecord<'_>, now: i64) -> bool {
        record.may_be_due() && (record.is_due(now) || self.volatile(record).is_some_and(|hash| hash.all_past(now)))
    }

    /// The same of a key that has been found.
    pub(crate) fn has_passed(&self, found: Found, now: i64) -> bool {
        self.is_past(self.record(found), now)
    }

    /// Lists a hash after its fields or deadlines have changed, or the record of its key.
    pub(super) fn list_hash(&mut self, database: usize, record: Handle) {
        let Some(hash) = self.hash_mut(record) else { return };
        let Some(volatile) = hash.volatile_mut() else { return };
        let (listed, next) = (volatile.listed, volatile.next_deadline());
        let Some(next) = next else {
            self.unlist_hash(database, record);
            if let Value::Object(_, number) = KeyRecord::new(self.heap.pool.get(record)).value() {
                self.objects.edit(number, |object| {
                    if let Object::Hash(hash) = object {
                        hash.settle();
                    }
                });
            }
            return;
        };
        let entry = Expiring { record, second: second_of(next) };
        if listed != NOT_LISTED {
            self.note_deadline(entry.second);
            self.databases[database].hashes.entries[listed as usize] = entry;
            return;
        }
        let listed = self.push_deadline(database, |database| &mut database.hashes, entry);
        if let Some(volatile) = self.hash_mut(record).and_then(Hash::volatile_mut) {
            volatile.listed = listed;
        }
    }

    /// Takes a hash out of the list, before its key goes or gets another value.
    pub(super) fn unlist_hash(&mut self, database: usize, record: Handle) {
        let Some(volatile) = self.hash_mut(record).and_then(Hash::volatile_mut) else { return };
        let listed = std::mem::replace(&mut volatile.listed, NOT_LISTED);
        if listed == NOT_LISTED {
            return;
        }
        if let Some(moved) = self.remove_deadline(database, |database| &mut database.hashes, listed)
            && let Some(volatile) = self.hash_mut(moved.record).and_then(Hash::volatile_mut)
        {
            volatile.listed = listed;
        }
    }

    /// Removes up to `budget` fields whose deadlines have passed, and the key if no field is left; returns how many fields were
    /// removed, `None` if the key was.
    pub(super) fn expire_fields(&mut self, at: At, found: Found, budget: usize) -> Option<usize> {
        let Some(volatile) = self.volatile(self.record(found)).filter(|volatile| volatile.has_past(at.now)) else {
            return Some(0);
        };
        if volatile.all_past(at.now) {
            let fields = volatile.deadlines();
            self.counters.expired_fields += fields as u64;
            self.notify_of(at.database, events::HEXPIRED, found);
            self.delete_uncounted(at.database, found);
            return None;
        }
        let count = self.edit_object(found, |object, heap| match object {
            Object::Hash(hash) => hash.volatile_mut().map_or(0, |volatile| volatile.expire(heap, budget)),
            _ => 0,
        })?;
        self.counters.expired_fields += count as u64;
        self.notify_of(at.database, events::HEXPIRED, found);
        self.note_uncounted(at.database, found);
        self.list_hash(at.database, found.record);
        Some(count)
    }

    /// The active cycle's turn at a listed hash.
    pub(super) fn expire_hash(&mut self, at: At, record: Handle) -> Swept {
        let key = KeyRecord::new(self.heap.pool.get(record)).key().to_vec();
        let Some(found) = self.place_of(at.database, &key) else { return Swept { count: 0, is_listed: true } };
        let Some(count) = self.expire_fields(at, found, limits::EXPIRED_AT_ONCE) else {
            return Swept { count: 1, is_listed: false };
        };
        let is_listed = self.volatile(self.record(found)).is_some();
        Swept { count, is_listed }
    }
}
