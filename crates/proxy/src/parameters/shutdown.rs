//! `SHUTDOWN` of a server that is nothing but an engine. It has no reply but the end of the connection.

use crate::env::Env;
use crate::error_text;
use crate::hooks::ProcessAction;
use crate::session::Flow;
use crate::session::id::ClientId;
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
}

impl<E: Execute> Env<E> {
    #[cold]
    pub(crate) fn shut_down(&mut self, index: ClientId, row: &Row, args: Args<'_>) -> Flow {
        let Some(wanted) = Wanted::read(args.from(1)) else {
            return self.refuse(index, texts::SYNTAX.as_bytes());
        };
        if wanted.is_abort {
            // Replies that are owed are all that an end waits for: there is nothing to go back to.
            return self.refuse(index, error_text::NO_SHUTDOWN.as_bytes());
        }
        if self.shared.about.pools > 1 {
            return self.refuse(index, error_text::SHUTDOWN_OTHER_POOLS.as_bytes());
        }
        if wanted.is_saving && !wanted.is_forced {
            return self.refuse(index, error_text::SHUTDOWN_CANNOT_SAVE.as_bytes());
        }
        if !self.shared.hooks.demand(ProcessAction::Drain) {
            return self.refuse_unsupported(index, row, "the program around this server decides when it ends");
        }
        self.clients.stop_client(index);
        Flow::Stop
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
}
