//! A queued block on its way to its node: what its replies say.

use crate::error_reply::ErrorReply;
use crate::error_text::{self, aborted};
use crate::ids::{Asker, LaneHandle, LaneKeyId, NodeId};
use crate::nodes::moves::Moves;
use crate::reply::progress::{LostReply, Progress};
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::table::Clients;
use crate::transaction::queue::QueuedCommands;
use respool_command::text::is_exec_abort;
use respool_wire::{elements, replies};

/// The requests that a task of this kind has in a lane.
pub(crate) const BEGIN: u16 = 0;

pub(crate) const QUEUE: u16 = 1;

pub(crate) const EXEC: u16 = 2;

/// A block on its way.
#[derive(Debug)]
pub(crate) struct Exec {
    pub(crate) asker: Asker,
    /// The client's shared class. The transaction runs there if the client has disconnected before the transaction is sent.
    pub(crate) class: LaneKeyId,
    pub(crate) queued: QueuedCommands,
    /// The private connection that it runs on, if it does.
    pub(crate) private: Option<LaneHandle>,
    /// The connection that it was sent on.
    pub(crate) sent_on: Option<LaneHandle>,
    pub(crate) node: NodeId,
    /// The reply has to be read: some requests are ours, or a database was selected.
    pub(crate) is_read: bool,
    /// What the node said where it should have said OK or QUEUED.
    pub(crate) refusal: Option<ErrorReply>,
    pub(crate) reply: Option<Vec<u8>>,
    /// MULTI was not refused.
    pub(crate) has_begun: bool,
    /// The state of its connection is not known, or there is none.
    pub(crate) is_lost: bool,
    /// The node refused MULTI before anything else was sent.
    pub(crate) is_refused: bool,
    /// The client has its reply.
    pub(crate) is_answered: bool,
    /// The nodes have changed before anything of it was sent, and it can be sent nowhere now.
    pub(crate) is_overtaken: bool,
    /// Its time was over; what the node says nevertheless is only looked at.
    pub(crate) is_late: bool,
    /// Keys are watched on its connection.
    pub(crate) is_watching: bool,
    /// How often MULTI has been tried for it.
    pub(crate) trials: u8,
    /// The node did not know a script that it had been given: others have flushed them.
    pub(crate) lacks_script: bool,
    /// How often the block has been sent elsewhere because it was not there.
    pub(crate) moves: u8,
}

/// A block is sent after its keys that often. A cluster that goes on moving them while it is asked is at odds with itself.
pub(crate) const MOVES_MAX: u8 = 5;

impl Exec {
    /// Other nodes are configured, and nothing of the block has been sent. It goes to the node of the same name, unless keys are
    /// placed or named in another way now (`has_other_ways`), or it was to run on a connection to the server that was left.
    pub(crate) fn follow(&mut self, moves: &Moves, has_other_ways: bool) {
        let is_bound = has_other_ways || self.private.is_some_and(|lane| moves.has_left_on(self.node, lane));
        match moves.namesake_of(self.node).filter(|_| !is_bound) {
            Some(node) => self.node = node,
            None => self.is_overtaken = true,
        }
    }

    /// It has the connection to itself from now on that it was to share with its client's other requests.
    pub(crate) fn take_for_itself(&mut self, lane: LaneHandle) {
        self.private = Some(lane);
    }

