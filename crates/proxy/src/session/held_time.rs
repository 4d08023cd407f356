//! For how long requests of a client have been held back by `PROXY PAUSE`, and what was refused because of that: see
//! [`crate::request::held_requests`].
//!
//! For how long a client has been idle: it has sent nothing, has taken nothing of what was written to it, and nothing has kept it waiting.
//!
//! ```text
//!   sends, takes a part of a reply, waits for an element, a node or an operator          nothing of that
//!   [busy] <---------------------------------------------------------------------------------> [idle since]
//! ```
//!
//! What has been written is compared when the timers run, and only where a timeout is set: nothing is noted on the way of a request or of a
//! reply. So a client may be taken for busy for one run of the timers too long, and never for idle too early.

/// Since when requests of a client are held, and when they timed out, in microseconds of the monotonic clock; 0: not at
/// all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldTime {
    since_us: u64,
    /// When the timeout was found to be over.
    over_us: u64,
}

impl HeldTime {
    /// Whether a held request has timed out. `sent_us`: when its client sent something last.
    pub(crate) fn is_over(&mut self, now_us: u64, sent_us: u64, patience_us: u64) -> bool {
        if self.over_us > 0 && sent_us > self.over_us {
            *self = Self::default();
        }
        if self.since_us == 0 {
            self.since_us = now_us.max(1);
        }
        let is_over = patience_us > 0 && now_us.saturating_sub(self.since_us) >= patience_us;
        if is_over && self.over_us == 0 {
            self.over_us = now_us;
        }
        is_over
    }

    /// A request is not held: the timeout of the next one that is starts anew, unless that one had been sent before another
    /// was refused.
    pub(crate) fn pass(&mut self) {
        if self.over_us == 0 {
            *self = Self::default();
        }
    }

    /// Whether the timeout is over.
    pub(crate) fn is_due(self, now_us: u64, patience_us: u64) -> bool {
        self.since_us > 0 && now_us.saturating_sub(self.since_us) >= patience_us
    }
}

/// When a client was last seen to be busy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdleTime {
    /// In microseconds of the monotonic clock.
    pub(super) busy_us: u64,
    /// What had been written to it by then.
    pub(super) written_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_by_then_is_refused_and_what_comes_later_waits() {
        let mut held = HeldTime::default();
        assert!(!held.is_over(100, 90, 50) && !held.is_over(149, 120, 50));
        assert!(!held.is_due(149, 50) && held.is_due(150, 50));
        assert!(held.is_over(150, 120, 50) && held.is_over(151, 120, 50));
        assert!(!held.is_over(160, 160, 50), "it was sent after the refusal");
        assert!(!held.is_over(200, 160, 50) && held.is_over(210, 160, 50));
    }

    #[test]
    fn a_request_that_is_not_held_ends_no_refusal() {
        let mut held = HeldTime::default();
        assert!(!held.is_over(100, 90, 50));
        held.pass();
        assert!(!held.is_over(149, 90, 50) && !held.is_over(198, 90, 50) && held.is_over(199, 90, 50));
        held.pass();
        assert!(held.is_over(199, 90, 50), "it had been sent by then");
        held.pass();
        assert!(!held.is_over(300, 250, 50), "it was sent after the refusal");
    }

    #[test]
    fn without_a_bound_a_request_waits_as_long_as_it_is_held() {
        let mut held = HeldTime::default();
        assert!(!held.is_over(1, 1, 0) && !held.is_over(u64::MAX, 1, 0));
    }
}
