//! How many of something a write usually has.

/// The parts of one. Fine enough that a write of one after writes of many is not taken for two for ever.
const ONE: usize = 256;
/// A write counts for so much of the mean, as a divisor.
const WEIGHT: usize = 16;

/// How many requests, or senders of those, a write has had of late: a mean in which each write counts for a sixteenth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usual(usize);

impl Usual {
    /// So many in each write.
    pub const fn of(count: usize) -> Self {
        Self(count * ONE)
    }

    /// A write has had so many.
    #[inline]
    pub(crate) fn note(&mut self, count: usize) {
        self.0 = self.0 - self.0 / WEIGHT + count * (ONE / WEIGHT);
    }

    /// Whether a write usually has more than so many.
    #[inline]
    pub(crate) fn exceeds(self, count: usize) -> bool {
        // A mean that falls stops at less than `WEIGHT` above what it tends to.
        count * ONE + WEIGHT <= self.0
    }

    /// Whether a write usually has so many at least.
    #[inline]
    pub(crate) fn is_at_least(self, count: usize) -> bool {
        self.0 >= count * ONE
    }

    /// Whether of so many the usual share makes `least`: of requests, their senders.
    #[inline]
    pub(crate) fn share_makes(self, all: Self, count: usize, least: usize) -> bool {
        count * self.0 >= least * all.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(counts: impl IntoIterator<Item = usize>) -> Usual {
        let mut usual = Usual::default();
        counts.into_iter().for_each(|count| usual.note(count));
        usual
    }

    #[test]
    fn the_mean_is_reached_from_both_sides() {
        for before in [0, 64, 10_000] {
            for count in [1, 7, 16] {
                let usual = noted(vec![before; 200].into_iter().chain(vec![count; 400]));
                assert!(!usual.exceeds(count) && usual.exceeds(count - 1), "{count} after {before}: {usual:?}");
                assert!(usual.is_at_least(count) && !usual.is_at_least(count + 1), "{count} after {before}: {usual:?}");
                let share = Usual::of(100 * count);
                assert!(!usual.share_makes(share, 1_000, 11), "{count} after {before} is a hundredth: {usual:?}");
            }
        }
    }
}