    pub(crate) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.queued.held_bytes()
    }

    fn feed(&mut self, step: u16, reply: &[u8], clients: &mut Clients) -> Progress {
        let awaited = match step {
            BEGIN => replies::OK,
            QUEUE => replies::QUEUED,
            _ => return self.finish(reply, clients),
        };
        if reply != awaited {
            if !is_error(reply) {
                return self.doubt(clients);
            }
            self.refusal.get_or_insert_with(|| ErrorReply::of_reply(reply));
            self.has_begun &= step != BEGIN;
        }
        Progress::Waits
    }

    /// Protocol violation: fails EXEC and closes the lane, since later replies on it are out of step.
    fn doubt(&mut self, clients: &mut Clients) -> Progress {
        self.is_lost = true;
        self.answer(ErrorReply::new(error_text::EXEC_IN_DOUBT).as_bytes(), clients);
        Progress::OutOfStep
    }

    fn finish(&mut self, reply: &[u8], clients: &mut Clients) -> Progress {
        let replies = elements(reply).map(|replies| replies.declared());
        let is_over = match replies {
            // One reply for each request that was queued, and none was refused.
            Some(count) => self.refusal.is_none() && count == self.queued.for_node as u64,
            None if self.has_begun => is_null(reply) || is_exec_abort(reply),
            None => reply.starts_with(WITHOUT_MULTI),
        };
        if !is_over && self.has_begun && is_error(reply) {
            // EXEC itself was refused, as old servers do while a script runs, and the transaction is still open: others on
            // the connection would go on with it. Nothing has run, and nothing will once the connection is closed.
            self.is_lost = true;
            let refusal = self.refusal.clone().unwrap_or_else(|| ErrorReply::of_reply(reply));
            self.answer(aborted(&refusal).as_bytes(), clients);
            return Progress::OutOfStep;
        }
        if !is_over {
            return self.doubt(clients);
        }
        if self.is_answered {
            return Progress::Through;
        }
        let has_run = replies.is_some();
        self.lacks_script = !self.queued.scripts.is_empty()
            && elements(reply).is_some_and(|mut replies| replies.any(|reply| reply.starts_with(b"-NOSCRIPT")));
        if !self.has_begun {
            // MULTI failed, so the commands may have run outside of a transaction.
            self.is_lost = true;
            let refusal = self.refusal.take().filter(ErrorReply::is_line);
            let refusal = refusal.unwrap_or_else(|| error_text::EXEC_IN_DOUBT.into());
            self.answer(aborted(&refusal).as_bytes(), clients);
        } else if self.is_read && has_run || self.moved_to().is_some() {
            self.reply = Some(reply.to_vec());
        } else if let Some(refusal) = self.refusal.as_ref().filter(|refusal| refusal.is_line()) {
            // The client saw its requests queued, so to it EXEC is the first that is refused, and for this reason.
            let error = aborted(refusal);
            self.answer(error.as_bytes(), clients);
        } else {
            self.answer(reply, clients);
        }
        Progress::Through
    }

    pub(crate) fn fail(&mut self, loss: LostReply, error: &ErrorReply, clients: &mut Clients) -> Progress {
        self.is_lost = true;
        self.answer(error.as_bytes(), clients);
        // Others share the connection, and a transaction that is not over would go on with their requests.
        self.is_late = loss == LostReply::Late && self.private.is_none();
        if self.is_late { Progress::Waits } else { Progress::Through }
    }

    /// The node refuses MULTI. Nothing else has been sent.
    pub(crate) fn refuse(&mut self, error: &ErrorReply, clients: &mut Clients) {
        self.is_refused = true;
        self.answer(aborted(error).as_bytes(), clients);
    }

    pub(crate) fn answer(&mut self, reply: &[u8], clients: &mut Clients) {
        if std::mem::replace(&mut self.is_answered, true) {
            return;
        }
        clients.fill(self.asker, reply);
    }

    /// Where the node says the keys are, if that is why it refused to queue them.
    pub(crate) fn moved_to(&self) -> Option<&str> {
        let line = self.refusal.as_ref()?.as_bytes().strip_prefix(b"-MOVED ")?;
        std::str::from_utf8(line).ok()?.trim_end().split(' ').nth(1)
    }
}

impl InternalTask for Exec {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.feed(reply.step, reply.bytes, clients)
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, clients: &mut Clients) -> Progress {
        self.fail(lost.loss, lost.error, clients)
    }

    fn asker(&self) -> Option<Asker> {
        Some(self.asker)
    }

    /// The class in which it runs if its client has disconnected.
    fn class(&self) -> Option<LaneKeyId> {
        Some(self.class)
    }

    /// Other nodes are configured. A block that is on its way is not sent again to a node that has gone.
    fn move_to(&mut self, moves: &Moves, _: bool) {
        let has_left =
            self.sent_on.map_or_else(|| moves.has_left(self.node), |lane| moves.has_left_on(self.node, lane));
        match has_left {
            true => self.moves = MOVES_MAX,
            false => self.node = moves.namesake_of(self.node).unwrap_or(NodeId::NONE),
        }
    }

    fn leaves_something_on(&self, lane: LaneHandle) -> bool {
        self.private == Some(lane)
    }

    fn waits_on(&self, lane: LaneHandle) -> bool {
        self.private == Some(lane) && !self.is_answered
    }

    fn bind_to(&mut self, lane: LaneHandle) -> bool {
        let is_on_it = self.sent_on == Some(lane) && !self.is_answered;
        if is_on_it {
            self.take_for_itself(lane);
        }
        is_on_it
    }

    fn is_late(&self) -> bool {
        self.is_late
    }

    fn may_be_late(&self) -> bool {
        true
    }
}

/// What a node says to EXEC if it has taken no MULTI.
const WITHOUT_MULTI: &[u8] = b"-ERR EXEC without MULTI";

pub(crate) fn is_error(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'-' | b'!'))
}

/// A transaction whose watched keys have changed.
fn is_null(reply: &[u8]) -> bool {
    matches!(reply, b"*-1\r\n" | b"$-1\r\n" | b"_\r\n")
}

#[cfg(test)]
mod tests {
    use super::{ErrorReply, aborted, is_error, is_exec_abort, is_null};

    #[test]
    fn an_unexecuted_transaction_is_told_from_a_doubtful_one() {
        assert!(is_exec_abort(b"-EXECABORT Transaction discarded\r\n"));
        assert!(!is_exec_abort(b"-ERR EXEC without MULTI\r\n"));
        for nothing in [&b"*-1\r\n"[..], b"$-1\r\n", b"_\r\n"] {
            assert!(is_null(nothing));
        }
        assert!(!is_null(b"*0\r\n"), "it has run, and was empty");
        assert!(is_error(b"!3\r\nERR\r\n") && !is_error(b"+OK\r\n") && !is_error(b""));
    }

    #[test]
    fn a_refusal_becomes_an_error_of_one_line() {
        let error = aborted(&ErrorReply::of_reply(b"-NOPERM no\r\n"));
        let line = error.as_bytes();
        assert!(line.starts_with(b"-EXECABORT ") && line.ends_with(b"\r\n"));
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
