//! What is known of the clients of one worker: which are about to send again, how often requests arrive, and how much of its
//! time the core has left for them.

use super::arrival_rate::ArrivalRate;
use super::core_load::CoreLoad;
use super::returning_clients::{ClientPace, ReturningClients};

/// What clients are expected to send. One for each worker.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    returning: ReturningClients,
    rate: ArrivalRate,
    core: CoreLoad,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self::NONE
    }
}

impl Arrivals {
    /// Nothing is known, and nothing expected.
    pub const NONE: Self = Self { returning: ReturningClients::NONE, rate: ArrivalRate::NONE, core: CoreLoad::NONE };

    /// A turn of a worker whose policy is [`super::FlushPolicy::Adaptive`] begins. Requests have been read `reads` times in all;
    /// `is_delayed`: some of them have waited for others since the turn before.
    pub fn begin_turn(&mut self, now_us: u64, reads: u64, is_delayed: bool) {
        if let Some(passed_us) = self.rate.begin_turn(now_us, reads, is_delayed) {
            self.core.end_window(passed_us);
        }
    }

    /// The policy is another. How often requests arrived and what the core did is not known: neither was watched without a delay.
    pub fn watch_anew(&mut self) {
        (self.rate, self.core) = (ArrivalRate::NONE, CoreLoad::NONE);
    }

    /// The loop has waited for so long; `is_held`: for requests, while bytes were held for them.
    pub fn note_waited(&mut self, waited_us: u64, is_held: bool) {
        self.core.note_waited(waited_us, is_held);
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

    /// Whether work waits for the core.
    pub(super) fn is_core_busy(&self) -> bool {
        self.core.is_busy()
    }
}
