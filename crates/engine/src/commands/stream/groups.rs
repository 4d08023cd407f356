//! `XGROUP`, `XACK` and `XPENDING`: groups, their consumers and their pending entries.

use respool_command::text;
use respool_command::words::until_nul;

use super::super::{Answer, Call, Fault};
use super::{end_of, id_or_end, reply_id, start_of, strict_id};
use crate::keyspace::{Edited, Expiry, Found, Kind, events};
use crate::number::integer::IntegerText;
use crate::values::stream::{Group, Id, READ_UNKNOWN};
use crate::values::{Held, Stream};

const KEY_REQUIRED: &str = "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.";
const READ_NEGATIVE: &str = "ERR value for ENTRIESREAD must be positive or -1";
const GROUP_EXISTS: &str = "BUSYGROUP Consumer Group name already exists";

/// The reply to `XGROUP HELP`.
const HELP: &[&str] = &[
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <groupname> <id|$> [option]",
    "    Make a group that reads on from an id. Options are:",
    "    * MKSTREAM",
    "      Make an empty stream if there is none.",
    "    * ENTRIESREAD entries_read",
    "      Say how many entries the group has read.",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Make a consumer of the group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove a consumer of the group.",
    "DESTROY <key> <groupname>",
    "    Remove the group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Have the group read on from an id.",
    "HELP",
    "    Print this help.",
];

/// The error for a key that has no such group.
pub(super) fn no_group_of(key: &[u8], group: &[u8]) -> Fault {
    let parts: [&[u8]; 5] =
        [b"NOGROUP No such consumer group '", until_nul(group), b"' for key name '", until_nul(key), b"'"];
    Fault::Written(parts.concat())
}

/// The error for a key or a group that does not exist.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8]) -> Fault {
    let parts: [&[u8]; 5] =
        [b"NOGROUP No such key '", until_nul(key), b"' or consumer group '", until_nul(group), b"'"];
    Fault::Written(parts.concat())
}

/// The error for a subcommand with wrong arguments.
#[cold]
pub(super) fn wrong_arguments(call: &Call<'_, '_>) -> Fault {
    let mut words = Vec::new();
    text::subcommand_syntax(call.args, &mut words);
    Fault::Written(words)
}

impl Call<'_, '_> {
    /// The group of a stream.
    pub(super) fn group(&self, found: Option<Found>, name: &[u8]) -> Option<&Group> {
        self.keyspace.view::<Stream>(found?)?.0.groups.get(name)
    }

    /// Edits a group of a stream; `edit` says as well whether it has changed anything. As in Redis, this is not a change for WATCH.
    pub(super) fn edit_group<R>(
        &mut self,
        found: Option<Found>,
        name: &[u8],
        edit: impl FnOnce(&mut Group) -> (R, bool),
    ) -> Option<R> {
        let edit = |stream: &mut Stream, _: &mut _| match stream.groups.get_mut(name).map(|mut group| edit(&mut group))
        {
            Some((said, is_change)) => Edited::unwatched(is_change, Some(said)),
            None => Edited::unwatched(false, None),
        };
        self.keyspace.edit(self.at.database, found?, edit).flatten()
    }

    /// How many consumers a group has.
    pub(super) fn consumers(&self, found: Option<Found>, name: &[u8]) -> usize {
        self.group(found, name).map_or(0, |group| group.consumers().len())
    }

    /// A command that makes a consumer where there is none has been run: there were so many.
    pub(super) fn notify_of_consumer(&mut self, key: &[u8], found: Found, name: &[u8], before: usize) {
        if self.consumers(Some(found), name) > before {
            self.notify(events::XGROUP_CREATECONSUMER, key);
        }
    }

    /// Finds the stream that a subcommand of `XGROUP` names; it has to exist.
    fn grouped(&mut self) -> Result<Found, Fault> {
        self.find::<Stream>(self.arg(2))?.ok_or(KEY_REQUIRED.into())
    }

    /// As [`Call::grouped`], and the group has to exist.
    fn with_group(&mut self) -> Result<Option<Found>, Fault> {
        let found = Some(self.grouped()?);
        match self.group(found, self.arg(3)) {
            Some(_) => Ok(found),
            None => Err(no_group_of(self.arg(2), self.arg(3))),
        }
    }

