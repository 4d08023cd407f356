//! The clocks of one worker, of which the monotonic one is the process's.

use crate::limits::WALL_CLOCK_AGE_US_MAX;
use respool_connection::Now;
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// When the first worker of the process began: where the monotonic clock of all of them starts, because some of what they
/// have in common is told by it. In microseconds of the system's monotonic clock.
static ZERO: OnceLock<u64> = OnceLock::new();

/// The time on the monotonic clock of all workers, in microseconds. It is never 0, so that 0 can mean "never".
pub fn monotonic_us() -> u64 {
    since(*ZERO.get_or_init(system_us))
}

/// The system's monotonic clock, in microseconds. [`std::time::Instant`] is the same clock with seconds and nanoseconds apart: to
/// subtract two of them and to make microseconds of the difference takes longer than to read the clock.
#[inline]
fn system_us() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000 + u64::from(time.tv_nsec as u32 / 1000)
}

#[inline]
fn since(zero_us: u64) -> u64 {
    system_us().saturating_sub(zero_us) + 1
}

/// Reads both clocks.
///
/// The wall clock is read now and then only and counted on from there: every turn needs both, and two readings of clocks
/// are a tenth of what a turn costs. A change of the wall clock is seen within [`WALL_CLOCK_AGE_US_MAX`].
#[derive(Debug)]
pub(crate) struct Clock {
    zero_us: u64,
    /// The wall clock's lead on the monotonic one.
    lead_us: u64,
    /// When the wall clock is to be read again.
    again_us: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { zero_us: *ZERO.get_or_init(system_us), lead_us: 0, again_us: 0 }
    }

    pub(crate) fn now(&mut self) -> Now {
        let mono_us = since(self.zero_us);
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
