//! `SHUTDOWN` of a server that is nothing but an engine. It has no reply but the end of the connection.

use crate::env::Env;
use crate::error_text;
use crate::hooks::ProcessAction;
use crate::ids::ClientId;
use crate::session::{Flow, PauseReasons};
use respool_command::{Execute, Row, text as texts};
use respool_wire::Args;

/// What a client wants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    is_saving: bool,
    is_not_saving: bool,
    is_now: bool,
    is_forced: bool,
    is_abort: bool,
}

impl Wanted {
    /// `None`: a syntax error.
    fn read(args: Args<'_>) -> Option<Self> {
        let mut wanted = Self::default();
        for word in args.iter() {
            match word.to_ascii_uppercase().as_slice() {
                b"SAVE" => wanted.is_saving = true,
                b"NOSAVE" => wanted.is_not_saving = true,
                b"NOW" => wanted.is_now = true,
                b"FORCE" => wanted.is_forced = true,
                b"ABORT" => wanted.is_abort = true,
                _ => return None,
            }
        }
        let is_else = wanted.is_saving || wanted.is_not_saving || wanted.is_now || wanted.is_forced;
        let is_contradiction = wanted.is_abort && is_else || wanted.is_saving && wanted.is_not_saving;
        (!is_contradiction).then_some(wanted)
    }

    /// Why it cannot be had, where a late script has others answered `busy`, and that many pools share the process.
    fn refusal(&self, busy: Option<&'static str>, pools: usize) -> Option<&'static str> {
        match busy {
            // Replies that are owed are all that an end waits for: there is nothing to go back to.
            _ if self.is_abort => Some(error_text::NO_SHUTDOWN),
            Some(busy) if !self.is_not_saving => Some(busy),
            _ if pools > 1 => Some(error_text::SHUTDOWN_OTHER_POOLS),
            _ if self.is_saving && !self.is_forced => Some(error_text::SHUTDOWN_CANNOT_SAVE),
            _ => None,
        }
    }
}

impl<E: Execute> Env<E> {
    #[cold]
    pub(crate) fn shut_down(&mut self, index: ClientId, row: &Row, args: Args<'_>) -> Flow {
        let Some(wanted) = Wanted::read(args.from(1)) else {
            return self.refuse(index, texts::SYNTAX);
        };
        let busy = self.shared.late_scripts.busy();
        if let Some(refusal) = wanted.refusal(busy, self.shared.about.pools) {
            return self.refuse(index, refusal);
        }
        // The reply of a late script is not waited for, as it may never come.
        let action = if busy.is_some() { ProcessAction::Stop } else { ProcessAction::Drain };
        if !self.shared.hooks.demand(action) {
            return self.refuse_unsupported(index, row, "the program around this server decides when it ends");
        }
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        // Its connection ends with the process, or the client would find that still there.
        session.pause.add(PauseReasons::ORDER);
        Flow::Pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::ArgsBuf;

    fn read(words: &str) -> Option<Wanted> {
        let mut args = ArgsBuf::new();
        words.split_terminator(' ').for_each(|word| {
            args.push(word.as_bytes());
        });
        Wanted::read(args.as_args())
    }

    #[test]
    fn words_of_shutdown_may_stand_together_or_contradict() {
        assert_eq!(read(""), Some(Wanted::default()));
        assert_eq!(
            read("nosave NOW force"),
            Some(Wanted { is_not_saving: true, is_now: true, is_forced: true, ..Wanted::default() })
        );
        for wrong in ["SAVE NOSAVE", "ABORT NOW", "ABORT SAVE", "LATER", "SAVE LATER"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_late_script_leaves_one_way_to_end() {
        let refusal = |words, busy, pools| read(words).expect("they may stand together").refusal(busy, pools);
        for words in ["", "NOW", "FORCE", "SAVE", "SAVE FORCE"] {
            assert_eq!(refusal(words, Some(texts::BUSY_SCRIPT), 1), Some(texts::BUSY_SCRIPT), "{words}");
        }
        assert_eq!(refusal("NOSAVE", Some(texts::BUSY_SCRIPT), 1), None);
        assert_eq!(refusal("NOSAVE", Some(texts::BUSY_SCRIPT), 2), Some(error_text::SHUTDOWN_OTHER_POOLS));
        assert_eq!(refusal("ABORT", Some(texts::BUSY_SCRIPT), 1), Some(error_text::NO_SHUTDOWN));
        assert_eq!(refusal("SAVE", None, 1), Some(error_text::SHUTDOWN_CANNOT_SAVE));
        assert_eq!(["", "NOW", "SAVE FORCE"].map(|words| refusal(words, None, 1)), [None; 3]);
    }
}
