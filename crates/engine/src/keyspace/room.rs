//! Making room: keys are removed until what is used is within the limit, a bounded part at a time.
//!
//! What was deleted and waits to be freed is on its way, so it is freed first, and nothing more is evicted meanwhile. A slice that ends
//! before there is room lets its request run, as in Redis, and the next request or tick goes on. So that requests cannot add more
//! than slices free, a request first frees what others have added since the last slice, however long that takes.

use super::eviction::{self, EvictionPolicy, FrequencyTerms};
use super::key::{KeyRecord, clock_of, set_clock};
use super::{At, Found, Keyspace, events};
use crate::limits;

impl Keyspace {
    /// How much a request spends on making room: Redis's `maxmemory-eviction-tenacity`.
    pub(crate) fn tenacity(&self) -> u8 {
        self.eviction.tenacity
    }

    pub(crate) fn set_tenacity(&mut self, tenacity: u8) {
        self.eviction.tenacity = tenacity.min(EvictionPolicy::TENACITY_MAX);
    }

    /// How frequencies of use rise and fall.
    pub(crate) fn frequency_terms(&self) -> &FrequencyTerms {
        &self.eviction.frequencies
    }

    pub(crate) fn frequency_terms_mut(&mut self) -> &mut FrequencyTerms {
        &mut self.eviction.frequencies
    }

    /// The policy of eviction, and how many keys are looked at.
    pub(crate) fn eviction_terms(&self) -> (EvictionPolicy, usize) {
        (self.eviction.policy(), self.eviction.samples)
    }

    /// Which keys go from now on, and of how many that are looked at.
    pub(crate) fn set_eviction(&mut self, policy: EvictionPolicy, samples: usize) {
        self.eviction.set(policy, samples);
    }

    /// Which keys go.
    pub(crate) fn eviction_policy(&self) -> EvictionPolicy {
        self.eviction.policy()
    }

    /// Bytes that keys may take. What scripts hold counts as well, but no more keys go for it than for half of the memory.
    fn room_for_keys(&self, bytes_max: u64) -> usize {
        let all = usize::try_from(bytes_max).unwrap_or(usize::MAX).saturating_sub(self.own_bytes());
        all.saturating_sub(self.script_memory.bytes()).max(all / limits::SCRIPT_SHARE)
    }

    /// Makes room before something begins that may add data; whether it may begin. If not, nothing can be freed.
    #[inline]
    pub(crate) fn make_room(&mut self, bytes_max: u64) -> bool {
        let limit = self.room_for_keys(bytes_max);
        if self.used_bytes() <= limit {
            self.eviction.level = None;
            return true;
        }
        self.free_slice(limit, self.eviction.slice_of(limits::EVICTION_SLICE), true)
    }

    /// Whether a script that has not written yet may not begin to: there is too much, and if keys are evicted, it is the script that
    /// holds it, which had `vm_bytes` when it began. One that `began_beyond` the limit, within a transaction that had room at its
    /// beginning, is refused for what it holds itself only.
    #[cfg(feature = "scripting")]
    pub(crate) fn is_full_amid_script(&self, bytes_max: u64, vm_bytes: usize, began_beyond: bool) -> bool {
        let grown = self.script_memory.vm_bytes.saturating_sub(vm_bytes) as u64;
        let is_own = grown > bytes_max / limits::SCRIPT_SHARE as u64;
        let is_anyones = !began_beyond && self.eviction.policy() == EvictionPolicy::NoEviction;
        self.bounded_bytes() as u64 > bytes_max && (is_own || is_anyones)
    }

    /// Goes on with what requests have left; whether there is something to go on with.
    pub(crate) fn make_room_slowly(&mut self, bytes_max: u64) -> bool {
        let limit = self.room_for_keys(bytes_max);
        self.used_bytes() > limit
            && self.free_slice(limit, self.eviction.slice_of(limits::EVICTION_TICK_SLICE), false)
            && self.used_bytes() > limit
    }

