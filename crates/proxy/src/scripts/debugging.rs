//! SCRIPT DEBUG at the engine in this process.
//!
//! ```text
//!   SCRIPT DEBUG --> [debugs] -- EVAL --> [stopped] -- command --> [runs] -- end --> <endsession>, the reply, closed
//!                        |                    ^                       |
//!                        NO                   '-- next line, ... -----'   (client leaves: it runs to its end)
//! ```
//!
//! As in Redis, what a client says while its script is stopped is for the debugger, whatever it is, and its connection is closed in
//! the end. With `SYNC` the script runs where the keys of all clients are, and all other clients wait for its end, unless they ask for what may
//! end it. With `YES` it runs in an engine with copies of all keys, which goes with the session: where redis-server forks, a library must not.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::interfaces::call::Call;
use crate::interfaces::engine_calls::{EngineCall, EngineCalls};
use crate::interfaces::engine_changes::EngineChanges;
use crate::limits::{DEBUGGER_COPIES_MAX, DEBUGGER_HUNG_UP_US};
use crate::session::{Flow, Session, SessionFlags};
use crate::workers::late_scripts::Debugging;
use respool_command::{
    Asked, Command, ConnectionCommand as C, Execute, Flags, Group, Outcome, PubsubCommand, Row, ScriptingCommand as S,
    SessionView, Wanted,
};
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

/// What a client has a debugger do.
enum Said<'a> {
    /// It asks for the script.
    Eval(Args<'a>),
    /// A command while the script is stopped.
    Command(Args<'a>),
    /// Nothing: the script goes on, if it runs or its client has left, and ends if it has been killed.
    Nothing,
}

/// A request of a client that debugs, none of whose scripts is under way. `None`: it is done as any other. No script is queued meanwhile:
/// see `refuse_to_queue`.
pub(crate) fn ask_debugging(side: &mut impl EngineCalls, call: Call<'_>) -> Option<Flow> {
    let env = side.env();
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
    if env.debuggers.has(client)
        && let Some(flow) = env.ask_limited(index, request)
    {
        return Some(flow);
    }
    if let Some(debugging) = env.debuggers.take(client) {
        return Some(step(side, debugging, Said::Command(request.args)));
    }
    if !env.debuggers.holds_others() || env.shared.renames.resolve(request.args).is_ok_and(may_come_between) {
        return None;
    }
    env.clients.mark_held(index);
    Some(Flow::Again)
}

/// Whether others may ask for this while they wait for the end of a script: to log in, and to end it, its client or the server.
/// Transactions wait, whatever Redis does beside a late script: EXEC runs what was queued before.
fn may_come_between(row: &'static Row) -> bool {
    let ends_clients = matches!(row.command, Command::Connection(C::ClientKill | C::ClientList));
    ends_clients || row.group == Group::Proxy || row.flags.has(Flags::ALLOW_BUSY) && row.group != Group::Transactions
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
    side.make_room_before(index);
    let env = side.env();
    let own = match flags.has(SessionFlags::DEBUGS_ALL_KEYS) {
        true => Ok(None),
        false => copy(env).map(|engine| Some(Box::new(engine))),
    };
    let mut own = match own {
        Ok(own) => own,
        // It debugs still: who tries again must not run the script among the real keys.
        Err(why) => return env.refuse(index, format!("ERR can't run EVAL in debugging mode: {why}").as_str()),
    };
    env.show_script(index, row, request.args);
    if let Some(engine) = own.as_deref_mut().or(env.engine.as_mut()) {
        engine.set_script_rights(rights);
    }
    step(side, Debugging { client, id, row, database, own, asker: None, runs_since_us: 0 }, Said::Eval(request.args))
}

/// An engine with copies of all keys. Making it takes time of all clients, and is followed by a pause whatever came of it.
fn copy<E: Execute>(env: &mut Env<E>) -> Result<E, &'static str> {
    if env.debuggers.copies() >= DEBUGGER_COPIES_MAX {
        return Err("as many clients debug as may");
    }
    if !env.debuggers.may_copy(env.now.mono_us) {
        return Err("the keys have just been copied for another session; try again in a few seconds");
    }
    let now = env.engine_now();
    timed(env, |env| env.engine.as_ref().ok_or("there is no engine")?.copy_for_debugging(now))
}

/// Makes or drops copies of keys, and notes how long that has taken.
fn timed<E: Execute, R>(env: &mut Env<E>, work: impl FnOnce(&Env<E>) -> R) -> R {
    let clock_us = |env: &Env<E>| env.shared.hooks.monotonic_us().unwrap_or(env.now.mono_us);
    let begun_us = clock_us(env);
    let done = work(env);
    env.debuggers.note_copied(begun_us, clock_us(env));
    done
}

