//! Commands that the table does not know and the nodes do: newer servers', and modules'.
//!
//! ```text
//!   unknown name --- learnt before? ------------------------------------> its row
//!        |     '---- a node has said that it is no command's -----------> -ERR unknown command
//!        |     '---- the user could not run it, or asks for too much ---> refused, or read later: no node is asked
//!        '--- COMMAND INFO name --> node;  the client waits, its request unread
//!                                    |--> row, or no command's for a while;  the request is read again
//!                                    '--> no answer: an error that says so
//! ```
//!
//! What was learnt is shared by all workers and never forgotten; rows live for ever, so there is a most. Each client has a
//! budget of questions, and a worker another for all of its clients: a client that makes names up waits for its own next
//! question, and all others find the nodes willing. What waits for a budget is read again when its turn has come.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, Handle};
use crate::limits::{LEARN_BURST, LEARN_INTERVAL_US, WORKER_LEARN_BURST, WORKER_LEARN_INTERVAL_US};
use crate::pool::key_id::LaneKey;
use crate::reply::progress::LostReply;
use crate::reply::task::Tasks;
use crate::session::{Flow, PauseReasons, SessionFlags};
use crate::workers::command_info::{Answer, CommandInfoQuery, asked_name, full_name};
use crate::workers::learnt::{Bucket, LearntCommand, Outcome};
use respool_access::Reason;
use respool_command::{Execute, Row, UnknownCommand, learn};
use respool_wire::{Protocol, Request, encode_request};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// A worker's questions about names.
#[derive(Debug, Default)]
pub(crate) struct CommandInfoQueries {
    /// Names that a node is being asked for.
    asked: BTreeMap<String, Handle>,
    /// Clients whose turn to ask has not come, by when it does.
    held: BTreeMap<(u64, ClientId), ClientHandle>,
    bucket: Bucket,
}

impl CommandInfoQueries {
    /// Whether the worker may put a question now; it counts as put. A client takes it only when it asks: one that waits
    /// for its turn and leaves has taken none.
    fn take(&mut self, now_us: u64) -> bool {
        let has_room = self.bucket.has_room(now_us, WORKER_LEARN_BURST, WORKER_LEARN_INTERVAL_US);
        if has_room {
            self.bucket.take(now_us, WORKER_LEARN_BURST, WORKER_LEARN_INTERVAL_US);
        }
        has_room
    }

    /// What is waited for.
    pub(crate) fn remains(&self) -> [(&'static str, usize); 2] {
        [
            ("commands asked for", self.asked.len()),
            ("clients whose turn to ask for a command has not come", self.held.len()),
        ]
    }

    /// The row of a request that the table has none for. `Err`: it was refused, or has to be read again.
    #[cold]
    pub(crate) fn learnt_row(
        &mut self,
        env: &mut Env<impl Execute>,
        index: ClientId,
        unknown: UnknownCommand,
        request: &Request<'_>,
    ) -> Result<&'static Row, Flow> {
        let Some(name) = asked_name(unknown, request.args).filter(|_| env.may_learn(index)) else {
            return Err(env.refuse_unknown(index, unknown, request));
        };
        let known = match env.learnt.get(&name) {
            Some(row) => LearntCommand::Row(row),
            None => env.find_learnt(&name),
        };
        if let LearntCommand::Row(row) = known {
            return Ok(row);
        }
        // From here on it costs others something, so its rights come first, as in `SessionFlags::ORDER`.
        if let Some(flow) = env.is_early(index, request).or_else(|| env.deny_unknown(index, unknown, &name)) {
            return Err(flow);
        }
        let learner = env.clients.sessions.at_mut(index).map(|session| &mut session.details.learner);
        let outcome = learner.and_then(|learner| learner.outcome.take()).filter(|(asked, _)| **asked == *name);
        let error = match (known, outcome) {
            (LearntCommand::Unknown, _) | (_, Some((_, Outcome::Unknown))) => {
                return Err(env.refuse_unknown(index, unknown, request));
            }
            (_, Some((_, Outcome::Full))) => error_text::learnt_enough(&full_name(&name)),
            (_, Some((_, Outcome::Unasked(error)))) => error_text::not_learnt(&full_name(&name), &error),
            (_, None) => match self.ask_for(env, index, &name) {
                Ok(()) => return Err(Flow::Again),
                Err(error) => error_text::not_learnt(&full_name(&name), &error),
            },
        };
        Err(env.refuse_for_ours(index, error))
    }

    /// Asks a node for a name, or waits with the clients that have, or for the client's turn. `Err`: no node can be asked.
    fn ask_for(&mut self, env: &mut Env<impl Execute>, index: ClientId, name: &str) -> Result<(), ErrorReply> {
        let Some(client) = env.clients.sessions.handle(index) else { return Ok(()) };
        let asked = self.asked.get(name).copied();
        if let Some(learning) = asked.and_then(|task| env.tasks.get_mut::<CommandInfoQuery>(task)) {
            learning.waiting.push(client);
        } else if self.has_turn(env, client) {
            self.ask_node_for(env, client, name)?;
        }
        if let Some(session) = env.clients.sessions.at_mut(index) {
            session.pause.add(PauseReasons::LEARNING);
        }
        env.is_busy = true;
        Ok(())
    }

    /// Whether a client may have a node asked now. If not, it is read again when its turn has come.
    fn has_turn(&mut self, env: &mut Env<impl Execute>, client: ClientHandle) -> bool {
        let now_us = env.now.mono_us;
        let Some(session) = env.clients.sessions.get_mut(client) else { return false };
        let learner = &mut session.details.learner;
        if std::mem::take(&mut learner.has_turn) {
            return true;
        }
        let own_us = learner.bucket.take(now_us, LEARN_BURST, LEARN_INTERVAL_US);
        // Those whose own turn has come before go first.
        let is_first = self.held.first_key_value().is_none_or(|(place, _)| place.0 > now_us);
        if own_us <= now_us && is_first && self.take(now_us) {
            return true;
        }
        self.held.insert((own_us.max(now_us), client.index), client);
        false
    }

