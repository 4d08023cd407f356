//! Bit operations on strings. Bit zero is the highest bit of the first byte.

mod field;
mod words;

use respool_command::{BitmapCommand, text};

use super::{Answer, Call, Fault};
use crate::keyspace::{Edited, events};
use crate::limits::STRING_BYTES_MAX;
use crate::number::integer;
use crate::store::listpack::Element;
pub(super) use words::grow;

const BIT_ARGUMENT: &str = "ERR The bit argument must be 1 or 0.";
const NOT_TAKES_ONE: &str = "ERR BITOP NOT must be called with a single source key.";

/// Runs one command of the group.
pub(super) fn run(command: BitmapCommand, call: &mut Call<'_, '_>) -> Answer {
    match command {
        BitmapCommand::Bitcount => bitcount(call),
        BitmapCommand::Bitfield => field::bitfield(call, true),
        BitmapCommand::BitfieldRo => field::bitfield(call, false),
        BitmapCommand::Bitop => bitop(call),
        BitmapCommand::Bitpos => bitpos(call),
        BitmapCommand::Getbit => getbit(call),
        BitmapCommand::Setbit => setbit(call),
    }
}

/// The offset of a bit: not negative, and within what a string may have.
fn bit_offset(text: &[u8]) -> Result<usize, Fault> {
    let offset = integer::parse(text).and_then(|offset| usize::try_from(offset).ok());
    offset.filter(|offset| offset / 8 < STRING_BYTES_MAX).ok_or_else(|| text::BIT_OFFSET.into())
}

