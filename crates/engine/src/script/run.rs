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

use std::sync::Arc;

use respool_command::{
    Asked, Command, Outcome, Renames, Row, ScriptCalls, ScriptRights, ScriptingCommand, SessionView, text as texts,
};
use respool_wire::{Args, ArgsBuf, Encoder};

use self::calls::run_command;
use super::cache::{Cache, Hash, hash_of, parsed, written};
use super::debugger::Debugger;
use super::exchange::{Order, Raised, Report};
use super::functions;
use super::help;
use super::host::Host;
use super::library::Libraries;
use super::log::{Log, ScriptLogLevel};
use super::ownership::{Ownership, Owns};
use super::reads::Reads;
use super::shebang::{self, ScriptFlags};
use super::stops;
use super::text;
use super::watched::WatchedCalls;
use crate::commands::{self, Fault};
use crate::engine::refuse;
use crate::keyspace::Keyspace;
use crate::limits::{DEBUGGER_SCRIPT_BYTES_MAX, SCRIPT_BUSY_AFTER_MS, SCRIPT_SLICE_COMMANDS, SCRIPT_SLICE_MS};
use crate::number::integer;
use crate::script_memory::ScriptMemory;

/// Milliseconds since some point in time, asked while a script runs.
pub(crate) type Clock = Box<dyn FnMut() -> u64 + Send>;

/// The scripts of an engine.
pub(crate) struct Scripts {
    pub(super) host: Option<Host>,
    pub(super) cache: Cache,
    pub(super) libraries: Libraries,
    running: Option<Box<Running>>,
    clock: Option<Clock>,
    log: Option<Log>,
    /// What the next script that begins may do; `None`: everything.
    rights: Option<Box<dyn ScriptRights>>,
    /// What the script that began last has read.
    pub(crate) reads: Reads,
    /// What scripts have called, until the host takes it.
    calls: ScriptCalls,
    /// The same for clients that monitor.
    pub(crate) watched: WatchedCalls,
    ownership: Ownership,
    /// Under which names scripts call commands.
    renames: Arc<Renames>,
    /// Milliseconds after which one that runs is left for others.
    busy_after_ms: u64,
    /// No script takes memory beyond the limit, whatever it has begun: no other client sees these keys.
    is_strict: bool,
}

/// A script under way.
struct Running {
    /// The session that waits for it.
    owner: u64,
    name: Name,
    /// The database in which its commands run.
    database: u32,
    now: i64,
    may_write: bool,
    may_exceed_memory: bool,
    /// Once it has written, it may end what it has begun.
    may_end_beyond: bool,
    /// What its user may do; `None`: everything.
    rights: Option<Box<dyn ScriptRights>>,
    has_written: bool,
    /// Its client leaves no trace of the keys that it uses.
    spares_uses: bool,
    /// There was no room when it began.
    began_full: bool,
    /// More than `maxmemory` was in use when it began.
    began_beyond: bool,
    /// Bytes of the interpreter when it began.
    vm_bytes: usize,
    is_killed: bool,
    /// The same for a debugger, by the time of requests: an engine with copies has no clock.
    runs_since: i64,
    /// When it began, or its debugger let it go on.
    started_ms: u64,
    /// Looks since then.
    looks: u64,
    /// What its commands have cost since the last look at the time, in quick ones.
    cost: u32,
    /// They have cost so much that it is time for another.
    is_look_due: bool,
    /// Its debugger waits for a command.
    is_stopped: bool,
    /// What the vm is to do next.
    order: Order,
    /// The command that it has called and that is not the engine's.
    asked: Option<&'static Row>,
}

/// What it is called in errors.
enum Name {
    Script(Hash),
    Function { name: Vec<u8>, command: ArgsBuf },
}

/// A function under way, as `FUNCTION STATS` tells of it.
pub(super) struct Called<'s> {
    pub(super) name: &'s [u8],
    pub(super) command: Args<'s>,
    pub(super) duration_ms: u64,
}

/// What scripts need of their engine.
pub(crate) struct Desk<'e> {
    pub(crate) keyspace: &'e mut Keyspace,
    pub(crate) scripts: &'e mut Scripts,
    pub(crate) memory_bytes_max: Option<u64>,
    /// There is no room for what a script that begins would add.
    pub(crate) is_full: bool,
}

impl Scripts {
    /// Milliseconds after which others are told that a script runs.
    pub(crate) fn busy_after_ms(&self) -> u64 {
        self.busy_after_ms
    }

    pub(crate) fn set_busy_after_ms(&mut self, busy_after_ms: u64) {
        self.busy_after_ms = busy_after_ms;
    }

    pub(crate) fn new(busy_after_ms: u64) -> Self {
        Self {
            host: None,
            cache: Cache::default(),
            libraries: Libraries::default(),
            running: None,
            clock: None,
            log: None,
            rights: None,
            reads: Reads::default(),
            calls: ScriptCalls::default(),
            watched: WatchedCalls::default(),
            ownership: Ownership::default(),
            renames: Arc::default(),
            busy_after_ms,
            is_strict: false,
        }
    }

    /// Scripts call commands by these names.
    pub(crate) fn set_renames(&mut self, renames: Arc<Renames>) {
        self.renames = renames;
    }

