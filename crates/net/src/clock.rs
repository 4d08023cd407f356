//! The clocks of one worker, of which the monotonic one is the process's.

use crate::limits::WALL_CLOCK_AGE_US_MAX;
use respool_connection::Now;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// When the first worker of the process began: where the monotonic clock of all of them starts, because some of what they
/// have in common is told by it.
static ZERO: OnceLock<Instant> = OnceLock::new();

/// The time on the monotonic clock of all workers, in microseconds. It is never 0, so that 0 can mean "never".
pub fn monotonic_us() -> u64 {
    ZERO.get_or_init(Instant::now).elapsed().as_micros() as u64 + 1
}

/// Reads both clocks.
///
/// The wall clock is read now and then only and counted on from there: every turn needs both, and two readings of clocks
/// are a tenth of what a turn costs. A change of the wall clock is seen within [`WALL_CLOCK_AGE_US_MAX`].
#[derive(Debug)]
pub(crate) struct Clock {
    zero: Instant,
    /// The wall clock's lead on the monotonic one.
    lead_us: u64,
    /// When the wall clock is to be read again.
    again_us: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { zero: *ZERO.get_or_init(Instant::now), lead_us: 0, again_us: 0 }
    }

    pub(crate) fn now(&mut self) -> Now {
        let mono_us = self.zero.elapsed().as_micros() as u64 + 1;
        if mono_us >= self.again_us {
            self.read_wall_clock(mono_us);
        }
        Now { mono_us, unix_us: mono_us + self.lead_us }
    }

    #[cold]
    fn read_wall_clock(&mut self, mono_us: u64) {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.lead_us = (unix.as_micros() as u64).saturating_sub(mono_us);
        self.again_us = mono_us + WALL_CLOCK_AGE_US_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_have_one_monotonic_clock() {
        let mut first = Clock::new();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let mut second = Clock::new();
        let before = first.now().mono_us;
        let between = second.now().mono_us;
        let after = first.now().mono_us;
        assert!(before <= between && between <= after, "{before} {between} {after}");
    }
}
