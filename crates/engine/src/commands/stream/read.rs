//! `XREAD` and `XREADGROUP`, which may block until entries are added.

use respool_command::text;
use respool_command::words::until_nul;
use respool_wire::{ArgsBuf, Encoder, Protocol};

use super::super::{Answer, Call, Fault, check_reply};
use super::{reply_entries, reply_entry, reply_id, strict_id};
use crate::keyspace::Edited;
use crate::limits::STREAM_AWAITED_ENTRIES;
use crate::values::Stream;
use crate::values::stream::{Figures, Group, Id, Log};

const UNBALANCED: &str = "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.";
const GROUP_IN_XREAD: &str = "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.";
const NOACK_IN_XREAD: &str = "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.";
const GROUP_MISSING: &str = "ERR Missing GROUP option for XREADGROUP";
const LAST_IN_GROUP: &str = "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of \
     this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty \
     result set.";
const NEW_IN_XREAD: &str =
    "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.";
const KEY_IS_GONE: &str = "UNBLOCKED the stream key no longer exists";
const GROUP_IS_GONE: &str = "NOGROUP the consumer group this client was blocked on no longer exists";

/// Stands for `>`: the entries that the group has not delivered yet.
const NEW: Id = Id::MAX;

/// A request to read.
struct Read<'c> {
    /// The argument of `BLOCK`, in milliseconds.
    patience: Option<&'c [u8]>,
    count: usize,
    /// The group and the consumer.
    group: Option<(&'c [u8], &'c [u8])>,
    is_acknowledged: bool,
    /// Index of the first key, and number of keys.
    keys_at: usize,
    keys: usize,
}

impl<'c> Read<'c> {
    fn parse(call: &Call<'c, '_>, is_of_group: bool) -> Result<Self, Fault> {
        let mut read = Self { patience: None, count: 0, group: None, is_acknowledged: false, keys_at: 0, keys: 0 };
        let len = call.args.len();
        let mut index = 1;
        while index < len {
            let more = len - index - 1;
            if call.is_word(index, "BLOCK") && more > 0 {
                index += 1;
                let text = call.arg(index);
                let millis = crate::number::integer::parse(text).ok_or(text::TIMEOUT_NOT_AN_INTEGER)?;
                if millis < 0 {
                    return Err(text::TIMEOUT_NEGATIVE.into());
                }
                read.patience = Some(text);
            } else if call.is_word(index, "COUNT") && more > 0 {
                index += 1;
                read.count = usize::try_from(call.integer(index)?).unwrap_or(0);
            } else if call.is_word(index, "STREAMS") && more > 0 {
                if more % 2 == 1 {
                    return Err(UNBALANCED.into());
                }
                (read.keys_at, read.keys) = (index + 1, more / 2);
                break;
            } else if call.is_word(index, "GROUP") && more > 1 {
                if !is_of_group {
                    return Err(GROUP_IN_XREAD.into());
                }
                read.group = Some((call.arg(index + 1), call.arg(index + 2)));
                index += 2;
            } else if call.is_word(index, "NOACK") {
                if !is_of_group {
                    return Err(NOACK_IN_XREAD.into());
                }
                read.is_acknowledged = true;
            } else {
                return Err(text::SYNTAX.into());
            }
            index += 1;
        }
        if read.keys == 0 {
            return Err(text::SYNTAX.into());
        }
        if is_of_group && read.group.is_none() {
            return Err(GROUP_MISSING.into());
        }
        Ok(read)
    }

    /// The request to park: with ids in the place of `$`, and with the limit on entries that applies after blocking.
    fn again(&self, call: &Call<'_, '_>, ids: &[Id], patience: &[u8]) -> ArgsBuf {
        let mut words: ArgsBuf = [call.arg(0)].into_iter().collect();
        if let Some((group, consumer)) = self.group {
            words.push(b"GROUP").push(group).push(consumer);
        }
        if self.is_acknowledged {
            words.push(b"NOACK");
        }
        let count = if self.count == 0 { STREAM_AWAITED_ENTRIES.to_string() } else { self.count.to_string() };
        words.push(b"COUNT").push(count.as_bytes()).push(b"BLOCK").push(patience).push(b"STREAMS");
        (0..self.keys).for_each(|number| _ = words.push(call.arg(self.keys_at + number)));
        for id in ids {
            match *id {
                NEW if self.group.is_some() => words.push(b">"),
                id => words.push(id.text().as_bytes()),
            };
        }
        words
    }
}

