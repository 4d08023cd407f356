//! A node is asked whether it is there.

use crate::pool::table::LaneId;
use crate::reply::progress::{LostReply, Progress};
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

impl Probe {
    /// Takes the answer.
    pub(crate) fn feed(&mut self, reply: &[u8]) -> Progress {
        self.is_answered = reply == replies::PONG;
        // An error says that the node has something to say for itself (`LOADING`, `NOAUTH`), and is in step.
        if self.is_answered || reply.first() == Some(&b'-') { Progress::Through } else { Progress::OutOfStep }
    }

    /// The reply is late, or the connection has ended.
    pub(crate) fn fail(&mut self, loss: LostReply) -> Progress {
        self.is_late = loss == LostReply::Late;
        if self.is_late { Progress::Waits } else { Progress::Through }
    }

    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }
}
