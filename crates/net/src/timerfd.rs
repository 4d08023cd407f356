//! Waits that are shorter than a millisecond.
//!
//! Linux' epoll counts its timeout in whole milliseconds and rounds up. A timer with a descriptor of its own ends such a wait
//! to within some microseconds. Where there is none, other systems' polls are exact, and a Linux without it does not wait.

use mio::Registry;
use std::time::Duration;

/// A timer that one poll listens to.
#[derive(Debug)]
pub(crate) struct WakeTimer {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    timer: Option<std::os::fd::OwnedFd>,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
impl WakeTimer {
    /// A timer that makes the poll of `registry` return.
    pub(crate) fn new(registry: &Registry) -> Self {
        use mio::unix::SourceFd;
        use mio::{Interest, Token};
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        use std::os::fd::AsRawFd;

        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).ok();
        // What woke the poll does not matter, and each expiry is counted anew: it need not be read.
        let timer = timer.filter(|timer| {
            registry.register(&mut SourceFd(&timer.as_raw_fd()), Token(usize::MAX), Interest::READABLE).is_ok()
        });
        Self { timer }
    }

    /// Rings once after `after`, in place of what was set before. `false`: it will not.
    pub(crate) fn set(&self, after: Duration) -> bool {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};

        let Some(timer) = &self.timer else { return false };
        let Ok(value) = Timespec::try_from(after) else { return false };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).is_ok()
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl WakeTimer {
    pub(crate) fn new(_: &Registry) -> Self {
        Self {}
    }

    pub(crate) fn set(&self, _: Duration) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll};

    #[test]
    fn it_ends_every_wait_that_it_was_set_for() {
        let mut poll = Poll::new().unwrap();
        let timer = WakeTimer::new(poll.registry());
        let mut events = Events::with_capacity(1);
        for _ in 0..3 {
            let begin = std::time::Instant::now();
            assert!(timer.set(Duration::from_micros(200)));
            poll.poll(&mut events, Some(Duration::from_secs(60))).unwrap();
            assert!(begin.elapsed() >= Duration::from_micros(200));
            assert!(begin.elapsed() < Duration::from_secs(60), "nothing rang");
        }
        poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        assert!(events.is_empty(), "it rings once");
    }
}