/// The error for a key or a group that does not exist.
fn no_group(key: &[u8], group: &[u8]) -> Fault {
    let parts: [&[u8]; 5] = [
        b"NOGROUP No such key '",
        until_nul(key),
        b"' or consumer group '",
        until_nul(group),
        b"' in XREADGROUP with GROUP option",
    ];
    Fault::Written(parts.concat())
}

/// `XREAD`, and `XREADGROUP`.
pub(super) fn read(call: &mut Call<'_, '_>, is_of_group: bool) -> Answer {
    let read = Read::parse(call, is_of_group)?;
    if call.session.has_waited {
        return read_again(call, &read);
    }
    let ids = starting_points(call, &read)?;
    let (position, mut served) = (call.reply.position(), 0);
    for (number, &id) in ids.iter().enumerate() {
        let key = call.arg(read.keys_at + number);
        let Some(found) = call.read::<Stream>(key)? else { continue };
        let seen = match (id, read.group) {
            (NEW, Some((group, _))) => {
                let stream = call.keyspace.view::<Stream>(found);
                stream.and_then(|(stream, _)| stream.groups.get(group)).map_or(Id::MAX, |group| group.last_id)
            }
            (id, _) => id,
        };
        let is_history = read.group.is_some() && id != NEW;
        let stream = call.keyspace.view::<Stream>(found);
        let has_new = || stream.and_then(|(stream, _)| stream.log.last_id()).is_some_and(|last| last > seen);
        if is_history || has_new() {
            served += 1;
            serve(call, &read, key, found, seen, is_history)?;
        }
    }
    if served > 0 {
        head(call.reply, position, served);
        return Ok(());
    }
    match read.patience {
        Some(patience) if !call.session.is_in_transaction => Err(Fault::WaitsFor(read.again(call, &ids, patience))),
        _ => {
            call.reply.null_array();
            Ok(())
        }
    }
}

/// As [`read`], for a parked request that is tried for one key.
fn read_again(call: &mut Call<'_, '_>, read: &Read<'_>) -> Answer {
    let key = call.arg(read.keys_at);
    let found = call.keyspace.find(call.at, key);
    let stream = found.and_then(|found| call.keyspace.view::<Stream>(found));
    let seen = match (stream, read.group) {
        (None, Some(_)) => return Err(KEY_IS_GONE.into()),
        (None, None) => return Err(Fault::Waits),
        (Some((stream, _)), Some((group, _))) => stream.groups.get(group).ok_or(GROUP_IS_GONE)?.last_id,
        (Some(_), None) => strict_id(call.arg(read.keys_at + read.keys), 0)?,
    };
    // An entry that was added and deleted again unblocks the client as well.
    let has_come = stream.is_some_and(|(stream, _)| stream.figures.last_id > seen);
    let Some(found) = found.filter(|_| has_come) else { return Err(Fault::Waits) };
    let position = call.reply.position();
    serve(call, read, key, found, seen, false)?;
    head(call.reply, position, 1);
    Ok(())
}

/// Inserts the head of the reply before the `streams` streams that were written.
fn head(reply: &mut Encoder<'_>, position: usize, streams: usize) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array_at(position, streams);
    } else {
        reply.map_at(position, streams);
    }
}