    /// Frees what is deleted and evicts keys, until there is room or the slice ends; whether there is room, or will be.
    #[cold]
    fn free_slice(&mut self, limit: usize, slice: usize, keeps_level: bool) -> bool {
        let before = self.used_bytes();
        let level = self.eviction.level.map_or(before, |level| level.min(before));
        let mut spent = 0;
        loop {
            let used = self.used_bytes();
            if used <= limit {
                self.eviction.level = None;
                return true;
            }
            if spent >= slice && !(keeps_level && used > level) {
                self.eviction.level = Some(used.min(level));
                return true;
            }
            let freed = self.lazy_free.freed();
            if self.reap(limits::REAPED_FOR_ROOM) || self.lazy_free.freed() > freed {
                spent += (self.lazy_free.freed() - freed) as usize;
            } else if self.evict() {
                spent += limits::EVICTION_COST;
            } else {
                self.eviction.level = None;
                return false;
            }
        }
    }

    /// Removes one key to make room; whether there was one that may go.
    fn evict(&mut self) -> bool {
        let now = self.heap.now;
        if self.eviction.policy() == EvictionPolicy::NoEviction {
            return false;
        }
        while self.sample(now) {
            // A candidate may have gone by itself, or lost its deadline.
            while let Some((database, hash)) = self.eviction.candidates.take() {
                let is_volatile = self.eviction.policy().is_volatile();
                let may_go = |found: &Found| !is_volatile || self.record(*found).deadline().is_some();
                if let Some(found) = self.place_of_hash(database, hash).filter(may_go) {
                    self.remove_evicted(database, found);
                    return true;
                }
            }
        }
        false
    }

    fn place_of_hash(&self, database: usize, hash: u64) -> Option<Found> {
        let (pool, hasher) = (&self.heap.pool, &self.heap.hasher);
        let table = &self.databases.get(database)?.table;
        let place = table.place(hash, |record| hasher.hash(KeyRecord::new(pool.get(record)).key()) == hash)?;
        Some(Found { place, record: table.at(place) })
    }

    /// What it holds is buried and not freed yet: the caller counts what it frees.
    fn remove_evicted(&mut self, database: usize, found: Found) {
        self.counters.evicted_keys += 1;
        if self.is_noted {
            let key = self.record(found).key().to_vec();
            self.note_lost(database, &key, events::EVICTED);
        }
        self.signal_loss(database, found);
        self.unlist_hash(database, found.record);
        self.bury_value(found.record);
        self.forget_key(database, found);
    }

    /// Keys of a database that may go.
    fn evictable(&self, database: usize) -> usize {
        let database = &self.databases[database];
        if self.eviction.policy().is_volatile() { database.keys.entries.len() } else { database.table.len() }
    }

    /// Looks at a few keys of the databases in turn; whether there was one.
    fn sample(&mut self, now: i64) -> bool {
        let count = self.databases.len();
        let first = self.eviction.first_database;
        let databases = (0..count).map(|step| (first + step) % count).filter(|database| self.evictable(*database) > 0);
        // By chance a key of one database goes after one of another, as in Redis.
        let at_once = if self.eviction.policy().is_random() { 1 } else { limits::EVICTION_DATABASES };
        let databases: Vec<usize> = databases.take(at_once).collect();
        for &database in &databases {
            self.sample_database(At { database, now });
        }
        if let Some(last) = databases.last() {
            self.eviction.first_database = (last + 1) % count;
        }
        !databases.is_empty()
    }

