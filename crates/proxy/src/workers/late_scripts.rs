//! Late scripts: the one that the engine of this process has left, and how many engines of a server have one. The engines say so, and
//! workers look before they change all of them.

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