/// The id after which each stream is read.
fn starting_points(call: &mut Call<'_, '_>, read: &Read<'_>) -> Result<Vec<Id>, Fault> {
    let mut ids = Vec::with_capacity(read.keys);
    for number in 0..read.keys {
        let key = call.arg(read.keys_at + number);
        let text = call.arg(read.keys_at + read.keys + number);
        let found = call.read::<Stream>(key)?;
        let stream = found.and_then(|found| call.keyspace.view::<Stream>(found));
        if let Some((group, _)) = read.group
            && stream.is_none_or(|(stream, _)| stream.groups.get(group).is_none())
        {
            return Err(no_group(key, group));
        }
        ids.push(match until_nul(text) {
            b"$" if read.group.is_some() => return Err(LAST_IN_GROUP.into()),
            b"$" => stream.map_or(Id::MIN, |(stream, _)| stream.figures.last_id),
            // The last entry that is there, as in Valkey and in Redis since 7.4; of a group it is no ID at all.
            b"+" if read.group.is_none() => stream.map_or(Id::MIN, |(stream, _)| {
                stream.log.last_id().and_then(Id::previous).unwrap_or(stream.figures.last_id)
            }),
            b">" if read.group.is_none() => return Err(NEW_IN_XREAD.into()),
            b">" => NEW,
            _ => strict_id(text, 0)?,
        });
    }
    Ok(ids)
}

/// Writes the entries of one stream after an id, or the consumer's pending ones among them.
fn serve(
    call: &mut Call<'_, '_>,
    read: &Read<'_>,
    key: &[u8],
    found: crate::keyspace::Found,
    seen: Id,
    is_history: bool,
) -> Answer {
    if call.reply.protocol() == Protocol::Resp2 {
        call.reply.array(2);
    }
    call.reply.bulk(key);
    let (from, now, start) = (seen.next().unwrap_or(Id::MIN), call.at.now, call.start);
    let Some((group, consumer)) = read.group else {
        let Some((stream, _)) = call.keyspace.view::<Stream>(found) else { return Ok(()) };
        return reply_entries(call.reply, stream.log.range(from, Id::MAX), read.count, start);
    };
    let consumers = call.consumers(Some(found), group);
    let reply = &mut *call.reply;
    let answer = call.keyspace.edit(call.at.database, found, |stream: &mut Stream, _| {
        let Stream { log, figures, groups } = stream;
        let Some(mut group) = groups.get_mut(group) else { return Edited::when(false, Ok(())) };
        let reader = Reader { number: group.enter(consumer, now), now, count: read.count, start };
        let answer = if is_history {
            reader.history(reply, log, &mut group, from)
        } else {
            reader.new_entries(reply, (log, figures), &mut group, from, !read.is_acknowledged)
        };
        // As in Redis, this is not a change for WATCH.
        Edited::unwatched(true, answer)
    });
    call.notify_of_consumer(key, found, group, consumers);
    answer.unwrap_or(Ok(()))
}

/// A consumer that reads.
struct Reader {
    number: u32,
    now: i64,
    /// Zero: no limit.
    count: usize,
    /// Position in the buffer at which the whole reply begins.
    start: usize,
}

impl Reader {
    fn limit(&self) -> usize {
        if self.count == 0 { usize::MAX } else { self.count }
    }

    /// Writes entries that the group has not delivered yet.
    fn new_entries(
        &self,
        reply: &mut Encoder<'_>,
        (log, figures): (&Log, &Figures),
        group: &mut Group,
        from: Id,
        is_pending: bool,
    ) -> Answer {
        let (position, mut written) = (reply.position(), 0);
        for entry in log.range(from, Id::MAX).take(self.limit()) {
            figures.advance(group, entry.id);
            reply_entry(reply, &entry);
            if is_pending {
                group.deliver(entry.id, self.number, self.now);
            }
            written += 1;
            check_reply(reply, self.start)?;
        }
        reply.array_at(position, written);
        Ok(())
    }

    /// Writes the consumer's pending entries, with null for entries that were deleted.
    fn history(&self, reply: &mut Encoder<'_>, log: &Log, group: &mut Group, from: Id) -> Answer {
        let own = group.pending_from(from, Some(self.number)).take(self.limit());
        let ids: Vec<Id> = own.map(|(id, _)| id).collect();
        reply.array(ids.len());
        for id in ids {
            match log.get(id) {
                Some(entry) => {
                    reply_entry(reply, &entry);
                    group.redeliver(id, self.now);
                }
                None => {
                    reply.array(2);
                    reply_id(reply, id);
                    reply.null_array();
                }
            }
            check_reply(reply, self.start)?;
        }
        Ok(())
    }
}
