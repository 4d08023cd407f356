//! Chance that can be repeated: a small generator whose seed is an argument of the engine.

/// A wyrand generator: fast, even, and of no use to cryptography.
#[derive(Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0xa076_1d64_78bd_642f);
        let product = u128::from(self.state) * u128::from(self.state ^ 0xe703_7ed1_a0b4_28db);
        (product >> 64) as u64 ^ product as u64
    }

    /// A number below `end`, or zero if `end` is zero. The bias is below one in 2^32 for every length that fits memory.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }
}
