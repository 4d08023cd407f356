//! The clocks of one worker.

use respool_connection::Now;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Reads both clocks. The monotonic one starts at 1 so that 0 can mean "never".
#[derive(Debug)]
pub(crate) struct Clock {
    zero: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { zero: Instant::now() }
    }

    pub(crate) fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { mono_us: self.zero.elapsed().as_micros() as u64 + 1, unix_us: unix.as_micros() as u64 }
    }
}
