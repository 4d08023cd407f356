//! SCRIPT DEBUG at the engine in this process.
//!
//! ```text
//!   SCRIPT DEBUG --> [debugs] -- EVAL --> [stopped] -- command --> [runs] -- end --> <endsession>, the reply, closed
//!                        |                    ^                       |
//!                        NO                   '-- next line, ... -----'   (client leaves: it runs to its end)
//! ```
//!
//! As in Redis, what a client says while its script is stopped is for the debugger, whatever it is, and its connection is closed in
//! the end. With `SYNC` the script runs where everybody's keys are, and all other clients wait for its end. With `YES` it runs in an
//! engine with copies of all keys, which goes with the session: where redis-server forks, a library must not.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::interfaces::call::Call;
use crate::interfaces::engine_calls::{EngineCall, EngineCalls};
use crate::interfaces::engine_changes::EngineChanges;
use crate::limits::DEBUGGER_COPIES_MAX;
use crate::session::{Flow, Session, SessionFlags};
use crate::workers::debuggers::Debugging;
use respool_command::{Command, Execute, Outcome, Row, ScriptingCommand as S, SessionView, Wanted};
use respool_wire::{Args, Encoder, Protocol, Request};

const OPTION: &str = "ERR Use SCRIPT DEBUG YES/SYNC/NO";
const IN_TRANSACTION: &str = "ERR SCRIPT DEBUG must be called outside a pipeline";
const BY_HASH: &str = "ERR Please use EVAL instead of EVALSHA for debugging";

/// Whether this is SCRIPT DEBUG, for the engine in this process.
pub(crate) fn is_for_engine<E: Execute>(env: &Env<E>, row: &Row) -> bool {
    row.command == Command::Scripting(S::ScriptDebug) && env.engine.is_some()
}

/// SCRIPT DEBUG: what becomes of the next EVAL of this client.
pub(crate) fn enable<E: Execute>(env: &mut Env<E>, index: ClientId, args: Args<'_>) -> Flow {
    if env.clients.sessions.at(index).is_some_and(Session::is_amid_exec_reply) {
        return env.refuse(index, IN_TRANSACTION);
    }
    let Some(()) = env.clients.settle_before(index) else { return Flow::Again };
    let is = |word: &str| args.at(2).eq_ignore_ascii_case(word.as_bytes());
    let Some(session) = env.clients.sessions.at_mut(index) else { return Flow::Stop };
    let wanted: &[SessionFlags] = match () {
        () if is("YES") => &[SessionFlags::DEBUGS],
        () if is("SYNC") => &[SessionFlags::DEBUGS, SessionFlags::DEBUGS_ALL_KEYS],
        () if is("NO") => &[],
        () => return env.refuse(index, OPTION),
    };
    session.flags.remove(SessionFlags::DEBUGS);
    session.flags.remove(SessionFlags::DEBUGS_ALL_KEYS);
    wanted.iter().for_each(|flag| session.flags.add(*flag));
    env.confirm(index)
}

/// A request of a client that debugs, none of whose scripts is under way. `None`: it is done as any other.
pub(crate) fn ask_debugging(side: &mut impl EngineCalls, call: Call<'_>) -> Option<Flow> {
    let env = side.env();
    let session = env.clients.sessions.at(call.index)?;
    if session.flags.has(SessionFlags::QUEUEING) || session.is_amid_exec_reply() {
        return None;
    }
    match call.row.command {
        Command::Scripting(S::Eval | S::EvalRo) => Some(begin(side, call)),
        Command::Scripting(S::Evalsha | S::EvalshaRo) => Some(env.refuse(call.index, BY_HASH)),
        _ => None,
    }
}

/// A request while scripts are debugged. `None`: it is done as any other.
#[cold]
pub(crate) fn ask_debugger(side: &mut impl EngineCalls, index: ClientId, request: &Request<'_>) -> Option<Flow> {
    let env = side.env();
    let client = env.clients.sessions.handle(index)?;
    if let Some(debugging) = env.debuggers.take(client) {
        return Some(step(side, debugging, request.args, true));
    }
    if !env.debuggers.holds_others() {
        return None;
    }
    env.clients.mark_held(index);
    Some(Flow::Again)
}

fn begin(side: &mut impl EngineCalls, call: Call<'_>) -> Flow {
    let Call { index, row, request } = call;
    let env = side.env();
    let Some(()) = env.clients.settle_before(index) else { return Flow::Again };
    let Some(client) = env.clients.sessions.handle(index) else { return Flow::Stop };
    let Some(session) = env.clients.sessions.at(index) else { return Flow::Stop };
    let (id, database, flags) = (session.id, session.database, session.flags);
    let Some(user) = env.clients.user_in_force(&env.users, index) else { return Flow::Stop };
    let rights = env.script_rights(index, user);
    let own = match flags.has(SessionFlags::DEBUGS_ALL_KEYS) {
        true => Ok(None),
        false => copy(env).map(|engine| Some(Box::new(engine))),
    };
    let mut own = match own {
        Ok(own) => own,
        Err(why) => {
            // As when redis-server cannot fork.
            let session = env.clients.sessions.at_mut(index);
            session.into_iter().for_each(|session| session.flags.remove(SessionFlags::DEBUGS));
            return env.refuse(index, format!("ERR can't run EVAL in debugging mode: {why}").as_str());
        }
    };
    env.show_script(index, row, request.args);
    if own.is_none() {
        side.make_room_before(index);
    }
    let env = side.env();
    if let Some(engine) = own.as_deref_mut().or(env.engine.as_mut()) {
        engine.set_script_rights(rights);
    }
    step(side, Debugging { client, id, row, database, own, asker: None }, request.args, false)
}

