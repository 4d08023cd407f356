//! A node is asked for a command that the table does not know: what it says.

use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::id::ClientHandle;
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
    /// It would not say, or is gone: the words of the error.
    Failed(Vec<u8>),
}

impl InternalTask for CommandInfoQuery {
    fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
        self.answer = match reply.bytes.strip_prefix(b"-") {
            // A server that does not know COMMAND INFO has no commands that it could tell of.
            Some(words) if words.to_ascii_lowercase().starts_with(b"err unknown ") => Answer::Unknown,
            Some(words) => Answer::Failed(words.trim_ascii_end().to_vec()),
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
        self.answer = Answer::Failed(words_of(lost.error));
        Progress::Through
    }
}

/// An error line without what makes it one.
pub(crate) fn words_of(error: &[u8]) -> Vec<u8> {
    error.strip_prefix(b"-").unwrap_or(error).trim_ascii_end().to_vec()
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
