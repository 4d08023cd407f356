//! What nodes are asked on behalf of requests that wait: as tasks, since the replies are read here first.

use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{Handle, LaneHandle};
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::table::Clients;
use respool_command::text::is_exec_abort;
use respool_wire::{ReplyKind, elements, replies};

/// What the node is asked on behalf of requests that wait, and what it said.
#[derive(Debug)]
pub(crate) struct NodeQuery {
    pub(crate) purpose: NodeQueryPurpose,
    pub(crate) reply: Option<(ReplyKind, Vec<u8>)>,
    /// The reply is not the node's: its connection has gone.
    pub(crate) is_lost: bool,
    /// The node has taken the MULTI of a try.
    pub(crate) has_begun: bool,
    /// Bytes of what is tried for a client that its reply may have.
    pub(crate) reply_bytes_max: Option<usize>,
}

/// What for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeQueryPurpose {
    /// The number of a fresh connection.
    Number { lane: LaneHandle },
    /// The request itself.
    Request { blocked: Handle, lane: LaneHandle },
    /// The request, without waiting.
    Try { blocked: Handle, lane: LaneHandle },
    /// To let the request go.
    Unblock { blocked: Handle, lane: LaneHandle },
}

/// The requests of these tasks: what comes before, and the one whose reply counts.
pub(crate) const BEFORE: u16 = 0;
pub(crate) const COUNTS: u16 = 1;
/// Those of a try: MULTI, the request, and EXEC, whose reply counts.
pub(crate) const BEGIN: u16 = 2;
pub(crate) const QUEUE: u16 = 3;

impl NodeQuery {
    pub(crate) fn new(purpose: NodeQueryPurpose) -> Self {
        Self { purpose, reply: None, is_lost: false, has_begun: false, reply_bytes_max: None }
    }

    fn feed(&mut self, step: u16, kind: ReplyKind, reply: &[u8]) -> Progress {
        if let NodeQueryPurpose::Try { .. } = self.purpose {
            return self.feed_try(step, kind, reply);
        }
        if !kind.is_error() && !self.is_fit(step, kind) {
            return self.doubt();
        }
        // An error on the way, such as a request that cannot be queued, says more than the one that follows from it.
        let has_error = self.reply.as_ref().is_some_and(|(kind, _)| kind.is_error());
        if (step == COUNTS || kind.is_error()) && !has_error {
            self.reply = Some((kind, reply.to_vec()));
        }
        if step == COUNTS { Progress::Through } else { Progress::Waits }
    }

    /// Whether a node may answer so. What does not fit is another request's, and so are the replies behind it.
    fn is_fit(&self, step: u16, kind: ReplyKind) -> bool {
        match (self.purpose, step) {
            (NodeQueryPurpose::Number { .. } | NodeQueryPurpose::Unblock { .. }, _) => kind == ReplyKind::Integer,
            (NodeQueryPurpose::Request { .. }, BEFORE) => kind == ReplyKind::Integer,
            (NodeQueryPurpose::Request { .. }, _) => true,
            (NodeQueryPurpose::Try { .. }, _) => true,
        }
    }

    /// A request that is tried. What is kept is the reply to EXEC, or what would have been: if the node has refused MULTI
    /// although it took it before, it has done the request as it is, and what it answers to that is the reply.
    fn feed_try(&mut self, step: u16, kind: ReplyKind, reply: &[u8]) -> Progress {
        match step {
            BEGIN => {
                self.has_begun = reply == replies::OK;
                if self.has_begun || kind.is_error() { Progress::Waits } else { self.doubt() }
            }
            QUEUE if !self.has_begun => {
                let is_error = kind.is_error();
                let kept = if is_error { reply.to_vec() } else { [b"*1\r\n", reply].concat() };
                self.reply = Some((if is_error { ReplyKind::Error } else { ReplyKind::Array }, kept));
                Progress::Waits
            }
            QUEUE if kind.is_error() => {
                // It says more than what follows from it.
                self.reply = Some((kind, reply.to_vec()));
                Progress::Waits
            }
            QUEUE if reply == replies::QUEUED => Progress::Waits,
            QUEUE => self.doubt(),
            _ if !self.has_begun => {
                if kind.is_error() {
                    Progress::Through
                } else {
                    self.doubt()
                }
            }
            _ if is_exec_abort(reply) || elements(reply).is_some_and(|replies| replies.declared() == 1) => {
                self.reply.get_or_insert_with(|| (kind, reply.to_vec()));
                Progress::Through
            }
            // The transaction may still be open: the connection is of no use to the next request that is tried.
            _ => {
                let kept = || if kind.is_error() { reply.to_vec() } else { in_doubt() };
                self.reply.get_or_insert_with(|| (ReplyKind::Error, kept()));
                Progress::OutOfStep
            }
        }
    }