    fn sample_database(&mut self, at: At) {
        let policy = self.eviction.policy();
        let count = self.evictable(at.database);
        let looks = if policy.is_random() { 1 } else { self.eviction.samples.min(count) };
        for _ in 0..looks {
            let database = &self.databases[at.database];
            let drawn = if policy.is_volatile() {
                let number = self.heap.random.below(count as u64) as usize;
                database.keys.entries.get(number).map(|entry| entry.record)
            } else {
                database.table.random(&mut self.heap.random)
            };
            let Some(record) = drawn else { continue };
            let record = KeyRecord::new(self.heap.pool.get(record));
            let score =
                if policy.is_random() { u64::MAX } else { policy.score(record, at.now, self.eviction.frequencies) };
            if self.eviction.candidates.takes(score) {
                let hash = self.heap.hasher.hash(record.key());
                self.eviction.candidates.offer(score, at.database, hash);
            }
        }
    }

    /// A key is used that was not used this second, or uses are counted.
    #[inline(never)]
    pub(super) fn note_use(&mut self, now: i64, found: Found) {
        if self.eviction.spares_uses {
            return;
        }
        let bytes = self.heap.pool.get_mut(found.record);
        let clock = if self.eviction.counts_uses() {
            self.eviction.frequencies.used(KeyRecord::new(bytes).clock(), now, &mut self.heap.random)
        } else {
            clock_of(now)
        };
        set_clock(bytes, clock);
    }

    /// Whether keys are used without a trace.
    pub(crate) fn spares_uses(&self) -> bool {
        self.eviction.spares_uses
    }

    /// Whether keys are used without a trace from now on; whether they were until now.
    pub(crate) fn spare_uses(&mut self, is_spared: bool) -> bool {
        std::mem::replace(&mut self.eviction.spares_uses, is_spared)
    }

    /// What a record has whose key is given a value: one that counts uses goes on with that of `old`.
    #[inline]
    pub(super) fn clock_for(&self, now: i64, old: Option<Found>) -> u32 {
        if self.eviction.counts_uses() {
            return match old {
                Some(found) => self.record(found).clock(),
                None => eviction::initial(now),
            };
        }
        clock_of(now)
    }

    /// A key was given a value, which is a use unless the key is new.
    #[cold]
    pub(super) fn count_use(&mut self, at: At, key: &[u8]) {
        if let Some(found) = self.place_of(at.database, key)
            && self.record(found).clock() != eviction::initial(at.now)
        {
            self.note_use(at.now, found);
        }
    }

    /// Gives a key the use that another record had.
    pub(super) fn set_use(&mut self, database: usize, key: &[u8], clock: u32) {
        if let Some(found) = self.place_of(database, key) {
            set_clock(self.heap.pool.get_mut(found.record), clock);
        }
    }

    /// Whether records count how often keys are used, and not when.
    pub(crate) fn counts_uses(&self) -> bool {
        self.eviction.counts_uses()
    }

    /// How often the key was used lately, on a logarithmic scale.
    pub(crate) fn frequency(&self, found: Found, now: i64) -> u8 {
        self.eviction.frequencies.frequency(self.record(found).clock(), now)
    }

    /// Makes a key look as if it had been used so often until now.
    pub(crate) fn set_frequency(&mut self, at: At, key: &[u8], frequency: u8) {
        self.set_use(at.database, key, eviction::with_frequency(frequency, at.now));
    }

    /// Seconds since the key was last used.
    pub(crate) fn idle_seconds(&self, found: Found, now: i64) -> u32 {
        clock_of(now).wrapping_sub(self.record(found).clock()) & 0xff_ffff
    }

    /// Makes a key look as if it had not been used for so many seconds.
    pub(crate) fn set_idle(&mut self, at: At, key: &[u8], seconds: i64) {
        const HALF: i64 = 0x7f_ffff;
        const CLOCK_MAX: i64 = 0xff_ffff;
        let clock = i64::from(clock_of(at.now));
        // Redis takes what lies before the clock's beginning for half of its range ago.
        let used = if seconds <= clock { clock - seconds } else { (clock + HALF) % CLOCK_MAX };
        self.set_use(at.database, key, used as u32);
    }
}
