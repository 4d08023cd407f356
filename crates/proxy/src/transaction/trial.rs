//! A trial of MULTI on a connection: what its replies say.

use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{Asker, LaneHandle, LaneKeyId};
use crate::nodes::moves::Moves;
use crate::nodes::multi::Multi;
use crate::reply::progress::{LostReply, Progress};
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::table::Clients;
use crate::transaction::exec_request::{Exec, is_error};
use respool_command::text::is_exec_abort;
use respool_wire::{elements, replies};

/// The requests of a trial.
pub(crate) const BEGIN: u16 = 0;

pub(crate) const END: u16 = 1;

/// A trial on its way.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) lane: LaneHandle,
    /// The block that is sent, or refused, once it is known. `None`: it is known for the next request that needs it.
    pub(crate) exec: Option<Box<Exec>>,
    /// MULTI was not refused.
    pub(crate) has_begun: bool,
    /// No transaction is open at the node.
    pub(crate) is_over: bool,
    pub(crate) refusal: Option<ErrorReply>,
    /// The time is over. What comes nevertheless is still looked at, since others share the connection.
    pub(crate) is_late: bool,
}

impl Trial {
    /// What is known by it.
    pub(crate) fn verdict(&self) -> Multi {
        match self.is_over {
            true if self.has_begun => Multi::Taken,
            true => Multi::Refused(self.refusal.clone().unwrap_or_else(|| error_text::MULTI_IN_DOUBT.into())),
            false => Multi::Unknown,
        }
    }

    fn feed(&mut self, step: u16, reply: &[u8]) -> Progress {
        if step == BEGIN {
            self.has_begun = reply == replies::OK;
            if self.has_begun {
                return Progress::Waits;
            }
            self.refusal = Some(ErrorReply::of_reply(reply));
            return if is_error(reply) { Progress::Waits } else { Progress::OutOfStep };
        }
        // Behind a MULTI that was refused EXEC is refused, too, whatever the words. Behind one that was taken only its
        // end counts: a transaction that is open would go on with the requests of others.
        self.is_over = match self.has_begun {
            true => elements(reply).is_some_and(|none| none.declared() == 0) || is_exec_abort(reply),
            false => is_error(reply),
        };
        if self.is_over {
            return Progress::Through;
        }
        self.refusal = is_error(reply).then(|| ErrorReply::of_reply(reply));
        Progress::OutOfStep
    }
}

impl InternalTask for Trial {
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        self.feed(reply.step, reply.bytes)
    }

    /// The class of the transaction that waits for it, if any.
    fn class(&self) -> Option<LaneKeyId> {
        self.exec.as_ref()?.class()
    }

    /// The client whose block waits for it, if one does.
    fn asker(&self) -> Option<Asker> {
        Some(self.exec.as_ref()?.asker)
    }

    /// Has the block that waits for it run on the connection that is tried, if that is this one. Returns whether it does.
    fn bind_to(&mut self, lane: LaneHandle) -> bool {
        match &mut self.exec {
            Some(exec) if self.lane == lane && !exec.is_answered() => {
                exec.take_for_itself(lane);
                true
            }
            _ => false,
        }
    }

    /// No reply will come, or none in time. Of what waits for it nothing has been sent.
    fn handle_loss(&mut self, lost: TaskLoss<'_>, clients: &mut Clients) -> Progress {
        let mut progress = Progress::Through;
        if let Some(exec) = &mut self.exec {
            let is_unsent = lost.loss == LostReply::Unsent;
            let error = if is_unsent { lost.error } else { &error_text::not_executed(lost.error) };
            progress = exec.fail(lost.loss, error, clients);
        }
        self.is_late |= progress == Progress::Waits;
        progress
    }

    fn multi(&self) -> Option<Multi> {
        Some(self.verdict())
    }

    fn is_late(&self) -> bool {
        self.is_late
    }

    fn may_be_late(&self) -> bool {
        true
    }

    /// Other nodes are configured.
    fn move_to(&mut self, moves: &Moves, has_other_ways: bool) {
        if let Some(exec) = &mut self.exec {
            exec.follow(moves, has_other_ways);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Handle, LaneTable};

    fn trial(replies: &[&[u8]]) -> (Progress, bool) {
        let lane = Handle { index: LaneTable::<()>::default().next_id(), generation: 0 };
        let mut trial = Trial { lane, exec: None, has_begun: false, is_over: false, refusal: None, is_late: false };
        let mut progress = Progress::Waits;
        for (step, reply) in replies.iter().enumerate() {
            assert_eq!(progress, Progress::Waits);
            progress = trial.feed(step as u16, reply);
        }
        (progress, trial.verdict().is_taken())
    }

    #[test]
    fn only_the_end_of_a_transaction_ends_a_trial() {
        assert_eq!(trial(&[b"+OK\r\n", b"*0\r\n"]), (Progress::Through, true));
        assert_eq!(
            trial(&[b"+OK\r\n", b"-EXECABORT Transaction discarded because of: BUSY\r\n"]),
            (Progress::Through, true)
        );
        for open in [
            &b"-BUSY Redis is busy\r\n"[..],
            b"-NOPERM no\r\n",
            b"-ERR unknown command\r\n",
            b"+QUEUED\r\n",
            b"*1\r\n+a\r\n",
        ] {
            assert_eq!(trial(&[b"+OK\r\n", open]), (Progress::OutOfStep, false));
        }
        for end in [&b"-ERR EXEC without MULTI\r\n"[..], b"-NOPERM no\r\n"] {
            assert_eq!(trial(&[b"-NOPERM no\r\n", end]), (Progress::Through, false));
        }
        assert_eq!(trial(&[b"-NOPERM no\r\n", b"*0\r\n"]), (Progress::OutOfStep, false));
        assert_eq!(trial(&[b"$1\r\na\r\n"]), (Progress::OutOfStep, false));
    }
}
