//! Deadlines: setting, dropping, and the active cycle that removes keys nobody asks for.

use super::{At, Database, Deadline, Expiring, Found, KeyDraft, KeyRecord, Keyspace, key, second_of};
use crate::limits;

impl Keyspace {
    /// Gives a key a deadline in milliseconds since the Unix epoch.
    pub(crate) fn set_deadline(&mut self, at: At, key: &[u8], moment: i64) {
        let Some(found) = self.place_of(at.database, key) else { return };
        if let Some(old) = self.record(found).deadline() {
            key::set_deadline(self.heap.pool.get_mut(found.record), Deadline { at: moment, ..old });
            self.databases[at.database].expiring[old.listed as usize].second = second_of(moment);
            return;
        }
        let listed = self.databases[at.database].expiring.len() as u32;
        self.databases[at.database].expiring.push(Expiring { record: found.record, second: second_of(moment) });
        let record = self.rewrite_with(at.database, found, Some(Deadline { at: moment, listed }));
        self.databases[at.database].expiring[listed as usize].record = record;
    }

    /// Takes the key's deadline away; whether it had one.
    pub(crate) fn clear_deadline(&mut self, database: usize, found: Found) -> bool {
        let Some(deadline) = self.record(found).deadline() else { return false };
        self.unlist(database, deadline.listed);
        self.rewrite_with(database, found, None);
        true
    }

    fn rewrite_with(&mut self, database: usize, found: Found, deadline: Option<Deadline>) -> super::Handle {
        let old = self.heap.pool.get(found.record).to_vec();
        let old = KeyRecord::new(&old);
        let draft = KeyDraft { key: old.key(), value: old.value(), deadline, clock: old.clock() };
        self.rewrite(database, found, draft)
    }

    /// Takes an entry out of the list of deadlines; the last one moves into its place.
    pub(super) fn unlist(&mut self, database: usize, listed: u32) {
        let Database { expiring, .. } = &mut self.databases[database];
        expiring.swap_remove(listed as usize);
        if let Some(moved) = expiring.get(listed as usize) {
            let bytes = self.heap.pool.get_mut(moved.record);
            if let Some(deadline) = KeyRecord::new(bytes).deadline() {
                key::set_deadline(bytes, Deadline { listed, ..deadline });
            }
        }
        if expiring.capacity() > limits::EXPIRING_SLACK && expiring.len() * 4 < expiring.capacity() {
            expiring.shrink_to(expiring.len() * 2);
        }
    }

    /// Removes a key whose time has come.
    pub(super) fn expire(&mut self, database: usize, found: Found) {
        self.counters.expired_keys += 1;
        self.remove(database, found);
    }

    /// One turn of the active cycle. Looks at a bounded number of deadlines per database and goes on where it left off;
    /// as long as many of them are due, it looks at more. Whether it wants to go on at once.
    pub(crate) fn sweep(&mut self, now: i64) -> bool {
        let mut wants_more = false;
        for database in 0..self.databases.len() {
            wants_more |= self.sweep_database(database, now);
        }
        wants_more
    }

    fn sweep_database(&mut self, database: usize, now: i64) -> bool {
        let this_second = second_of(now);
        let (mut looked, mut expired) = (0, 0);
        let round = self.databases[database].expiring.len();
        while looked < round.min(limits::SWEPT_AT_ONCE) {
            let Database { expiring, swept, .. } = &mut self.databases[database];
            looked += 1;
            if *swept >= expiring.len() {
                *swept = 0;
            }
            let Some(&Expiring { record, second }) = expiring.get(*swept) else { return false };
            if second > this_second {
                *swept += 1;
                continue;
            }
            let (key, deadline) = {
                let record = KeyRecord::new(self.heap.pool.get(record));
                (record.key().to_vec(), record.deadline())
            };
            let is_due = deadline.is_some_and(|deadline| now > deadline.at);
            match self.place_of(database, &key).filter(|_| is_due) {
                // The last entry has moved here and is looked at next.
                Some(found) => {
                    self.expire(database, found);
                    expired += 1;
                    if expired >= limits::EXPIRED_AT_ONCE {
                        return true;
                    }
                }
                None => self.databases[database].swept += 1,
            }
        }
        round > limits::SWEPT_AT_ONCE && expired * 10 > looked
    }

    /// Whether some key has a deadline.
    pub(crate) fn has_deadlines(&self) -> bool {
        self.databases.iter().any(|database| !database.expiring.is_empty())
    }
}
