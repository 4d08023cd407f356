//! Chance that can be repeated, for the seeded worlds.

/// Numbers that follow from a seed, which is not 0.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// True once in `bound` on average.
    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}