    /// Parses the options after the id: whether to create the stream, and how many entries the group has read.
    fn group_options(&self, may_make: bool) -> Result<(bool, i64), Fault> {
        let (mut makes, mut entries_read) = (false, READ_UNKNOWN);
        let mut index = 5;
        while index < self.args.len() {
            if may_make && self.is_word(index, "MKSTREAM") {
                makes = true;
                index += 1;
            } else if self.is_word(index, "ENTRIESREAD") && index + 1 < self.args.len() {
                entries_read = self.integer(index + 1)?;
                if entries_read < 0 && entries_read != READ_UNKNOWN {
                    return Err(READ_NEGATIVE.into());
                }
                index += 2;
            } else {
                return Err(wrong_arguments(self));
            }
        }
        Ok((makes, entries_read))
    }
}

pub(super) fn create(call: &mut Call<'_, '_>) -> Answer {
    let (makes, entries_read) = call.group_options(true)?;
    let found = call.find::<Stream>(call.arg(2))?;
    if found.is_none() && !makes {
        return Err(KEY_REQUIRED.into());
    }
    if call.args.len() > 8 {
        return Err(wrong_arguments(call));
    }
    let (key, name) = (call.arg(2), call.arg(3));
    let last_id = match until_nul(call.arg(4)) {
        b"$" => {
            let stream = found.and_then(|found| call.keyspace.view::<Stream>(found));
            stream.map_or(Id::MIN, |(stream, _)| stream.figures.last_id)
        }
        _ => strict_id(call.arg(4), 0)?,
    };
    if call.group(found, name).is_some() {
        return Err(GROUP_EXISTS.into());
    }
    let group = Group::new(last_id, entries_read);
    match found {
        Some(found) => {
            let add = |stream: &mut Stream, _: &mut _| {
                let _: bool = stream.groups.insert(name.into(), group);
                Edited::unwatched(true, ())
            };
            call.keyspace.edit(call.at.database, found, add);
        }
        None => {
            let mut stream = Stream::new();
            let _: bool = stream.groups.insert(name.into(), group);
            call.keyspace.set_object(call.at, key, stream.into_object(), Expiry::Never);
        }
    }
    call.notify(events::XGROUP_CREATE, key);
    call.reply_ok()
}

pub(super) fn set_id(call: &mut Call<'_, '_>) -> Answer {
    let (_, entries_read) = call.group_options(false)?;
    let found = call.with_group()?;
    if !matches!(call.args.len(), 5 | 7) {
        return Err(wrong_arguments(call));
    }
    let last_id = match until_nul(call.arg(4)) {
        b"$" => {
            let stream = found.and_then(|found| call.keyspace.view::<Stream>(found));
            stream.map_or(Id::MIN, |(stream, _)| stream.figures.last_id)
        }
        _ => id_or_end(call.arg(4), 0)?,
    };
    call.edit_group(found, call.arg(3), |group| {
        group.last_id = last_id;
        group.entries_read = entries_read;
        ((), true)
    });
    call.notify(events::XGROUP_SETID, call.arg(2));
    call.reply_ok()
}

pub(super) fn destroy(call: &mut Call<'_, '_>) -> Answer {
    let (found, name) = (call.grouped()?, call.arg(3));
    let remove = |stream: &mut Stream, _: &mut _| {
        let is_removed = stream.groups.remove(name);
        Edited::unwatched(is_removed, is_removed)
    };
    let is_removed = call.keyspace.edit(call.at.database, found, remove) == Some(true);
    if is_removed {
        call.notify(events::XGROUP_DESTROY, call.arg(2));
        call.keyspace.signal(call.at.database, call.arg(2), Kind::Stream);
    }
    call.reply_integer(is_removed.into())
}

pub(super) fn create_consumer(call: &mut Call<'_, '_>) -> Answer {
    let found = call.with_group()?;
    let (name, now) = (call.arg(4), call.at.now);
    let create = |group: &mut Group| {
        let is_created = group.create_consumer(name, now).is_some();
        (is_created, is_created)
    };
    let is_created = call.edit_group(found, call.arg(3), create) == Some(true);
    if is_created {
        call.notify(events::XGROUP_CREATECONSUMER, call.arg(2));
    }
    call.reply_integer(is_created.into())
}

