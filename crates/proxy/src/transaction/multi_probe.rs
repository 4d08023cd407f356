//! Whether a node takes MULTI on a connection: tried once, with nothing between MULTI and EXEC, before anything depends on it.
//!
//! ```text
//!               MULTI, EXEC            +OK, and over
//!   [unknown] --------------> [tried] ----------------> [taken]: blocks go in one piece from now on, in one round trip
//!       ^                        |                         | one is refused nevertheless
//!       |                        '-- refused --> [refused] |
//!       '---- another connection; a refusal afterwards ----'
//! ```
//!
//! A block is sent in one piece, MULTI, requests and EXEC. If the node refuses MULTI (its user may not, the command is renamed,
//! another proxy stands there), it does the requests one by one: not as a transaction, and one that waits holds up all
//! on the connection. So the first block on a connection waits for a round trip. WATCH tries in its own round trip.

use crate::env::Env;
use crate::error_text;
use crate::internal_request::{InternalRequest, InternalRequests, LostReply, Progress};
use crate::pool::key_id::LaneKeyId;
use crate::pool::replace::Moves;
use crate::pool::table::{LaneHandle, LaneId};
use crate::session::id::{ClientHandle, ClientId};
use crate::session::table::Clients;
use crate::transaction::exec::{Exec, is_abort, is_error};
use crate::transaction::say;
use respool_command::Execute;
use respool_wire::{elements, replies};

/// The requests of a trial.
const BEGIN: u16 = 0;
const END: u16 = 1;

/// What is known of MULTI on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Multi {
    /// Nothing.
    #[default]
    Unknown,
    /// It is being tried.
    Tried,
    /// The node takes it.
    Taken,
    /// The node refused it, in these words.
    Refused(Box<[u8]>),
}

impl Multi {
    pub(crate) fn is_taken(&self) -> bool {
        *self == Self::Taken
    }

    /// It may be tried again, although it was refused before.
    pub(crate) fn doubt(&mut self) {
        if matches!(self, Self::Refused(_)) {
            *self = Self::Unknown;
        }
    }
}

/// What is to be done once it is known.
#[derive(Debug)]
pub(crate) enum Then {
    /// Nothing: it is known for the next request that needs it.
    Nothing,
    /// A block is sent, or refused.
    Send(Box<Exec>),
}

/// A trial on its way.
#[derive(Debug)]
pub(crate) struct Trial {
    lane: LaneHandle,
    then: Then,
    /// MULTI was not refused.
    has_begun: bool,
    /// No transaction is open at the node.
    is_over: bool,
    refusal: Option<Vec<u8>>,
    /// The time is over. What comes nevertheless is still looked at, since others share the connection.
    is_late: bool,
}

impl Trial {
    /// The class of the transaction that waits for it, if any.
    pub(crate) fn class(&self) -> Option<LaneKeyId> {
        match &self.then {
            Then::Send(exec) => Some(exec.class()),
            Then::Nothing => None,
        }
    }

    /// The client whose block waits for it, if one does.
    pub(crate) fn asker(&self) -> Option<ClientHandle> {
        match &self.then {
            Then::Send(exec) => Some(exec.asker.session),
            Then::Nothing => None,
        }
    }