fn bit_at(bytes: &[u8], offset: usize) -> bool {
    bytes.get(offset / 8).is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// Calls `read` with the bytes of the string at `key`; `None` if there is none.
fn with_bytes<T>(call: &mut Call<'_, '_>, key: &[u8], read: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, Fault> {
    let found = call.read_string(key)?;
    Ok(found.and_then(|found| call.keyspace.text(found)).map(|text| text.read(read)))
}

fn setbit(call: &mut Call<'_, '_>) -> Answer {
    let offset = bit_offset(call.arg(2))?;
    let is_set = match integer::parse(call.arg(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(text::BIT_VALUE.into()),
    };
    let was_set = call.edit_or_create(call.arg(1), |bytes| {
        let grows = bytes.len() <= offset / 8;
        if grows {
            grow(bytes, offset / 8 + 1);
        }
        let was_set = bit_at(bytes, offset);
        let mask = 1 << (7 - offset % 8);
        let byte = &mut bytes[offset / 8];
        *byte = if is_set { *byte | mask } else { *byte & !mask };
        Edited::when(grows || was_set != is_set, was_set).named(events::SETBIT)
    })?;
    call.reply_integer(was_set.into())
}

fn getbit(call: &mut Call<'_, '_>) -> Answer {
    let offset = bit_offset(call.arg(2))?;
    let is_set = with_bytes(call, call.arg(1), |bytes| bit_at(bytes, offset))?;
    call.reply_integer(is_set.unwrap_or(false).into())
}

/// A range of bits, half open.
struct Bits {
    start: usize,
    end: usize,
}

/// How many bits an offset counts, which stands behind the `start` and `end` that begin at `index`.
fn unit(call: &Call<'_, '_>, index: usize) -> Result<usize, Fault> {
    match call.args.len() {
        n if n <= index + 2 => Ok(8),
        _ if call.is_word(index + 2, "BIT") => Ok(1),
        _ if call.is_word(index + 2, "BYTE") => Ok(8),
        _ => Err(text::SYNTAX.into()),
    }
}

/// Reads `start`, `end` and the unit from the argument at `index` on, for a string of `len` bytes.
fn bits(call: &Call<'_, '_>, index: usize, len: usize, is_count: bool) -> Result<Bits, Fault> {
    let start = call.integer(index)?;
    if !is_count {
        // Here the unit is read before the end.
        unit(call, index)?;
    }
    let end = if call.args.len() > index + 1 { call.integer(index + 1)? } else { i64::MAX };
    if is_count && start < 0 && end < 0 && start > end {
        return Ok(Bits { start: 0, end: 0 });
    }
    let unit = unit(call, index)?;
    let total = i64::try_from(len * 8 / unit).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { index.saturating_add(total).max(0) } else { index };
    let (start, end) = (from_start(start), from_start(end).min(total - 1));
    if start > end {
        return Ok(Bits { start: 0, end: 0 });
    }
    Ok(Bits { start: start as usize * unit, end: (end as usize + 1) * unit })
}

fn bitcount(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read_string(call.arg(1))?;
    let Some(found) = found else { return call.reply_integer(0) };
    let len = call.keyspace.text(found).map_or(0, Element::len);
    let bits = match call.args.len() {
        2 => Bits { start: 0, end: len * 8 },
        4 | 5 => bits(call, 2, len, true)?,
        _ => return Err(text::SYNTAX.into()),
    };
    let count = call.keyspace.text(found).map_or(0, |text| text.read(|bytes| count_ones(bytes, &bits)));
    call.reply_count(count)
}

fn count_ones(bytes: &[u8], bits: &Bits) -> usize {
    let (first, last) = (bits.start.div_ceil(8), bits.end / 8);
    if first > last {
        return (bits.start..bits.end).filter(|&offset| bit_at(bytes, offset)).count();
    }
    let whole = words::count_ones(bytes.get(first..last).unwrap_or_default());
    let edges = (bits.start..first * 8).chain(last * 8..bits.end);
    whole + edges.filter(|&offset| bit_at(bytes, offset)).count()
}

fn bitpos(call: &mut Call<'_, '_>) -> Answer {
    let wanted = match call.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(BIT_ARGUMENT.into()),
    };
    let found = call.read_string(call.arg(1))?;
    let Some(found) = found else { return call.reply_integer(if wanted { -1 } else { 0 }) };
    let len = call.keyspace.text(found).map_or(0, Element::len);
    let has_end = call.args.len() >= 5;
    let bits = match call.args.len() {
        3 => Bits { start: 0, end: len * 8 },
        4..=6 => bits(call, 3, len, false)?,
        _ => return Err(text::SYNTAX.into()),
    };
    if bits.start >= bits.end {
        return call.reply_integer(-1);
    }
    let position = call.keyspace.text(found).and_then(|text| text.read(|bytes| first_bit(bytes, &bits, wanted)));
    match position {
        Some(position) => call.reply_count(position),
        // Behind an open end there are only zeros.
        None if !wanted && !has_end => call.reply_count(len * 8),
        None => call.reply_integer(-1),
    }
}

fn first_bit(bytes: &[u8], bits: &Bits, wanted: bool) -> Option<usize> {
    let (first, last) = (bits.start.div_ceil(8), bits.end / 8);
    if first > last {
        return (bits.start..bits.end).find(|&offset| bit_at(bytes, offset) == wanted);
    }
    let is_wanted = |offset: &usize| bit_at(bytes, *offset) == wanted;
    let dull = if wanted { 0 } else { 0xff };
    let in_whole = || {
        let at = first + words::find_other(bytes.get(first..last).unwrap_or_default(), dull)?;
        (at * 8..at * 8 + 8).find(is_wanted)
    };
    let before = (bits.start..first * 8).find(is_wanted);
    before.or_else(in_whole).or_else(|| (last * 8..bits.end).find(is_wanted))
}

fn bitop(call: &mut Call<'_, '_>) -> Answer {
    // Of whole strings, so that it is many bytes at a time. The second may be the shorter one: behind it are zeros.
    let operation: fn(&mut [u8], &[u8]) = match () {
        () if call.is_word(1, "AND") => |a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
            a[b.len()..].fill(0);
        },
        () if call.is_word(1, "OR") => |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a |= b),
        () if call.is_word(1, "XOR") => |a, b| a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b),
        () if call.is_word(1, "NOT") => |_, _| (),
        () => return Err(text::SYNTAX.into()),
    };
    let is_not = call.is_word(1, "NOT");
    if is_not && call.args.len() != 4 {
        return Err(NOT_TAKES_ONE.into());
    }
    // All are looked at before any is taken: what a key of another type comes after is not worked on in vain.
    let mut len = 0;
    for key in call.args.from(3).iter() {
        len = len.max(with_bytes(call, key, <[u8]>::len)?.unwrap_or(0));
    }
    // One source is read at a time, where it lies: a request may name the same long string as often as it has room for.
    let mut result = Vec::with_capacity(len);
    let mut join = |index: usize, source: &[u8]| match index {
        0 if is_not => result.extend(source.iter().map(|byte| !byte)),
        0 => {
            result.extend_from_slice(source);
            result.resize(len, 0);
        }
        _ => operation(&mut result, source),
    };
    for (index, key) in call.args.from(3).iter().enumerate() {
        match call.keyspace.look(call.at, key).and_then(|found| call.keyspace.text(found)) {
            Some(source) => source.read(|source| join(index, source)),
            None => join(index, b""),
        }
    }
    let key = call.arg(2);
    if len > 0 {
        call.keyspace.set_edited(call.at, key, result);
        call.notify(events::SET, key);
    } else {
        call.keyspace.clear(call.at.database, key);
    }
    call.reply_count(len)
}