/// Lets a script run until it stops, and tells its client if that waits. What has left is told nothing, and its script stops nowhere.
fn step<C: EngineCalls>(side: &mut C, mut debugging: Debugging<C::Engine>, said: Said<'_>) -> Flow {
    let env = side.env();
    let client = debugging.client;
    let session = env.clients.sessions.get(client);
    let protocol = session.map_or(Protocol::Resp2, |session| session.protocol);
    let is_there = session.is_some();
    let by = session.map(|_| client);
    let has_waited = !matches!(said, Said::Eval(_));
    if !matches!(said, Said::Nothing) {
        debugging.runs_since_us = env.now.mono_us;
    }
    let debugs = !has_left(env, &debugging);
    let view = SessionView { debugs, has_waited, ..env.view(debugging.database, debugging.id) };
    let (args, is_asked) = match said {
        Said::Eval(args) | Said::Command(args) => (args, is_there),
        Said::Nothing => (Args::new(&[], &[]), false),
    };
    let mut reply = Vec::new();
    let call = EngineCall { view, by, row: debugging.row, args };
    let outcome = match &mut debugging.own {
        None => side.execute_as(call, &mut Encoder::new(&mut reply, protocol)),
        Some(engine) => Some(run_apart(side, engine.as_mut(), call, &mut Encoder::new(&mut reply, protocol))),
    };
    let (env, changes) = side.parts();
    if debugging.own.is_none() {
        changes.tell_changes(env);
    }
    let is_there = env.clients.sessions.get(client).is_some();
    let asker = debugging.asker.take();
    let tell = |env: &mut Env<C::Engine>| match asker {
        Some(asker) => env.clients.fill(asker, &reply),
        None if is_there && is_asked => _ = env.answer(client.index, |out| out.raw(&reply)),
        None => {}
    };
    match outcome {
        Some(Outcome::Stopped) => {
            tell(env);
            env.debuggers.all.push(debugging);
            if !is_there {
                return Flow::Stop;
            }
            _ = env.keep_room(client.index, Flow::Next);
            if is_asked {
                // Others have a turn behind each command, however many are sent at once.
                env.end_slice(client.index);
            }
            Flow::Pause
        }
        Some(Outcome::Unfinished) => {
            let place = |env: &mut Env<C::Engine>| env.clients.expect_behind_barrier(client.index);
            debugging.asker = asker.or_else(|| if is_there && is_asked { place(env) } else { None });
            env.debuggers.all.push(debugging);
            env.slices.debugs = true;
            Flow::Pause
        }
        _ => {
            tell(env);
            let is_shared = debugging.own.is_none();
            env.debuggers.has_released |= is_shared;
            timed(env, |_| drop(debugging));
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

/// Whether a client is not there, or will say nothing more to a script that has run for long: it has closed its side.
fn has_left<E>(env: &Env<E>, debugging: &Debugging<E>) -> bool {
    let runs_us = env.now.mono_us.saturating_sub(debugging.runs_since_us);
    let session = env.clients.sessions.get(debugging.client);
    session.is_none_or(|session| session.details.has_hung_up && runs_us >= DEBUGGER_HUNG_UP_US)
}

/// No other client sees what changes in an engine with copies, nor hears what is published there.
fn run_apart<C: EngineCalls>(
    side: &mut C,
    engine: &mut C::Engine,
    call: EngineCall<'_>,
    reply: &mut Encoder<'_>,
) -> Outcome {
    let EngineCall { mut view, row, args, .. } = call;
    loop {
        let outcome = engine.execute(row, args, &mut view, reply);
        engine.changes(Wanted::default(), &mut |_| {});
        if outcome != Outcome::Asks {
            return outcome;
        }
        if let Some(asked) = engine.asked() {
            engine.answer_asked(&answer_apart(side, &asked));
        }
        view.has_waited = true;
    }
}

/// The reply to what a script calls that is not the engine's; none: the script gets the error that there is no such command.
fn answer_apart(side: &mut impl EngineCalls, asked: &Asked) -> Vec<u8> {
    let Asked { row, args, protocol, .. } = asked;
    let mut reply = Vec::new();
    let mut out = Encoder::new(&mut reply, *protocol);
    let (env, changes) = side.parts();
    match row.command {
        Command::Pubsub(PubsubCommand::Publish | PubsubCommand::Spublish) => out.integer(0),
        Command::Pubsub(command) => changes.pubsub_for_script(env, command, row, args.as_args(), &mut out),
        _ => {}
    }
    reply
}

/// Goes on with scripts that run, with those whose clients have left, and with one that may have been killed. Whether clients that were
/// held back may go on.
#[cold]
pub(crate) fn go_on_debugging(side: &mut impl EngineCalls) -> bool {
    let env = side.env();
    env.slices.debugs = false;
    let has_gone = |env: &Env<_>, client: ClientHandle| env.clients.sessions.get(client).is_none();
    let is_due = |one: &&Debugging<_>| one.asker.is_some() || one.own.is_none() || has_gone(env, one.client);
    let due: Vec<ClientHandle> = env.debuggers.all.iter().filter(is_due).map(|one| one.client).collect();
    for client in due {
        let env = side.env();
        let is_there = !has_gone(env, client);
        // A copy ends with the client that saw it.
        match env.debuggers.take(client) {
            Some(debugging) if debugging.own.is_some() && !is_there => timed(env, |_| drop(debugging)),
            Some(debugging) => _ = step(side, debugging, Said::Nothing),
            None => {}
        }
    }
    let env = side.env();
    env.slices.debugs |= env.debuggers.all.iter().any(|one| has_gone(env, one.client));
    std::mem::take(&mut env.debuggers.has_released)
}
