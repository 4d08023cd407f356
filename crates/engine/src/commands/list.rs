//! Lists. A command that could wait is served when it need not.

use respool_command::{ListCommand, text};
use respool_wire::Args;

use super::{Answer, Call, Fault, bulk, named};
use crate::keyspace::events::{self, Event};
use crate::keyspace::{Edited, Found};
use crate::store::heap::Heap;
use crate::store::quick_list::{End, QuickList};

const RANK_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use \
     negative to start from the end of the list";
const COUNT_NEGATIVE: &str = "ERR COUNT can't be negative";
const MAXLEN_NEGATIVE: &str = "ERR MAXLEN can't be negative";
pub(super) const NUMKEYS: &str = "ERR numkeys should be greater than 0";
pub(super) const COUNT: &str = "ERR count should be greater than 0";

/// Runs one command of the group.
pub(super) fn run(command: ListCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        ListCommand::Blmove => blmove(call),
        ListCommand::Blmpop => lmpop(call, 2),
        ListCommand::Blpop => blpop(call, End::Head),
        ListCommand::Brpop => blpop(call, End::Tail),
        ListCommand::Brpoplpush => {
            call.check_timeout(3)?;
            move_between(call, End::Tail, End::Head)
        }
        ListCommand::Lindex => lindex(call),
        ListCommand::Linsert => linsert(call),
        ListCommand::Llen => llen(call),
        ListCommand::Lmove => lmove(call),
        ListCommand::Lmpop => lmpop(call, 1),
        ListCommand::Lpop => pop(call, End::Head),
        ListCommand::Lpos => lpos(call),
        ListCommand::Lpush => push(call, End::Head, true),
        ListCommand::Lpushx => push(call, End::Head, false),
        ListCommand::Lrange => lrange(call),
        ListCommand::Lrem => lrem(call),
        ListCommand::Lset => lset(call),
        ListCommand::Ltrim => ltrim(call),
        ListCommand::Rpop => pop(call, End::Tail),
        ListCommand::Rpoplpush => move_between(call, End::Tail, End::Head),
        ListCommand::Rpush => push(call, End::Tail, true),
        ListCommand::Rpushx => push(call, End::Tail, false),
    }
}

/// The event of elements that are put in at an end.
fn pushed(end: End) -> Event {
    if end == End::Head { events::LPUSH } else { events::RPUSH }
}

/// The event of elements that are taken out at an end.
fn popped(end: End) -> Event {
    if end == End::Head { events::LPOP } else { events::RPOP }
}

fn push(call: &mut Call<'_, '_>, end: End, may_create: bool) -> Answer {
    let (key, values) = (call.arg(1), call.args.from(2));
    let add = |list: &mut QuickList| {
        values.iter().for_each(|value| list.push(end, value));
        Edited::change(list.len()).named(pushed(end))
    };
    let len = if may_create {
        call.upsert(key, |_| QuickList::new(), |list, _| add(list))?
    } else {
        call.update(key, |list, _| add(list))?.unwrap_or(0)
    };
    call.reply_count(len)
}

fn pop(call: &mut Call<'_, '_>, end: End) -> Answer {
    let has_count = match call.args.len() {
        2 => false,
        3 => true,
        _ => return Err(named(call.row, text::wrong_arity)),
    };
    let count = if has_count { call.positive_or_zero(2)? } else { 1 };
    let Some(found) = call.find::<QuickList>(call.arg(1))? else {
        if has_count {
            call.reply.null_array()
        } else {
            call.reply.null()
        }
        return Ok(());
    };
    pop_from(call, found, end, count, has_count);
    Ok(())
}

/// Takes elements out and replies them, as an array or alone.
fn pop_from(call: &mut Call<'_, '_>, found: Found, end: End, count: usize, is_array: bool) {
    call.keyspace.edit_or_remove(call.at.database, found, |list: &mut QuickList, _| {
        let count = count.min(list.len());
        if is_array {
            call.reply.array(count);
        }
        for _ in 0..count {
            list.pop(end, |element| bulk(call.reply, element));
        }
        Edited::count(count).named(popped(end))
    });
}

fn llen(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read::<QuickList>(call.arg(1))?;
    let len = found.and_then(|found| call.keyspace.view::<QuickList>(found)).map_or(0, |(list, _)| list.len());
    call.reply_count(len)
}

