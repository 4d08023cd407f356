//! Deadlines: setting, dropping, and the active cycle that removes keys nobody asks for.

use super::{At, Database, Deadline, Expiring, Found, Handle, KeyDraft, KeyRecord, Keyspace, key, second_of};
use crate::limits;

impl Keyspace {
    /// Gives a key a deadline in milliseconds since the Unix epoch.
    pub(crate) fn set_deadline(&mut self, at: At, key: &[u8], moment: i64) {
        let Some(found) = self.place_of(at.database, key) else { return };
        self.note(at.database, found);
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
        self.note(database, found);
        self.unlist(database, deadline.listed);
        self.rewrite_with(database, found, None);
        true
    }

    fn rewrite_with(&mut self, database: usize, found: Found, deadline: Option<Deadline>) -> Handle {
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

    /// One turn of the active cycle. Looks at a bounded number of deadlines per database and goes on where it left off.
    /// Tells in how many milliseconds it wants to go on: at once while many are due, seldom while none is near.
    pub(crate) fn sweep(&mut self, now: i64) -> u64 {
        let waits = (0..self.databases.len()).map(|database| self.sweep_database(database, now));
        // Every database has its turn, whatever the first says.
        waits.fold(limits::TICK_IDLE_MS, u64::min)
    }

    fn sweep_database(&mut self, database: usize, now: i64) -> u64 {
        let this_second = second_of(now);
        let round = self.databases[database].expiring.len();
        let looks = round.min(limits::SWEPT_AT_ONCE);
        let (mut expired, mut nearest) = (0, u32::MAX);
        for _ in 0..looks {
            let Database { expiring, swept, .. } = &mut self.databases[database];
            if *swept >= expiring.len() {
                *swept = 0;
            }
            let Some(&Expiring { record, second }) = expiring.get(*swept) else { break };
            if second > this_second {
                nearest = nearest.min(second);
                *swept += 1;
                continue;
            }
            if self.expire_if_due(database, record, now) {
                // The last entry has moved here and is looked at next.
                expired += 1;
                if expired >= limits::EXPIRED_AT_ONCE {
                    return 1;
                }
            } else {
                nearest = this_second;
                self.databases[database].swept += 1;
            }
        }
        let is_whole_round = looks == round;
        match () {
            () if !is_whole_round && expired * 10 > looks => 1,
            () if !is_whole_round => limits::TICK_BUSY_MS,
            () => {
                let wait = u64::from(nearest.saturating_sub(this_second)) * 1000;
                wait.clamp(limits::TICK_BUSY_MS, limits::TICK_IDLE_MS)
            }
        }
    }

    /// Removes a listed key if its time has come; whether it had.
    fn expire_if_due(&mut self, database: usize, record: Handle, now: i64) -> bool {
        let record = KeyRecord::new(self.heap.pool.get(record));
        if !record.is_due(now) {
            return false;
        }
        let key = record.key().to_vec();
        let found = self.place_of(database, &key);
        if let Some(found) = found {
            self.expire(database, found);
        }
        found.is_some()
    }
}
