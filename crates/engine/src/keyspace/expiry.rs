//! Deadlines: setting, dropping, and the active cycle that removes keys that are not asked for.

use super::{
    At, Database, Deadline, Deadlines, Expiring, Found, Handle, KeyDraft, KeyRecord, Keyspace, begin_of, events, key,
    second_of,
};
use crate::limits;

/// What the active cycle did with an entry.
pub(super) struct Swept {
    /// Keys or fields that were removed.
    pub(super) count: usize,
    /// The entry is still in the list.
    pub(super) is_listed: bool,
}

impl Keyspace {
    /// Gives a key a deadline in milliseconds since the Unix epoch.
    pub(crate) fn set_deadline(&mut self, at: At, key: &[u8], moment: i64) {
        let Some(found) = self.place_of(at.database, key) else { return };
        self.note(at.database, found);
        if let Some(old) = self.record(found).deadline() {
            key::set_deadline(self.heap.pool.get_mut(found.record), Deadline { at: moment, ..old });
            self.databases[at.database].keys.entries[old.listed as usize].second = second_of(moment);
            self.note_deadline(second_of(moment));
            return;
        }
        let entry = Expiring { record: found.record, second: second_of(moment) };
        let listed = self.push_deadline(at.database, |database| &mut database.keys, entry);
        let record = self.rewrite_with(at.database, found, Some(Deadline { at: moment, listed }));
        self.databases[at.database].keys.entries[listed as usize].record = record;
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

    /// Adds an entry to a list of deadlines; its position.
    pub(super) fn push_deadline(
        &mut self,
        database: usize,
        list_of: fn(&mut Database) -> &mut Deadlines,
        entry: Expiring,
    ) -> u32 {
        self.note_deadline(entry.second);
        let list = list_of(&mut self.databases[database]);
        let capacity = list.entries.capacity();
        let position = list.push(entry);
        if list.entries.capacity() != capacity {
            self.count_tables(database);
        }
        position
    }

    /// A deadline in this second was set: the active cycle may have been planned without it.
    #[inline]
    pub(super) fn note_deadline(&mut self, second: u32) {
        self.soonest_second = self.soonest_second.min(second);
    }

    /// The earliest second of a deadline that was set since [`Keyspace::forget_soonest`]. `None`: none was.
    #[inline]
    pub(crate) fn soonest_second(&self) -> Option<u32> {
        (self.soonest_second < u32::MAX).then_some(self.soonest_second)
    }

    /// The next turn of the active cycle is planned by all deadlines that there are.
    pub(crate) fn forget_soonest(&mut self) {
        self.soonest_second = u32::MAX;
    }

    /// As [`Deadlines::remove`].
    pub(super) fn remove_deadline(
        &mut self,
        database: usize,
        list_of: fn(&mut Database) -> &mut Deadlines,
        position: u32,
    ) -> Option<Expiring> {
        let list = list_of(&mut self.databases[database]);
        let capacity = list.entries.capacity();
        let moved = list.remove(position);
        if list.entries.capacity() != capacity {
            self.count_tables(database);
        }
        moved
    }

    /// Takes an entry out of the list of deadlines; the last one moves into its place.
    pub(super) fn unlist(&mut self, database: usize, listed: u32) {
        if let Some(moved) = self.remove_deadline(database, |database| &mut database.keys, listed) {
            let bytes = self.heap.pool.get_mut(moved.record);
            if let Some(deadline) = KeyRecord::new(bytes).deadline() {
                key::set_deadline(bytes, Deadline { listed, ..deadline });
            }
        }
    }

    /// Removes a key, or fields of a hash, whose time has come; whether the key is left. A key whose fields have all expired is not.
    /// While keys are kept nothing is removed, and what has expired is not there all the same.
    #[inline(never)]
    pub(super) fn settle(&mut self, at: At, found: Found) -> bool {
        if self.keeps_keys {
            return !self.is_past(self.record(found), at.now);
        }
        if self.record(found).is_due(at.now) {
            self.expire(at.database, found);
            return false;
        }
        self.expire_fields(at, found, limits::FIELDS_EXPIRED_AT_ONCE).is_some()
    }

    /// As [`Keyspace::settle`], and notes that the key was used if it is left.
    #[inline(never)]
    pub(super) fn find_settled(&mut self, at: At, found: Found) -> Option<Found> {
        if !self.settle(at, found) {
            return None;
        }
        self.note_use(at.now, found);
        Some(found)
    }

    /// Removes a key whose time has come.
    pub(super) fn expire(&mut self, database: usize, found: Found) {
        self.counters.expired_keys += 1;
        if self.is_noted {
            let key = self.record(found).key().to_vec();
            self.note_lost(database, &key, events::EXPIRED);
        }
        self.remove_unnoted(database, found);
    }

    /// Whether keys may go that nothing asks for.
    pub(crate) fn may_sweep(&self) -> bool {
        !self.keeps_keys && self.debugging.may_sweep()
    }

    /// One turn of the active cycle. Looks at a bounded number of deadlines per database and goes on where it left off.
    /// Tells in how many milliseconds it wants to go on: at once while many are due, seldom while none is near.
    pub(crate) fn sweep(&mut self, now: i64) -> u64 {
        let waits = (0..self.databases.len()).map(|database| self.sweep_database(database, now));
        // Every database has its turn, whatever the first says.
        waits.fold(limits::TICK_IDLE_MS, u64::min)
    }

    /// Removes every key, and every field of a hash, whose time has come: the active cycle without its bounds.
    pub(crate) fn sweep_all(&mut self, now: i64) {
        for database in 0..self.databases.len() {
            self.sweep_whole_list(database, now, |database| &mut database.keys, Self::expire_key);
            self.sweep_whole_list(database, now, |database| &mut database.hashes, Self::expire_hash);
        }
    }

    fn sweep_whole_list(
        &mut self,
        database: usize,
        now: i64,
        list_of: fn(&mut Database) -> &mut Deadlines,
        expire: fn(&mut Self, At, Handle) -> Swept,
    ) {
        let mut place = 0;
        while let Some(&Expiring { record, second }) = list_of(&mut self.databases[database]).entries.get(place) {
            if second > second_of(now) {
                place += 1;
                continue;
            }
            let swept = expire(self, At { database, now }, record);
            // Where an entry was removed, the last one has moved there. A hash with many fields is listed until all that are due have gone.
            place += usize::from(swept.is_listed && swept.count < limits::EXPIRED_AT_ONCE);
        }
    }

    fn sweep_database(&mut self, database: usize, now: i64) -> u64 {
        let keys = self.sweep_list(database, now, |database| &mut database.keys, Self::expire_key);
        let hashes = self.sweep_list(database, now, |database| &mut database.hashes, Self::expire_hash);
        keys.min(hashes)
    }

    /// One turn of the active cycle in one list, as [`Keyspace::sweep`]. `expire` handles a key that may be due.
    fn sweep_list(
        &mut self,
        database: usize,
        now: i64,
        list_of: fn(&mut Database) -> &mut Deadlines,
        expire: fn(&mut Self, At, Handle) -> Swept,
    ) -> u64 {
        let this_second = second_of(now);
        let round = list_of(&mut self.databases[database]).entries.len();
        let looks = round.min(limits::SWEPT_AT_ONCE);
        let (mut expired, mut nearest) = (0, u32::MAX);
        for _ in 0..looks {
            let list = list_of(&mut self.databases[database]);
            if list.swept >= list.entries.len() {
                list.swept = 0;
            }
            let Some(&Expiring { record, second }) = list.entries.get(list.swept) else { break };
            if second > this_second {
                nearest = nearest.min(second);
                list.swept += 1;
                continue;
            }
            let freed = self.lazy_free.freed();
            let swept = expire(self, At { database, now }, record);
            // What large values leave takes its time as well.
            expired += swept.count + ((self.lazy_free.freed() - freed) / limits::RECORDS_PER_EXPIRED_KEY) as usize;
            if expired >= limits::EXPIRED_AT_ONCE {
                return 1;
            }
            // Where an entry was removed, the last one has moved there and is next.
            if swept.is_listed {
                nearest = this_second;
                list_of(&mut self.databases[database]).swept += 1;
            }
        }
        let is_whole_round = looks == round;
        match () {
            () if !is_whole_round && expired * 10 > looks => 1,
            () if !is_whole_round => limits::TICK_BUSY_MS,
            () => {
                let wait = begin_of(nearest).saturating_sub(u64::try_from(now).unwrap_or(0));
                wait.clamp(limits::TICK_BUSY_MS, limits::TICK_IDLE_MS)
            }
        }
    }

    /// Removes a listed key if its time has come.
    fn expire_key(&mut self, at: At, record: Handle) -> Swept {
        let record = KeyRecord::new(self.heap.pool.get(record));
        if !record.is_due(at.now) {
            return Swept { count: 0, is_listed: true };
        }
        let key = record.key().to_vec();
        let found = self.place_of(at.database, &key);
        if let Some(found) = found {
            self.expire(at.database, found);
        }
        Swept { count: 1, is_listed: found.is_none() }
    }
}

#[cfg(test)]
mod tests {
    use respool_command::{Execute, Millis};