    /// No node answers so: what comes next is the reply to another request.
    fn doubt(&mut self) -> Progress {
        self.reply = Some((ReplyKind::Error, in_doubt()));
        Progress::OutOfStep
    }
}

fn in_doubt() -> Vec<u8> {
    ErrorReply::new(error_text::BLOCKED_IN_DOUBT).into_bytes()
}

impl InternalTask for NodeQuery {
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        self.feed(reply.step, reply.kind, reply.bytes)
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, _: &mut Clients) -> Progress {
        self.reply = Some((ReplyKind::Error, lost.error.as_bytes().to_vec()));
        self.is_lost = true;
        Progress::Through
    }

    fn reply_bytes_max(&self) -> Option<usize> {
        self.reply_bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LaneTable;

    fn lane() -> LaneHandle {
        Handle { index: LaneTable::<()>::default().next_id(), generation: 0 }
    }

    fn asked(purpose: NodeQueryPurpose, replies: &[(u16, ReplyKind, &[u8])]) -> (Progress, Option<Vec<u8>>) {
        let mut query = NodeQuery::new(purpose);
        let mut progress = Progress::Waits;
        for (step, kind, reply) in replies {
            assert_eq!(progress, Progress::Waits, "nothing is fed to what is through");
            progress = query.feed(*step, *kind, reply);
        }
        (progress, query.reply.map(|(_, reply)| reply))
    }

    fn tried(replies: &[(u16, ReplyKind, &[u8])]) -> (Progress, Option<Vec<u8>>) {
        asked(NodeQueryPurpose::Try { blocked: Handle { index: 0, generation: 0 }, lane: lane() }, replies)
    }

    use ReplyKind::{Array, Error, Integer, Simple};

    #[test]
    fn a_connections_number_is_an_integer_or_the_reply_is_anothers() {
        let number = NodeQueryPurpose::Number { lane: lane() };
        assert_eq!(asked(number, &[(COUNTS, Integer, b":7\r\n")]), (Progress::Through, Some(b":7\r\n".to_vec())));
        assert_eq!(asked(number, &[(COUNTS, Simple, b"+OK\r\n")]).0, Progress::OutOfStep);
        assert_eq!(asked(number, &[(COUNTS, Error, b"-NOPERM\r\n")]).0, Progress::Through);
    }

    #[test]
    fn an_error_on_the_way_says_more_than_the_reply_behind_it() {
        let request = NodeQueryPurpose::Request { blocked: Handle { index: 0, generation: 0 }, lane: lane() };
        let replies = [(BEFORE, Error, &b"-NOAUTH\r\n"[..]), (COUNTS, Error, b"-ERR other\r\n")];
        assert_eq!(asked(request, &replies), (Progress::Through, Some(b"-NOAUTH\r\n".to_vec())));
        assert_eq!(asked(request, &[(BEFORE, Simple, b"+OK\r\n")]).0, Progress::OutOfStep, "a number was due");
    }

    #[test]
    fn a_request_that_is_tried_is_answered_by_exec() {
        let begun = [(BEGIN, Simple, &b"+OK\r\n"[..]), (QUEUE, Simple, b"+QUEUED\r\n")];
        let with = |last| [&begun[..], &[last]].concat();
        let reply = &b"*1\r\n$1\r\nv\r\n"[..];
        assert_eq!(tried(&with((COUNTS, Array, reply))), (Progress::Through, Some(reply.to_vec())));
        assert_eq!(tried(&with((COUNTS, Array, b"*2\r\n+a\r\n+b\r\n"))).0, Progress::OutOfStep);
        assert_eq!(tried(&with((COUNTS, Error, b"-BUSY\r\n"))).0, Progress::OutOfStep, "it may still be open");
        assert_eq!(tried(&with((COUNTS, Error, b"-EXECABORT no\r\n"))).0, Progress::Through);
    }

    #[test]
    fn a_node_that_refuses_multi_has_done_the_request_alone() {
        let refused = (BEGIN, Error, &b"-NOPERM no\r\n"[..]);
        let replies = [refused, (QUEUE, Array, b"*-1\r\n"), (COUNTS, Error, b"-ERR EXEC without MULTI\r\n")];
        assert_eq!(tried(&replies), (Progress::Through, Some(b"*1\r\n*-1\r\n".to_vec())));
        assert_eq!(tried(&[(BEGIN, Simple, b"+QUEUED\r\n")]).0, Progress::OutOfStep);
    }
}
