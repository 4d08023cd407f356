//! Eviction: which key goes when there is no room, and how the use of keys is counted for that.
//!
//! As in Redis, a few keys of each database are looked at for every key that goes, and the best of all that were looked at lately
//! are kept as candidates. A record has 24 bits for its use: the second of the last use, or under a policy by frequency the
//! minute of it and a counter on a logarithmic scale that falls with time.

use super::key::{KeyRecord, clock_of};
use crate::limits::{
    EVICTION_CANDIDATES, EVICTION_SAMPLES, EVICTION_SAMPLES_MAX, LFU_DECAY_MINUTES, LFU_INITIAL, LFU_LOG_FACTOR,
};
use crate::store::random::Random;

/// Which keys are removed when there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// None: commands that need memory are refused.
    #[default]
    NoEviction,
    /// Those not used for the longest time.
    AllkeysLru,
    /// Of keys with a deadline those not used for the longest time.
    VolatileLru,
    /// Those used the least often.
    AllkeysLfu,
    /// Of keys with a deadline those used the least often.
    VolatileLfu,
    /// Any.
    AllkeysRandom,
    /// Any with a deadline.
    VolatileRandom,
    /// Those whose deadline is the nearest.
    VolatileTtl,
}

impl EvictionPolicy {
    /// All policies, each with Redis's name.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::NoEviction, "noeviction"),
        (Self::AllkeysLru, "allkeys-lru"),
        (Self::VolatileLru, "volatile-lru"),
        (Self::AllkeysLfu, "allkeys-lfu"),
        (Self::VolatileLfu, "volatile-lfu"),
        (Self::AllkeysRandom, "allkeys-random"),
        (Self::VolatileRandom, "volatile-random"),
        (Self::VolatileTtl, "volatile-ttl"),
    ];

    /// Redis's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(policy, _)| *policy == self).map_or("", |(_, name)| name)
    }

    /// Only keys with a deadline go.
    pub(super) fn is_volatile(self) -> bool {
        matches!(self, Self::VolatileLru | Self::VolatileLfu | Self::VolatileRandom | Self::VolatileTtl)
    }

    /// Records count how often keys are used.
    fn is_by_frequency(self) -> bool {
        matches!(self, Self::AllkeysLfu | Self::VolatileLfu)
    }

    pub(super) fn is_random(self) -> bool {
        matches!(self, Self::AllkeysRandom | Self::VolatileRandom)
    }

    /// How good it is to remove a key: the highest goes first.
    pub(super) fn score(self, record: KeyRecord<'_>, now: i64) -> u64 {
        match self {
            Self::VolatileTtl => {
                u64::MAX - record.deadline().map_or(i64::MAX, |deadline| deadline.at).max(0).unsigned_abs()
            }
            _ if self.is_by_frequency() => u64::from(u8::MAX - frequency(record.clock(), now)),
            _ => (clock_of(now).wrapping_sub(record.clock()) & 0xff_ffff).into(),
        }
    }
}

/// The minute of a time, modulo 2^16.
fn minute_of(now: i64) -> u32 {
    (now / 60_000) as u32 & 0xffff
}

/// The frequency of a new key, noted now.
pub(super) fn initial(now: i64) -> u32 {
    with_frequency(LFU_INITIAL, now)
}

/// What a record has that was used with a frequency until now.
pub(super) fn with_frequency(frequency: u8, now: i64) -> u32 {
    minute_of(now) << 8 | u32::from(frequency)
}

