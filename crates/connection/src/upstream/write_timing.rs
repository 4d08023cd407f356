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
    pub(super) usual_batch: usize,
}
