//! Scripts that are under way between two turns: the late one that the engine of this process has left, how many engines of a server have
//! one, and those with debuggers. The engines say when one is late, and workers look before they change all of them.

use crate::ids::{Asker, ClientHandle, ClientNumber};
use crate::limits::{DEBUGGER_COPY_PAUSES, DEBUGGER_COPY_QUICK_US};
use respool_command::{Command, Row, ScriptingCommand, text};
use respool_wire::ArgsBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Late scripts of all engines of one server.
#[derive(Debug, Default)]
pub struct LateScripts {
    scripts: AtomicUsize,
    functions: AtomicUsize,
}

impl LateScripts {
    fn of(&self, busy: &'static str) -> &AtomicUsize {
        if busy == text::BUSY_FUNCTION { &self.functions } else { &self.scripts }
    }

    /// One that such a request runs has become late. It has ended when the result is dropped, and so with its engine.
    pub(crate) fn begin(self: &Arc<Self>, row: &Row) -> LateMark {
        let busy = match row.command {
            Command::Scripting(ScriptingCommand::Fcall | ScriptingCommand::FcallRo) => text::BUSY_FUNCTION,
            _ => text::BUSY_SCRIPT,
        };
        self.of(busy).fetch_add(1, Ordering::Relaxed);
        LateMark { of: Arc::clone(self), busy }
    }

    /// What a request is answered that no engine with a late script takes.
    pub(crate) fn busy(&self) -> Option<&'static str> {
        let is_any = |of: &AtomicUsize| of.load(Ordering::Relaxed) > 0;
        match (is_any(&self.scripts), is_any(&self.functions)) {
            (true, _) => Some(text::BUSY_SCRIPT),
            (false, true) => Some(text::BUSY_FUNCTION),
            (false, false) => None,
        }
    }
}

/// A script that counts as late.
#[derive(Debug)]
pub(crate) struct LateMark {
    of: Arc<LateScripts>,
    /// The reply to others.
    pub(crate) busy: &'static str,
}

impl Drop for LateMark {
    fn drop(&mut self) {
        self.of.of(self.busy).fetch_sub(1, Ordering::Relaxed);
    }
}

/// A script that has become late.
#[derive(Debug)]
pub(crate) struct LateScript {
    /// The place of its reply, and the client that waits for it.
    pub(crate) asker: Asker,
    /// The client, as the engine knows it.
    pub(crate) id: ClientNumber,
    pub(crate) row: &'static Row,
    pub(crate) database: u32,
    /// The request, for the slow log.
    pub(crate) args: ArgsBuf,
    /// What it has taken so far.
    pub(crate) us: u64,
    /// While this is there, no worker changes all engines.
    pub(crate) mark: LateMark,
}

impl LateScript {
    /// Whether a client waits for it.
    pub(crate) fn is_of(&self, client: ClientHandle) -> bool {
        self.asker.session == client
    }

    /// The reply to others.
    pub(crate) fn busy(&self) -> &'static str {
        self.mark.busy
    }
}

/// The debuggers of one worker whose scripts are under way.
#[derive(Debug)]
pub(crate) struct Debuggers<E> {
    pub(crate) all: Vec<Debugging<E>>,
    /// Clients that were held back may go on.
    pub(crate) has_released: bool,
    /// When all copies of keys have been waited for, in microseconds of the monotonic clock.
    copies_until_us: u64,
}

/// A script with a debugger.
#[derive(Debug)]
pub(crate) struct Debugging<E> {
    pub(crate) client: ClientHandle,
    /// The client, as the engine knows it.
    pub(crate) id: ClientNumber,
    pub(crate) row: &'static Row,
    pub(crate) database: u32,
    /// The engine with the copies of all keys; `None`: it runs where the keys of all clients are.
    pub(crate) own: Option<Box<E>>,
    /// The script runs, and its client waits for it to stop.
    pub(crate) asker: Option<Asker>,
    /// When its client has last said something.
    pub(crate) runs_since_us: u64,
}

impl<E> Default for Debuggers<E> {
    fn default() -> Self {
        Self { all: Vec::new(), has_released: false, copies_until_us: 0 }
    }
}

impl<E> Debuggers<E> {
    /// Whether all other clients have to wait.
    pub(crate) fn holds_others(&self) -> bool {
        self.all.iter().any(|one| one.own.is_none())
    }

