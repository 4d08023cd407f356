//! Gathering what a crowd asks: many clients, each of which asks rarely, and all of them together so often that the next
//! moment brings several requests more.
//!
//! Written one by one, each of their requests costs a wake-up, a write and a read at the node. A network card in that place
//! delays its interrupts while packets come fast; so does this. A request may wait for a small part of the time that
//! its own client let pass since it asked before, and only if several others can be expected by then. Whoever asks again at
//! once is not made to wait, and neither is who waits already; a few clients are never a crowd, however fast they are.

use crate::limits::{CROWD_PART, GATHERED_MIN, GATHERED_US_MAX};

/// Weight of the latest value in an average: one of so many.
const WEIGHT: u64 = 64;

/// When the clients of one worker ask, and until when their requests may wait for each other.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// When somebody asked last.
    asked_us: u64,
    /// [`WEIGHT`] times the usual time between two requests, whoever asks, in microseconds.
    interval: u64,
    /// Requests wait for others.
    is_gathering: bool,
    /// None of them waits any longer.
    until_us: u64,
}

impl Crowd {
    /// A client asks that asked last at `before_us`, and no request may wait for longer than `most_us`.
    #[inline]
    pub(crate) fn note_asked(&mut self, before_us: u64, now_us: u64, most_us: u64) {
        let interval_us = now_us.saturating_sub(self.asked_us).min(GATHERED_US_MAX);
        self.asked_us = now_us;
        self.interval = self.interval - self.interval / WEIGHT + interval_us;
        let part_us = (now_us.saturating_sub(before_us) / CROWD_PART).min(most_us);
        let is_worth_it = part_us * WEIGHT >= self.interval * GATHERED_MIN && part_us > 0;
        let until_us = if is_worth_it { now_us + part_us } else { now_us };
        self.until_us = if self.is_gathering { self.until_us.min(until_us) } else { until_us };
        self.is_gathering = true;
    }

    /// Whether what came may wait for more.
    #[inline]
    pub(crate) fn may_wait(&self, now_us: u64) -> bool {
        self.is_gathering && now_us < self.until_us
    }

    /// When nothing waits any longer.
    pub(crate) fn until_us(&self) -> u64 {
        self.until_us
    }

    /// Nothing that waits now does so any longer.
    pub(crate) fn stop(&mut self) {
        self.until_us = 0;
    }

    /// Nothing waits: the next request decides anew.
    #[inline]
    pub(crate) fn disperse(&mut self) {
        self.is_gathering = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_US: u64 = 200;

    /// `clients` that ask every `period_us`, one after the other, and how long the last request may wait.
    fn wait_of(clients: u64, period_us: u64) -> u64 {
        let mut crowd = Crowd::default();
        let mut now_us = 0;
        for round in 1..=20 {
            for client in 0..clients {
                crowd.disperse();
                now_us = round * period_us + client * period_us / clients;
                crowd.note_asked(now_us - period_us, now_us, MOST_US);
            }
        }
        if crowd.may_wait(now_us) { crowd.until_us() - now_us } else { 0 }
    }

    #[test]
    fn requests_wait_for_a_crowd_and_a_small_part_of_their_clients_time() {
        assert_eq!(wait_of(500, 10_000), 200);
        assert_eq!(wait_of(500, 2_000), 2_000 / CROWD_PART);
        assert_eq!(wait_of(500, 40_000), 200);
        assert_eq!(wait_of(500, 60_000), 0, "too few come in that time");
        assert_eq!(wait_of(500, 1_000_000), 0);
    }

    #[test]
    fn a_few_clients_are_no_crowd_however_fast_they_are() {
        for period_us in [1, 15, 100, 1_000, 10_000] {
            for clients in [1, 2, 10, CROWD_PART * GATHERED_MIN / 2] {
                assert_eq!(wait_of(clients, period_us), 0, "{clients} clients every {period_us} us");
            }
        }
    }

    #[test]
    fn who_asks_again_at_once_takes_all_that_waits_along() {
        let mut crowd = Crowd::default();
        for now_us in (100_000..200_000).step_by(20) {
            crowd.disperse();
            crowd.note_asked(now_us - 10_000, now_us, MOST_US);
        }
        assert!(crowd.may_wait(199_980));
        crowd.note_asked(199_900, 199_990, MOST_US);
        assert!(!crowd.may_wait(199_990));
        crowd.note_asked(189_000, 199_995, MOST_US);
        assert!(!crowd.may_wait(199_995), "it goes with them");
        crowd.disperse();
        crowd.note_asked(190_000, 200_000, MOST_US);
        assert!(crowd.may_wait(200_000));
        assert!(!crowd.may_wait(200_200));
        crowd.disperse();
        crowd.note_asked(190_000, 200_000, 0);
        assert!(!crowd.may_wait(200_000), "it is switched off");
    }
}
