//! How many engines of a server have a late script: the engines say so, and its workers look before they change all of them.

use respool_command::text;
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

    /// One has become late, for which others are answered `busy`.
    pub(crate) fn begin(&self, busy: &'static str) {
        self.of(busy).fetch_add(1, Ordering::Relaxed);
    }

    /// It has ended.
    pub(crate) fn end(&self, busy: &'static str) {
        self.of(busy).fetch_sub(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_late_until_it_has_ended() {
        let late = LateScripts::default();
        assert_eq!(late.busy(), None);
        late.begin(text::BUSY_FUNCTION);
        assert_eq!(late.busy(), Some(text::BUSY_FUNCTION));
        late.begin(text::BUSY_SCRIPT);
        late.end(text::BUSY_FUNCTION);
        assert_eq!(late.busy(), Some(text::BUSY_SCRIPT));
        late.end(text::BUSY_SCRIPT);
        assert_eq!(late.busy(), None);
    }
}