/// An engine with copies of all keys.
fn copy<E: Execute>(env: &Env<E>) -> Result<E, &'static str> {
    if env.debuggers.copies() >= DEBUGGER_COPIES_MAX {
        return Err("as many clients debug as may");
    }
    let now = env.engine_now();
    env.engine.as_ref().map_or(Err("there is no engine"), |engine| engine.copy_for_debugging(now))
}

/// Lets a script run until it stops, and tells its client. A client that has left is told nothing, and its script stops nowhere.
fn step<C: EngineCalls>(side: &mut C, mut debugging: Debugging<C::Engine>, args: Args<'_>, has_begun: bool) -> Flow {
    let env = side.env();
    let client = debugging.client;
    let session = env.clients.sessions.get(client);
    let protocol = session.map_or(Protocol::Resp2, |session| session.protocol);
    let by = session.map(|_| client);
    let view = SessionView { debugs: true, has_waited: has_begun, ..env.view(debugging.database, debugging.id) };
    let mut reply = Vec::new();
    let call = EngineCall { view, by, row: debugging.row, args };
    let outcome = match &mut debugging.own {
        None => side.execute_as(call, &mut Encoder::new(&mut reply, protocol)),
        Some(engine) => Some(run_apart(engine.as_mut(), call, &mut Encoder::new(&mut reply, protocol))),
    };
    let (env, changes) = side.parts();
    if debugging.own.is_none() {
        changes.tell_changes(env);
    }
    let is_there = env.clients.sessions.get(client).is_some();
    let asker = debugging.asker.take();
    let tell = |env: &mut Env<C::Engine>| match asker {
        Some(asker) => env.clients.fill(asker, &reply),
        None if is_there => _ = env.answer(client.index, |out| out.raw(&reply)),
        None => {}
    };
    match outcome {
        Some(Outcome::Stopped) => {
            tell(env);
            env.debuggers.all.push(debugging);
            if is_there { env.keep_room(client.index, Flow::Next) } else { Flow::Stop }
        }
        Some(Outcome::Unfinished) => {
            debugging.asker = asker.or_else(|| env.clients.expect_behind_barrier(client.index).filter(|_| is_there));
            env.debuggers.all.push(debugging);
            env.slices.debugs = true;
            Flow::Pause
        }
        _ => {
            tell(env);
            env.debuggers.has_released |= debugging.own.is_none();
            let is_shared = debugging.own.is_none();
            drop(debugging);
            if is_there {
                env.clients.stop_client(client.index);
            }
            if is_shared {
                side.note_run_apart(None);
            }
            Flow::Stop
        }
    }
}

/// Nobody sees what changes in an engine with copies, and what is no command of its own it does not have.
fn run_apart<E: Execute>(engine: &mut E, call: EngineCall<'_>, reply: &mut Encoder<'_>) -> Outcome {
    let EngineCall { mut view, row, args, .. } = call;
    loop {
        let outcome = engine.execute(row, args, &mut view, reply);
        engine.changes(Wanted::default(), &mut |_| {});
        if outcome != Outcome::Asks {
            return outcome;
        }
        _ = engine.asked();
        view.has_waited = true;
    }
}

/// Goes on with scripts that run, and with those whose clients have left. Whether clients that were held back may go on.
#[cold]
pub(crate) fn go_on_debugging(side: &mut impl EngineCalls) -> bool {
    let env = side.env();
    env.slices.debugs = false;
    let is_due = |client: ClientHandle, runs: bool| runs || env.clients.sessions.get(client).is_none();
    let due: Vec<ClientHandle> =
        env.debuggers.all.iter().filter(|one| is_due(one.client, one.asker.is_some())).map(|one| one.client).collect();
    for client in due {
        let env = side.env();
        let is_there = env.clients.sessions.get(client).is_some();
        // What nobody sees ends with the client that saw it.
        if let Some(debugging) = env.debuggers.take(client).filter(|one| one.own.is_none() || is_there) {
            _ = step(side, debugging, Args::new(&[], &[]), true);
        }
    }
    let env = side.env();
    let has_gone = |one: &Debugging<_>| env.clients.sessions.get(one.client).is_none();
    env.slices.debugs |= env.debuggers.all.iter().any(has_gone);
    std::mem::take(&mut env.debuggers.has_released)
}
