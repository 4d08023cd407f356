//! What commands do: a file per group, a function per command, one exhaustive match per group.
//!
//! A command reads all its arguments before it changes anything, and writes its reply or reports a [`Fault`], which becomes
//! the error reply in the place of whatever was written before.

mod arguments;
mod bitmap;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod scan;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;

use respool_command::{Command, Row, SessionView, lookup, text};
use respool_wire::{Args, ArgsBuf, Encoder};

use arguments::limit_repetition;

use crate::keyspace::events::Event;
use crate::keyspace::{At, Edited, Expiry, Found, Keyspace};
use crate::limits::REPLY_BYTES_MAX;
use crate::store::heap::Heap;
use crate::store::listpack::Element;
use crate::store::random::Random;
use crate::values::Held;

const CLUSTER_DISABLED: &str = "ERR This instance has cluster support disabled";
const REPLY_TOO_LARGE: &str = "ERR the reply exceeds what one reply may have";

/// One request on its way.
pub(crate) struct Call<'c, 'o> {
    pub(crate) keyspace: &'c mut Keyspace,
    pub(crate) row: &'static Row,
    pub(crate) args: Args<'c>,
    pub(crate) at: At,
    pub(crate) session: &'c mut SessionView,
    /// Where this reply begins in the encoder's buffer.
    pub(crate) start: usize,
    pub(crate) reply: &'c mut Encoder<'o>,
}