#[cfg(test)]
mod tests {
    use crate::transcript::play;

    #[test]
    fn bits_are_set_and_found() {
        play(
            "SETBIT b 7 1 -> :0
             SETBIT b 7 1 -> :1
             GETBIT b 7 -> :1
             GETBIT b 700 -> :0
             STRLEN b -> :1
             SETBIT b -1 1 -> -ERR bit offset is not an integer or out of range
             SETBIT b 4294967296 1 -> -ERR bit offset is not an integer or out of range
             SETBIT b 1 2 -> -ERR bit is not an integer or out of range
             SET s foobar -> +OK
             BITCOUNT s -> :26
             BITCOUNT s 1 1 -> :6
             BITCOUNT s 5 30 BIT -> :17
             BITCOUNT s 1 -> -ERR syntax error
             BITPOS s 1 -> :1
             BITPOS s 0 1 -> :8
             BITPOS s 1 7 15 BIT -> :9
             BITPOS none 0 -> :0
             BITPOS none 1 -> :-1
             BITPOS s 2 -> -ERR The bit argument must be 1 or 0.
             SET t abcdef -> +OK
             BITOP AND d s t -> :6
             GET d -> $6 `bc`ab
             BITOP NOT d s t -> -ERR BITOP NOT must be called with a single source key.
             BITOP OR d none s -> :6
             GET d -> $6 foobar
             BITOP AND d s none s -> :6
             BITCOUNT d -> :0
             BITOP XOR d s s s -> :6
             GET d -> $6 foobar
             BITOP OR d none -> :0
             EXISTS d -> :0",
        );
    }

    #[test]
    fn fields_of_bits_are_integers() {
        play(
            "BITFIELD f INCRBY i5 100 1 GET u4 0 -> *2 :1 :0
             BITFIELD f SET u8 0 255 GET i8 0 -> *2 :0 :-1
             BITFIELD f OVERFLOW SAT INCRBY u8 0 10 OVERFLOW FAIL INCRBY u8 0 1 -> *2 :255 $-1
             BITFIELD f SET i8 #1 -128 INCRBY i8 #1 -1 -> *2 :0 :127
             BITFIELD_RO f GET u8 8 -> *1 :127
             BITFIELD_RO f SET u8 8 1 -> -ERR BITFIELD_RO only supports the GET subcommand
             BITFIELD f GET u64 0 -> -ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.
             BITFIELD f GET u8\0x 8 -> *1 :127
             BITFIELD f OVERFLOW x -> -ERR Invalid OVERFLOW type specified
             BITFIELD none GET u8 0 -> *1 :0
             EXISTS none -> :0",
        );
    }
}
