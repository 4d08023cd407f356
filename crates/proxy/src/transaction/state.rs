//! What a session holds beyond the shared lanes.

use crate::ids::Handle;
use crate::session::marks::{DedicatedMark, WatchFailure, Watches};
use crate::transaction::queue::QueuedCommands;
use crate::transaction::reply_parts::ExecReply;

/// What a session holds. Boxed, and only there while it holds something.
#[derive(Debug, Default)]
pub(crate) struct TransactionState {
    pub(crate) queued: Option<QueuedCommands>,
    pub(crate) since_us: u64,
    pub(crate) watches: Watches,
    /// It watches something in the engine of this process, which keeps so many bytes for that.
    pub(crate) local_watch: Option<usize>,
    /// Keys were watched where they are not any more: EXEC is answered as if one of them had changed.
    pub(crate) is_touched: bool,
    /// Requests that wait: one, or one for each node.
    pub(crate) blocked: Vec<Handle>,
    /// Bytes of those requests.
    pub(crate) waiting_bytes: usize,
    /// What is left to do of an EXEC whose node has answered.
    pub(crate) exec_reply: Option<ExecReply>,
    /// It has connections for good.
    pub(crate) dedicated: Option<DedicatedMark>,
}

impl TransactionState {
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + self.waiting_bytes
            + self.queued.as_ref().map_or(0, QueuedCommands::held_bytes)
            + self.local_watch.unwrap_or(0)
            + self.dedicated.map_or(0, |dedicated| dedicated.bytes)
    }

    /// Whether an EXEC would have requests to run, as far as is known here.
    pub(crate) fn may_run(&self) -> bool {
        let is_whole = self.queued.as_ref().is_some_and(|queued| !queued.is_dirty);
        is_whole && !self.is_touched && self.watches.failure == WatchFailure::None
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queued.is_none()
            && self.watches.lanes.is_empty()
            && self.exec_reply.is_none()
            && self.dedicated.is_none()
            && self.local_watch.is_none()
            && self.blocked.is_empty()
            && !self.is_touched
            && self.watches.failure == WatchFailure::None
    }
}

#[cfg(test)]
mod tests {
    use super::{TransactionState, WatchFailure, Watches};

    #[test]
    fn a_failed_or_lost_watch_is_held_although_no_lane_is() {
        assert!(TransactionState::default().is_empty());
        assert!(!TransactionState { is_touched: true, ..Default::default() }.is_empty());
        assert!(
            !TransactionState {
                watches: Watches { failure: WatchFailure::Fresh, ..Watches::default() },
                ..Default::default()
            }
            .is_empty()
        );
    }

    #[test]
    fn requests_that_wait_count_as_memory() {
        let without = TransactionState::default().held_bytes();
        assert_eq!(TransactionState { waiting_bytes: 1000, ..Default::default() }.held_bytes(), without + 1000);
    }
}