    fn ask_node_for(
        &mut self,
        env: &mut Env<impl Execute>,
        client: ClientHandle,
        name: &str,
    ) -> Result<(), ErrorReply> {
        let Some(class) = env.lanes.class(LaneKey { database: 0, protocol: Protocol::Resp2, node_user: 0 }) else {
            return Err(error_text::OUT_OF_MEMORY.into());
        };
        let learning = CommandInfoQuery { name: name.to_owned(), waiting: vec![client], answer: Answer::None };
        let task = env.tasks.begin(learning);
        let node = env.config.default_node();
        let lane = env.lanes.lane(&env.config, node, class);
        let full_name = full_name(name);
        let words: [&[u8]; 3] = [b"COMMAND", b"INFO", full_name.as_bytes()];
        let Env { lanes, clients, config, now, .. } = env;
        let write = |out: &mut Vec<u8>| encode_request(out, words.into_iter());
        if let Err(error) = lanes.send(lane, Tasks::owner(task, 0), config, *now, &mut clients.pool, write) {
            // It does not wait: it is told at once.
            if let Some(learning) = env.tasks.get_mut::<CommandInfoQuery>(task) {
                learning.waiting.clear();
            }
            env.tasks.fail(task, 0, LostReply::Unsent, &error, &mut env.clients);
            return Err(error);
        }
        self.asked.insert(name.to_owned(), task);
        env.counters.commands_asked.add(1);
        Ok(())
    }

    /// Clients whose turn to ask has come are read again. Returns whether others wait for theirs.
    pub(crate) fn check_learnings(&mut self, env: &mut Env<impl Execute>) -> bool {
        let now_us = env.now.mono_us;
        while let Some((place, client)) = self.held.first_key_value().map(|(place, client)| (*place, *client)) {
            let session = env.clients.sessions.get_mut(client);
            if place.0 > now_us || session.is_some() && !self.take(now_us) {
                break;
            }
            self.held.remove(&place);
            if let Some(session) = session {
                session.details.learner.has_turn = true;
                env.clients.unpause(client.index, PauseReasons::LEARNING);
            }
        }
        !self.held.is_empty()
    }

    /// The node has answered, or will not: the clients that wait are read on.
    pub(crate) fn conclude_learning(&mut self, env: &mut Env<impl Execute>, learning: CommandInfoQuery) {
        let CommandInfoQuery { name, waiting, answer } = learning;
        self.asked.remove(&name);
        let mut shared = env.shared.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = match answer {
            Answer::Described(_) if shared.is_full() => Some(Outcome::Full),
            Answer::Described(described) => match learn(&name, &described) {
                Some(row) => {
                    shared.note_row(&name, row);
                    None
                }
                None => Some(Outcome::Unknown),
            },
            Answer::Unknown => Some(Outcome::Unknown),
            Answer::None => Some(Outcome::Unasked("".into())),
            Answer::Failed(error) => Some(Outcome::Unasked(error)),
        };
        if matches!(outcome, Some(Outcome::Unknown)) {
            shared.note_unknown(&name, env.now.mono_us);
        }
        env.learnt = Arc::clone(&shared.rows);
        drop(shared);
        for client in waiting {
            if let Some(session) = env.clients.sessions.get_mut(client) {
                session.details.learner.outcome = outcome.clone().map(|outcome| (name.as_str().into(), outcome));
                env.clients.unpause(client.index, PauseReasons::LEARNING);
            }
        }
    }
}

impl<E: Execute> Env<E> {
    /// Refuses a user what it could not run whatever the nodes say of it.
    fn deny_unknown(&mut self, index: ClientId, unknown: UnknownCommand, name: &str) -> Option<Flow> {
        if !self.clients.sessions.at(index)?.flags.has(SessionFlags::RESTRICTED) {
            return None;
        }
        let container = match unknown {
            UnknownCommand::Command => None,
            UnknownCommand::Subcommand(container) => Some(container),
        };
        let user = self.clients.user_in_force(&self.users, index).filter(|user| !user.may_run_unknown(container))?;
        let name = full_name(name);
        self.counters.denied_commands.add(1);
        self.clients.log_denial(self.now, &self.shared, index, Reason::Command, name.as_bytes(), user.name());
        Some(self.refuse_unread(index, error_text::denied_command(&name)))
    }

    /// Nodes are asked on behalf of clients that may ask for something. Engines know what the table has.
    fn may_learn(&self, index: ClientId) -> bool {
        let is_known = |flags: SessionFlags| !flags.has(SessionFlags::UNAUTHENTICATED);
        !self.is_server() && self.clients.sessions.at(index).is_some_and(|session| is_known(session.flags))
    }

    fn find_learnt(&mut self, name: &str) -> LearntCommand {
        let shared = self.shared.learnt.lock().unwrap_or_else(PoisonError::into_inner);
        self.learnt = Arc::clone(&shared.rows);
        shared.find(name, self.now.mono_us)
    }

    /// The rows learnt so far that are no subcommands.
    pub(crate) fn learnt_rows(&mut self) -> Vec<&'static Row> {
        self.learnt = Arc::clone(&self.shared.learnt.lock().unwrap_or_else(PoisonError::into_inner).rows);
        self.learnt.values().copied().filter(|row| !row.name.contains(' ')).collect()
    }
}