/// The offset from the head that an index means, which may count from the tail.
fn offset(index: i64, len: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(offset) => (offset < len).then_some(offset),
        Err(_) => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// The first offset and the number of elements that an inclusive range means.
pub(super) fn range(start: i64, end: i64, len: usize) -> (usize, usize) {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { index.saturating_add(len) } else { index };
    let (start, end) = (from_start(start).max(0), from_start(end).min(len - 1));
    if start > end {
        return (usize::try_from(start.min(len)).unwrap_or(0), 0);
    }
    (start as usize, (end - start + 1) as usize)
}

fn lindex(call: &mut Call<'_, '_>) -> Answer {
    let Some(found) = call.read::<QuickList>(call.arg(1))? else {
        call.reply.null();
        return Ok(());
    };
    let index = call.integer(2)?;
    let list = call.keyspace.view::<QuickList>(found);
    let element = list.and_then(|(list, _)| list.get(list.seek(offset(index, list.len())?)?));
    match element {
        Some(element) => bulk(call.reply, element),
        None => call.reply.null(),
    }
    Ok(())
}

fn lset(call: &mut Call<'_, '_>) -> Answer {
    let value = call.arg(3);
    let found = call.find::<QuickList>(call.arg(1))?.ok_or(text::NO_SUCH_KEY)?;
    let index = call.integer(2)?;
    let is_in_range = call.keyspace.edit(call.at.database, found, |list: &mut QuickList, _| {
        let spot = offset(index, list.len()).and_then(|offset| list.seek(offset));
        if let Some(spot) = spot {
            list.replace(spot, value);
        }
        Edited::when(spot.is_some(), spot.is_some()).named(events::LSET)
    });
    if is_in_range == Some(true) { call.reply_ok() } else { Err(text::INDEX_OUT_OF_RANGE.into()) }
}

fn linsert(call: &mut Call<'_, '_>) -> Answer {
    let (pivot, value) = (call.arg(3), call.arg(4));
    let is_before = call.is_word(2, "BEFORE");
    if !is_before && !call.is_word(2, "AFTER") {
        return Err(text::SYNTAX.into());
    }
    let len = call.update(call.arg(1), |list: &mut QuickList, _| {
        let mut spot = list.start(End::Head);
        while let Some(here) = spot {
            if list.get(here).is_some_and(|element| element.is(pivot)) {
                if is_before {
                    list.insert_before(here, value)
                } else {
                    list.insert_after(here, value)
                }
                return Edited::change(i64::try_from(list.len()).unwrap_or(i64::MAX)).named(events::LINSERT);
            }
            spot = list.step(here, End::Head);
        }
        Edited::when(false, -1)
    })?;
    call.reply_integer(len.unwrap_or(0))
}

fn lrange(call: &mut Call<'_, '_>) -> Answer {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let found = call.read::<QuickList>(call.arg(1))?;
    let Some((list, _)) = found.and_then(|found| call.keyspace.view::<QuickList>(found)) else {
        call.reply.array(0);
        return Ok(());
    };
    let (start, count) = range(start, end, list.len());
    call.reply.array(count);
    for element in list.iter_at(list.seek(start), End::Head).take(count) {
        bulk(call.reply, element);
    }
    Ok(())
}

fn ltrim(call: &mut Call<'_, '_>) -> Answer {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    call.update(call.arg(1), |list: &mut QuickList, _| {
        let (start, count) = range(start, end, list.len());
        if count == 0 {
            list.trim(list.len(), 0)
        } else {
            list.trim(start, count)
        }
        // As in Redis, even if nothing is cut off.
        Edited::change(()).named(events::LTRIM)
    })?;
    call.reply_ok()
}

fn lrem(call: &mut Call<'_, '_>) -> Answer {
    let (count, value) = (call.integer(2)?, call.arg(3));
    let from = if count < 0 { End::Tail } else { End::Head };
    let limit = if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
    let removed = call.update(call.arg(1), |list: &mut QuickList, _| {
        Edited::count(list.remove_equal(from, limit, value)).named(events::LREM)
    })?;
    call.reply_count(removed.unwrap_or(0))
}

fn lpos(call: &mut Call<'_, '_>) -> Answer {
    let wanted = call.arg(2);
    let (mut rank, mut count, mut looked_max) = (1, None, 0);
    let mut index = 3;
    while index < call.args.len() {
        let has_value = index + 1 < call.args.len();
        if call.is_word(index, "RANK") && has_value {
            rank = call.integer(index + 1)?;
            if rank == 0 {
                return Err(RANK_ZERO.into());
            }
        } else if call.is_word(index, "COUNT") && has_value {
            count = Some(call.integer_from(index + 1, 0, COUNT_NEGATIVE)?);
        } else if call.is_word(index, "MAXLEN") && has_value {
            looked_max = call.integer_from(index + 1, 0, MAXLEN_NEGATIVE)?;
        } else {
            return Err(text::SYNTAX.into());
        }
        index += 2;
    }
    let found = call.read::<QuickList>(call.arg(1))?;
    let list = found.and_then(|found| call.keyspace.view::<QuickList>(found)).map(|(list, _)| list);
    let from = if rank < 0 { End::Tail } else { End::Head };
    // The least of all ranks has no opposite in 64 bits: Redis takes it for one before the first match, and counts no end.
    let is_endless = rank == i64::MIN;
    let skipped = if is_endless { 0 } else { usize::try_from(rank.unsigned_abs() - 1).unwrap_or(usize::MAX) };
    let looked = if looked_max == 0 { usize::MAX } else { looked_max };
    let matches = list.into_iter().flat_map(|list| {
        let last = list.len() - 1;
        let matching = list.iter(from).take(looked).enumerate().filter(|(_, element)| element.is(wanted)).skip(skipped);
        matching.map(move |(offset, _)| if from == End::Head { offset } else { last - offset })
    });
    let take = count.map_or(1, |count| if count == 0 || is_endless { usize::MAX } else { count });
    let matches: Vec<_> = matches.take(take).collect();
    if count.is_some() {
        call.reply.array(matches.len());
        return matches.into_iter().try_for_each(|offset| call.reply_count(offset));
    }
    match matches.first() {
        Some(&offset) => call.reply_count(offset),
        None => {
            call.reply.null();
            Ok(())
        }
    }
}

impl Call<'_, '_> {
    /// `LEFT` or `RIGHT` at `index`.
    fn end(&self, index: usize) -> Result<End, Fault> {
        if self.is_word(index, "LEFT") {
            Ok(End::Head)
        } else if self.is_word(index, "RIGHT") {
            Ok(End::Tail)
        } else {
            Err(text::SYNTAX.into())
        }
    }

    /// What a command says that found nothing: null, or that it blocks.
    pub(super) fn nothing(&mut self, is_array: bool) -> Answer {
        if self.row.flags.has(respool_command::Flags::BLOCKING) && !self.session.is_in_transaction {
            return Err(Fault::Waits);
        }
        if is_array {
            self.reply.null_array()
        } else {
            self.reply.null()
        }
        Ok(())
    }
}

fn lmove(call: &mut Call<'_, '_>) -> Answer {
    let (from, to) = (call.end(3)?, call.end(4)?);
    move_between(call, from, to)
}

fn blmove(call: &mut Call<'_, '_>) -> Answer {
    let (from, to) = (call.end(3)?, call.end(4)?);
    call.check_timeout(5)?;
    move_between(call, from, to)
}

fn move_between(call: &mut Call<'_, '_>, from: End, to: End) -> Answer {
    let (source, target) = (call.arg(1), call.arg(2));
    let Some(found) = call.find::<QuickList>(source)? else { return call.nothing(false) };
    call.find::<QuickList>(target)?;
    // Looking at the target may have removed it, which voids what was found before.
    let found = call.find::<QuickList>(source)?.unwrap_or(found);
    let value = call.keyspace.edit(call.at.database, found, |list: &mut QuickList, _| {
        let value = list.pop(from, |element| element.to_vec());
        if let Some(value) = value.as_ref().filter(|_| source == target) {
            list.push(to, value);
        }
        Edited::change(value)
    });
    let Some(value) = value.flatten() else { return Ok(()) };
    if source == target {
        call.notify(pushed(to), target);
    } else {
        let add = |list: &mut QuickList, _: &mut Heap| {
            list.push(to, &value);
            Edited::change(()).named(pushed(to))
        };
        call.upsert(target, |_| QuickList::new(), add)?;
    }
    // As in Redis, clients hear of the push before the pop.
    call.notify(popped(from), source);
    if let Some(found) = call.keyspace.peek(call.at, source) {
        call.keyspace.remove_if_empty(call.at.database, found);
    }
    call.reply.bulk(&value);
    Ok(())
}

impl<'c> Call<'c, '_> {
    /// The first of `keys` that is there. All before it are missing; a key of another type in between is a fault.
    fn first_list(&mut self, keys: Args<'c>) -> Result<Option<(&'c [u8], Found)>, Fault> {
        for key in keys.iter() {
            if let Some(found) = self.find::<QuickList>(key)? {
                return Ok(Some((key, found)));
            }
        }
        Ok(None)
    }
}