    use crate::transcript::Script;

    #[test]
    fn keys_that_expire_while_kept_are_not_there_and_go_later() {
        let mut script = Script::new();
        script.engine.keep_keys(true);
        let setup = "SET s 1 PX 5;RPUSH l a;PEXPIRE l 5;HSET h a 1 b 2;HPEXPIRE h 5 FIELDS 2 a b;HSET g a 1 b 2;HPEXPIRE g 5 FIELDS 1 a";
        setup.split(';').for_each(|line| _ = script.say(line));
        script.session.now.0 += 6;
        for _ in 0..3 {
            script.engine.tick(Millis(script.session.now.0));
        }
        for (request, expected) in [
            ("GET s", "$-1"),
            ("LRANGE l 0 -1", "*0"),
            ("EXISTS s l h g", ":1"),
            ("HGETALL h", "*0"),
            ("HGETALL g", "*2 $1 b $1 2"),
            ("HLEN g", ":1"),
            ("HGET g a", "$-1"),
            ("TTL s", ":-2"),
            ("TYPE l", "+none"),
            ("KEYS *", "*1 $1 g"),
            ("RANDOMKEY", "$1 g"),
            ("DBSIZE", ":4"),
        ] {
            assert_eq!(script.say(request), expected, "{request}");
        }
        assert_eq!((script.engine.counters().expired_keys, script.engine.counters().expired_fields), (0, 0));
        // What a request writes there is new: it has nothing of what expired.
        for (request, expected) in
            [("APPEND s x", ":1"), ("TTL s", ":-1"), ("RPUSH l b", ":1"), ("HSET h c 3", ":1"), ("HLEN h", ":1")]
        {
            assert_eq!(script.say(request), expected, "{request}");
        }
        script.say("DEL g");
        script.say("SET s 1 PX 5");
        script.session.now.0 += 6;
        assert_eq!(
            (script.say("RENAME h s"), script.say("GET l2"), script.say("HGETALL s")),
            ("+OK".into(), "$-1".into(), "*2 $1 c $1 3".into())
        );
        script.say("FLUSHALL");
        script.say("SET s 1 PX 5");
        script.session.now.0 += 6;
        assert_eq!(script.say("RANDOMKEY"), "$-1");
        script.engine.keep_keys(false);
        script.engine.tick(Millis(script.session.now.0));
        assert_eq!(script.say("DBSIZE"), ":0");
    }

