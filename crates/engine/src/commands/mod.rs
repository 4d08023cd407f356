//! What commands do: a file per group, a function per command, one exhaustive match per group.
//!
//! A command reads all its arguments before it changes anything, and writes its reply last or reports a [`Fault`], which
//! becomes the error reply. Nothing is written before a fault.

mod arguments;
mod generic;
mod scan;
mod server;
mod string;

use respool_command::{Command, Row, text};
use respool_wire::{Args, Encoder};

use crate::keyspace::{At, Found, Keyspace};
use crate::store::listpack::Element;

/// One request on its way.
pub(crate) struct Call<'c, 'o> {
    pub(crate) keyspace: &'c mut Keyspace,
    pub(crate) row: &'static Row,
    pub(crate) args: Args<'c>,
    pub(crate) at: At,
    pub(crate) reply: &'c mut Encoder<'o>,
}

/// Why a command did nothing: the text of its error reply.
#[derive(Debug)]
pub(crate) enum Fault {
    Text(&'static str),
    Written(Vec<u8>),
}

impl From<&'static str> for Fault {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

/// What a command leaves: its reply in the encoder, or a fault.
pub(crate) type Answer = Result<(), Fault>;

/// Runs one command of any group.
#[inline]
pub(crate) fn run(call: &mut Call<'_, '_>) -> Answer {
    match call.row.command {
        Command::String(command) => string::run(command, call),
        Command::Generic(command) => generic::run(command, call),
        Command::Server(command) => server::run(command, call),
        _ => Err(unsupported(call.row)),
    }
}

/// The engine does not have this command.
#[cold]
fn unsupported(row: &Row) -> Fault {
    Fault::Written(format!("ERR the embedded server does not have '{}' yet", row.full_name()).into_bytes())
}

/// A text that names the command.
#[cold]
fn named(row: &'static Row, write: fn(&Row, &mut Vec<u8>)) -> Fault {
    let mut text = Vec::new();
    write(row, &mut text);
    Fault::Written(text)
}

impl<'c> Call<'c, '_> {
    /// The argument at `index`; empty past the end.
    #[inline]
    fn arg(&self, index: usize) -> &'c [u8] {
        self.args.get(index).unwrap_or_default()
    }

    /// The key in the first argument, if it is there and a string.
    #[inline]
    fn read_string(&mut self, key: &[u8]) -> Result<Option<Found>, Fault> {
        let found = self.keyspace.read(self.at, key);
        self.expect_string(found)
    }

    /// A key to be changed, if it is there and a string.
    fn find_string(&mut self, key: &[u8]) -> Result<Option<Found>, Fault> {
        let found = self.keyspace.find(self.at, key);
        self.expect_string(found)
    }

    #[inline]
    fn expect_string(&self, found: Option<Found>) -> Result<Option<Found>, Fault> {
        match found {
            Some(found) if !self.keyspace.kind(found).is_string() => Err(text::WRONGTYPE.into()),
            found => Ok(found),
        }
    }

    /// Replies `+OK`.
    #[inline]
    fn reply_ok(&mut self) -> Answer {
        self.reply.raw(respool_wire::replies::OK);
        Ok(())
    }

    /// Replies an integer.
    #[inline]
    fn reply_integer(&mut self, value: i64) -> Answer {
        self.reply.integer(value);
        Ok(())
    }

    /// Replies a count.
    fn reply_count(&mut self, count: usize) -> Answer {
        self.reply_integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Replies the string that a key holds, or null if there is no such key.
    #[inline]
    fn reply_text(&mut self, found: Option<Found>) {
        match found.and_then(|found| self.keyspace.text(found)) {
            Some(text) => bulk(self.reply, text),
            None => self.reply.null(),
        }
    }
}

/// Writes an element as a bulk string.
#[inline]
fn bulk(reply: &mut Encoder<'_>, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Integer(_) => element.read(|digits| reply.bulk(digits)),
    }
}
