//! What the time of a connection's next write depends on.

use crate::FlushPolicy;
use crate::flush::Usual;

#[derive(Debug, Default)]
pub(super) struct WriteTiming {
    pub(super) policy: FlushPolicy,
    /// Replies came since the last write.
    pub(super) has_reply_come: bool,
    /// The outbox begins with what counts as sent, or holds what belongs to no ticket. Up to date only where unanswered requests are recorded.
    pub(super) has_rest: bool,
    /// When the outbox last went from empty to not empty.
    pub(super) held_since_us: u64,
    /// Requests per write of late.
    pub(super) usual_requests: Usual,
    /// The senders of those.
    pub(super) usual_senders: Usual,
    /// Requests of the connection's own among those that wait to be written.
    pub(super) own_requests: usize,
    /// Senders of the others.
    pub(super) senders: usize,
}

impl WriteTiming {
    /// So many requests have been written at once, and all that waited with them.
    #[inline]
    pub(super) fn note_batch(&mut self, requests: usize) {
        self.usual_requests.note(requests.saturating_sub(std::mem::take(&mut self.own_requests)));
        self.usual_senders.note(std::mem::take(&mut self.senders));
    }
}