    /// Has the block that waits for it run on the connection that is tried, if that is this one. Returns whether it does.
    pub(crate) fn bind_to(&mut self, lane: LaneHandle) -> bool {
        match &mut self.then {
            Then::Send(exec) if self.lane == lane && !exec.is_answered() => {
                exec.take_for_itself(lane);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn feed(&mut self, step: u16, reply: &[u8]) -> Progress {
        if step == BEGIN {
            self.has_begun = reply == replies::OK;
            if self.has_begun {
                return Progress::Waits;
            }
            self.refusal = Some(reply.to_vec());
            return if is_error(reply) { Progress::Waits } else { Progress::OutOfStep };
        }
        // Behind a MULTI that was refused EXEC is refused, too, whatever the words. Behind one that was taken only its
        // end counts: a transaction that is open would go on with the requests of others.
        self.is_over = match self.has_begun {
            true => elements(reply).is_some_and(|none| none.declared() == 0) || is_abort(reply),
            false => is_error(reply),
        };
        if self.is_over {
            return Progress::Through;
        }
        self.refusal = is_error(reply).then(|| reply.to_vec());
        Progress::OutOfStep
    }

    /// No reply will come, or none in time. Of what waits for it nothing has been sent.
    pub(crate) fn fail(&mut self, loss: LostReply, error: &[u8], clients: &mut Clients) -> Progress {
        let mut progress = Progress::Through;
        if let Then::Send(exec) = &mut self.then {
            let error = if loss == LostReply::Unsent { error.to_vec() } else { error_text::not_executed(error) };
            progress = exec.fail(loss, &error, clients);
        }
        self.is_late |= progress == Progress::Waits;
        progress
    }

    /// What is known by it.
    pub(crate) fn verdict(&self) -> Multi {
        match self.is_over {
            true if self.has_begun => Multi::Taken,
            true => Multi::Refused(self.refusal.clone().unwrap_or_default().into()),
            false => Multi::Unknown,
        }
    }

    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Other nodes are configured.
    pub(crate) fn move_to(&mut self, moves: &Moves, has_other_ways: bool) {
        if let Then::Send(exec) = &mut self.then {
            exec.follow(moves, has_other_ways);
        }
    }
}

impl<E: Execute> Env<E> {
    /// Tries MULTI on a lane that takes requests. Nothing may be watched on it: EXEC would end that.
    pub(crate) fn try_multi(&mut self, lane: LaneId, then: Then) {
        let trial = Trial {
            lane: self.lanes.handle(lane),
            then,
            has_begun: false,
            is_over: false,
            refusal: None,
            is_late: false,
        };
        let multi = &mut self.lanes[lane].multi;
        // While it is tried again what is known stays known.
        if !multi.is_taken() {
            *multi = Multi::Tried;
        }
        self.counters.multi_trials.add(1);
        let task = self.tasks.begin(InternalRequest::Trial(Box::new(trial)));
        let Self { lanes, clients, now, .. } = self;
        lanes.push(lane, InternalRequests::owner(task, BEGIN), *now, &mut clients.pool, say(&[b"MULTI"]));
        lanes.push(lane, InternalRequests::owner(task, END), *now, &mut clients.pool, say(&[b"EXEC"]));
        self.is_busy = true;
    }
}

impl<E: Execute> Env<E> {
    /// The trial is over, or will never be. Returns what [`Self::conclude_exec`] does.
    #[must_use]
    pub(crate) fn conclude_trial(&mut self, trial: Trial) -> Option<ClientId> {
        let multi = trial.verdict();
        let Trial { lane, then, refusal, .. } = trial;
        if let Some(place) = self.lanes.find(lane).filter(|_| multi == Multi::Unknown) {
            self.lanes[place].multi = Multi::Unknown;
        }
        let Then::Send(mut exec) = then else { return None };
        if exec.is_answered() {
            return self.conclude_exec(*exec);
        }
        if exec.is_overtaken() {
            exec.fail(LostReply::Unsent, &error_text::nodes_changed(), &mut self.clients);
            return self.conclude_exec(*exec);
        }
        match multi {
            Multi::Taken => {
                self.shared.ledger.account(exec.held_bytes(), 0);
                self.send_exec(*exec);
                return None;
            }
            Multi::Refused(words) => exec.refuse(&words, &mut self.clients),
            Multi::Unknown | Multi::Tried => match refusal {
                Some(words) => exec.refuse(&words, &mut self.clients),
                None => {
                    exec.fail(LostReply::Unknown, &error_text::multi_in_doubt(), &mut self.clients);
                }
            },
        }
        self.conclude_exec(*exec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::table::LaneTable;
    use crate::slab::Handle;

    fn trial(replies: &[&[u8]]) -> (Progress, bool) {
        let lane = Handle { index: LaneTable::<()>::default().next_id(), generation: 0 };
        let mut trial =
            Trial { lane, then: Then::Nothing, has_begun: false, is_over: false, refusal: None, is_late: false };
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
