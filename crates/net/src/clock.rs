//! The clocks of one worker, of which the monotonic one is the process's.
//!
//! A program that tests other programs moves the time that its clients see ([`MovableClock`]). The loop's own time, by which it waits for
//! sockets, is the kernel's all the same.

use crate::limits::{CLIENT_CLOCK_US_MAX, MOVED_CLOCK_US_MAX, WALL_CLOCK_AGE_US_MAX};
use respool_connection::Now;
use rustix::time::{ClockId, clock_gettime};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    /// What clients see in the place of both, if it is moved.
    moved: Option<MovableClock>,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { zero_us: *ZERO.get_or_init(system_us), lead_us: 0, again_us: 0, moved: None }
    }

    /// Has clients see the time of another clock from now on.
    pub(crate) fn follow(&mut self, clock: MovableClock) {
        self.moved = Some(clock);
    }

    /// Called twice a turn, so it is short where no clock is moved.
    #[inline(always)]
    pub(crate) fn now(&mut self) -> Now {
        let mono_us = since(self.zero_us);
        if self.moved.is_some() {
            return self.now_if_moved(mono_us);
        }
        self.now_by_the_system(mono_us)
    }

    #[inline(always)]
    fn now_by_the_system(&mut self, mono_us: u64) -> Now {
        if mono_us >= self.again_us {
            self.read_wall_clock(mono_us);
        }
        Now::of_clocks(mono_us, mono_us + self.lead_us)
    }

    #[cold]
    #[inline(never)]
    fn now_if_moved(&mut self, mono_us: u64) -> Now {
        let seen = self.moved.as_ref().and_then(|moved| moved.seen_at(mono_us));
        seen.unwrap_or_else(|| self.now_by_the_system(mono_us))
    }

    #[cold]
    #[inline(never)]
    fn read_wall_clock(&mut self, mono_us: u64) {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.lead_us = (unix.as_micros() as u64).saturating_sub(mono_us);
        self.again_us = mono_us + WALL_CLOCK_AGE_US_MAX;
    }
}

/// The time that clients of a server see, set and moved by the program around. All clones are the same clock, and all
/// workers that follow it see a change with their next turn. Until it is set or moved for the first time it is the system's clock.
#[derive(Clone, Debug, Default)]
pub struct MovableClock(Arc<Mutex<Option<Moved>>>);

/// Where the clock stood when it was last touched.
#[derive(Clone, Copy, Debug)]
struct Moved {
    /// The kernel's time then, by [`monotonic_us`].
    touched_us: u64,
    unix_us: u64,
    client_us: u64,
    is_frozen: bool,
}

impl MovableClock {
    /// What time it is.
    pub fn time(&self) -> SystemTime {
        match self.seen_at(monotonic_us()) {
            Some(now) => UNIX_EPOCH + Duration::from_micros(now.unix_us),
            None => SystemTime::now(),
        }
    }

    /// Moves it forward: so much time has passed at once.
    pub fn advance(&self, by: Duration) {
        let by_us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.touch(|moved| moved.advance(by_us));
    }

    /// Sets it. If that is later than it was, the time between has passed. If it is earlier, nothing else that waits for time to pass
    /// is set back: the timeouts of waiting clients are what is left of them.
    pub fn set(&self, time: SystemTime) {
        let unix_us = us_since_epoch(time);
        self.touch(|moved| match unix_us.checked_sub(moved.unix_us) {
            Some(later_us) => moved.advance(later_us),
            None => moved.unix_us = unix_us,
        });
    }

    /// Whether it stands still, but for what [`MovableClock::advance`] and [`MovableClock::set`] do.
    pub fn set_frozen(&self, is_frozen: bool) {
        self.touch(|moved| moved.is_frozen = is_frozen);
    }

    /// Whether it stands still.
    pub fn is_frozen(&self) -> bool {
        self.moved().is_some_and(|moved| moved.is_frozen)
    }

    /// What clients see at a time of the kernel. `None`: what the system's clock says.
    fn seen_at(&self, mono_us: u64) -> Option<Now> {
        let Moved { unix_us, client_us, is_frozen, .. } = (*self.moved())?.caught_up(mono_us);
        Some(Now { mono_us, unix_us, client_us, is_frozen })
    }

    fn touch(&self, change: impl FnOnce(&mut Moved)) {
        let mut moved = self.moved();
        let mut now = moved.map_or_else(Moved::by_the_system, |moved| moved.caught_up(monotonic_us()));
        change(&mut now);
        *moved = Some(now);
    }

    fn moved(&self) -> MutexGuard<'_, Option<Moved>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Moved {
    fn by_the_system() -> Self {
        let touched_us = monotonic_us();
        Self { touched_us, unix_us: us_since_epoch(SystemTime::now()), client_us: touched_us, is_frozen: false }
    }

