//! What the settings say of what is looked at. It is a file of its own, because the configuration names it.

use crate::limits::{LARGE_ENTRIES_MAX, LOGGED_BYTES, QUICK_COMMAND_US};

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// A request is slow if its reply takes longer, in microseconds; `u64::MAX`: none is.
    pub slow_us: u64,
    /// Slow requests that each worker remembers.
    pub slow_entries: usize,
    /// One read from a node in so many is looked at for latencies and keys; 0: none is.
    pub sample_every: u32,
    /// What takes at least so many milliseconds is a sample of the latency monitor of an engine; 0: nothing is.
    pub latency_ms: u64,
    /// Whether there are histograms of what commands of an engine take.
    pub tracks_latency: bool,
    /// The log of large requests of an engine.
    pub large_requests: LargeTerms,
    /// The same of large replies.
    pub large_replies: LargeTerms,
}

/// A log of what is large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeTerms {
    /// It has what takes so many bytes or more; `u64::MAX`: nothing.
    pub bytes_min: u64,
    /// Entries that it keeps.
    pub entries_max: usize,
}

impl Default for LargeTerms {
    fn default() -> Self {
        Self { bytes_min: LOGGED_BYTES, entries_max: LARGE_ENTRIES_MAX }
    }
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            slow_us: u64::MAX,
            slow_entries: 0,
            sample_every: 0,
            latency_ms: 0,
            tracks_latency: false,
            large_requests: LargeTerms::default(),
            large_replies: LargeTerms::default(),
        }
    }
}

impl Terms {
    /// Whether every command of an engine is timed, and not only those that may take long.
    #[inline]
    pub(crate) fn times_all(&self) -> bool {
        self.slow_us < QUICK_COMMAND_US || self.latency_ms > 0
    }

    /// Whether the requests that replies belong to are needed.
    pub(crate) fn is_anything_seen(&self) -> bool {
        self.slow_us != u64::MAX || self.sample_every > 0
    }
}

#[cfg(test)]
mod tests {
    use super::{QUICK_COMMAND_US, Terms};

    #[test]
    fn every_command_is_timed_only_where_a_quick_one_may_count() {
        assert!(!Terms::default().times_all());
        assert!(!Terms { slow_us: QUICK_COMMAND_US, ..Terms::default() }.times_all());
        assert!(Terms { slow_us: QUICK_COMMAND_US - 1, ..Terms::default() }.times_all());
        assert!(Terms { latency_ms: 1, ..Terms::default() }.times_all());
    }

    #[test]
    fn requests_are_kept_for_samples_or_slow_ones() {
        assert!(!Terms::default().is_anything_seen());
        assert!(Terms { slow_us: 1_000_000, ..Terms::default() }.is_anything_seen());
        assert!(Terms { sample_every: 1, ..Terms::default() }.is_anything_seen());
    }
}
