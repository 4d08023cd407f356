//! The reply to EXEC: the node's elements, and those of requests that the proxy or the engine runs, in the order of the block.

use crate::auth::secrets::SecretArgs;
use crate::engine_changes::EngineChanges;
use crate::env::Env;
use crate::limits::{OWN_BYTES_PER_TURN_MAX, OWN_PER_TURN_MAX};
use crate::session::id::ClientId;
use crate::session::refused_state::WantedState;
use crate::session::{Flow, Pause, ReplyMode, SessionFlags};
use crate::transaction::queue::{QueuedCommand, QueuedCommands};
use crate::worker::Worker;
use respool_command::{Execute, Row};
use respool_wire::{Request, elements, replies};
use std::collections::VecDeque;

/// One part of the reply to an EXEC that is put together here.
#[derive(Debug)]
enum Part {
    /// The node's replies.
    Remote(Vec<u8>),
    /// The node has selected a database.
    Select(u32),
    /// The proxy executes this, and replies.
    Local(&'static Row, SecretArgs),
}

/// The elements of an EXEC reply that are left; some are executed here. The client is not read before they are done.
#[derive(Debug)]
pub(crate) struct ExecReply {
    parts: VecDeque<Part>,
    /// What the client wants of replies afterwards, if none of these is wanted.
    restored: Option<ReplyMode>,
}

impl<E: Execute> Worker<E> {
    /// Puts together the reply to an EXEC of which `said` is the node's part.
    pub(super) fn begin_exec_reply(&mut self, index: ClientId, queued: QueuedCommands, said: &[u8]) -> Flow {
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
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
        let restored = match session.reply_mode {
            ReplyMode::On => None,
            ReplyMode::Off => Some(ReplyMode::Off),
            ReplyMode::SkipNext => Some(ReplyMode::On),
        };
        if restored.is_some() {
            session.reply_mode = ReplyMode::Off;
        }
        session.pins_mut().exec_reply = Some(ExecReply { parts, restored });
        // Messages and invalidations must not be written between the elements of the array.
        session.down.begin_joint();
        session.flags.add(SessionFlags::QUEUEING);
        self.continue_exec_reply(index)
    }

    /// Goes on with the script of a client, as far as it goes.
    pub(crate) fn continue_exec_reply(&mut self, index: ClientId) -> Flow {
        let waiting =
            |this: &Self| this.env.clients.sessions.at(index).map_or(0, |session| session.down.waiting_bytes());
        let (mut own, before) = (0, waiting(self));
        loop {
            // What the engine of this process does is one transaction; what nodes have not done is none anyway.
            let has_had_its_part =
                own >= OWN_PER_TURN_MAX || own > 0 && waiting(self).saturating_sub(before) > OWN_BYTES_PER_TURN_MAX;
            if self.env.engine.is_none() && has_had_its_part {
                self.env.end_slice(index);
                return Flow::Pause;
            }
            let Some(session) = self.env.clients.sessions.at_mut(index) else { return Flow::Stop };
            let Some(reply) = session.pins.as_mut().and_then(|p| p.exec_reply.as_mut()) else { return Flow::Next };
            let Some(part) = reply.parts.pop_front() else {
                let restored = reply.restored;
                if let Some(pins) = &mut session.pins {
                    pins.exec_reply = None;
                }
                if let Some(mode) = restored {
                    session.reply_mode = mode;
                }
                session.settle_pins();
                session.down.end_joint(&mut self.env.clients.pool);
                self.env.clients.list(index);
                self.blocking.serve_ready(&mut self.env, &mut self.subscriptions);
                self.subscriptions.tell_changes(&mut self.env);
                return Flow::Next;
            };
            let flow = match &part {
                Part::Remote(bytes) => {
                    if session.reply_mode == ReplyMode::On {
                        self.env.clients.answer(index, |out| out.extend_from_slice(bytes));
                    }
                    Flow::Next
                }
                Part::Select(database) => {
                    let (database, protocol) = (*database, session.protocol);
                    self.env.shared.databases.note(database);
                    if self.reclass(index, database, protocol) {
                        self.env.note_met(index, &[WantedState::Database]);
                    } else {
                        self.env.note_unmet(index, WantedState::Database);
                    }
                    Flow::Next
                }
                Part::Local(row, args) => {
                    own += 1;
                    let unmet = self.env.ask_unmet(index, row, args.as_args());
                    unmet.unwrap_or_else(|| self.run(index, row, &Request::made(args.as_args())))
                }
            };
            match flow {
                Flow::Next => {}
                // A transaction is not interrupted for want of room.
                Flow::Pause if self.env.waits_for_room_alone(index) => {}
                Flow::Pause => return flow,
                Flow::Stop => {
                    self.env.leave_exec_reply(index);
                    return flow;
                }
                Flow::Again => {
                    let session = self.env.clients.sessions.at_mut(index);
                    if let Some(reply) = session.and_then(|s| s.pins.as_mut()?.exec_reply.as_mut()) {
                        reply.parts.push_front(part);
                    }
                    // The request that is being read is EXEC, and that has been dealt with.
                    return Flow::Pause;
                }
            }
        }
    }
}

impl<E: Execute> Env<E> {
    /// Whether a client is not read only because of the replies that it has not taken. One that has more of them than it may
    /// leaves is disconnected at the end of the turn; what it asked for is done, and not answered.
    fn waits_for_room_alone(&mut self, index: ClientId) -> bool {
        let hard = self.config.budgets.client_output_hard;
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let mut others = session.pause;
        others.remove(Pause::OUTPUT);
        // Nor for being about to be closed.
        others.remove(Pause::CLOSING);
        if session.down.waiting_bytes() > hard {
            session.reply_mode = ReplyMode::Off;
        }
        others.is_none()
    }

    /// The client has ended its own connection: what comes behind that is not done.
    fn leave_exec_reply(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        if let Some(pins) = &mut session.pins {
            pins.exec_reply = None;
        }
        session.settle_pins();
        session.down.end_joint(&mut self.clients.pool);
    }
}
