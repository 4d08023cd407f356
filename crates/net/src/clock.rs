//! The clocks of one worker.

use crate::limits::WALL_CLOCK_AGE_US_MAX;
use respool_connection::Now;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Reads both clocks. The monotonic one starts at 1 so that 0 can mean "never".
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
        Self { zero: Instant::now(), lead_us: 0, again_us: 0 }
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
