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

    /// How much is spent on making room by default, and at most.
    const TENACITY: u8 = 10;
    pub(super) const TENACITY_MAX: u8 = 100;

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
    pub(super) fn score(self, record: KeyRecord<'_>, now: i64, terms: FrequencyTerms) -> u64 {
        match self {
            Self::VolatileTtl => {
                u64::MAX - record.deadline().map_or(i64::MAX, |deadline| deadline.at).max(0).unsigned_abs()
            }
            _ if self.is_by_frequency() => u64::from(u8::MAX - terms.frequency(record.clock(), now)),
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

/// How frequencies rise and fall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrequencyTerms {
    /// How much harder each step is than the one before; 0: every use is a step.
    pub(crate) log_factor: u64,
    /// Minutes without use that cost a step; 0: no time costs any.
    pub(crate) decay_minutes: u32,
}

impl Default for FrequencyTerms {
    fn default() -> Self {
        Self { log_factor: LFU_LOG_FACTOR, decay_minutes: LFU_DECAY_MINUTES }
    }
}

impl FrequencyTerms {
    /// How often a key was used lately, on a logarithmic scale.
    pub(super) fn frequency(self, clock: u32, now: i64) -> u8 {
        let (minute, counter) = (clock >> 8, (clock & 0xff) as u8);
        let minutes = minute_of(now).wrapping_sub(minute) & 0xffff;
        let periods = minutes.checked_div(self.decay_minutes).unwrap_or(0);
        counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
    }

    /// What a record has behind a use: the higher the counter, the less likely it rises.
    pub(super) fn used(self, clock: u32, now: i64, random: &mut Random) -> u32 {
        let counter = self.frequency(clock, now);
        let base = u64::from(counter.saturating_sub(LFU_INITIAL));
        let rises = counter < u8::MAX && random.below(base.saturating_mul(self.log_factor).saturating_add(1)) == 0;
        with_frequency(counter + u8::from(rises), now)
    }
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
    pub(super) frequencies: FrequencyTerms,
    /// How much is spent on making room, from 0 to 100.
    pub(super) tenacity: u8,
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
            frequencies: FrequencyTerms::default(),
            tenacity: EvictionPolicy::TENACITY,
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

    /// What a slice is that has so many records by default. As in Redis a part of it up to the default, 15 % more with each step from there, and
    /// with the last as many as it takes. One eviction is always tried.
    pub(super) fn slice_of(&self, records: usize) -> usize {
        let (tenacity, default) = (self.tenacity, EvictionPolicy::TENACITY);
        match tenacity {
            EvictionPolicy::TENACITY_MAX => usize::MAX,
            _ if tenacity <= default => (records * usize::from(tenacity) / usize::from(default)).max(1),
            _ => (records as f64 * 1.15_f64.powi(i32::from(tenacity - default))) as usize,
        }
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
            frequencies: self.frequencies,
            tenacity: self.tenacity,
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
