//! A node is asked whether it is there.

use crate::ids::LaneId;
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

#[cfg(test)]
mod tests {
    use super::Probe;
    use crate::ids::LaneTable;
    use crate::observe::counters::Counters;
    use crate::reply::progress::{LostReply, Progress};
    use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
    use crate::session::table::Clients;
    use respool_wire::ReplyKind;
    use std::sync::Arc;

    fn probe() -> (Probe, Clients) {
        let lane = LaneTable::<()>::default().next_id();
        let probe = Probe { lane, sent_us: 0, is_answered: false, is_late: false };
        (probe, Clients::new(Arc::new(Counters::default())))
    }

    fn answer(bytes: &[u8]) -> (Progress, bool) {
        let (mut probe, mut clients) = probe();
        let progress = probe.handle_reply(TaskReply { step: 0, kind: ReplyKind::Simple, bytes }, &mut clients);
        (progress, probe.is_answered)
    }

    #[test]
    fn only_pong_or_an_error_can_be_the_reply_to_a_probe() {
        assert_eq!(answer(b"+PONG\r\n"), (Progress::Through, true));
        assert_eq!(answer(b"-LOADING dataset\r\n"), (Progress::Through, false), "the node is there, and in step");
        for other in [&b"$1\r\nv\r\n"[..], b"+OK\r\n", b":1\r\n"] {
            assert_eq!(answer(other), (Progress::OutOfStep, false));
        }
    }

    #[test]
    fn a_late_probe_waits_on_until_its_lane_is_lost() {
        let (mut probe, mut clients) = probe();
        let mut lose = |loss| probe.handle_loss(TaskLoss { step: 0, loss, error: &"ERR".into() }, &mut clients);
        assert_eq!(lose(LostReply::Late), Progress::Waits);
        assert_eq!(lose(LostReply::Unknown), Progress::Through);
    }
}
