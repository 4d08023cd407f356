//! How often something happens, counted in windows.

use super::limits::FLUSH_LIMITS;

/// How often something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRate {
    /// The usual time between two events, in microseconds, as far as it is known.
    interval_us: u64,
    /// Since when events are being counted for the next interval, and how many there had been by then.
    counted_us: u64,
    counted: u64,
}

impl EventRate {
    /// Nothing has happened.
    pub(crate) const NONE: Self = Self { interval_us: u64::MAX, counted_us: 0, counted: 0 };

    /// It is this time, and there have been `count` events in all.
    pub(crate) fn note(&mut self, now_us: u64, count: u64) {
        if self.counted_us == 0 {
            // Counting begins. The time before was not watched, and is no window.
            (self.counted_us, self.counted) = (now_us, count);
            return;
        }
        let passed_us = now_us.saturating_sub(self.counted_us);
        if passed_us < FLUSH_LIMITS.window_us {
            return;
        }
        self.interval_us = passed_us / count.saturating_sub(self.counted).max(1);
        (self.counted_us, self.counted) = (now_us, count);
    }

    /// Events are not counted from now on.
    #[inline]
    pub(crate) fn forget(&mut self) {
        *self = Self::NONE;
    }

    /// Whether so many events are expected within so many microseconds.
    #[inline]
    pub(crate) fn expects(&self, count: u64, within_us: u64) -> bool {
        within_us / count >= self.interval_us
    }
}
