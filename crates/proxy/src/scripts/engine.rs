//! Scripts of the engine in this process.
//!
//! ```text
//!   EVAL --> engine -- done ----------------------------> reply
//!              '-- late --> its reply has a place; others are served, and answered BUSY
//!                            ^        |  next turn
//!                            '--------+--> engine goes on --> reply
//! ```
//!
//! The engine runs a script for as long as a redis-server would before it serves others. Then it leaves it and is asked again in
//! every turn, whether the client may be read or not, until the script has ended. The request has been dealt with by then: it is not
//! judged anew, and nothing behind it is read before its reply has come. The reply belongs to the client that waits, and to none if
//! that has left. The script goes on in either case, as in Redis.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::interfaces::call::{Call, Cost};
use crate::interfaces::engine_calls::{EngineCall, EngineCalls};
use crate::interfaces::engine_changes::EngineChanges;
use crate::session::{Flow, Session, SessionFlags};
use crate::workers::late_scripts::LateScript;
use respool_command::{Command, ConnectionCommand, Execute, Flags, Group, Outcome, Row, ServerCommand, SessionView};
use respool_wire::{Args, Encoder, Protocol};

impl<E: Execute> Env<E> {
    /// A script takes long: requests that are answered without the engine are refused as the engine refuses its own. A transaction is
    /// spoilt by that, and its EXEC ends it. The console goes on.
    #[cold]
    pub(crate) fn refuse_beside_script(&mut self, call: Call<'_>) -> Option<Flow> {
        let Call { index, row, request } = call;
        let late = self.slices.script.as_ref()?;
        let busy = late.busy();
        let flags = self.clients.sessions.at(index)?.flags;
        if self.config.trusts_clients && row.changes_every_shard() {
            // The other engines do it, and this one once the script has ended.
            self.clients.mark_held(index);
            return Some(Flow::Again);
        }
        let is_allowed = row.flags.has(Flags::ALLOW_BUSY)
            || row.group == Group::Proxy
            || self.config.trusts_clients && is_of_worker(row);
        if is_allowed || flags.has(SessionFlags::UNAUTHENTICATED) {
            return None;
        }
        let early = self.is_early(index, request);
        // As in Redis, what a user may not ask for is refused for that reason, and noted.
        let denied =
            || if flags.has(SessionFlags::RESTRICTED) { self.check_restricted(index, row, request.args) } else { None };
        early.or_else(denied).or_else(|| Some(self.refuse_known(index, row, busy)))
    }

    /// Whether the script that is late is one that this client waits for.
    pub(crate) fn waits_for_script(&self, index: ClientId) -> bool {
        let late = self.slices.script.as_ref().zip(self.clients.sessions.handle(index));
        late.is_some_and(|(late, client)| late.is_of(client))
    }

    /// A script has ended with this reply.
    fn note_script_calls(&mut self, reply: &[u8]) {
        let calls = self.engine.as_mut().map(Execute::script_calls).unwrap_or_default();
        self.command_log.calls.note_script(&calls, reply);
    }
}

/// What a worker needs of an engine whatever that does: to connect, and to tell of parameters that hold already.
fn is_of_worker(row: &Row) -> bool {
    matches!(row.command, Command::Connection(ConnectionCommand::Select) | Command::Server(ServerCommand::ConfigSet))
}

/// A request that runs a script here. If that becomes late, its reply comes in a later turn.
pub(crate) fn run_in_engine(side: &mut impl EngineCalls, call: Call<'_>) -> Flow {
    let Call { index, row, request } = call;
    let env = side.env();
    let Some(client) = env.clients.sessions.handle(index) else { return Flow::Stop };
    let Some(session) = env.clients.sessions.at(index) else { return Flow::Stop };
    let (id, database) = (session.id, session.database);
    let is_in_transaction = session.is_amid_exec_reply();
    let view = SessionView { is_in_transaction, ..env.view(database, id) };
    // Without a user it has no rights, and does not run.
    let Some(user) = env.clients.user_in_force(&env.users, index) else { return Flow::Stop };
    env.show_script(index, row, request.args);
    side.make_room_before(index);
    let (env, changes) = side.parts();
    // A script that the engine has left keeps its own: this one is answered BUSY.
    if env.slices.script.is_none() {
        let rights = env.script_rights(index, user);
        if let Some(engine) = &mut env.engine {
            engine.set_script_rights(rights);
        }
        changes.keep_script_reads(env, index);
    }
    let mut reply = Vec::new();
    let outcome = side.run_engine_as(EngineCall { view, by: Some(client), row, args: request.args }, &mut reply);
    let (env, changes) = side.parts();
    if outcome == Some(Outcome::Unfinished) {
        let Some(asker) = env.clients.expect_behind_barrier(index) else { return Flow::Stop };
        let args = request.args.iter().collect();
        let mark = env.shared.late_scripts.begin(row);
        env.slices.script = Some(LateScript { asker, id, row, database, args, us: 0, mark });
        // What it has changed so far others may not read, and hear of at once.
        changes.tell_changes(env);
        return Flow::Pause;
    }
    env.note_script_calls(&reply);
    env.answer(index, |out| out.raw(&reply));
    changes.track_script(env, index);
    side.note_run_apart(Some(index));
    side.env().keep_room(index, Flow::Next)
}

/// Goes on with a late script, and gives its client the reply if it has ended. Gives that client, if it is there.
#[cold]
pub(crate) fn go_on_with_script(side: &mut impl EngineCalls) -> Option<ClientHandle> {
    let env = side.env();
    let late = env.slices.script.as_ref()?;
    let (client, row) = (late.asker.session, late.row);
    let session = env.clients.sessions.get(client);
    let by = session.map(|_| client);
    let protocol = session.map_or(Protocol::Resp2, |session| session.protocol);
    let is_in_transaction = session.is_some_and(Session::is_amid_exec_reply);
    let view = SessionView { has_waited: true, is_in_transaction, ..env.view(late.database, late.id) };
    let begun_us = env.times_from();
    let mut reply = Vec::new();
    // The engine has the request.
    let call = EngineCall { view, by, row, args: Args::new(&[], &[]) };
    let outcome = side.execute_as(call, &mut Encoder::new(&mut reply, protocol))?;
    let (env, changes) = side.parts();
    let ended_us = begun_us.and_then(|_| env.shared.hooks.monotonic_us());
    let us = ended_us.zip(begun_us).map_or(0, |(ended_us, begun_us)| ended_us.saturating_sub(begun_us));
    if outcome == Outcome::Unfinished {
        if let Some(late) = &mut env.slices.script {
            late.us += us;
        }
        changes.tell_changes(env);
        return None;
    }
    let late = env.slices.script.take()?;
    env.note_script_calls(&reply);
    env.command_log.calls.end(row, &reply, begun_us.map(|_| late.us + us));
    if env.clients.sessions.get(client).is_none() {
        side.note_run_apart(None);
        return None;
    }
    let index = client.index;
    env.counters.requests_local.add(1);
    env.clients.fill(late.asker, &reply);
    changes.track_script(env, index);
    side.note_run_apart(Some(index));
    let env = side.env();
    if begun_us.is_some() {
        let reply_bytes = if late.asker.is_wanted { reply.len() } else { 0 };
        env.note_cost(index, row, late.args.as_args(), Cost { us: late.us + us, reply_bytes });
    }
    let _: Flow = env.keep_room(index, Flow::Next);
    Some(client)
}
