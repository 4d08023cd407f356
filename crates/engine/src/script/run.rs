//! The engine's side of scripts: what `EVAL` and its kin do, and the script that is under way.
//!
//! ```text
//!   EVAL --> [running] -- done --> reply
//!               |  late: Parked, others are answered BUSY, the request is asked again ...
//!               '--<-- ... and goes on ---- SCRIPT KILL, nothing written: ends with an error
//! ```
//!
//! A script is late once it has run as long as Redis lets one run before it serves others. The engine has no clock: it is
//! given one, or counts what the script does.

mod calls;

use respool_command::{Command, Outcome, Row, ScriptingCommand, SessionView, text as texts};
use respool_wire::{Args, Encoder};

use self::calls::run_command;
use super::cache::{hash_of, parsed, written};
use super::debugger::Debugger;
use super::exchange::{Order, Raised, Report};
use super::functions;
use super::help;
use super::shebang::{self, ScriptFlags};
use super::state::{Desk, Name, Running};
use super::stops;
use super::text;
use crate::commands::{self, Fault, refuse};
use crate::limits::{DEBUGGER_SCRIPT_BYTES_MAX, SCRIPT_SLICE_COMMANDS};
use crate::number::integer;

/// Runs one command of the group, or goes on with the script of this session.
pub(crate) fn execute(
    desk: &mut Desk<'_>,
    row: &'static Row,
    args: Args<'_>,
    session: &mut SessionView,
    reply: &mut Encoder<'_>,
) -> Result<Outcome, Fault> {
    if desk.scripts.is_running() {
        return amid_script(desk, (row, args), session, reply);
    }
    let Command::Scripting(command) = row.command else { return Err(commands::unsupported(row)) };
    match command {
        ScriptingCommand::Eval | ScriptingCommand::EvalRo if session.debugs => {
            if args.at(1).len() > DEBUGGER_SCRIPT_BYTES_MAX {
                let refuse = |_: &mut Desk<'_>, _: &mut Encoder<'_>| Err(text::TOO_LONG_TO_DEBUG.into());
                return under_debugger(desk, reply, refuse);
            }
            let debugger = Some(Box::new(Debugger::new(args.at(1))));
            *desk.scripts.host()?.exchange.debugger.borrow_mut() = debugger;
            return under_debugger(desk, reply, |desk, reply| begin(desk, command, args, session, reply));
        }
        ScriptingCommand::Eval | ScriptingCommand::EvalRo | ScriptingCommand::Evalsha | ScriptingCommand::EvalshaRo => {
            return begin(desk, command, args, session, reply);
        }
        ScriptingCommand::Fcall | ScriptingCommand::FcallRo => {
            return call(desk, command == ScriptingCommand::FcallRo, args, session, reply);
        }
        ScriptingCommand::ScriptLoad => {
            let hash = hash_of(args.at(2));
            desk.scripts.load(hash, args.at(2))?;
            reply.bulk(written(&hash).as_bytes());
        }
        ScriptingCommand::ScriptExists => {
            reply.array(args.len() - 2);
            for name in args.from(2).iter() {
                let is_there = parsed(name).is_some_and(|hash| desk.scripts.cache.flags(&hash).is_some());
                reply.integer(is_there.into());
            }
        }
        ScriptingCommand::ScriptShow => {
            let script = parsed(args.at(2)).and_then(|hash| desk.scripts.cache.text(&hash));
            reply.bulk(script.ok_or(Fault::Text(texts::NOSCRIPT))?);
        }
        ScriptingCommand::ScriptFlush => {
            let is_mode = |mode: &[u8]| mode.eq_ignore_ascii_case(b"SYNC") || mode.eq_ignore_ascii_case(b"ASYNC");
            if args.len() > 3 || args.get(2).is_some_and(|mode| !is_mode(mode)) {
                return Err(text::FLUSH_OPTION.into());
            }
            desk.scripts.cache.clear();
            if let Some(host) = &mut desk.scripts.host {
                host.resume(Order::ForgetAll);
            }
            reply.simple("OK");
        }
        ScriptingCommand::ScriptDebug => {
            // Who debugs is the caller's to know: see `SessionView::debugs`.
            let is = |word: &str| args.at(2).eq_ignore_ascii_case(word.as_bytes());
            if !["YES", "SYNC", "NO"].into_iter().any(is) {
                return Err(text::DEBUG_OPTION.into());
            }
            reply.simple("OK");
        }
        ScriptingCommand::ScriptHelp => help::reply(help::SCRIPT, reply),
        ScriptingCommand::FunctionHelp => help::reply(help::FUNCTION, reply),
        ScriptingCommand::ScriptKill | ScriptingCommand::FunctionKill => return Err(text::NOT_BUSY.into()),
        _ => functions::execute(desk.scripts, command, args, reply).ok_or_else(|| commands::unsupported(row))??,
    }
    Ok(Outcome::Done)
}

