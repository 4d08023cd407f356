//! Which clients are about to ask again: those that have just been answered and asked again at once the time before.
//!
//! While several of them are awaited, a small batch for a node is held back for a moment, so that what they send shares
//! its write. A client that does not come in time is not waited for again until it has come back promptly once more.

use crate::limits::PROMPT_US_MAX;

/// How one client goes about asking.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientPace {
    /// When its last replies were written.
    answered_us: u64,
    /// Last time it asked again within [`PROMPT_US_MAX`].
    is_prompt: bool,
    /// The period in which it is awaited; 0 if it is not.
    awaited_in: u32,
}

/// The clients of one worker that are awaited.
#[derive(Debug)]
pub(crate) struct ExpectedClients {
    count: usize,
    /// A client that is awaited in an earlier period has not come in time.
    period: u32,
}

impl Default for ExpectedClients {
    fn default() -> Self {
        Self { count: 0, period: 1 }
    }
}

impl ExpectedClients {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// All that a client has asked is answered.
    #[inline]
    pub(crate) fn note_answered(&mut self, pace: &mut ClientPace, now_us: u64) {
        pace.answered_us = now_us;
        if pace.is_prompt && pace.awaited_in != self.period {
            pace.awaited_in = self.period;
            self.count += 1;
        }
    }

    /// A client has asked something.
    #[inline]
    pub(crate) fn note_asked(&mut self, pace: &mut ClientPace, now_us: u64) {
        self.forget(pace);
        pace.is_prompt = now_us.saturating_sub(pace.answered_us) < PROMPT_US_MAX;
    }

    /// A client has gone, or is not awaited any more.
    #[inline]
    pub(crate) fn forget(&mut self, pace: &mut ClientPace) {
        if pace.awaited_in == self.period {
            self.count -= 1;
        }
        pace.awaited_in = 0;
    }

    /// Clients that have not come by now are not awaited any longer.
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
    fn only_clients_that_came_back_at_once_are_awaited() {
        let mut awaited = ExpectedClients::default();
        let (mut prompt, mut slow) = (ClientPace::default(), ClientPace::default());
        for (pace, pause_us) in [(&mut prompt, 10), (&mut slow, PROMPT_US_MAX)] {
            awaited.note_answered(pace, 1_000);
            assert_eq!(awaited.count(), 0, "nothing is known of a new client");
            awaited.note_asked(pace, 1_000 + pause_us);
        }
        awaited.note_answered(&mut prompt, 2_000);
        awaited.note_answered(&mut prompt, 2_000);
        awaited.note_answered(&mut slow, 2_000);
        assert_eq!(awaited.count(), 1);
        awaited.note_asked(&mut prompt, 2_001);
        assert_eq!(awaited.count(), 0);
    }

    #[test]
    fn who_was_given_up_counts_again_only_after_its_next_answer() {
        let mut awaited = ExpectedClients::default();
        let mut pace = ClientPace::default();
        awaited.note_answered(&mut pace, 10);
        awaited.note_asked(&mut pace, 11);
        awaited.note_answered(&mut pace, 20);
        awaited.give_up();
        assert_eq!(awaited.count(), 0);
        awaited.note_asked(&mut pace, 21);
        assert_eq!(awaited.count(), 0);
        awaited.note_answered(&mut pace, 30);
        assert_eq!(awaited.count(), 1);
        awaited.forget(&mut pace);
        awaited.forget(&mut pace);
        assert_eq!(awaited.count(), 0);
    }
}