    #[test]
    fn a_deadline_that_is_set_between_two_turns_hastens_the_next() {
        for line in
            ["SET k v PX 30", "PEXPIRE old 30", "SET timed v PX 30", "HPEXPIRE h 30 FIELDS 1 f", "RENAME soon other"]
        {
            let mut script = Script::new();
            for made in ["SET old v", "SET timed v EX 1000", "HSET h f v", "SET soon v PX 30"] {
                script.say(made);
            }
            let now = script.session.now;
            assert_eq!(script.engine.tick(now).map(|at| at.0 > now.0), Some(true));
            assert_eq!(script.engine.sooner_tick(now), None, "it is known");
            assert!(!script.say(line).starts_with('-'), "{line}");
            let at = script.engine.sooner_tick(now).expect(line);
            assert!(at.0 <= now.0 + 130, "{line}: {at:?} after {now:?}");
            let before = script.engine.counters().expired_keys + script.engine.counters().expired_fields;
            script.session.now = at;
            script.engine.tick(at);
            let after = script.engine.counters().expired_keys + script.engine.counters().expired_fields;
            assert!(after > before, "{line}");
        }
    }

    #[test]
    fn the_cycle_goes_on_where_the_second_of_a_deadline_begins() {
        let mut script = Script::new();
        script.session.now = Millis(script.session.now.0 / 1000 * 1000 + 700);
        let now = script.session.now.0;
        script.say("SET k v PX 310");
        assert_eq!(script.engine.tick(Millis(now)), Some(Millis(now + 300)));
        assert_eq!(script.engine.tick(Millis(now + 300)), Some(Millis(now + 400)));
        script.engine.tick(Millis(now + 400));
        assert_eq!(script.engine.counters().expired_keys, 1);
    }

    #[test]
    fn the_search_for_a_random_key_ends_while_keys_are_kept() {
        let mut script = Script::new();
        for number in 0..5_000 {
            script.say(&format!("SET k{number} v PX 1"));
        }
        script.engine.keep_keys(true);
        script.session.now.0 += 2;
        let drawn = script.say("RANDOMKEY");
        assert!(drawn.contains(" k"), "{drawn}");
        assert_eq!(script.say("DBSIZE"), ":5000");
    }
}
