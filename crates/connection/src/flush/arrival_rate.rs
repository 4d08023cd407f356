//! How often requests arrive, of whichever client, and how long the clients of those that wait let pass since their last one.

use super::event_rate::EventRate;
use super::limits::FLUSH_LIMITS;

/// The arrivals at one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivalRate {
    /// The shortest time that a client let pass whose request waits, in microseconds.
    gap_us: u64,
    /// How often requests are read.
    reads: EventRate,
    /// Requests that wait are written, whatever else is expected: first set for the next turn, and then in it.
    is_over_next: bool,
    is_over: bool,
}

impl ArrivalRate {
    /// Nothing has arrived.
    pub(crate) const NONE: Self =
        Self { gap_us: u64::MAX, reads: EventRate::NONE, is_over_next: false, is_over: false };

    /// A request has come of a client whose last one came `gap_us` before.
    #[inline]
    pub(crate) fn note_request(&mut self, gap_us: u64) {
        self.gap_us = self.gap_us.min(gap_us);
    }

    /// A turn begins. Requests have been read `reads` times in all; `is_waiting`: some of them have waited since the turn before.
    pub(crate) fn begin_turn(&mut self, now_us: u64, reads: u64, is_waiting: bool) {
        self.is_over = std::mem::take(&mut self.is_over_next);
        if !is_waiting {
            self.gap_us = u64::MAX;
        }
        self.reads.note(now_us, reads);
    }

    /// A turn begins of a worker with so few clients that nothing is delayed.
    #[inline]
    pub(crate) fn pass_turn(&mut self) {
        self.reads.forget();
    }

    /// What waits now is written in the next turn.
    pub(crate) fn end_wait(&mut self) {
        self.is_over_next = true;
    }

    /// How long requests that wait may be delayed, in microseconds: not at all, unless enough others are expected by then.
    pub(crate) fn delay_us(&self, delay_us_max: u64) -> u64 {
        let delay_us = (self.gap_us / FLUSH_LIMITS.delay_divisor).min(delay_us_max);
        let is_worthwhile = !self.is_over && self.reads.expects(FLUSH_LIMITS.arrivals_min, delay_us);
        if is_worthwhile { delay_us } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_US: u64 = 200;

    /// `clients` that ask every `period_us`, one after the other, and how long the last request may wait.
    fn delay_of(clients: u64, period_us: u64) -> u64 {
        let mut rate = ArrivalRate::NONE;
        for round in 1..=20 {
            for client in 0..clients {
                let now_us = round * period_us + client * period_us / clients;
                rate.begin_turn(now_us, round * clients + client, false);
                rate.note_request(period_us);
            }
        }
        rate.delay_us(MOST_US)
    }

    #[test]
    fn a_delay_is_a_small_part_of_the_clients_own_gap() {
        assert_eq!(delay_of(500, 10_000), 200);
        assert_eq!(delay_of(500, 2_000), 2_000 / FLUSH_LIMITS.delay_divisor);
        assert_eq!(delay_of(500, 40_000), 200);
        assert_eq!(delay_of(500, 60_000), 0, "too few come in that time");
        assert_eq!(delay_of(500, 1_000_000), 0);
    }

    #[test]
    fn requests_of_few_clients_are_never_delayed() {
        let few = FLUSH_LIMITS.delay_divisor * FLUSH_LIMITS.arrivals_min / 2;
        for period_us in [10, 15, 100, 1_000, 10_000] {
            for clients in [1, 2, 10, few] {
                assert_eq!(delay_of(clients, period_us), 0, "{clients} clients every {period_us} us");
            }
        }
    }

    /// Requests every 20 us, of clients that each sent 10 ms before.
    fn busy() -> ArrivalRate {
        let mut rate = ArrivalRate::NONE;
        for read in 0..5_000 {
            rate.begin_turn(100_000 + 20 * read, read, false);
            rate.note_request(10_000);
        }
        assert_eq!(rate.delay_us(MOST_US), MOST_US);
        rate
    }

    #[test]
    fn the_client_with_the_shortest_gap_bounds_the_delay() {
        let mut rate = busy();
        rate.note_request(90);
        rate.note_request(10_000);
        assert_eq!(rate.delay_us(MOST_US), 0, "all that waits leaves with its request");
        rate.begin_turn(200_010, 5_001, true);
        assert_eq!(rate.delay_us(MOST_US), 0, "it still waits");
        rate.begin_turn(200_020, 5_002, false);
        rate.note_request(10_000);
        assert_eq!(rate.delay_us(MOST_US), MOST_US);
        assert_eq!(rate.delay_us(0), 0, "no delay is allowed");
    }

    #[test]
    fn a_wait_that_was_ended_is_over_in_the_next_turn() {
        let mut rate = busy();
        rate.end_wait();
        rate.begin_turn(200_010, 5_001, true);
        assert_eq!(rate.delay_us(MOST_US), 0, "what waited is written");
        rate.begin_turn(200_020, 5_002, false);
        rate.note_request(10_000);
        assert_eq!(rate.delay_us(MOST_US), MOST_US, "and the next may wait again");
    }

    #[test]
    fn the_time_before_the_first_turn_is_no_window() {
        let mut rate = ArrivalRate::NONE;
        rate.begin_turn(1_000_000_000, 1_000_000, false);
        rate.note_request(10_000);
        assert_eq!(rate.delay_us(MOST_US), 0, "nothing is known yet");
        rate.begin_turn(1_000_000_000 + FLUSH_LIMITS.window_us, 1_000_001, true);
        assert_eq!(rate.delay_us(MOST_US), 0, "one request came in the window, not a million and one");
    }

    #[test]
    fn counters_and_clocks_that_go_back_do_no_harm() {
        let mut rate = busy();
        rate.begin_turn(0, 0, false);
        rate.begin_turn(u64::MAX, 0, false);
        assert_eq!(rate.delay_us(MOST_US), 0, "nothing has come for ever so long");
    }
}
