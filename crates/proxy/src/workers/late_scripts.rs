//! Scripts that are under way between two turns: the late one that the engine of this process has left, how many engines of a server have
//! one, and those with debuggers. The engines say when one is late, and workers look before they change all of them.

use crate::ids::{Asker, ClientHandle, ClientNumber};
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
    /// From when on keys may be copied again, in microseconds of the monotonic clock.
    pub(crate) copies_from_us: u64,
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
        Self { all: Vec::new(), has_released: false, copies_from_us: 0 }
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
}
