//! Scripts of the engine in this process.
//!
//! ```text
//!   EVAL --> engine -- done ----------------------------> reply
//!              '-- late --> the request stays unread; others are served, and answered BUSY
//!                            ^        |  next turn
//!                            '--------+--> engine goes on --> reply
//! ```
//!
//! The engine runs a script for as long as a redis-server would before it serves others. Then it leaves it and is asked again in
//! every turn, in the request's own name: what it answers belongs to the client that waits, and to none if that has left. The script
//! goes on in either case, as in Redis.

use crate::env::Env;
use crate::session::id::{ClientHandle, ClientId};
use crate::session::{Flow, SessionFlags};
use crate::worker::Worker;
use respool_command::{
    Asked, Command, Execute, Flags, Group, Outcome, Row, ScriptingCommand, SessionView, TransactionsCommand,
    text as texts,
};
use respool_wire::{Args, Encoder, Protocol, Request};

/// A script that has become late.
#[derive(Debug)]
pub(crate) struct LateScript {
    client: ClientHandle,
    /// The client's number, which the engine knows it by.
    id: u64,
    row: &'static Row,
    database: u32,
}

impl LateScript {
    /// The reply to others.
    fn busy(&self) -> &'static str {
        match self.row.command {
            Command::Scripting(ScriptingCommand::Fcall | ScriptingCommand::FcallRo) => texts::BUSY_FUNCTION,
            _ => texts::BUSY_SCRIPT,
        }
    }
}

impl<E: Execute> Env<E> {
    /// A script takes long: requests that are answered without the engine are refused as the engine refuses its own. A transaction is
    /// spoilt by that, and its EXEC ends it. The console goes on.
    #[cold]
    pub(crate) fn refuse_beside_script(
        &mut self,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Option<Flow> {
        let late = self.slices.script.as_ref()?;
        let (client, busy) = (late.client, late.busy());
        let is_stranger = self.clients.sessions.at(index)?.flags.has(SessionFlags::UNAUTHENTICATED);
        let is_allowed = row.flags.has(Flags::ALLOW_BUSY) || row.group == Group::Proxy;
        if is_allowed || is_stranger || self.clients.sessions.handle(index) == Some(client) {
            return None;
        }
        if let Some(flow) = self.is_early(index, request) {
            return Some(flow);
        }
        if row.command != Command::Transactions(TransactionsCommand::Exec) {
            return Some(self.refuse_unread(index, busy.as_bytes()));
        }
        self.leave_transaction(index);
        let mut words = Vec::new();
        texts::exec_refused(busy.as_bytes(), &mut words);
        Some(self.refuse_unread(index, &words))
    }
}

impl<E: Execute> Worker<E> {
    /// A request that runs a script here, or goes on with the one that it has begun.
    pub(crate) fn run_in_engine(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let Some(client) = self.env.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = self.env.clients.sessions.at(index) else { return Flow::Stop };
        let (id, database) = (session.id, session.database);
        let is_in_transaction = session.pins.as_ref().is_some_and(|pins| pins.exec_reply.is_some());
        let is_late = self.env.slices.script.as_ref().is_some_and(|late| late.client == client);
        let view = SessionView { has_waited: is_late, is_in_transaction, ..self.env.view(database, id) };
        let mut reply = Vec::new();
        if self.run_engine_as(view, index, row, request.args, &mut reply) == Some(Outcome::Unfinished) {
            self.env.slices.script = Some(LateScript { client, id, row, database });
            self.env.end_slice(index);
            return Flow::Again;
        }
        if is_late {
            self.env.slices.script = None;
        }
        self.env.answer(index, |out| out.raw(&reply));
        self.note_script_run(Some(index));
        self.env.keep_room(index, Flow::Next)
    }

    /// Goes on with a late script whose client has left. Whether there is one.
    #[cold]
    pub(crate) fn run_orphaned_script(&mut self) -> bool {
        let Some(late) = &self.env.slices.script else { return false };
        if self.env.clients.sessions.get(late.client).is_some() {
            return false;
        }
        let (row, mut view) = (late.row, self.env.view(late.database, late.id));
        view.has_waited = true;
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
        let Some(outcome) = self.execute_as(&mut view, None, row, Args::new(&[], &[]), &mut encoder) else {
            return false;
        };
        if outcome == Outcome::Done {
            self.env.slices.script = None;
            self.note_script_run(None);
        }
        outcome == Outcome::Unfinished
    }

    /// A script calls a command that is not the engine's. Without a reply it gets the error that there is no such command.
    #[cold]
    pub(crate) fn answer_script(&mut self) {
        let Some(Asked { row, args, protocol, .. }) = self.env.engine.as_mut().and_then(Execute::asked) else { return };
        let Command::Pubsub(command) = row.command else { return };
        let mut reply = Vec::new();
        self.subscriptions.pubsub_for_script(
            &mut self.env,
            command,
            row,
            args.as_args(),
            &mut Encoder::new(&mut reply, protocol),
        );
        if let Some(engine) = &mut self.env.engine {
            engine.answer_asked(&reply);
        }
    }
}
