//! The scripts of an engine, and the one that is under way.

use std::sync::Arc;

use respool_command::{Asked, Renames, Row, ScriptCalls, ScriptRights};
use respool_wire::{Args, ArgsBuf};

use super::cache::{Cache, Hash};
use super::exchange::Order;
use super::functions;
use super::host::Host;
use super::library::Libraries;
use super::log::{Log, ScriptLogLevel};
use super::ownership::{Ownership, Owns};
use super::reads::Reads;
use super::text;
use super::watched::WatchedCalls;
use crate::commands::Fault;
use crate::keyspace::Keyspace;
use crate::limits::{SCRIPT_BUSY_AFTER_MS, SCRIPT_SLICE_MS};
use crate::script_memory::ScriptMemory;

/// Milliseconds since some point in time, asked while a script runs.
pub(crate) type Clock = Box<dyn FnMut() -> u64 + Send>;

/// The scripts of an engine.
pub(crate) struct Scripts {
    pub(super) host: Option<Host>,
    pub(super) cache: Cache,
    pub(super) libraries: Libraries,
    pub(super) running: Option<Box<Running>>,
    pub(super) clock: Option<Clock>,
    pub(super) log: Option<Log>,
    /// What the next script that begins may do; `None`: everything.
    pub(super) rights: Option<Box<dyn ScriptRights>>,
    /// What the script that began last has read.
    pub(crate) reads: Reads,
    /// What scripts have called, until the host takes it.
    pub(super) calls: ScriptCalls,
    /// The same for clients that monitor.
    pub(crate) watched: WatchedCalls,
    pub(super) ownership: Ownership,
    /// Under which names scripts call commands.
    pub(super) renames: Arc<Renames>,
    /// Milliseconds after which one that runs is left for others.
    pub(super) busy_after_ms: u64,
    /// No script takes memory beyond the limit, whatever it has begun: no other client sees these keys.
    pub(super) is_strict: bool,
}

/// A script under way.
pub(super) struct Running {
    /// The session that waits for it.
    pub(super) owner: u64,
    pub(super) name: Name,
    /// The database in which its commands run.
    pub(super) database: u32,
    pub(super) now: i64,
    pub(super) may_write: bool,
    pub(super) may_exceed_memory: bool,
    /// Once it has written, it may end what it has begun.
    pub(super) may_end_beyond: bool,
    /// What its user may do; `None`: everything.
    pub(super) rights: Option<Box<dyn ScriptRights>>,
    pub(super) has_written: bool,
    /// Its client leaves no trace of the keys that it uses.
    pub(super) spares_uses: bool,
    /// There was no room when it began.
    pub(super) began_full: bool,
    /// More than `maxmemory` was in use when it began.
    pub(super) began_beyond: bool,
    /// Bytes of the interpreter when it began.
    pub(super) vm_bytes: usize,
    pub(super) is_killed: bool,
    /// The same for a debugger, by the time of requests: an engine with copies has no clock.
    pub(super) runs_since: i64,
    /// When it began, or its debugger let it go on.
    pub(super) started_ms: u64,
    /// Looks since then.
    pub(super) looks: u64,
    /// What its commands have cost since the last look at the time, in quick ones.
    pub(super) cost: u32,
    /// They have cost so much that it is time for another.
    pub(super) is_look_due: bool,
    /// Its debugger waits for a command.
    pub(super) is_stopped: bool,
    /// What the vm is to do next.
    pub(super) order: Order,
    /// The command that it has called and that is not the engine's.
    pub(super) asked: Option<&'static Row>,
}

/// What it is called in errors.
pub(super) enum Name {
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

    pub(super) fn clock_ms(&mut self) -> u64 {
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
    pub(super) fn is_late(&mut self) -> bool {
        let now = self.clock_ms();
        let has_clock = self.clock.is_some();
        let Some(running) = &mut self.running else { return false };
        running.looks += 1;
        let elapsed = if has_clock { now.saturating_sub(running.started_ms) } else { running.looks * SCRIPT_SLICE_MS };
        elapsed >= self.busy_after_ms
    }

    /// Whether the script that runs is left now: if it is late, or at each look if it has a debugger. Others are served while one is
    /// debugged in a copy; while one is that all of them wait for, a request may end it.
    pub(super) fn is_left(&mut self) -> bool {
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
    pub(super) fn debugged_after_ms(&self) -> u64 {
        if self.busy_after_ms == 0 { SCRIPT_BUSY_AFTER_MS } else { self.busy_after_ms }
    }

    /// The debugger of the script that runs lets it go on.
    pub(super) fn restart_time(&mut self) {
        let now = self.clock_ms();
        if let Some(running) = &mut self.running {
            (running.started_ms, running.looks) = (now, 0);
        }
    }
}