    /// From now on no script takes memory beyond the limit.
    pub(crate) fn bound_strictly(&mut self) {
        self.is_strict = true;
    }

    pub(crate) fn renames(&self) -> Arc<Renames> {
        Arc::clone(&self.renames)
    }

    /// The next script that begins has these rights, to its end.
    pub(crate) fn set_rights(&mut self, rights: Option<Box<dyn ScriptRights>>) {
        self.rights = rights;
    }

    /// What scripts have called since this was last asked.
    pub(crate) fn take_calls(&mut self) -> ScriptCalls {
        std::mem::take(&mut self.calls)
    }

    /// From now on the log is told what scripts write.
    pub(crate) fn set_log(&mut self, log: Log) {
        self.log = Some(log);
    }

    /// From now on scripts reach only names for which this holds.
    pub(crate) fn set_key_owner(&mut self, owns: Owns) {
        self.ownership.set(owns);
    }

    /// A script writes a line.
    pub(super) fn write_log(&mut self, level: ScriptLogLevel, line: &[u8]) {
        if let Some(log) = &mut self.log {
            log(level, line);
        }
    }

    /// From now on the clock says how long a script has been running.
    pub(crate) fn set_clock(&mut self, clock: Clock) {
        self.clock = Some(clock);
    }

    /// Whether a script is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether the debugger of the script that is under way waits for its client.
    pub(crate) fn is_stopped(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.is_stopped)
    }

    /// The command that the script has called and that is not the engine's.
    pub(crate) fn asked(&mut self) -> Option<Asked> {
        let (running, host) = (self.running.as_mut()?, self.host.as_ref()?);
        let (row, database) = (running.asked.take()?, running.database);
        let args = host.exchange.request.borrow().as_args().into();
        Some(Asked { row, args, protocol: host.exchange.protocol.get(), database })
    }

    /// The reply to that command.
    pub(crate) fn answer_asked(&mut self, reply: &[u8]) {
        if let Some(host) = &self.host {
            let mut buffer = host.exchange.reply.borrow_mut();
            buffer.clear();
            buffer.extend_from_slice(reply);
        }
    }

    /// What all of them hold.
    pub(crate) fn memory(&self) -> ScriptMemory {
        ScriptMemory {
            vm_bytes: self.vm_bytes(),
            cached_bytes: self.cache.bytes(),
            cached: self.cache.len(),
            library_bytes: self.libraries.bytes(),
            libraries: self.libraries.len(),
            functions: self.libraries.functions(),
        }
    }

    fn clock_ms(&mut self) -> u64 {
        self.clock.as_mut().map_or(0, |clock| clock())
    }

    /// The interpreter; made when it is needed.
    pub(super) fn host(&mut self) -> Result<&mut Host, Fault> {
        if self.host.is_none() {
            self.host = Host::new();
            // A fresh one knows none of the scripts.
            self.cache.forget_compiled();
            if self.host.is_some()
                && let Err(fault) = functions::bring_back(self)
            {
                // With some of the libraries it is not to be taken for one that has all.
                self.host = None;
                return Err(fault);
            }
        }
        self.host.as_mut().ok_or(Fault::Text(text::NO_MEMORY))
    }

    /// The function that runs.
    pub(super) fn called(&mut self) -> Option<Called<'_>> {
        let now = self.clock_ms();
        let Running { name: Name::Function { name, command }, started_ms, looks, .. } = &**self.running.as_ref()?
        else {
            return None;
        };
        let duration_ms = if self.clock.is_some() { now.saturating_sub(*started_ms) } else { looks * SCRIPT_SLICE_MS };
        Some(Called { name, command: command.as_args(), duration_ms })
    }

    /// Whether the script that runs should be left for others now.
    fn is_late(&mut self) -> bool {
        let now = self.clock_ms();
        let has_clock = self.clock.is_some();
        let Some(running) = &mut self.running else { return false };
        running.looks += 1;
        let elapsed = if has_clock { now.saturating_sub(running.started_ms) } else { running.looks * SCRIPT_SLICE_MS };
        elapsed >= self.busy_after_ms
    }

    /// Whether the script that runs is left now: if it is late, or at each look if it has a debugger. Others are served while one is
    /// debugged in a copy; while one is that all of them wait for, a request may end it.
    fn is_left(&mut self) -> bool {
        let is_late = self.is_late();
        let looked_ms = self.running.as_ref().map_or(0, |running| running.looks) * SCRIPT_SLICE_MS;
        let is_late_for_debugger = is_late && (self.busy_after_ms > 0 || looked_ms >= self.debugged_after_ms());
        let Some(host) = &self.host else { return is_late };
        let mut debugger = host.exchange.debugger.borrow_mut();
        let Some(debugger) = debugger.as_mut() else { return is_late };
        debugger.is_late |= is_late_for_debugger;
        true
    }

    /// Milliseconds after which a script with a debugger is late. As in Redis, without a threshold it has that of the others.
    fn debugged_after_ms(&self) -> u64 {
        if self.busy_after_ms == 0 { SCRIPT_BUSY_AFTER_MS } else { self.busy_after_ms }
    }

    /// The debugger of the script that runs lets it go on.
    fn restart_time(&mut self) {
        let now = self.clock_ms();
        if let Some(running) = &mut self.running {
            (running.started_ms, running.looks) = (now, 0);
        }
    }
}

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