/// A request while a script runs: its own, one that may come in between, or one that has to come later.
fn amid_script(
    desk: &mut Desk<'_>,
    (row, args): (&'static Row, Args<'_>),
    session: &SessionView,
    reply: &mut Encoder<'_>,
) -> Result<Outcome, Fault> {
    let Some(running) = &mut desk.scripts.running else { return Err(text::NOT_BUSY.into()) };
    if session.has_waited && session.client_id == running.owner {
        let Some(host) = desk.scripts.host.as_ref().filter(|host| host.exchange.debugger.borrow().is_some()) else {
            return go_on(desk, reply);
        };
        if !session.debugs {
            host.exchange.with_debugger(Debugger::desert);
        } else if running.is_stopped && args.is_empty() && !running.is_killed {
            return Ok(Outcome::Stopped);
        }
        let now = i64::try_from(session.now.0).unwrap_or(i64::MAX);
        let runs_ms = now.saturating_sub(running.runs_since).max(0).unsigned_abs();
        if std::mem::take(&mut running.is_stopped) {
            stops::hear(&host.exchange, args);
            running.runs_since = now;
            desk.scripts.restart_time();
        } else if runs_ms >= desk.scripts.debugged_after_ms() {
            host.exchange.with_debugger(|debugger| debugger.is_late = true);
        }
        return under_debugger(desk, reply, go_on);
    }
    let is_function = matches!(running.name, Name::Function { .. });
    let busy = if is_function { texts::BUSY_FUNCTION } else { texts::BUSY_SCRIPT };
    match row.command {
        Command::Scripting(kill @ (ScriptingCommand::ScriptKill | ScriptingCommand::FunctionKill)) => {
            if running.has_written {
                return Err(text::UNKILLABLE.into());
            }
            if is_function != (kill == ScriptingCommand::FunctionKill) {
                return Err(busy.into());
            }
            running.is_killed = true;
            reply.simple("OK");
            Ok(Outcome::Done)
        }
        Command::Scripting(ScriptingCommand::FunctionStats) => {
            functions::stats(desk.scripts, reply);
            Ok(Outcome::Done)
        }
        _ => Err(busy.into()),
    }
}

fn begin(
    desk: &mut Desk<'_>,
    command: ScriptingCommand,
    args: Args<'_>,
    session: &SessionView,
    reply: &mut Encoder<'_>,
) -> Result<Outcome, Fault> {
    let is_by_hash = matches!(command, ScriptingCommand::Evalsha | ScriptingCommand::EvalshaRo);
    let is_readonly = matches!(command, ScriptingCommand::EvalRo | ScriptingCommand::EvalshaRo);
    if is_by_hash && args.at(1).len() != 40 {
        return Err(texts::NOSCRIPT.into());
    }
    let keys = integer::parse(args.at(2)).ok_or(Fault::Text(texts::NOT_AN_INTEGER))?;
    let keys = keys_of(keys, args)?;
    let scripts = &mut *desk.scripts;
    let (hash, flags) = if is_by_hash {
        let hash = parsed(args.at(1)).ok_or(Fault::Text(texts::NOSCRIPT))?;
        if scripts.cache.flags(&hash).is_none() {
            return Err(texts::NOSCRIPT.into());
        }
        // If the interpreter is made anew it knows none of them: their texts are still there.
        scripts.host()?;
        match scripts.cache.compiled_flags(&hash) {
            Some(flags) => (hash, flags),
            None => {
                let known = scripts.cache.text(&hash).ok_or(Fault::Text(texts::NOSCRIPT))?.to_vec();
                (hash, scripts.load(hash, &known)?)
            }
        }
    } else {
        let hash = hash_of(args.at(1));
        (hash, scripts.load(hash, args.at(1))?)
    };
    let protocol = reply.protocol();
    let order = match session.debugs {
        true => Order::Debug { text: shebang::source(args.at(1)).to_vec(), keys, protocol },
        false => Order::Run { hash, keys, protocol },
    };
    start(desk, Start { flags, is_readonly, order, name: Name::Script(hash) }, args, session)?;
    go_on(desk, reply)
}

