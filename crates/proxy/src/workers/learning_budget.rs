//! How many unknown commands nodes are asked for.

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
    Unasked(Vec<u8>),
}