/// Why a command did nothing: the text of its error reply.
#[derive(Debug)]
pub(crate) enum Fault {
    Text(&'static str),
    Written(Vec<u8>),
    /// The request blocks, and is parked as it is.
    Waits,
    /// The request blocks; this is the request to park.
    WaitsFor(ArgsBuf),
    /// It is about scripts, which are the engine's own business.
    Scripts,
    /// It is about parameters, which are so too.
    Parameters,
    /// It serialises all that there is and reads it back, functions included.
    Reload,
    /// A script calls it, and the host of the engine has it.
    #[cfg(feature = "scripting")]
    Host,
}

impl From<&'static str> for Fault {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

/// Replies an error in the place of whatever was written since `start`.
#[cold]
pub(crate) fn refuse(fault: Fault, start: usize, reply: &mut Encoder<'_>) {
    reply.truncate(start);
    match fault {
        Fault::Text(text) => reply.error(text.as_bytes()),
        Fault::Written(text) => reply.error(&text),
        Fault::Waits | Fault::WaitsFor(_) | Fault::Scripts | Fault::Parameters | Fault::Reload => {}
        #[cfg(feature = "scripting")]
        Fault::Host => {}
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
        Command::Hash(command) => hash::run(command, call),
        Command::List(command) => list::run(command, call),
        Command::Set(command) => set::run(command, call),
        Command::SortedSet(command) => sorted_set::run(command, call),
        Command::Bitmap(command) => bitmap::run(command, call),
        Command::Geo(command) => geo::run(command, call),
        Command::Hyperloglog(command) => hyperloglog::run(command, call),
        Command::Server(command) => server::run(command, call),
        Command::Stream(command) => stream::run(command, call),
        // Data types and duties that the engine does not have yet, and what is not its business.
        Command::Cluster(_) => Err(CLUSTER_DISABLED.into()),
        Command::Connection(_)
        | Command::Learnt
        | Command::Proxy(_)
        | Command::Pubsub(_)
        | Command::Transactions(_) => Err(unsupported(call.row)),
        Command::Scripting(_) => Err(Fault::Scripts),
    }
}

/// The engine does not have this command.
#[cold]
pub(crate) fn unsupported(row: &Row) -> Fault {
    Fault::Written(format!("ERR the embedded server does not have '{}' yet", row.full_name()).into_bytes())
}

/// The subcommands of a container with what they do, as lines.
fn container_help(call: &mut Call<'_, '_>) -> Answer {
    let name = call.row.name.split(' ').next().unwrap_or_default();
    let Some(container) = lookup(name.as_bytes()) else { return Err(unsupported(call.row)) };
    call.reply.array(1 + 2 * container.subcommands.len());
    call.reply.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for subcommand in container.subcommands {
        call.reply.simple(subcommand.word());
        call.reply.simple(&format!("    {}", subcommand.doc.trim()));
    }
    Ok(())
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

    /// The key, if it is there and holds a value of this type. Counts as a read.
    fn read<T: Held>(&mut self, key: &[u8]) -> Result<Option<Found>, Fault> {
        let found = self.keyspace.read(self.at, key);
        self.expect::<T>(found)
    }

    /// The key to be changed, if it is there and holds a value of this type.
    fn find<T: Held>(&mut self, key: &[u8]) -> Result<Option<Found>, Fault> {
        let found = self.keyspace.find(self.at, key);
        self.expect::<T>(found)
    }

    fn expect<T: Held>(&self, found: Option<Found>) -> Result<Option<Found>, Fault> {
        match found {
            Some(found) if self.keyspace.kind(found) != T::KIND => Err(text::WRONGTYPE.into()),
            found => Ok(found),
        }
    }

    /// Changes the value at `key`, which `make` makes if there is none. A value that ends up empty is removed.
    fn upsert<T: Held, R>(
        &mut self,
        key: &[u8],
        make: impl FnOnce(&Heap) -> T,
        edit: impl FnOnce(&mut T, &mut Heap) -> Edited<R>,
    ) -> Result<R, Fault> {
        if let Some(found) = self.find::<T>(key)? {
            let said = self.keyspace.edit_or_remove(self.at.database, found, edit);
            return Ok(said.expect("the kind has been looked at"));
        }
        let mut fresh = make(&self.keyspace.heap);
        let edited = edit(&mut fresh, &mut self.keyspace.heap);
        let object = fresh.into_object();
        if object.len() > 0 {
            self.keyspace.set_object(self.at, key, object, Expiry::Never);
            if let Some(event) = edited.event() {
                self.notify(event, key);
            }
        }
        Ok(edited.said())
    }

    /// Changes the value at `key`, if there is one. A value that ends up empty is removed.
    fn update<T: Held, R>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut T, &mut Heap) -> Edited<R>,
    ) -> Result<Option<R>, Fault> {
        let Some(found) = self.find::<T>(key)? else { return Ok(None) };
        Ok(self.keyspace.edit_or_remove(self.at.database, found, edit))
    }

    /// Puts a finished value at `key`, which is this event, or deletes the key if the value is empty.
    fn store<T: Held>(&mut self, key: &[u8], value: T, event: Event) {
        let object = value.into_object();
        if object.len() > 0 {
            self.keyspace.set_object(self.at, key, object, Expiry::Never);
            self.notify(event, key);
        } else {
            self.keyspace.clear(self.at.database, key);
        }
    }

    /// Deletes a key, if it is there; whether it was.
    fn delete(&mut self, key: &[u8]) -> bool {
        let found = self.keyspace.peek(self.at, key);
        found.into_iter().for_each(|found| self.keyspace.delete(self.at.database, found));
        found.is_some()
    }

    /// Something has happened to a key of the session's database.
    #[inline]
    fn notify(&mut self, event: Event, key: &[u8]) {
        self.keyspace.notify(self.at.database, event, key);
    }

    /// Refuses to go on with a reply that has become too large.
    #[inline]
    fn check_reply(&self) -> Result<(), Fault> {
        check_reply(self.reply, self.start)
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

/// Refuses to go on with a reply that began at `start` and has become too large.
#[inline]
fn check_reply(reply: &Encoder<'_>, start: usize) -> Result<(), Fault> {
    if reply.position() - start > REPLY_BYTES_MAX { Err(REPLY_TOO_LARGE.into()) } else { Ok(()) }
}

/// Writes an element as a bulk string.
#[inline]
fn bulk(reply: &mut Encoder<'_>, element: Element<'_>) {
    match element {
        Element::Bytes(bytes) => reply.bulk(bytes),
        Element::Integer(_) => element.read(|digits| reply.bulk(digits)),
    }
}

/// Which `count` of `len` elements to take, in order; `None` if it is all of them.
fn pick(random: &mut Random, len: usize, count: usize) -> Option<Vec<usize>> {
    if count >= len {
        return None;
    }
    // Floyd's way: no more draws than elements wanted.
    let mut picked = std::collections::BTreeSet::new();
    for last in len - count..len {
        let drawn = random.below(last as u64 + 1) as usize;
        if !picked.insert(drawn) {
            picked.insert(last);
        }
    }
    Some(picked.into_iter().collect())
}