/// Runs what may end the session of a debugger. Its client is told so in front of what has come of the script.
fn under_debugger(
    desk: &mut Desk<'_>,
    reply: &mut Encoder<'_>,
    run: impl FnOnce(&mut Desk<'_>, &mut Encoder<'_>) -> Result<Outcome, Fault>,
) -> Result<Outcome, Fault> {
    let mut said = Vec::new();
    let ran = run(desk, &mut Encoder::new(&mut said, reply.protocol()));
    if matches!(ran, Ok(Outcome::Stopped | Outcome::Unfinished | Outcome::Asks)) {
        reply.raw(&said);
        return ran;
    }
    let debugger = desk.scripts.host.as_ref().and_then(|host| host.exchange.debugger.borrow_mut().take());
    let mut debugger = debugger.unwrap_or_else(|| Box::new(Debugger::new(b"")));
    debugger.say_end();
    debugger.tell(reply);
    match ran {
        Ok(_) => reply.raw(&said),
        Err(fault) => refuse(fault, reply.position(), reply),
    }
    Ok(Outcome::Done)
}

/// Calls a function.
fn call(
    desk: &mut Desk<'_>,
    is_readonly: bool,
    args: Args<'_>,
    session: &SessionView,
    reply: &mut Encoder<'_>,
) -> Result<Outcome, Fault> {
    let function = desk.scripts.libraries.function(args.at(1)).ok_or(Fault::Text(text::FUNCTION_NOT_FOUND))?;
    let (flags, name) = (function.flags, function.name.clone());
    let keys = integer::parse(args.at(2)).ok_or(Fault::Text(text::BAD_KEY_COUNT))?;
    let keys = keys_of(keys, args)?;
    // A fresh interpreter has to be brought the libraries first.
    desk.scripts.host()?;
    let order = Order::Call { name: name.to_ascii_lowercase(), keys, protocol: reply.protocol() };
    let name = Name::Function { name, command: args.into() };
    start(desk, Start { flags, is_readonly, order, name }, args, session)?;
    go_on(desk, reply)
}

fn keys_of(keys: i64, args: Args<'_>) -> Result<usize, Fault> {
    if keys > (args.len() - 3) as i64 {
        return Err(text::TOO_MANY_KEYS.into());
    }
    usize::try_from(keys).map_err(|_| Fault::Text(text::NEGATIVE_KEYS))
}

/// A script or function that is to run.
struct Start {
    flags: ScriptFlags,
    is_readonly: bool,
    order: Order,
    name: Name,
}

fn start(desk: &mut Desk<'_>, what: Start, args: Args<'_>, session: &SessionView) -> Result<(), Fault> {
    let Start { flags, is_readonly, order, name } = what;
    if flags.is_declared && !flags.no_writes {
        if is_readonly {
            return Err(text::NO_WRITES_NEEDED.into());
        }
        if desk.is_full && !flags.allow_oom {
            return Err(text::OOM_NOT_ALLOWED.into());
        }
    }
    let scripts = &mut *desk.scripts;
    let started_ms = scripts.clock_ms();
    let exchange = &scripts.host()?.exchange;
    let mut request = exchange.request.borrow_mut();
    request.clear();
    args.from(3).iter().for_each(|argument| _ = request.push(argument));
    drop(request);
    scripts.reads.begin();
    let rights = scripts.rights.take();
    scripts.running = Some(Box::new(Running {
        owner: session.client_id,
        name,
        database: session.database,
        now: i64::try_from(session.now.0).unwrap_or(i64::MAX),
        may_write: !is_readonly && !flags.no_writes,
        may_exceed_memory: (flags.allow_oom || flags.no_writes) && !scripts.is_strict,
        may_end_beyond: !scripts.is_strict,
        rights,
        has_written: false,
        spares_uses: desk.keyspace.spares_uses(),
        began_full: desk.is_full,
        began_beyond: desk.memory_bytes_max.is_some_and(|max| desk.keyspace.bounded_bytes() as u64 > max),
        vm_bytes: desk.keyspace.script_memory.vm_bytes,
        is_killed: false,
        runs_since: i64::try_from(session.now.0).unwrap_or(i64::MAX),
        started_ms,
        looks: 0,
        cost: 0,
        is_look_due: false,
        is_stopped: false,
        order,
        asked: None,
    }));
    Ok(())
}