    /// How many have copies of all keys.
    pub(crate) fn copies(&self) -> usize {
        self.all.iter().filter(|one| one.own.is_some()).count()
    }

    /// Whether keys may be copied now.
    pub(crate) fn may_copy(&self, now_us: u64) -> bool {
        self.copies_until_us <= now_us.saturating_add(DEBUGGER_COPY_QUICK_US * DEBUGGER_COPY_PAUSES)
    }

    /// Keys were copied, or copies dropped, from then to then.
    pub(crate) fn note_copied(&mut self, begun_us: u64, ended_us: u64) {
        let pause_us = ended_us.saturating_sub(begun_us).saturating_mul(DEBUGGER_COPY_PAUSES);
        self.copies_until_us = self.copies_until_us.max(ended_us).saturating_add(pause_us);
    }

    /// Whether a client has one.
    pub(crate) fn has(&self, client: ClientHandle) -> bool {
        self.all.iter().any(|one| one.client == client)
    }

    /// The script of a client.
    pub(crate) fn take(&mut self, client: ClientHandle) -> Option<Debugging<E>> {
        let place = self.all.iter().position(|one| one.client == client)?;
        Some(self.all.swap_remove(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_engine;
    use respool_command::lookup;

    #[test]
    fn a_script_is_late_until_it_has_ended() {
        let late = Arc::new(LateScripts::default());
        assert_eq!(late.busy(), None);
        let [script, function] = ["EVAL", "FCALL"].map(|name| lookup(name.as_bytes()).expect("a known command"));
        let function = late.begin(function);
        assert_eq!(late.busy(), Some(text::BUSY_FUNCTION));
        let script = late.begin(script);
        drop(function);
        assert_eq!(late.busy(), Some(text::BUSY_SCRIPT));
        drop(script);
        assert_eq!(late.busy(), None);
    }

    #[test]
    fn others_are_told_whether_a_script_or_a_function_runs() {
        for (said, busy) in [
            ("EVAL s 0", text::BUSY_SCRIPT),
            ("EVALSHA h 0", text::BUSY_SCRIPT),
            ("FCALL f 0", text::BUSY_FUNCTION),
            ("FCALL_RO f 0", text::BUSY_FUNCTION),
        ] {
            let mut env = env_with_engine();
            let [waits, other] = [(), ()].map(|()| env.test_client());
            let late = env.test_late_script(waits, said);
            assert_eq!(late.busy(), busy, "{said}");
            let handle = |client| env.clients.sessions.handle(client).expect("it is there");
            assert!(late.is_of(handle(waits)) && !late.is_of(handle(other)));
        }
    }

    /// Twenty times as long as copies took, none is made: but for 50 milliseconds, in however many pieces.
    #[test]
    fn copies_for_debuggers_are_waited_for() {
        // When each copy begins, and how long it takes; when the next one may be made, by the exact microsecond.
        for (copies, next_us) in [
            (&[(1_000, 20_000)][..], 0),
            (&[(1_000, 50_000)], 51_000),
            (&[(1_000, 50_001)], 51_001 + 20),
            (&[(1_000, 1_000_000)], 1_001_000 + 19_000_000),
            (&[(0, 40_000), (40_000, 30_000)], 40_000 + 20 * 40_000 + 20 * 30_000 - 1_000_000),
            (&[(0, 40_000), (840_000, 40_000)], 680_000),
            (&[(0, 500_000), (10_000_000, 60_000)], 10_500_000 + 20 * 60_000 - 1_000_000),
        ] {
            let mut debuggers = Debuggers::<()>::default();
            for &(begun_us, took_us) in copies {
                debuggers.note_copied(begun_us, begun_us + took_us);
            }
            assert!(debuggers.may_copy(next_us), "{copies:?}");
            assert!(next_us == 0 || !debuggers.may_copy(next_us - 1), "{copies:?}");
        }
        for took_us in [100, 3_000, 49_000, 700_000] {
            let mut debuggers = Debuggers::<()>::default();
            let (mut now_us, mut copying_us) = (0, 0);
            while now_us < 100_000_000 {
                if debuggers.may_copy(now_us) {
                    debuggers.note_copied(now_us, now_us + took_us);
                    (now_us, copying_us) = (now_us + took_us, copying_us + took_us);
                }
                now_us += 50;
            }
            let most_us = 100_000_000 / 20 + 50_000 + took_us;
            assert!(copying_us <= most_us && copying_us >= most_us / 2, "{took_us}: {copying_us}");
        }
    }
}
