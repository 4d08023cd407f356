//! How many unknown commands nodes are asked for.

use crate::error_reply::ErrorReply;

/// A leaky bucket of questions.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// When all questions have been paid for, on the monotonic clock.
    pub(crate) paid_us: u64,
}

impl Bucket {
    /// When the next question may be put; it counts as put.
    pub(crate) fn take(&mut self, now_us: u64, burst: u64, interval_us: u64) -> u64 {
        self.paid_us = self.paid_us.max(now_us) + interval_us;
        self.paid_us.saturating_sub(interval_us * burst)
    }

    /// Whether one more question may be put now.
    pub(crate) fn has_room(&self, now_us: u64, burst: u64, interval_us: u64) -> bool {
        self.paid_us.max(now_us) + interval_us <= now_us + interval_us * burst
    }
}

/// What a client has had nodes asked for.
#[derive(Debug, Default)]
pub(crate) struct LearningBudget {
    pub(crate) bucket: Bucket,
    /// Its turn to ask has come, or it may ask at once.
    pub(crate) has_turn: bool,
    /// The name that was asked for last on its behalf, and what came of it if that is no row. It is for the same request,
    /// which is read again, and so never asks twice.
    pub(crate) outcome: Option<(Box<str>, Outcome)>,
}

/// What came of a question, if it is no row.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Unknown,
    /// There are as many rows as there may be.
    Full,
    /// The nodes could not be asked, or did not answer: the words of the error.
    Unasked(ErrorReply),
}

#[cfg(test)]
mod tests {
    use super::Bucket;
    use crate::limits::{LEARN_BURST, LEARN_INTERVAL_US};

    #[test]
    fn a_bucket_gives_a_burst_and_then_one_in_each_interval() {
        let mut bucket = Bucket::default();
        let mut turns = Vec::new();
        for _ in 0..5 {
            turns.push(bucket.take(1000, 3, 10));
        }
        // Three at once, which means at a time that has come; the others at one interval after another.
        assert!(turns[..3].iter().all(|due_us| *due_us <= 1000), "{turns:?}");
        assert_eq!(turns[3..], [1010, 1020]);
    }

    #[test]
    fn a_bucket_has_room_exactly_when_the_turn_has_come() {
        let mut bucket = Bucket::default();
        for _ in 0..3 {
            assert!(bucket.has_room(1000, 3, 10));
            assert!(bucket.take(1000, 3, 10) <= 1000);
        }
        assert!(!bucket.has_room(1000, 3, 10));
        assert!(!bucket.has_room(1009, 3, 10));
        assert!(bucket.has_room(1010, 3, 10));
        assert!(bucket.take(1010, 3, 10) <= 1010);
    }

    #[test]
    fn questions_have_a_rate() {
        let mut bucket = Bucket::default();
        let now_us = 1_000_000_000;
        let at_once = (0..1_000).filter(|_| bucket.take(now_us, LEARN_BURST, LEARN_INTERVAL_US) <= now_us).count();
        assert_eq!(at_once as u64, LEARN_BURST);
        // Each of the others has a time of its own.
        assert_eq!(bucket.paid_us, now_us + 1_000 * LEARN_INTERVAL_US);
    }
}
