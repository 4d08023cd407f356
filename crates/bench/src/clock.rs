//! The clocks of the load generator: time in nanoseconds, and the processor time of its own process.

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, in nanoseconds.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// What this process has used of processors so far, in nanoseconds: user and system time of all its threads.
pub fn own_processor_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
