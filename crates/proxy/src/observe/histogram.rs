//! How often each duration occurred: written by one worker, read by any, never locked.
//!
//! The ranges grow with the durations, four to each doubling, so that a figure read from them is right to about a tenth.
//! Made here because the well-known histograms want either a lock or a writer that can be moved, and a fixed table of
//! counters is all there is to it.

use crate::observe::counters::Counter;

/// Ranges: up to 2^26 microseconds, a good minute, in quarters of a doubling.
const RANGES: usize = 27 * 4;

/// Durations in microseconds.
#[derive(Debug)]
pub struct Histogram {
    ranges: [Counter; RANGES],
    sum_us: Counter,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { ranges: std::array::from_fn(|_| Counter::default()), sum_us: Counter::default() }
    }
}

impl Histogram {
    /// Counts a duration. Only the owning worker may.
    #[inline]
    pub fn record(&self, us: u64) {
        self.ranges[range_of(us)].add(1);
        self.sum_us.add(us);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(Counter::value).sum()
    }

    /// The sum of all durations, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us.value()
    }

    /// The durations counted up to `bound_us`, which is best a power of two.
    pub fn up_to(&self, bound_us: u64) -> u64 {
        self.ranges.iter().take_while_index(|range| upper_of(*range) <= bound_us)
    }

    /// The count of each range.
    pub(crate) fn counts(&self) -> Vec<u64> {
        self.ranges.iter().map(Counter::value).collect()
    }
}

/// The duration that `share` of those counted do not exceed, in microseconds; 0 if none was counted.
pub(crate) fn quantile_us(counts: &[u64], share: f64) -> u64 {
    let all: u64 = counts.iter().sum();
    let wanted = (all as f64 * share).ceil().max(1.0) as u64;
    let mut seen = 0;
    let found = counts.iter().position(|count| {
        seen += count;
        seen >= wanted
    });
    found.filter(|_| all > 0).map_or(0, upper_of)
}

fn range_of(us: u64) -> usize {
    let us = us.max(1);
    let doubling = us.ilog2() as usize;
    let quarter = if doubling >= 2 { (us >> (doubling - 2)) as usize & 3 } else { 0 };
    (doubling * 4 + quarter).min(RANGES - 1)
}

/// The end of a range, in microseconds.
fn upper_of(range: usize) -> u64 {
    let (doubling, quarter) = (range / 4, range as u64 % 4);
    if doubling < 2 { (2 << doubling) - 1 } else { ((5 + quarter) << (doubling - 2)) - 1 }
}

trait TakeWhileIndex {
    fn take_while_index(self, fits: impl Fn(&usize) -> bool) -> u64;
}

impl<'a, I: Iterator<Item = &'a Counter>> TakeWhileIndex for I {
    fn take_while_index(self, fits: impl Fn(&usize) -> bool) -> u64 {
        self.enumerate().take_while(|(range, _)| fits(range)).map(|(_, counter)| counter.value()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_found_again_to_a_quarter_of_its_doubling() {
        for us in [1, 2, 3, 4, 5, 7, 8, 99, 100, 1_000, 12_345, 1 << 20, 60_000_000] {
            let range = range_of(us);
            assert!(upper_of(range) >= us, "{us}");
            assert!(range == 0 || us < 4 || upper_of(range - 1) < us, "{us}");
            assert!(upper_of(range) <= us + us / 4 + 1, "{us}: {}", upper_of(range));
        }
        assert_eq!(range_of(u64::MAX), RANGES - 1);
    }

    #[test]
    fn quantiles_and_counts_agree() {
        let histogram = Histogram::default();
        (1..=1000).for_each(|us| histogram.record(us));
        assert_eq!((histogram.count(), histogram.sum_us()), (1000, 500_500));
        let median = quantile_us(&histogram.counts(), 0.5);
        assert!((450..=560).contains(&median), "{median}");
        assert_eq!(quantile_us(&histogram.counts(), 1.0), 1023);
        assert_eq!(histogram.up_to(511), 511);
        assert_eq!(quantile_us(&[0; 4], 0.5), 0);
    }
}