/// How often a key was used lately, on a logarithmic scale.
pub(super) fn frequency(clock: u32, now: i64) -> u8 {
    let (minute, counter) = (clock >> 8, (clock & 0xff) as u8);
    let periods = (minute_of(now).wrapping_sub(minute) & 0xffff) / LFU_DECAY_MINUTES;
    counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// What a record has behind a use: the higher the counter, the less likely it rises.
pub(super) fn used(clock: u32, now: i64, random: &mut Random) -> u32 {
    let counter = frequency(clock, now);
    let base = u64::from(counter.saturating_sub(LFU_INITIAL));
    let rises = counter < u8::MAX && random.below(base * LFU_LOG_FACTOR + 1) == 0;
    with_frequency(counter + u8::from(rises), now)
}

/// The policy, and what is remembered from one eviction to the next.
pub(super) struct Eviction {
    policy: EvictionPolicy,
    /// Keys of a database that are looked at for one that goes.
    pub(super) samples: usize,
    /// `maxmemory` is set.
    pub(super) is_bounded: bool,
    /// The policy is by frequency.
    counts_uses: bool,
    pub(super) candidates: Candidates,
    /// The database that is looked at first.
    pub(super) first_database: usize,
    /// The use of a key leaves no trace.
    pub(super) spares_uses: bool,
    /// The bytes in use when a slice ended before there was room. Before another request adds to them there are no more.
    pub(super) level: Option<usize>,
}

impl Default for Eviction {
    fn default() -> Self {
        Self {
            policy: EvictionPolicy::NoEviction,
            samples: EVICTION_SAMPLES,
            is_bounded: false,
            counts_uses: false,
            candidates: Candidates::default(),
            first_database: 0,
            spares_uses: false,
            level: None,
        }
    }
}

impl Eviction {
    pub(super) fn policy(&self) -> EvictionPolicy {
        self.policy
    }

    /// Each value has a use of its own, so that in Redis none is shared: there is a limit, and the policy goes by uses.
    pub(super) fn keeps_values_apart(&self) -> bool {
        let is_by_use = matches!(self.policy, EvictionPolicy::AllkeysLru | EvictionPolicy::VolatileLru);
        self.is_bounded && (is_by_use || self.counts_uses)
    }

    /// Records count how often keys are used, and not when.
    #[inline]
    pub(super) fn counts_uses(&self) -> bool {
        self.counts_uses
    }

    /// Goes by another policy from now on. What is known of candidates says nothing about it.
    pub(super) fn set(&mut self, policy: EvictionPolicy, samples: usize) {
        *self = Self {
            policy,
            samples: samples.clamp(1, EVICTION_SAMPLES_MAX),
            counts_uses: policy.is_by_frequency(),
            is_bounded: self.is_bounded,
            spares_uses: self.spares_uses,
            level: self.level,
            ..Self::default()
        };
    }
}

/// A key that may go, by its hash: of two keys with the same one either is as good.
struct Candidate {
    score: u64,
    database: usize,
    hash: u64,
}

/// The best of the keys that were looked at lately, the best last.
#[derive(Default)]
pub(super) struct Candidates {
    all: Vec<Candidate>,
}

impl Candidates {
    /// Whether a key is better than one of those kept.
    pub(super) fn takes(&self, score: u64) -> bool {
        self.all.len() < EVICTION_CANDIDATES || self.all.first().is_some_and(|worst| worst.score < score)
    }

    /// Keeps a key that is better than one of those kept.
    pub(super) fn offer(&mut self, score: u64, database: usize, hash: u64) {
        if !self.takes(score) || self.all.iter().any(|other| other.database == database && other.hash == hash) {
            return;
        }
        if self.all.len() >= EVICTION_CANDIDATES {
            self.all.remove(0);
        }
        let place = self.all.partition_point(|other| other.score <= score);
        self.all.insert(place, Candidate { score, database, hash });
    }

    /// Takes the best one out: its database and hash.
    pub(super) fn take(&mut self) -> Option<(usize, u64)> {
        self.all.pop().map(|best| (best.database, best.hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_the_best_that_were_offered() {
        let mut candidates = Candidates::default();
        for score in [5, 3, 9, 7, 3, 1] {
            candidates.offer(score, 0, score);
        }
        for score in 100..200 {
            candidates.offer(score, 1, score);
        }
        candidates.offer(150, 1, 7);
        let taken: Vec<_> = std::iter::from_fn(|| candidates.take()).collect();
        assert_eq!(taken.len(), EVICTION_CANDIDATES);
        assert_eq!(taken[0], (1, 199));
    }
}
