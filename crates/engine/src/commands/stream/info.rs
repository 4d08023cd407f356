//! `XINFO`: describes a stream, its groups and their consumers.

use respool_command::text;
use respool_wire::Encoder;

use super::super::{Answer, Call, Fault, check_reply};
use super::groups::{no_group_of, wrong_arguments};
use super::{reply_entries, reply_entry, reply_id};
use crate::values::Stream;
use crate::values::stream::{Entry, Figures, Group, Id, READ_UNKNOWN};

/// Elements of each list that are listed by default.
const SHOWN: i64 = 10;

/// The reply to `XINFO HELP`.
const HELP: &[&str] = &[
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <groupname>",
    "    Tell the consumers of a group.",
    "GROUPS <key>",
    "    Tell the groups of a stream.",
    "STREAM <key> [FULL [COUNT <count>]]",
    "    Tell what a stream is like.",
    "HELP",
    "    Print this help.",
];

pub(super) fn help(call: &mut Call<'_, '_>) -> Answer {
    call.reply.array(HELP.len());
    HELP.iter().for_each(|line| call.reply.simple(line));
    Ok(())
}

fn field(reply: &mut Encoder<'_>, name: &str) {
    reply.bulk(name.as_bytes());
}

fn count(reply: &mut Encoder<'_>, name: &str, value: usize) {
    field(reply, name);
    reply.integer(i64::try_from(value).unwrap_or(i64::MAX));
}

fn id(reply: &mut Encoder<'_>, name: &str, id: Id) {
    field(reply, name);
    reply_id(reply, id);
}

fn known(reply: &mut Encoder<'_>, name: &str, value: Option<i64>) {
    field(reply, name);
    match value {
        Some(value) => reply.integer(value),
        None => reply.null(),
    }
}

/// Writes the number of entries that a group has read, and its lag.
fn progress(reply: &mut Encoder<'_>, figures: &Figures, group: &Group) {
    known(reply, "entries-read", Some(group.entries_read).filter(|read| *read != READ_UNKNOWN));
    known(reply, "lag", figures.lag(group));
}

impl Call<'_, '_> {
    /// The stream at argument 2.
    fn shown(&mut self) -> Result<&Stream, Fault> {
        let found = self.read::<Stream>(self.arg(2))?;
        let stream = found.and_then(|found| self.keyspace.view::<Stream>(found));
        stream.map(|(stream, _)| stream).ok_or(text::NO_SUCH_KEY.into())
    }
}

pub(super) fn consumers(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Stream>(call.arg(2))?;
    let stream = found.and_then(|found| call.keyspace.view::<Stream>(found)).ok_or(text::NO_SUCH_KEY)?.0;
    let group = stream.groups.get(call.arg(3)).ok_or_else(|| no_group_of(call.arg(2), call.arg(3)))?;
    let reply = &mut *call.reply;
    let consumers = group.consumers();
    reply.array(consumers.len());
    for (_, consumer) in consumers {
        reply.map(3);
        field(reply, "name");
        reply.bulk(&consumer.name);
        count(reply, "pending", consumer.pending_len());
        field(reply, "idle");
        reply.integer(call.at.now.wrapping_sub(consumer.seen).max(0));
    }
    Ok(())
}

pub(super) fn groups(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<Stream>(call.arg(2))?;
    let stream = found.and_then(|found| call.keyspace.view::<Stream>(found)).ok_or(text::NO_SUCH_KEY)?.0;
    let reply = &mut *call.reply;
    reply.array(stream.groups.len());
    for (name, group) in stream.groups.iter() {
        reply.map(6);
        field(reply, "name");
        reply.bulk(name);
        count(reply, "consumers", group.consumers().len());
        count(reply, "pending", group.pending_len());
        id(reply, "last-delivered-id", group.last_id);
        progress(reply, &stream.figures, group);
    }
    Ok(())
}

/// The options of `XINFO STREAM`: the elements of each list to list, zero for all; `None` without `FULL`.
fn full_options(call: &Call<'_, '_>) -> Result<Option<usize>, Fault> {
    match call.args.len() {
        3 => return Ok(None),
        4 | 6 if call.is_word(3, "FULL") => {}
        _ => return Err(wrong_arguments(call)),
    }
    let mut wanted = SHOWN;
    if call.args.len() == 6 {
        if !call.is_word(4, "COUNT") {
            return Err(wrong_arguments(call));
        }
        wanted = call.integer(5)?;
    }
    Ok(Some(usize::try_from(wanted).unwrap_or(SHOWN as usize)))
}

pub(super) fn stream(call: &mut Call<'_, '_>) -> Answer {
    call.shown()?;
    let full = full_options(call)?;
    let found = call.keyspace.find(call.at, call.arg(2));
    let start = call.start;
    let stream = found.and_then(|found| call.keyspace.view::<Stream>(found)).ok_or(text::NO_SUCH_KEY)?.0;
    let reply = &mut *call.reply;
    let figures = &stream.figures;
    reply.map(if full.is_some() { 9 } else { 10 });
    count(reply, "length", stream.len());
    count(reply, "radix-tree-keys", stream.log.nodes());
    count(reply, "radix-tree-nodes", stream.log.radix_nodes());
    id(reply, "last-generated-id", figures.last_id);
    id(reply, "max-deleted-entry-id", figures.max_deleted_id);
    known(reply, "entries-added", Some(figures.entries_added));
    id(reply, "recorded-first-entry-id", figures.first_id);
    let Some(shown) = full else {
        count(reply, "groups", stream.groups.len());
        let mut entry = |name: &str, entry: Option<Entry<'_>>| {
            field(reply, name);
            match entry {
                Some(entry) => reply_entry(reply, &entry),
                None => reply.null(),
            }
        };
        entry("first-entry", stream.log.range(Id::MIN, Id::MAX).next());
        entry("last-entry", stream.log.range_back(Id::MIN, Id::MAX).next());
        return Ok(());
    };
    field(reply, "entries");
    reply_entries(reply, stream.log.range(Id::MIN, Id::MAX), shown, start)?;
    field(reply, "groups");
    reply.array(stream.groups.len());
    for (name, group) in stream.groups.iter() {
        reply.map(7);
        field(reply, "name");
        reply.bulk(name);
        id(reply, "last-delivered-id", group.last_id);
        progress(reply, figures, group);
        count(reply, "pel-count", group.pending_len());
        pending(reply, group, None, shown);
        field(reply, "consumers");
        let consumers = group.consumers();
        reply.array(consumers.len());
        for (number, consumer) in consumers {
            reply.map(4);
            field(reply, "name");
            reply.bulk(&consumer.name);
            field(reply, "seen-time");
            reply.integer(consumer.seen);
            count(reply, "pel-count", consumer.pending_len());
            pending(reply, group, Some(number), shown);
            check_reply(reply, start)?;
        }
        check_reply(reply, start)?;
    }
    Ok(())
}

/// Writes the pending entries of all consumers, with their names, or of one consumer.
fn pending(reply: &mut Encoder<'_>, group: &Group, consumer: Option<u32>, shown: usize) {
    field(reply, "pending");
    let (position, mut written) = (reply.position(), 0);
    let limit = if shown == 0 { usize::MAX } else { shown };
    for (id, pending) in group.pending_from(Id::MIN, consumer).take(limit) {
        reply.array(if consumer.is_some() { 3 } else { 4 });
        reply_id(reply, id);
        if consumer.is_none() {
            reply.bulk(group.owner(pending));
        }
        reply.integer(pending.delivered);
        reply.integer(pending.deliveries);
        written += 1;
    }
    reply.array_at(position, written);
}
