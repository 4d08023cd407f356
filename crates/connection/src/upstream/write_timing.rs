//! What the time of a connection's next write depends on.

use crate::FlushPolicy;

#[derive(Debug, Default)]
pub(super) struct WriteTiming {
    pub(super) policy: FlushPolicy,
    /// Replies came since the last write.
    pub(super) has_reply_come: bool,
    /// The outbox begins with what counts as sent, or holds what belongs to no ticket. Up to date only where unanswered requests are recorded.
    pub(super) has_rest: bool,
    /// When the outbox last went from empty to not empty.
    pub(super) held_since_us: u64,
    /// Requests per write of late, in sixteenths.
    pub(super) usual_requests: usize,
    /// The senders of those.
    pub(super) usual_senders: usize,
    /// Senders of the requests that wait to be written.
    pub(super) senders: usize,
}

impl WriteTiming {
    /// So many requests have been written at once, and all that waited with them. Each write has a weight of one sixteenth.
    #[inline]
    pub(super) fn note_batch(&mut self, requests: usize) {
        let senders = std::mem::take(&mut self.senders);
        self.usual_requests = self.usual_requests - self.usual_requests / 16 + requests;
        self.usual_senders = self.usual_senders - self.usual_senders / 16 + senders;
    }
}
