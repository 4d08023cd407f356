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

use crate::blocking::engine::EngineCall;
use crate::blocking::queue::Blocking;
use crate::env::Env;
use crate::interfaces::engine_changes::EngineChanges;
use crate::scripts::late_script::LateScript;
use crate::session::id::ClientId;
use crate::session::{Flow, SessionFlags};
use respool_command::{Execute, Flags, Group, Outcome, Row, SessionView};
use respool_wire::{Args, Encoder, Protocol, Request};

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
        Some(self.refuse_known(index, row, busy.as_bytes()))
    }
}

impl Blocking {
    /// A request that runs a script here, or goes on with the one that it has begun.
    pub(crate) fn run_in_engine(
        &mut self,
        env: &mut Env<impl Execute>,
        changes: &mut impl EngineChanges,
        index: ClientId,
        row: &'static Row,
        request: &Request<'_>,
    ) -> Flow {
        let Some(client) = env.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(session) = env.clients.sessions.at(index) else { return Flow::Stop };
        let (id, database) = (session.id, session.database);
        let is_in_transaction = session.pins.as_ref().is_some_and(|pins| pins.exec_reply.is_some());
        let is_late = env.slices.script.as_ref().is_some_and(|late| late.client == client);
        let view = SessionView { has_waited: is_late, is_in_transaction, ..env.view(database, id) };
        if !is_late {
            let rights = env.script_rights(index);
            if let Some(engine) = &mut env.engine {
                engine.set_script_rights(rights);
            }
        }
        let mut reply = Vec::new();
        let call = EngineCall { view, by: Some(client), row, args: request.args };
        if self.run_engine_as(env, changes, call, &mut reply) == Some(Outcome::Unfinished) {
            env.slices.script = Some(LateScript { client, id, row, database });
            env.end_slice(index);
            return Flow::Again;
        }
        if is_late {
            env.slices.script = None;
        }
        env.answer(index, |out| out.raw(&reply));
        changes.track_script(env, index);
        self.note_script_run(env, changes, Some(index));
        env.keep_room(index, Flow::Next)
    }

    /// Goes on with a late script whose client has left. Whether there is one.
    #[cold]
    pub(crate) fn run_orphaned_script(
        &mut self,
        env: &mut Env<impl Execute>,
        changes: &mut impl EngineChanges,
    ) -> bool {
        let Some(late) = &env.slices.script else { return false };
        if env.clients.sessions.get(late.client).is_some() {
            return false;
        }
        let (row, mut view) = (late.row, env.view(late.database, late.id));
        view.has_waited = true;
        let mut reply = Vec::new();
        let mut encoder = Encoder::new(&mut reply, Protocol::Resp2);
        let call = EngineCall { view, by: None, row, args: Args::new(&[], &[]) };
        let Some(outcome) = self.execute_as(env, changes, call, &mut encoder) else { return false };
        if outcome == Outcome::Done {
            env.slices.script = None;
            self.note_script_run(env, changes, None);
        }
        outcome == Outcome::Unfinished
    }
}
