//! Which clients are about to send again: those that have just been answered and sent again at once the time before.
//!
//! A client that does not come in time is not waited for again until it has come back promptly once more.

use super::limits::FLUSH_LIMITS;

/// How soon one client sends again.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientPace {
    /// When its last replies were written.
    answered_us: u64,
    /// Last time it sent again within [`super::FlushLimits::return_us_max`].
    is_prompt: bool,
    /// The period in which it is expected; 0 if it is not.
    expected_in: u32,
}

/// The clients of one worker that are expected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReturningClients {
    count: usize,
    /// A client that is expected in an earlier period has not come in time.
    period: u32,
}

impl ReturningClients {
    /// None is expected.
    pub(crate) const NONE: Self = Self { count: 0, period: 1 };

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// All that a client has asked is answered.
    #[inline]
    pub(crate) fn note_answered(&mut self, pace: &mut ClientPace, now_us: u64) {
        pace.answered_us = now_us;
        if pace.is_prompt && pace.expected_in != self.period {
            pace.expected_in = self.period;
            self.count += 1;
        }
    }

    /// A client has sent something.
    #[inline]
    pub(crate) fn note_request(&mut self, pace: &mut ClientPace, now_us: u64) {
        self.forget(pace);
        pace.is_prompt = now_us.saturating_sub(pace.answered_us) < FLUSH_LIMITS.return_us_max;
    }

    /// A client has gone, or is not expected any more.
    #[inline]
    pub(crate) fn forget(&mut self, pace: &mut ClientPace) {
        if pace.expected_in == self.period {
            self.count -= 1;
        }
        pace.expected_in = 0;
    }

    /// Clients that have not come by now are not expected any longer.
    pub(crate) fn give_up(&mut self) {
        self.count = 0;
        // Never 0, which stands for none.
        self.period = self.period.wrapping_add(1).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clients_that_came_back_at_once_are_expected() {
        let mut returning = ReturningClients::NONE;
        let (mut prompt, mut slow) = (ClientPace::default(), ClientPace::default());
        for (pace, gap_us) in [(&mut prompt, 10), (&mut slow, FLUSH_LIMITS.return_us_max)] {
            returning.note_answered(pace, 1_000);
            assert_eq!(returning.count(), 0, "nothing is known of a new client");
            returning.note_request(pace, 1_000 + gap_us);
        }
        returning.note_answered(&mut prompt, 2_000);
        returning.note_answered(&mut prompt, 2_000);
        returning.note_answered(&mut slow, 2_000);
        assert_eq!(returning.count(), 1);
        returning.note_request(&mut prompt, 2_001);
        assert_eq!(returning.count(), 0);
    }

    #[test]
    fn a_client_given_up_counts_again_after_its_next_answer() {
        let mut returning = ReturningClients::NONE;
        let mut pace = ClientPace::default();
        returning.note_answered(&mut pace, 10);
        returning.note_request(&mut pace, 11);
        returning.note_answered(&mut pace, 20);
        returning.give_up();
        assert_eq!(returning.count(), 0);
        returning.note_request(&mut pace, 21);
        assert_eq!(returning.count(), 0);
        returning.note_answered(&mut pace, 30);
        assert_eq!(returning.count(), 1);
        returning.forget(&mut pace);
        returning.forget(&mut pace);
        assert_eq!(returning.count(), 0);
    }

    #[test]
    fn a_client_given_up_for_a_whole_turn_of_periods_does_no_harm() {
        let mut returning = ReturningClients { count: 0, period: u32::MAX };
        returning.give_up();
        assert_eq!(returning.period, 1, "0 stands for none");
    }
}
