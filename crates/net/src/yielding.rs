//! Letting others run before a turn ends: when that is worth it and when it is not.
//!
//! Where clients share a core with the worker, a turn often begins with the first of them and could have all of them a
//! moment later. Giving up the core once lets the others send; on a core of its own the worker has it back at once. Where
//! something else wants the core for long, it would wait: then nothing is yielded for a while, and ever longer.

use crate::limits::{YIELD_ALONE_US_MAX, YIELD_PAUSE_US_MAX, YIELD_PAUSE_US_MIN, YIELD_US_MAX};
use respool_connection::Now;

/// When the worker may give up its core.
#[derive(Debug, Default)]
pub(crate) struct CoreYield {
    /// Not before then.
    again_us: u64,
    /// How long the last pause was; 0 if yields have been short.
    pause_us: u64,
    /// Others have had the core while the batch in question waited.
    had_others: bool,
}

impl CoreYield {
    pub(crate) fn may_yield(&self, now: Now) -> bool {
        !self.had_others && now.mono_us >= self.again_us
    }

    /// Others have had the core since [`Self::begin`].
    pub(crate) fn had_others(&self) -> bool {
        self.had_others
    }

    /// Nothing waits any more, or something else does.
    pub(crate) fn begin(&mut self) {
        self.had_others = false;
    }

    /// The core was given up at `before` and was back at `after`.
    pub(crate) fn note(&mut self, before: Now, after: Now) {
        let away_us = after.mono_us.saturating_sub(before.mono_us);
        self.had_others |= away_us > YIELD_ALONE_US_MAX;
        if away_us <= YIELD_US_MAX {
            self.pause_us = 0;
            return;
        }
        self.pause_us = (self.pause_us * 2).clamp(YIELD_PAUSE_US_MIN, YIELD_PAUSE_US_MAX);
        self.again_us = after.mono_us + self.pause_us;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mono_us: u64) -> Now {
        Now::of_clocks(mono_us, 0)
    }

    #[test]
    fn short_yields_go_on_and_long_ones_pause_ever_longer() {
        let mut core_yield = CoreYield::default();
        assert!(core_yield.may_yield(at(1)));
        core_yield.note(at(1), at(1 + YIELD_ALONE_US_MAX));
        assert!(core_yield.may_yield(at(1)), "the core was not wanted");
        core_yield.note(at(1), at(1 + YIELD_US_MAX));
        assert!(!core_yield.may_yield(at(1)), "others have had it once");
        core_yield.begin();
        assert!(core_yield.may_yield(at(2)));
        let mut now = 10;
        let mut pause = 0;
        for _ in 0..20 {
            core_yield.note(at(now), at(now + YIELD_US_MAX + 1));
            now += YIELD_US_MAX + 1;
            assert!(!core_yield.may_yield(at(now)));
            assert!(core_yield.pause_us >= pause && core_yield.pause_us <= YIELD_PAUSE_US_MAX);
            pause = core_yield.pause_us;
            now += pause;
            core_yield.begin();
            assert!(core_yield.may_yield(at(now)));
        }
        core_yield.note(at(now), at(now + 1));
        core_yield.note(at(now), at(now + YIELD_US_MAX + 1));
        assert_eq!(core_yield.pause_us, YIELD_PAUSE_US_MIN);
    }
}
