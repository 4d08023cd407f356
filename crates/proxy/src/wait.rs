//! What nodes are asked on behalf of requests that wait: as tasks, since the replies are read here first.

use crate::slab::Handle;
use crate::tasks::{Progress, Task};
use crate::text;
use respool_wire::{ReplyKind, elements, replies};

/// What the node is asked on behalf of requests that wait, and what it said.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) purpose: WaitPurpose,
    pub(crate) reply: Option<(ReplyKind, Vec<u8>)>,
    /// The reply is not the node's: its connection has gone.
    pub(crate) is_lost: bool,
}

/// What for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WaitPurpose {
    /// The number of a fresh connection.
    Number { lane: Handle },
    /// The request itself.
    Request { waiter: Handle, lane: Handle },
    /// The request, without waiting.
    Try { waiter: Handle },
    /// To let the request go.
    Unblock { waiter: Handle, lane: Handle },
}

/// The requests of these tasks: what comes before, and the one whose reply counts.
pub(crate) const BEFORE: u16 = 0;
pub(crate) const COUNTS: u16 = 1;

impl Wait {
    pub(crate) fn task(purpose: WaitPurpose) -> Task {
        Task::Wait(Box::new(Self { purpose, reply: None, is_lost: false }))
    }

    pub(crate) fn feed(&mut self, step: u16, kind: ReplyKind, reply: &[u8]) -> Progress {
        if !kind.is_error() && !self.is_fit(step, kind, reply) {
            self.reply = Some((ReplyKind::Error, text::wait_in_doubt()));
            return Progress::OutOfStep;
        }
        // An error on the way, such as a request that cannot be queued, says more than the one that follows from it.
        let has_error = self.reply.as_ref().is_some_and(|(kind, _)| kind.is_error());
        if (step == COUNTS || kind.is_error()) && !has_error {
            self.reply = Some((kind, reply.to_vec()));
        }
        if step == COUNTS { Progress::Through } else { Progress::Waits }
    }

    /// Whether a node may answer so. What does not fit is another request's, and so are the replies behind it.
    fn is_fit(&self, step: u16, kind: ReplyKind, reply: &[u8]) -> bool {
        match (self.purpose, step) {
            (WaitPurpose::Number { .. } | WaitPurpose::Unblock { .. }, _) => kind == ReplyKind::Integer,
            (WaitPurpose::Request { .. }, BEFORE) => reply == replies::PONG,
            (WaitPurpose::Request { .. }, _) => true,
            (WaitPurpose::Try { .. }, BEFORE) => reply == replies::OK || reply == replies::QUEUED,
            (WaitPurpose::Try { .. }, _) => elements(reply).is_some_and(|replies| replies.declared() == 1),
        }
    }

    pub(crate) fn fail(&mut self, error: &[u8]) -> Progress {
        self.reply = Some((ReplyKind::Error, error.to_vec()));
        self.is_lost = true;
        Progress::Through
    }
}
