//! A node is asked whether it is there.

use crate::pool::table::LaneId;
use crate::reply::progress::{LostReply, Progress};
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::table::Clients;
use respool_wire::replies;

/// A PING on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) lane: LaneId,
    pub(crate) sent_us: u64,
    pub(crate) is_answered: bool,
    /// It has timed out. Until the reply comes, the lane is not idle and is not lent.
    pub(crate) is_late: bool,
}

impl InternalTask for Probe {
    /// Takes the answer.
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        self.is_answered = reply.bytes == replies::PONG;
        // An error says that the node has something to say for itself (`LOADING`, `NOAUTH`), and is in step.
        if self.is_answered || reply.bytes.first() == Some(&b'-') { Progress::Through } else { Progress::OutOfStep }
    }

    /// The reply is late, or the connection has ended.
    fn handle_loss(&mut self, lost: TaskLoss<'_>, _: &mut Clients) -> Progress {
        self.is_late = lost.loss == LostReply::Late;
        if self.is_late { Progress::Waits } else { Progress::Through }
    }

    fn is_late(&self) -> bool {
        self.is_late
    }

    fn may_be_late(&self) -> bool {
        true
    }
}
