//! How many engines of a server have a late script: the engines say so, and its workers look before they change all of them.

use respool_command::{Command, Row, ScriptingCommand, text};
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
