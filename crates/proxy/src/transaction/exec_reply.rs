//! The reply to EXEC: the node's elements, and those of requests that the proxy or the engine runs, in the order of the block.

use crate::auth::unmet_states::WantedState;
use crate::env::Env;
use crate::interfaces::read_tracker::ReadTracker;
use crate::limits::{OWN_BYTES_PER_TURN_MAX, OWN_PER_TURN_MAX};
use crate::reply::progress::ReplyMode;
use crate::session::id::{ClientHandle, ClientId};
use crate::session::{Pause, SessionFlags};
use crate::transaction::queue::{QueuedCommand, QueuedCommands};
use crate::transaction::reply_parts::{ExecReply, Part};
use respool_command::Execute;
use respool_wire::{elements, replies};
use std::collections::VecDeque;

/// What comes next of the reply to an EXEC.
pub(crate) enum NextPart {
    /// This.
    Part(Part),
    /// Nothing: that was the last one, and the client goes on as before.
    Last,
    /// Nothing: none is being put together.
    None,
    /// The client is not there.
    Gone,
}

impl<E: Execute> Env<E> {
    /// Begins to put together the reply to an EXEC of which `said` is the node's part. `false`: its client is not there.
    pub(super) fn begin_exec_reply(&mut self, index: ClientId, queued: QueuedCommands, said: &[u8]) -> bool {
        let mut parts: VecDeque<Part> = VecDeque::with_capacity(queued.entries.len() + 1);
        parts.push_back(Part::Remote(format!("*{}\r\n", queued.entries.len()).into_bytes()));
        let mut said = elements(said).into_iter().flatten();
        for entry in queued.entries {
            let database = match entry {
                QueuedCommand::Local { row, args } => {
                    parts.push_back(Part::Local(row, args));
                    continue;
                }
                QueuedCommand::Select { database, .. } => Some(database),
                QueuedCommand::Node { .. } => None,
            };
            let element = said.next().unwrap_or_default();
            match parts.back_mut() {
                Some(Part::Remote(before)) => before.extend_from_slice(element),
                _ => parts.push_back(Part::Remote(element.to_vec())),
            }
            if let Some(database) = database.filter(|_| element == replies::OK) {
                parts.push_back(Part::Select(database));
            }
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let restored = match session.reply_mode {
            ReplyMode::On => None,
            ReplyMode::Off => Some(ReplyMode::Off),
            ReplyMode::SkipNext => Some(ReplyMode::On),
        };
        if restored.is_some() {
            session.reply_mode = ReplyMode::Off;
        }
        session.pins_mut().exec_reply = Some(ExecReply { parts, restored, departure: None, has_taken_time: false });
        // Messages and invalidations must not be written between the elements of the array.
        session.down.begin_joint();
        session.flags.add(SessionFlags::QUEUEING);
        true
    }

    /// The next part of a client's reply to EXEC.
    pub(crate) fn next_part(&mut self, index: ClientId) -> NextPart {
        let Some(session) = self.clients.sessions.at_mut(index) else { return NextPart::Gone };
        let Some(reply) = session.pins.as_mut().and_then(|p| p.exec_reply.as_mut()) else { return NextPart::None };
        if let Some(part) = reply.parts.pop_front() {
            return NextPart::Part(part);
        }
        let (restored, has_taken_time) = (reply.restored, reply.has_taken_time);
        if let Some(pins) = &mut session.pins {
            pins.exec_reply = None;
        }
        if let Some(mode) = restored {
            session.reply_mode = mode;
        }
        session.settle_pins();
        session.down.end_joint(&mut self.clients.pool);
        self.clients.list(index);
        if has_taken_time {
            self.catch_up_behind(index);
        }
        NextPart::Last
    }

    /// What a node has replied, as part of the reply to EXEC.
    pub(crate) fn pass_on_part(&mut self, index: ClientId, bytes: &[u8]) {
        if self.clients.sessions.at(index).is_some_and(|session| session.reply_mode == ReplyMode::On) {
            self.clients.answer(index, |out| out.extend_from_slice(bytes));
        }
    }

    /// A SELECT of the transaction was executed.
    pub(crate) fn select_in_reply(&mut self, reads: &mut impl ReadTracker, index: ClientId, database: u32) {
        let Some(session) = self.clients.sessions.at(index) else { return };
        let protocol = session.protocol;
        self.shared.databases.note(database);
        if self.reclass(reads, index, database, protocol) {
            self.note_met(index, &[WantedState::Database]);
        } else {
            self.note_unmet(index, WantedState::Database);
        }
    }

    /// The script that was part of a client's transaction has ended. Returns whether the transaction goes on.
    pub(crate) fn goes_on_with_exec(&mut self, client: ClientHandle) -> bool {
        let Some(session) = self.clients.sessions.get(client) else { return false };
        if !session.is_amid_exec_reply() {
            return false;
        }
        if session.down.is_settled() {
            self.clients.unpause(client.index, Pause::BARRIER);
        }
        true
    }

    /// A part is executed later after all.
    pub(crate) fn put_part_back(&mut self, index: ClientId, part: Part) {
        let session = self.clients.sessions.at_mut(index);
        if let Some(reply) = session.and_then(|s| s.pins.as_mut()?.exec_reply.as_mut()) {
            reply.parts.push_front(part);
        }
    }

    /// A client's transaction has used up its turn, after `own` parts that were executed here, with `before` bytes of replies
    /// waiting at its beginning.
    pub(crate) fn has_had_its_part(&self, index: ClientId, own: usize, before: usize) -> bool {
        // What the engine of this process does is one transaction; what nodes have not done is none anyway.
        let is_much = || self.clients.waiting_bytes_of(index).saturating_sub(before) > OWN_BYTES_PER_TURN_MAX;
        self.engine.is_none() && (own >= OWN_PER_TURN_MAX || own > 0 && is_much())
    }

    /// Whether a client is not read only because of the replies that it has not taken. One that has more of them than it may
    /// leaves is disconnected at the end of the turn; what it asked for is done, and not answered. The engine of this process
    /// executes a transaction as a whole, whatever else keeps its client from being read.
    pub(crate) fn waits_for_room_alone(&mut self, index: ClientId) -> bool {
        let hard = self.config.budgets.client_output_hard;
        let is_whole = self.engine.is_some();
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let mut others = session.pause;
        others.remove(Pause::OUTPUT);
        // Nor for being about to be closed.
        others.remove(Pause::CLOSING);
        if is_whole {
            others.remove(Pause::SUSPENDED);
            others.remove(Pause::PRESSURE);
        }
        if session.down.waiting_bytes() > hard {
            session.reply_mode = ReplyMode::Off;
        }
        others.is_none()
    }

    /// The client has ended its own connection. Whether what comes behind that is done all the same, and not answered: as in Redis,
    /// the engine of this process executes a transaction as a whole. A client that is no user any more has none of it done.
    pub(crate) fn ends_behind_exec(&mut self, index: ClientId) -> bool {
        let Some(session) = self.clients.sessions.at_mut(index).filter(|_| self.engine.is_some()) else { return false };
        session.reply_mode = ReplyMode::Off;
        !session.flags.has(SessionFlags::UNAUTHENTICATED)
    }

    /// The client has ended its own connection: what comes behind that is not done.
    pub(crate) fn leave_exec_reply(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        if let Some(pins) = &mut session.pins {
            pins.exec_reply = None;
        }
        session.settle_pins();
        session.down.end_joint(&mut self.clients.pool);
    }
}
