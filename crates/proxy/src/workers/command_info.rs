//! A node is asked for a command that the table does not know: what it says.

use crate::error_reply::ErrorReply;
use crate::ids::ClientHandle;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::table::Clients;
use respool_command::{Lane, UnknownCommand};
use respool_wire::{Args, Value};

/// The longest name that is asked for, in bytes: as long as rows can be called.
const NAME_BYTES_MAX: usize = 32;

/// A question about a name, and the clients that wait for the answer.
#[derive(Debug)]
pub(crate) struct CommandInfoQuery {
    pub(crate) name: String,
    pub(crate) waiting: Vec<ClientHandle>,
    pub(crate) answer: Answer,
}

#[derive(Debug)]
pub(crate) enum Answer {
    /// The node has not answered.
    None,
    /// It does not know the name.
    Unknown,
    Described(Value),
    /// It would not say, or is gone.
    Failed(ErrorReply),
}

impl InternalTask for CommandInfoQuery {
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        self.answer = match reply.bytes.strip_prefix(b"-") {
            // A server that does not know COMMAND INFO has no commands that it could tell of.
            Some(words) if words.to_ascii_lowercase().starts_with(b"err unknown ") => Answer::Unknown,
            Some(_) => Answer::Failed(ErrorReply::of_reply(reply.bytes)),
            None => Answer::Unknown,
        };
        if let Ok(Value::Array(mut rows)) = Value::parse(reply.bytes)
            && rows.len() == 1
            && let Some(described) = rows.pop()
        {
            self.answer = Answer::Described(described);
        }
        Progress::Through
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, _: &mut Clients) -> Progress {
        self.answer = Answer::Failed(lost.error.clone());
        Progress::Through
    }
}

/// The name under which something unknown is asked for: `NAME`, or `CONTAINER SUB`. `None`: no node is asked for that.
pub(crate) fn asked_name(unknown: UnknownCommand, args: Args<'_>) -> Option<String> {
    let word = |at: usize| {
        let word = args.get(at)?;
        let is_sane = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'|');
        is_sane.then(|| String::from_utf8_lossy(word).to_ascii_uppercase())
    };
    let name = match unknown {
        UnknownCommand::Command => word(0)?,
        // What is about sessions or the proxy itself is never a node's.
        UnknownCommand::Subcommand(container) => {
            let is_local = container.subcommands.iter().any(|row| row.lane(args) == Lane::Local);
            if is_local {
                return None;
            }
            format!("{} {}", container.name, word(1)?)
        }
    };
    (name.len() <= NAME_BYTES_MAX).then_some(name)
}

/// A name as servers write it.
pub(crate) fn full_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::counters::Counters;
    use crate::reply::progress::LostReply;
    use respool_command::resolve;
    use respool_wire::{ArgsBuf, ReplyKind};
    use std::sync::Arc;

    fn answered(bytes: &[u8]) -> Answer {
        let mut clients = Clients::new(Arc::new(Counters::default()));
        let mut query = CommandInfoQuery { name: "X".to_owned(), waiting: Vec::new(), answer: Answer::None };
        query.handle_reply(TaskReply { step: 0, kind: ReplyKind::Array, bytes }, &mut clients);
        query.answer
    }

    fn name_of(request: &str) -> Option<String> {
        let args: ArgsBuf = request.split(' ').collect();
        asked_name(resolve(args.as_args()).expect_err("it is unknown"), args.as_args())
    }

    #[test]
    fn a_node_describes_a_command_or_does_not_know_it() {
        assert!(matches!(answered(b"*1\r\n*1\r\n+x\r\n"), Answer::Described(_)));
        for unknown in [&b"-ERR unknown command 'COMMAND'\r\n"[..], b"*0\r\n", b"*2\r\n+a\r\n+b\r\n", b"+OK\r\n"] {
            assert!(matches!(answered(unknown), Answer::Unknown), "{unknown:?}");
        }
        assert!(matches!(answered(b"-NOPERM no\r\n"), Answer::Failed(error) if error.words() == b"NOPERM no"));
    }

    #[test]
    fn a_question_without_a_reply_has_failed_in_these_words() {
        let mut clients = Clients::new(Arc::new(Counters::default()));
        let mut query = CommandInfoQuery { name: "X".to_owned(), waiting: Vec::new(), answer: Answer::None };
        let lost = TaskLoss { step: 0, loss: LostReply::Unsent, error: &ErrorReply::new("ERR gone") };
        assert_eq!(query.handle_loss(lost, &mut clients), Progress::Through);
        assert!(matches!(query.answer, Answer::Failed(error) if error.words() == b"ERR gone"));
    }

    #[test]
    fn only_what_may_be_a_nodes_is_asked_for() {
        assert_eq!(name_of("ft.search idx"), Some("FT.SEARCH".to_owned()));
        assert_eq!(name_of("object later k"), Some("OBJECT LATER".to_owned()));
        for own in ["CLIENT LATER", "ACL LATER", "PUBSUB LATER", "COMMAND LATER", "a|b", "caf\u{e9}"] {
            assert_eq!(name_of(own), None, "{own}");
        }
        assert_eq!(name_of(&"x".repeat(40)), None);
    }
}
