//! How keys and values go. What a key held is freed little by little, so that no request pays for all of it.

use super::key::KeyRecord;
use super::{Database, Found, Keyspace, Value, events};
use crate::limits;
use crate::store::pool::Handle;
use crate::values::{Everything, Object, Remains};

impl Keyspace {
    /// Frees what the record names, so that another value can take its place.
    #[inline]
    pub(super) fn forget_value(&mut self, found: Found) {
        self.bury_value(found.record);
        if !self.lazy_free.is_empty() {
            self.reap(limits::REAPED_AT_ONCE);
        }
    }

    /// Frees a value that no key holds. A large one is freed little by little, so that no request pays for all of it.
    pub(crate) fn discard(&mut self, object: Object) {
        let is_large = object.free_effort() > limits::LARGE_EFFORT;
        if let Some(remains) = object.into_remains() {
            self.counters.freed_slowly += u64::from(is_large);
            self.lazy_free.push(remains);
            self.reap(limits::REAPED_AT_ONCE);
        }
    }

    /// Frees about `budget` records of what was forgotten; whether some are left.
    pub(crate) fn reap(&mut self, budget: usize) -> bool {
        let (mut freed, mut records) = (0, Vec::new());
        while freed < budget {
            let Some(part) = self.lazy_free.take_part(budget - freed, &mut records) else { return false };
            let before = self.heap.pool.used_bytes();
            for record in records.drain(..) {
                if part.holds_keys {
                    self.bury_value(record);
                }
                self.heap.pool.free(record);
            }
            let cost = limits::records_like(before - self.heap.pool.used_bytes());
            self.lazy_free.note_cost(cost);
            freed += part.count + cost;
        }
        !self.lazy_free.is_empty()
    }

    /// Forgets what a key's record names.
    pub(super) fn bury_value(&mut self, record: Handle) {
        match KeyRecord::new(self.heap.pool.get(record)).value() {
            Value::Integer(_) | Value::Short(_) | Value::Raw(_) => {}
            Value::Long(handle) => self.heap.pool.free(handle),
            Value::Object(_, number) => {
                let Some(object) = self.objects.take(number) else { return };
                let is_large = object.free_effort() > limits::LARGE_EFFORT;
                if let Some(remains) = object.into_remains() {
                    self.counters.freed_slowly += u64::from(is_large);
                    self.lazy_free.push(remains);
                }
            }
        }
    }

    /// Removes a key and what it holds, for something else to take its place: the change is counted where that is put.
    #[inline]
    pub(crate) fn remove(&mut self, database: usize, found: Found) {
        self.note_uncounted(database, found);
        self.remove_unnoted(database, found);
    }

    /// Removes a key and what it holds. What wants to know of changes has been told.
    #[inline]
    pub(super) fn remove_unnoted(&mut self, database: usize, found: Found) {
        self.signal_loss(database, found);
        self.unlist_hash(database, found.record);
        self.forget_value(found);
        self.forget_key(database, found);
    }

    /// Removes a key for good: clients are told that it is deleted.
    pub(crate) fn delete(&mut self, database: usize, found: Found) {
        self.counters.changes += 1;
        self.delete_uncounted(database, found);
    }

    /// The same for what no request has changed, and behind an edit that has been counted.
    pub(super) fn delete_uncounted(&mut self, database: usize, found: Found) {
        self.notify_of(database, events::DEL, found);
        self.remove(database, found);
    }

    /// Deletes a key because what would be stored there is empty. As in Redis, a key whose time has come is deleted, too.
    pub(crate) fn clear(&mut self, database: usize, key: &[u8]) {
        if let Some(found) = self.place_of(database, key) {
            self.delete(database, found);
        }
    }

    /// Removes a key but not the object or long string that it names.
    pub(super) fn forget_key(&mut self, database: usize, found: Found) {
        self.check(database, found);
        if let Some(deadline) = self.record(found).deadline() {
            self.unlist(database, deadline.listed);
        }
        let table = &mut self.databases[database].table;
        let shape = table.shape();
        table.remove(found.place);
        if table.shape() != shape {
            self.count_tables(database);
        }
        self.heap.pool.free(found.record);
    }

    /// Removes the key if an edit has emptied the object it holds.
    pub(crate) fn remove_if_empty(&mut self, database: usize, found: Found) {
        if self.object(found).is_some_and(|object| object.len() == 0) {
            self.delete_uncounted(database, found);
        }
    }

    /// Forgets all keys of one database.
    pub(crate) fn flush(&mut self, database: usize) {
        self.journal.note_everything();
        self.spoil_all(database);
        let emptied = std::mem::take(&mut self.databases[database]);
        self.counters.changes += emptied.table.len() as u64 + 1;
        self.table_bytes -= emptied.counted_bytes;
        self.lazy_free.push_keys(emptied.table);
        self.reap(limits::REAPED_AT_ONCE);
        self.signal_all(database);
    }

    /// Forgets everything. No record is looked at, and what there is of memory is freed little by little.
    pub(crate) fn flush_all(&mut self) {
        self.journal.note_everything();
        (0..self.databases.len()).for_each(|database| self.spoil_all(database));
        let keys: usize = self.databases.iter().map(|database| database.table.len()).sum();
        self.counters.changes += keys as u64 + 1;
        self.databases.iter_mut().for_each(|database| *database = Database::default());
        self.table_bytes = 0;
        let lazy_free = self.lazy_free.split_off(|remains| matches!(remains, Remains::Everything(_)));
        let (pool, objects) = (std::mem::take(&mut self.heap.pool), std::mem::take(&mut self.objects));
        self.lazy_free.push(Remains::Everything(Box::new(Everything::new(pool, objects, lazy_free))));
        self.reap(limits::REAPED_AT_ONCE);
        (0..self.databases.len()).for_each(|database| self.signal_all(database));
    }
}

#[cfg(test)]
mod tests {
    use respool_command::{Execute, Millis};

    use crate::transcript::Script;

    #[test]
    fn a_key_counts_once_for_each_request_that_changes_it() {
        let mut script = Script::new();
        let setup = "RPUSH l a;SADD s a;HSET h a 1;ZADD z 1 a;RPUSH m a;RPUSH n a;SET a 1;SET b 2;SET c 3";
        setup.split(';').for_each(|line| _ = script.say(line));
        let counted = |script: &Script| script.engine.counters().changes;
        assert_eq!(counted(&script), 9);
        for (request, changes) in [
            ("LPOP l", 1),
            ("SPOP s", 1),
            ("HDEL h a", 1),
            ("ZREM z a", 1),
            ("ZPOPMIN z", 0),
            // Two keys change.
            ("LMOVE m n LEFT LEFT", 2),
            ("RENAME a b", 1),
            ("DEL b nothing", 1),
            ("EXPIRE c -1", 1),
        ] {
            let before = counted(&script);
            let said = script.say(request);
            assert_eq!(counted(&script) - before, changes, "{request}: {said}");
        }
        // What expires is changed by no request.
        script.say("HSET h a 1 b 2");
        script.say("HPEXPIRE h 5 FIELDS 2 a b");
        script.say("SET passing v PX 5");
        let before = counted(&script);
        script.session.now.0 += 6;
        script.engine.tick(Millis(script.session.now.0));
        assert_eq!((script.say("DBSIZE"), counted(&script)), (":1".to_owned(), before));
    }
}
