//! Gathering what a crowd asks: many clients, each of which asks rarely, and all of them together so often that the next
//! moment brings several requests more.
//!
//! Written one by one, each of their requests costs a wake-up, a write and a read at the node. A network card in that place
//! delays its interrupts while packets come fast; so does this. A request may wait for a small part of the time that
//! its own client let pass since it asked before, and only if several others can be expected by then. A client that asks again at
//! once is not made to wait, and neither is who waits already; a few clients are never a crowd, however fast they are.

use crate::limits::{CROWD_PART, CROWD_WINDOW_US, GATHERED_MIN};

/// When the clients of one worker ask, and until when their requests may wait for each other.
#[derive(Debug)]
pub(crate) struct ArrivalRate {
    /// The shortest time that a client let pass whose request waits, in microseconds.
    pause_us: u64,
    /// The first of the requests that wait in this turn does so no longer.
    until_us: u64,
    /// The usual time between two requests, of any client, in microseconds, as far as it is known.
    interval_us: u64,
    /// Since when requests are being counted for the next interval, and how many there had been by then.
    counted_us: u64,
    counted: u64,
}

impl Default for ArrivalRate {
    fn default() -> Self {
        Self { pause_us: u64::MAX, until_us: u64::MAX, interval_us: u64::MAX, counted_us: 0, counted: 0 }
    }
}

impl ArrivalRate {
    /// A client asks that asked last `pause_us` ago.
    #[inline]
    pub(crate) fn note_asked(&mut self, pause_us: u64) {
        self.pause_us = self.pause_us.min(pause_us);
    }

    /// Whether what came may wait for more: since `since_us`, for at most `most_us`. Clients have asked `asked` times in all.
    #[inline]
    pub(crate) fn may_wait(&mut self, since_us: u64, now_us: u64, most_us: u64, asked: u64) -> bool {
        let part_us = (self.pause_us / CROWD_PART).min(most_us);
        // A client that asks again at once does not pay for checking the others.
        if part_us == 0 {
            return false;
        }
        self.count(now_us, asked);
        let until_us = since_us + part_us;
        let may_wait = now_us < until_us && part_us / GATHERED_MIN >= self.interval_us;
        if may_wait {
            self.until_us = self.until_us.min(until_us);
        }
        may_wait
    }

    fn count(&mut self, now_us: u64, asked: u64) {
        let passed_us = now_us.saturating_sub(self.counted_us);
        if passed_us >= CROWD_WINDOW_US {
            self.interval_us = passed_us / asked.saturating_sub(self.counted).max(1);
            (self.counted_us, self.counted) = (now_us, asked);
        }
    }

    /// When something of what waits does so no longer, whichever node it is for.
    pub(crate) fn until_us(&self) -> u64 {
        self.until_us
    }

    /// Nothing that waits now does so any longer.
    pub(crate) fn stop(&mut self) {
        self.pause_us = 0;
    }

    /// A turn begins, in which everything that waits is looked at again. If nothing does, the next request decides anew.
    #[inline]
    pub(crate) fn begin_turn(&mut self, is_gathering: bool) {
        self.until_us = u64::MAX;
        if !is_gathering {
            self.pause_us = u64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_US: u64 = 200;

    /// `clients` that ask every `period_us`, one after the other, and how long the last request may wait.
    fn wait_of(clients: u64, period_us: u64) -> u64 {
        let mut crowd = ArrivalRate::default();
        let mut wait_us = 0;
        for round in 1..=20 {
            for client in 0..clients {
                let now_us = round * period_us + client * period_us / clients;
                crowd.begin_turn(false);
                crowd.note_asked(period_us);
                let may_wait = crowd.may_wait(now_us, now_us, MOST_US, round * clients + client);
                wait_us = if may_wait { crowd.until_us() - now_us } else { 0 };
            }
        }
        wait_us
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
        for period_us in [10, 15, 100, 1_000, 10_000] {
            for clients in [1, 2, 10, CROWD_PART * GATHERED_MIN / 2] {
                assert_eq!(wait_of(clients, period_us), 0, "{clients} clients every {period_us} us");
            }
        }
    }

    #[test]
    fn who_asks_again_at_once_takes_all_that_waits_along() {
        let mut crowd = ArrivalRate::default();
        let mut asked = 0;
        for now_us in (100_000..200_000).step_by(20) {
            asked += 1;
            crowd.begin_turn(false);
            crowd.note_asked(10_000);
            crowd.may_wait(now_us, now_us, MOST_US, asked);
        }
        assert!(crowd.may_wait(199_980, 199_980, MOST_US, asked));
        crowd.note_asked(90);
        assert!(!crowd.may_wait(199_980, 199_990, MOST_US, asked + 1));
        crowd.note_asked(10_000);
        assert!(!crowd.may_wait(199_980, 199_995, MOST_US, asked + 2), "it goes with them");
        crowd.begin_turn(false);
        crowd.note_asked(10_000);
        assert!(crowd.may_wait(200_000, 200_000, MOST_US, asked + 3));
        assert!(!crowd.may_wait(200_000, 200_200, MOST_US, asked + 3));
        assert!(!crowd.may_wait(200_000, 200_000, 0, asked + 3), "it is switched off");
        crowd.stop();
        assert!(!crowd.may_wait(200_000, 200_010, MOST_US, asked + 3), "others have had their chance");
    }

    #[test]
    fn what_waits_longest_is_not_made_to_wait_for_what_came_later() {
        let mut crowd = ArrivalRate::default();
        crowd.may_wait(1, 1, MOST_US, 0);
        for (turn, asked) in [(100_000, 10_000), (200_000, 20_000)] {
            crowd.begin_turn(false);
            crowd.note_asked(10_000);
            assert_eq!(crowd.may_wait(turn, turn, MOST_US, asked), asked > 0);
        }
        crowd.begin_turn(true);
        for since_us in [200_000, 200_100, 200_050] {
            assert!(crowd.may_wait(since_us, 200_110, MOST_US, 20_000));
        }
        assert_eq!(crowd.until_us(), 200_200);
        crowd.begin_turn(true);
        assert!(!crowd.may_wait(200_000, 200_200, MOST_US, 20_000));
        assert!(crowd.may_wait(200_050, 200_200, MOST_US, 20_000));
        assert_eq!(crowd.until_us(), 200_250);
    }
}