fn blpop(call: &mut Call<'_, '_>, end: End) -> Answer {
    let timeout = call.args.len() - 1;
    call.check_timeout(timeout)?;
    let keys = call.args.from(1).first(timeout - 1);
    let Some((key, found)) = call.first_list(keys)? else { return call.nothing(true) };
    call.reply.array(2);
    call.reply.bulk(key);
    pop_from(call, found, end, 1, false);
    Ok(())
}

/// `LMPOP`, and `BLMPOP` with a timeout in front, whose keys are counted at `index`.
fn lmpop(call: &mut Call<'_, '_>, index: usize) -> Answer {
    let (keys, behind) = call.counted_keys(index, NUMKEYS)?;
    let end = call.end(behind)?;
    let count = call.pop_count(behind + 1)?;
    if index == 2 {
        call.check_timeout(1)?;
    }
    let keys = keys.first(behind - index - 1);
    let Some((key, found)) = call.first_list(keys)? else { return call.nothing(true) };
    call.reply.array(2);
    call.reply.bulk(key);
    pop_from(call, found, end, count, true);
    Ok(())
}

impl Call<'_, '_> {
    /// `COUNT n` at `index`, which has to be the end; one if it is not given.
    pub(super) fn pop_count(&self, index: usize) -> Result<usize, Fault> {
        match self.args.len().saturating_sub(index) {
            0 => Ok(1),
            2.. if self.is_word(index, "COUNT") => {
                let count = self.integer_from(index + 1, 1, COUNT)?;
                if self.args.len() > index + 2 { Err(text::SYNTAX.into()) } else { Ok(count) }
            }
            _ => Err(text::SYNTAX.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::{Script, play};

    #[test]
    fn both_ends_are_pushed_and_popped() {
        play(
            "RPUSH l a b c -> :3
             LPUSH l z -> :4
             LPUSHX none x -> :0
             RPUSHX l d -> :5
             LRANGE l 0 -1 -> *5 $1 z $1 a $1 b $1 c $1 d
             LPOP l -> $1 z
             RPOP l 2 -> *2 $1 d $1 c
             LPOP l 0 -> *0
             LPOP l -1 -> -ERR value is out of range, must be positive
             LPOP l 1 1 -> -ERR wrong number of arguments for 'lpop' command
             LPOP none -> $-1
             LPOP none 1 -> *-1
             LPOP l 9 -> *2 $1 a $1 b
             EXISTS l -> :0
             #3
             LPOP none 1 -> _",
        );
    }

    #[test]
    fn the_middle_is_found_and_changed() {
        play(
            "RPUSH l a b c b a -> :5
             LINDEX l 1 -> $1 b
             LINDEX l -1 -> $1 a
             LINDEX l 9 -> $-1
             LSET l 2 x -> +OK
             LSET l 9 x -> -ERR index out of range
             LSET none 0 x -> -ERR no such key
             LINSERT l BEFORE x 1 -> :6
             LINSERT l AFTER x 2 -> :7
             LINSERT l AFTER y 2 -> :-1
             LRANGE l 0 -1 -> *7 $1 a $1 b $1 1 $1 x $1 2 $1 b $1 a
             LPOS l b -> :1
             LPOS l b RANK -1 -> :5
             LPOS l b RANK -9223372036854775808 -> :5
             LPOS l b RANK -9223372036854775808 COUNT 1 -> *2 :5 :1
             LPOS l b COUNT 0 -> *2 :1 :5
             LPOS l b RANK 0 -> -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
             LPOS l b COUNT 0 MAXLEN 3 -> *1 :1
             LREM l -1 a -> :1
             LTRIM l 1 -2 -> +OK
             LRANGE l 0 -1 -> *4 $1 b $1 1 $1 x $1 2
             LTRIM l 5 9 -> +OK
             EXISTS l -> :0",
        );
    }

    #[test]
    fn elements_move_between_lists() {
        play(
            "RPUSH a 1 2 3 -> :3
             LMOVE a b LEFT RIGHT -> $1 1
             RPOPLPUSH a b -> $1 3
             LMOVE a a LEFT RIGHT -> $1 2
             LMOVE none b LEFT LEFT -> $-1
             LRANGE b 0 -1 -> *2 $1 3 $1 1
             LMPOP 2 none b RIGHT COUNT 5 -> *2 $1 b *2 $1 1 $1 3
             LMPOP 1 none LEFT -> *-1
             LMPOP 0 none LEFT -> -ERR numkeys should be greater than 0
             BLPOP none a 0 -> *2 $1 a $1 2
             BLPOP none x -> -ERR timeout is not a float or out of range",
        );
        assert_eq!(Script::new().say("BLPOP none 0"), "", "it waits, which is for others to see to");
    }
}
