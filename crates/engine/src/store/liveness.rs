//! Which slots of a page are in use, as debug builds know it: a record that is read, changed or freed after it was freed
//! is an error of the store, and is told where it happens instead of where the next record is damaged. Release builds know
//! nothing and pay nothing.

#[cfg(debug_assertions)]
use super::pool::PAGE_UNITS;

/// One bit per unit of a page.
#[derive(Default)]
pub(super) struct Liveness {
    #[cfg(debug_assertions)]
    words: Vec<u64>,
}

#[cfg(debug_assertions)]
impl Liveness {
    fn is_live(&self, unit: u32) -> bool {
        self.words.get(unit as usize / 64).is_some_and(|word| word >> (unit % 64) & 1 == 1)
    }

    fn turn(&mut self, unit: u32) {
        self.words.resize(PAGE_UNITS as usize / 64, 0);
        self.words[unit as usize / 64] ^= 1 << (unit % 64);
    }

    /// The slot at `unit` is taken.
    pub(super) fn take(&mut self, unit: u32) {
        assert!(!self.is_live(unit), "the slot at unit {unit} is given out twice");
        self.turn(unit);
    }

    /// The slot at `unit` is given back.
    pub(super) fn give(&mut self, unit: u32) {
        assert!(self.is_live(unit), "the record at unit {unit} is freed twice");
        self.turn(unit);
    }

    /// The slot at `unit` is used.
    pub(super) fn check(&self, unit: u32) {
        assert!(self.is_live(unit), "the record at unit {unit} is used after it was freed");
    }
}

#[cfg(not(debug_assertions))]
impl Liveness {
    #[inline(always)]
    pub(super) fn take(&mut self, _unit: u32) {}

    #[inline(always)]
    pub(super) fn give(&mut self, _unit: u32) {}

    #[inline(always)]
    pub(super) fn check(&self, _unit: u32) {}
}