    /// The same clock at a later time of the kernel.
    fn caught_up(mut self, mono_us: u64) -> Self {
        let passed_us = mono_us.saturating_sub(self.touched_us);
        self.touched_us = self.touched_us.max(mono_us);
        if !self.is_frozen {
            self.pass(passed_us);
        }
        self
    }

    /// So much time passes by itself, at the end of the time of day as well.
    fn pass(&mut self, us: u64) {
        self.unix_us = self.unix_us.saturating_add(us).min(MOVED_CLOCK_US_MAX);
        self.client_us = self.client_us.saturating_add(us).min(CLIENT_CLOCK_US_MAX);
    }

    /// It is moved forward, as far as the time of day can be. The timeouts of clients get nearer by as much.
    fn advance(&mut self, by_us: u64) {
        self.pass(by_us.min(MOVED_CLOCK_US_MAX - self.unix_us));
    }
}

/// What is before the epoch is the epoch, and what is later than a clock is moved is the latest that it is.
fn us_since_epoch(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX).min(MOVED_CLOCK_US_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(unix_us: u64, is_frozen: bool) -> MovableClock {
        MovableClock(Arc::new(Mutex::new(Some(Moved { touched_us: 100, unix_us, client_us: 100, is_frozen }))))
    }

    /// The times that clients see at a time of the kernel.
    fn seen(clock: &MovableClock, mono_us: u64) -> (u64, u64) {
        let now = clock.seen_at(mono_us).expect("it was set");
        assert_eq!(now.mono_us, mono_us, "what the loop waits by is never moved");
        (now.unix_us, now.client_us)
    }

    #[test]
    fn a_clock_that_has_not_been_moved_is_the_systems() {
        let clock = MovableClock::default();
        assert!(clock.seen_at(100).is_none() && !clock.is_frozen());
        let (before, seen) = (SystemTime::now(), clock.time());
        assert!(before <= seen && seen <= SystemTime::now());
        clock.set_frozen(true);
        assert!(clock.is_frozen() && clock.time() >= before);
    }

    #[test]
    fn a_clock_that_goes_on_follows_the_kernel() {
        let clock = moved(5_000, false);
        assert_eq!(seen(&clock, 100), (5_000, 100));
        assert_eq!(seen(&clock, 107), (5_007, 107));
        assert_eq!(
            seen(&clock, 90),
            (5_000, 100),
            "a worker that has read the kernel's time before sees no earlier one"
        );
    }

    #[test]
    fn a_clock_that_is_frozen_stands_until_it_is_moved() {
        let clock = moved(5_000, true);
        assert_eq!(seen(&clock, 1_000_000), (5_000, 100));
        clock.advance(Duration::from_micros(30));
        assert_eq!(seen(&clock, 2_000_000), (5_030, 130));
        clock.set_frozen(false);
        let later_us = monotonic_us() + 1_000;
        let (before, after) = (seen(&clock, later_us), seen(&clock, later_us + 1_000_000));
        assert!(before.0 >= 5_030 && before.1 >= 130, "{before:?}");
        assert_eq!((after.0 - before.0, after.1 - before.1), (1_000_000, 1_000_000), "it goes on from there");
    }

    #[test]
    fn what_waits_is_not_set_back_with_the_time_of_day() {
        let clock = moved(5_000, true);
        clock.set(UNIX_EPOCH + Duration::from_micros(1_000));
        assert_eq!(seen(&clock, 100), (1_000, 100));
        clock.set(UNIX_EPOCH + Duration::from_micros(1_500));
        assert_eq!(seen(&clock, 100), (1_500, 600));
        clock.set(UNIX_EPOCH - Duration::from_secs(1));
        assert_eq!((seen(&clock, 100), clock.time()), ((0, 600), UNIX_EPOCH));
    }

    #[test]
    fn no_clock_is_moved_beyond_what_can_be_counted() {
        let clock = moved(5_000, true);
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        let end_us = 100 + MOVED_CLOCK_US_MAX - 5_000;
        assert_eq!(seen(&clock, 100), (MOVED_CLOCK_US_MAX, end_us));
        for _ in 0..100 {
            clock.set(UNIX_EPOCH);
            clock.advance(Duration::MAX);
        }
        assert_eq!(seen(&clock, 100), (MOVED_CLOCK_US_MAX, CLIENT_CLOCK_US_MAX));
    }

    #[test]
    fn timeouts_end_after_the_clock_has_been_at_its_end() {
        let clock = moved(5_000, true);
        clock.advance(Duration::MAX);
        let (_, at_the_end_us) = seen(&clock, 100);
        clock.set(UNIX_EPOCH + Duration::from_secs(1_700_000_000));
        assert_eq!(seen(&clock, 100).1, at_the_end_us, "it is not set back");
        clock.advance(Duration::from_secs(5));
        assert_eq!(seen(&clock, 100).1, at_the_end_us + 5_000_000);
        let goes_on = moved(MOVED_CLOCK_US_MAX, false);
        assert_eq!(seen(&goes_on, 1_100), (MOVED_CLOCK_US_MAX, 1_100), "time passes for those who wait");
    }

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