/// Lets the script run until it is done, or late. It uses keys as the client does that began it, even if another client is served in between.
fn go_on(desk: &mut Desk<'_>, reply: &mut Encoder<'_>) -> Result<Outcome, Fault> {
    let Some(running) = &desk.scripts.running else { return Err(text::NOT_BUSY.into()) };
    let was_spared = desk.keyspace.spare_uses(running.spares_uses);
    let outcome = resume(desk, reply);
    desk.keyspace.spare_uses(was_spared);
    outcome
}

fn resume(desk: &mut Desk<'_>, reply: &mut Encoder<'_>) -> Result<Outcome, Fault> {
    let Some(running) = &mut desk.scripts.running else { return Err(text::NOT_BUSY.into()) };
    let mut order = match std::mem::replace(&mut running.order, Order::Go) {
        // Others are heard only while this is left.
        Order::Go if running.is_killed => Order::Kill,
        order => order,
    };
    if std::mem::take(&mut running.is_look_due) && desk.scripts.is_left() {
        if let Some(running) = &mut desk.scripts.running {
            running.order = order;
        }
        return Ok(Outcome::Unfinished);
    }
    loop {
        let report = desk.scripts.host.as_mut().and_then(|host| host.resume(order));
        order = Order::Go;
        match report {
            Some(Report::Call) => {
                run_command(desk);
                let Some(running) = &mut desk.scripts.running else { continue };
                if running.cost >= SCRIPT_SLICE_COMMANDS {
                    (running.cost, running.is_look_due) = (0, true);
                }
                if running.asked.is_some() || desk.keyspace.has_many_events() || desk.scripts.watched.is_full() {
                    return Ok(Outcome::Asks);
                }
                if std::mem::take(&mut running.is_look_due) && desk.scripts.is_left() {
                    return Ok(Outcome::Unfinished);
                }
            }
            Some(Report::Look) => look_up(desk),
            Some(Report::Clock) => tell_time(desk),
            Some(Report::Log(level, line)) => desk.scripts.write_log(level, &line),
            Some(Report::Paused) => {
                if desk.scripts.is_left() {
                    return Ok(Outcome::Unfinished);
                }
            }
            Some(Report::Stopped) => {
                if let Some(running) = &mut desk.scripts.running {
                    running.is_stopped = true;
                }
                if let Some(host) = &desk.scripts.host {
                    stops::tell(&host.exchange, reply);
                }
                return Ok(Outcome::Stopped);
            }
            Some(Report::Done(Ok(()))) => {
                desk.scripts.running = None;
                if let Some(host) = &desk.scripts.host {
                    reply.raw(&host.exchange.answer.borrow());
                    host.exchange.give_memory_back();
                }
                return Ok(Outcome::Done);
            }
            Some(Report::Done(Err(raised))) => {
                let ended = desk.scripts.running.take();
                if let Some(host) = &desk.scripts.host {
                    host.exchange.give_memory_back();
                }
                return Err(Fault::Written(told(raised, ended.map(|running| running.name))));
            }
            Some(Report::Ready | Report::Compiled(_)) | None => {
                // The interpreter has ended: there was no memory for it.
                desk.scripts.host = None;
                desk.scripts.running = None;
                return Err(text::NO_MEMORY.into());
            }
        }
    }
}

