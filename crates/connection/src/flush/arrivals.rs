//! What is known of the clients of one worker: which are about to send again, and how often requests arrive.

use super::arrival_rate::ArrivalRate;
use super::limits::FLUSH_LIMITS;
use super::returning_clients::{ClientPace, ReturningClients};

/// What clients are expected to send. One for each worker.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    returning: ReturningClients,
    rate: ArrivalRate,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::NONE
    }
}

impl Arrivals {
    /// Nothing is known, and nothing expected.
    pub const NONE: Self = Self { returning: ReturningClients::NONE, rate: ArrivalRate::NONE };

    /// A turn of a worker whose policy is [`super::FlushPolicy::Adaptive`] begins. Requests have been read `reads` times in all;
    /// `is_delayed`: some of them have waited for others since the turn before; there are so many `clients`.
    #[inline]
    pub fn begin_turn(&mut self, now_us: u64, reads: u64, is_delayed: bool, clients: usize) {
        // Of fewer clients no further requests come within the delay, which is a part of the time that one of them lets pass.
        if clients < (FLUSH_LIMITS.delay_divisor * FLUSH_LIMITS.arrivals_min) as usize {
            self.rate.pass_turn();
        } else {
            self.rate.begin_turn(now_us, reads, is_delayed);
        }
    }

    /// The policy is another. How often requests arrived is not known: it was not watched without a delay.
    pub fn watch_anew(&mut self) {
        self.rate = ArrivalRate::NONE;
    }

    /// A client has sent something, whose last bytes came `gap_us` before.
    #[inline]
    pub fn note_request(&mut self, pace: &mut ClientPace, gap_us: u64, now_us: u64) {
        self.rate.note_request(gap_us);
        self.returning.note_request(pace, now_us);
    }

    /// A client has been written everything that it is owed.
    #[inline]
    pub fn note_answered(&mut self, pace: &mut ClientPace, now_us: u64) {
        self.returning.note_answered(pace, now_us);
    }

    /// A client has gone.
    pub fn forget(&mut self, pace: &mut ClientPace) {
        self.returning.forget(pace);
    }

    /// Clients that have not come by now are not expected any longer.
    pub fn give_up_clients(&mut self) {
        self.returning.give_up();
    }

    /// What is delayed now is written in the next turn.
    pub fn end_delay(&mut self) {
        self.rate.end_wait();
    }

    /// Clients that are about to send again.
    #[inline]
    pub fn returning(&self) -> usize {
        self.returning.count()
    }

    /// How long what waits may be delayed, in microseconds; 0 if too few requests are expected within that time.
    pub(super) fn delay_us(&self, delay_us_max: u64) -> u64 {
        self.rate.delay_us(delay_us_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_few_clients_send_is_never_delayed() {
        let most = (FLUSH_LIMITS.delay_divisor * FLUSH_LIMITS.arrivals_min) as usize;
        let mut arrivals = Arrivals::NONE;
        let mut pace = ClientPace::default();
        let mut run = |clients: usize, from_us: u64| {
            for read in 0..1_000 {
                let now_us = from_us + 20 * read;
                arrivals.begin_turn(now_us, read, false, clients);
                arrivals.note_request(&mut pace, 10_000, now_us);
            }
            arrivals.delay_us(200)
        };
        assert_eq!(run(most, 1), 200);
        assert_eq!(run(most - 1, 100_000), 0, "what was known of many clients is forgotten");
        assert_eq!(run(most, 200_000), 200);
    }
}
