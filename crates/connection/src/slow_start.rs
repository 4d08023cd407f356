//! Slow start: how much a node that has just come back is sent.
//!
//! A node that was away has cold caches, and all clients that waited for it come at once. What may be written grows with the
//! square of the time since it came back; what may not be written yet waits in the outbox, whose budget then holds clients
//! back as it does for any slow node. No request is refused for it.

use crate::limits::{RAMP_BYTES_MAX, RAMP_BYTES_MIN, RAMP_STEP_US};

/// The first moments of a connection to a node that was away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    since_us: u64,
    length_us: u64,
    written: u64,
    allowed: usize,
    again_us: u64,
}

impl Ramp {
    pub(crate) fn begin(now_us: u64, length_us: u64) -> Self {
        let again_us = now_us + RAMP_STEP_US;
        Self { since_us: now_us, length_us, written: 0, allowed: RAMP_BYTES_MIN as usize, again_us }
    }

    /// Time has passed. `false`: the ramp is over.
    pub(crate) fn go_on(&mut self, now_us: u64) -> bool {
        let elapsed_us = now_us.saturating_sub(self.since_us);
        if elapsed_us >= self.length_us {
            return false;
        }
        let share = u128::from(elapsed_us).pow(2) * u128::from(RAMP_BYTES_MAX) / u128::from(self.length_us).pow(2);
        let total = RAMP_BYTES_MIN + u64::try_from(share).unwrap_or(RAMP_BYTES_MAX);
        self.allowed = usize::try_from(total.saturating_sub(self.written)).unwrap_or(usize::MAX);
        self.again_us = now_us + RAMP_STEP_US;
        true
    }

    /// Bytes that may be written now.
    pub(crate) fn allowed(&self) -> usize {
        self.allowed
    }

    /// When more may be.
    pub(crate) fn again_us(&self) -> u64 {
        self.again_us
    }

    pub(crate) fn note_written(&mut self, bytes: usize) {
        self.written += bytes as u64;
        self.allowed = self.allowed.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lets_a_little_through_at_once_and_ever_more() {
        let mut ramp = Ramp::begin(1_000, 1_000_000);
        let mut written = Vec::new();
        for millis in 0..1000 {
            assert!(ramp.go_on(1_000 + millis * 1000));
            let allowed = ramp.allowed();
            ramp.note_written(allowed);
            assert_eq!(ramp.allowed(), 0);
            written.push(allowed as u64);
        }
        assert_eq!(written[0], RAMP_BYTES_MIN);
        assert!(written[1..].is_sorted());
        let total: u64 = written.iter().sum();
        assert!(total > RAMP_BYTES_MAX * 9 / 10 && total <= RAMP_BYTES_MAX + RAMP_BYTES_MIN, "{total}");
        assert!(!ramp.go_on(1_001_000), "then it is over");
    }

    #[test]
    fn what_was_not_used_may_be_used_later() {
        let mut ramp = Ramp::begin(0, 1_000_000);
        ramp.note_written(100);
        assert!(ramp.go_on(500_000));
        assert_eq!(ramp.allowed() as u64, RAMP_BYTES_MIN + RAMP_BYTES_MAX / 4 - 100);
    }
}
