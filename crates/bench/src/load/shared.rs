//! What the threads of one run have in common: what is left to send, how far they are, and whether to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::clock::monotonic_ns;
use crate::plan::Plan;

/// What the threads of one run have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Requests that no thread has taken.
    left: AtomicU64,
    /// Threads whose connections are not all there.
    waiting: AtomicUsize,
    /// When the run began; 0 before.
    began_ns: AtomicU64,
    is_stopped: AtomicBool,
    /// Replies so far, for the bar on the terminal.
    replies: AtomicU64,
}

impl Shared {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            left: AtomicU64::new(plan.requests.unwrap_or(u64::MAX)),
            waiting: AtomicUsize::new(plan.threads),
            began_ns: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            replies: AtomicU64::new(0),
        }
    }

    /// Takes up to `most` of the requests that are left.
    pub(super) fn lease(&self, most: u64) -> u64 {
        let take = |left: u64| Some(left - left.min(most));
        // Only this number is shared by it, and it cannot fail: the closure always has an answer.
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).unwrap_or(0);
        left.min(most)
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// One thread's connections are all there. The last one begins the run.
    pub(super) fn note_ready(&self) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.began_ns.store(monotonic_ns(), Ordering::Release);
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.began_ns() > 0
    }

    /// When the run began; 0 before.
    pub(crate) fn began_ns(&self) -> u64 {
        self.began_ns.load(Ordering::Acquire)
    }

    /// Nothing more is sent.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(super) fn add_replies(&self, replies: u64) {
        self.replies.fetch_add(replies, Ordering::Relaxed);
    }

    /// Replies so far, those of the warm-up included.
    pub(crate) fn replies(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }
}
