//! A private connection is brought back to its plain state.

use crate::ids::LaneHandle;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::table::Clients;
use respool_wire::replies;

/// What a client may have left on a connection, as the requests that undo it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResetNeeded {
    /// MULTI was sent and neither EXEC nor DISCARD.
    pub(crate) is_queueing: bool,
    /// Keys may be watched.
    pub(crate) is_watching: bool,
    /// Another database than the class's may be selected.
    pub(crate) is_elsewhere: bool,
}

/// A clean-up that waits for the node to acknowledge it.
#[derive(Debug)]
pub(crate) struct LaneReset {
    pub(crate) lane: LaneHandle,
    pub(crate) awaited: u16,
    pub(crate) is_clean: bool,
}

impl LaneReset {
    pub(crate) fn new(lane: LaneHandle, awaited: u16) -> Self {
        Self { lane, awaited, is_clean: true }
    }

    fn give_up(&mut self) -> Progress {
        self.is_clean = false;
        Progress::Through
    }
}

impl InternalTask for LaneReset {
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        self.awaited = self.awaited.saturating_sub(1);
        if reply.bytes != replies::OK {
            return self.give_up();
        }
        if self.awaited == 0 { Progress::Through } else { Progress::Waits }
    }

    /// Whether the node has refused to bring this lane back to its plain state.
    fn leaves_something_on(&self, lane: LaneHandle) -> bool {
        self.lane == lane && !self.is_clean
    }

    fn handle_loss(&mut self, _: TaskLoss<'_>, _: &mut Clients) -> Progress {
        self.give_up()
    }
}

#[cfg(test)]
mod tests {
    use super::LaneReset;
    use crate::ids::{Handle, LaneTable};
    use crate::observe::counters::Counters;
    use crate::reply::progress::Progress;
    use crate::reply::task::{InternalTask, TaskReply};
    use crate::session::table::Clients;
    use respool_wire::ReplyKind;
    use std::sync::Arc;

    #[test]
    fn a_lane_is_clean_only_if_the_node_agrees_to_all() {
        let lane = Handle { index: LaneTable::<()>::default().next_id(), generation: 0 };
        let mut clients = Clients::new(Arc::new(Counters::default()));
        let mut clean = |replies: &[&[u8]]| {
            let mut reset = LaneReset::new(lane, 2);
            let feed = |bytes| TaskReply { step: 0, kind: ReplyKind::Simple, bytes };
            let progress: Vec<Progress> =
                replies.iter().map(|bytes| reset.handle_reply(feed(bytes), &mut clients)).collect();
            (progress, reset.leaves_something_on(lane))
        };
        assert_eq!(clean(&[b"+OK\r\n", b"+OK\r\n"]), (vec![Progress::Waits, Progress::Through], false));
        assert_eq!(clean(&[b"-NOPERM no\r\n"]), (vec![Progress::Through], true), "nothing more is waited for");
        assert_eq!(clean(&[b"+OK\r\n", b"-ERR\r\n"]), (vec![Progress::Waits, Progress::Through], true));
    }
}