/// What a client is told of an error in a script.
fn told(raised: Raised, name: Option<Name>) -> Vec<u8> {
    let Raised { mut text, place } = raised;
    // A text of C's ends here.
    text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(text.len()));
    if let (Some((source, line)), Some(name)) = (place, name) {
        text.extend_from_slice(b" script: ");
        match name {
            Name::Script(hash) => text.extend_from_slice(written(&hash).as_bytes()),
            Name::Function { name, .. } => text.extend_from_slice(&name),
        }
        text.extend_from_slice(format!(", on {source}:{line}.").as_bytes());
    }
    text
}

/// Tells a script whether there is a command, and whether its user may run it.
fn look_up(desk: &mut Desk<'_>) {
    let Some(host) = &desk.scripts.host else { return };
    let exchange = &host.exchange;
    let request = exchange.request.borrow();
    // With how many arguments is not asked.
    let rights = desk.scripts.running.as_ref().and_then(|running| running.rights.as_deref());
    let mut answer = exchange.reply.borrow_mut();
    answer.clear();
    if let Ok(row) = desk.scripts.renames.resolve(request.as_args()) {
        let is_refused = rights.is_some_and(|rights| rights.refusal(row, request.as_args()).is_some());
        answer.push(if is_refused { b'0' } else { b'1' });
    }
}

/// Tells a script the time of its clock.
fn tell_time(desk: &mut Desk<'_>) {
    let now_ms = desk.scripts.clock_ms();
    let Some(host) = &desk.scripts.host else { return };
    let mut answer = host.exchange.reply.borrow_mut();
    answer.clear();
    answer.extend_from_slice(now_ms.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use crate::script::exchange::BUFFER_BYTES_KEPT;
    use crate::transcript::Script;
    use crate::{Engine, EngineConfig};

    /// The room of the buffers that are there behind a script.
    fn rooms(script: &Script) -> [usize; 3] {
        let exchange = &script.engine.scripts().host.as_ref().expect("a script has run").exchange;
        let request = exchange.request.borrow().capacity();
        [request, exchange.reply.borrow().capacity(), exchange.answer.borrow().capacity()]
    }

    #[test]
    fn what_a_script_has_read_and_said_goes_with_it() {
        let mut script = Script::new();
        // A script is late at its first look.
        let config = EngineConfig { script_busy_after_ms: 1, ..EngineConfig::default() };
        script.engine = Engine::new(config, [1, 2]);
        let mut eval = |text: &str| {
            let mut said = script.send(&[b"EVAL", text.as_bytes(), b"0"]);
            script.session.has_waited = true;
            while script.engine.scripts().is_running() {
                said = script.send(&[b"EVAL", text.as_bytes(), b"0"]);
            }
            script.session.has_waited = false;
            assert!(rooms(&script).into_iter().all(|room| room <= BUFFER_BYTES_KEPT), "{text}: {:?}", rooms(&script));
            said
        };
        assert_eq!(eval("redis.call('SET', 'k', string.rep('x', 1e6)) return 1"), b":1\r\n");
        assert_eq!(eval("return #redis.call('GET', 'k')"), b":1000000\r\n");
        assert_eq!(eval("return redis.call('GET', 'k')").len(), 1_000_012);
        assert!(eval("redis.call('GET', 'k') error('late')").starts_with(b"-ERR user_script:1: late"));
        let many = "local t, s = {}, string.rep('x', 1e6) for i = 1, 30 do t[i] = s end return t";
        assert!(eval(many).starts_with(b"*30\r\n"));
        // It is killed while its reply is written.
        assert!(script.send(&[b"EVAL", many.as_bytes(), b"0"]).is_empty());
        script.session.client_id = 7;
        assert_eq!(script.say("SCRIPT KILL"), "+OK");
        script.session.client_id = 0;
        script.session.has_waited = true;
        let killed = script.say("EVAL late 0");
        assert!(killed.starts_with("-ERR Script killed by user with SCRIPT KILL..."), "{killed}");
        assert!(rooms(&script).into_iter().all(|room| room <= BUFFER_BYTES_KEPT), "{:?}", rooms(&script));
    }
}