pub(super) fn remove_consumer(call: &mut Call<'_, '_>) -> Answer {
    let found = call.with_group()?;
    let name = call.arg(4);
    let remove = |group: &mut Group| {
        let pending = group.number_of(name).map(|_| group.remove_consumer(name));
        (pending, pending.is_some())
    };
    let pending = call.edit_group(found, call.arg(3), remove).flatten();
    if pending.is_some() {
        call.notify(events::XGROUP_DELCONSUMER, call.arg(2));
    }
    call.reply_count(pending.unwrap_or(0))
}

pub(super) fn help(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}

pub(super) fn xack(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Stream>(call.arg(1))?;
    if call.group(found, call.arg(2)).is_none() {
        return call.reply_integer(0);
    }
    let ids = call.ids(3)?;
    let settle = |group: &mut Group| {
        let settled = ids.iter().filter(|id| group.settle(**id)).count();
        (settled, settled > 0)
    };
    let settled = call.edit_group(found, call.arg(2), settle);
    call.reply_count(settled.unwrap_or(0))
}

/// Selects the pending entries that `XPENDING` lists.
struct Wanted<'c> {
    from: Id,
    to: Id,
    count: usize,
    idle_min: i64,
    consumer: Option<&'c [u8]>,
}

impl<'c> Call<'c, '_> {
    /// Parses the arguments of `XPENDING` after the group; `None` for a summary.
    fn pending_wanted(&self) -> Result<Option<Wanted<'c>>, Fault> {
        let len = self.args.len();
        if len == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&len) {
            return Err(text::SYNTAX.into());
        }
        let (mut start, mut idle_min) = (3, 0);
        if self.is_word(3, "IDLE") {
            idle_min = self.integer(4)?;
            if len < 8 {
                return Err(text::SYNTAX.into());
            }
            start = 5;
        }
        let count = usize::try_from(self.integer(start + 2)?).unwrap_or(0);
        let from = start_of(self.arg(start))?;
        let to = end_of(self.arg(start + 1))?;
        Ok(Some(Wanted { from, to, count, idle_min, consumer: self.args.get(start + 3) }))
    }
}

pub(super) fn xpending(call: &mut Call<'_, '_>) -> Answer {
    let wanted = call.pending_wanted()?;
    let (key, name) = (call.arg(1), call.arg(2));
    let found = call.read::<Stream>(key)?;
    let (now, start) = (call.at.now, call.start);
    let stream = found.and_then(|found| call.keyspace.view::<Stream>(found));
    let group = stream.and_then(|(stream, _)| stream.groups.get(name)).ok_or_else(|| no_key_or_group(key, name))?;
    let reply = &mut *call.reply;
    let Some(wanted) = wanted else {
        summary(reply, group);
        return Ok(());
    };
    let number = match wanted.consumer {
        Some(consumer) => match group.number_of(consumer) {
            Some(number) => Some(number),
            None => {
                reply.array(0);
                return Ok(());
            }
        },
        None => None,
    };
    let (position, mut written) = (reply.position(), 0);
    let pending = group.pending_from(wanted.from, number).take_while(|(id, _)| *id <= wanted.to);
    let is_idle = |delivered: i64| wanted.idle_min == 0 || now.wrapping_sub(delivered) >= wanted.idle_min;
    for (id, pending) in pending.filter(|(_, pending)| is_idle(pending.delivered)).take(wanted.count) {
        reply.array(4);
        reply_id(reply, id);
        reply.bulk(group.owner(pending));
        reply.integer(now.wrapping_sub(pending.delivered).max(0));
        reply.integer(pending.deliveries);
        written += 1;
        super::super::check_reply(reply, start)?;
    }
    reply.array_at(position, written);
    Ok(())
}

/// Writes the number of pending entries, their least and greatest id, and the number of each consumer.
fn summary(reply: &mut respool_wire::Encoder<'_>, group: &Group) {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    reply.array(4);
    reply.integer(count(group.pending_len()));
    let first = group.pending_from(Id::MIN, None).next().map(|(id, _)| id);
    let Some((first, last)) = first.zip(group.last_pending()) else {
        reply.null();
        reply.null();
        return reply.null_array();
    };
    reply_id(reply, first);
    reply_id(reply, last);
    let (position, mut written) = (reply.position(), 0);
    for (_, consumer) in group.consumers().filter(|(_, consumer)| consumer.pending_len() > 0) {
        reply.array(2);
        reply.bulk(&consumer.name);
        reply.bulk(IntegerText::new(count(consumer.pending_len())).as_bytes());
        written += 1;
    }
    reply.array_at(position, written);
}
