//! The records of collections: one text (a member), two texts (a field and its value), or a score and a text.
//!
//! Lengths are written seven bits at a time, the low ones first; a score is eight bytes in front. A field with a deadline is the
//! record of a pair behind a mark, which no pair begins with, and the deadline: only hashes that have such fields look for it.

use super::pool::{Handle, Pool};

/// Bytes of a score.
const SCORE_BYTES: usize = 8;
/// What precedes a deadline: a length of zero in two bytes, where lengths take as few as they can.
const MARK: [u8; 2] = [0x80, 0];
/// Bytes of the mark and the deadline.
const DEADLINE_BYTES: usize = MARK.len() + 8;

fn length_bytes(len: usize) -> usize {
    match len {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

fn write_length(out: &mut [u8], mut len: usize) -> usize {
    let mut at = 0;
    while len >= 0x80 {
        out[at] = len as u8 | 0x80;
        len >>= 7;
        at += 1;
    }
    out[at] = len as u8;
    at + 1
}

#[inline]
fn read_length(bytes: &[u8]) -> (usize, usize) {
    let (mut len, mut at) = (0, 0);
    loop {
        let byte = bytes[at];
        len |= usize::from(byte & 0x7f) << (7 * at);
        at += 1;
        if byte & 0x80 == 0 {
            return (len, at);
        }
    }
}

/// A record of one text.
pub(crate) fn new_text(pool: &mut Pool, text: &[u8]) -> Handle {
    let handle = pool.alloc(length_bytes(text.len()) + text.len());
    write_text(pool.get_mut(handle), text);
    handle
}

fn write_text(out: &mut [u8], text: &[u8]) {
    let at = write_length(out, text.len());
    out[at..at + text.len()].copy_from_slice(text);
}

fn read_text(bytes: &[u8]) -> &[u8] {
    let (len, at) = read_length(bytes);
    &bytes[at..at + len]
}

/// The text of a record of one text.
#[inline]
pub(crate) fn text(pool: &Pool, handle: Handle) -> &[u8] {
    read_text(pool.get(handle))
}

/// A record of a score and a text.
pub(crate) fn new_scored(pool: &mut Pool, score: f64, text: &[u8]) -> Handle {
    let handle = pool.alloc(SCORE_BYTES + length_bytes(text.len()) + text.len());
    let out = pool.get_mut(handle);
    out[..SCORE_BYTES].copy_from_slice(&score.to_le_bytes());
    write_text(&mut out[SCORE_BYTES..], text);
    handle
}

/// The score of a record of a score and a text.
pub(crate) fn score(pool: &Pool, handle: Handle) -> f64 {
    let mut bytes = [0; SCORE_BYTES];
    bytes.copy_from_slice(&pool.get(handle)[..SCORE_BYTES]);
    f64::from_le_bytes(bytes)
}

/// Changes the score of a record of a score and a text.
pub(crate) fn set_score(pool: &mut Pool, handle: Handle, score: f64) {
    pool.get_mut(handle)[..SCORE_BYTES].copy_from_slice(&score.to_le_bytes());
}

/// The text of a record of a score and a text.
#[inline]
pub(crate) fn scored_text(pool: &Pool, handle: Handle) -> &[u8] {
    read_text(&pool.get(handle)[SCORE_BYTES..])
}

fn pair_bytes(first: &[u8], second: &[u8]) -> usize {
    length_bytes(first.len()) + length_bytes(second.len()) + first.len() + second.len()
}

/// A record of two texts.
pub(crate) fn new_pair(pool: &mut Pool, first: &[u8], second: &[u8]) -> Handle {
    let handle = pool.alloc(pair_bytes(first, second));
    write_pair(pool.get_mut(handle), first, second);
    handle
}

fn write_pair(out: &mut [u8], first: &[u8], second: &[u8]) {
    let mut at = write_length(out, first.len());
    at += write_length(&mut out[at..], second.len());
    out[at..at + first.len()].copy_from_slice(first);
    at += first.len();
    out[at..at + second.len()].copy_from_slice(second);
}

/// The texts of a record of two.
#[inline]
pub(crate) fn pair(pool: &Pool, handle: Handle) -> (&[u8], &[u8]) {
    read_pair(pool.get(handle))
}

#[inline]
fn read_pair(bytes: &[u8]) -> (&[u8], &[u8]) {
    let (first, mut at) = read_length(bytes);
    let (second, more) = read_length(&bytes[at..]);
    at += more;
    (&bytes[at..at + first], &bytes[at + first..at + first + second])
}

/// Changes the second text of a record whose first is `first`; the record may get another handle.
pub(crate) fn set_second(pool: &mut Pool, handle: Handle, first: &[u8], second: &[u8]) -> Handle {
    let handle = pool.resize(handle, pair_bytes(first, second));
    write_pair(pool.get_mut(handle), first, second);
    handle
}

/// A field of a hash that may have a deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
    /// Milliseconds since the Unix epoch.
    pub(crate) deadline: Option<i64>,
}

impl Field<'_> {
    fn bytes(&self) -> usize {
        pair_bytes(self.name, self.value) + if self.deadline.is_some() { DEADLINE_BYTES } else { 0 }
    }

    fn write(&self, out: &mut [u8]) {
        let out = match self.deadline {
            Some(deadline) => {
                write_deadline(out, deadline);
                &mut out[DEADLINE_BYTES..]
            }
            None => out,
        };
        write_pair(out, self.name, self.value);
    }
}

fn write_deadline(out: &mut [u8], deadline: i64) {
    out[..MARK.len()].copy_from_slice(&MARK);
    out[MARK.len()..DEADLINE_BYTES].copy_from_slice(&deadline.to_le_bytes());
}

/// A record of a field.
pub(crate) fn new_field(pool: &mut Pool, field: Field<'_>) -> Handle {
    let handle = pool.alloc(field.bytes());
    field.write(pool.get_mut(handle));
    handle
}

/// The field of a record that is one, or a pair.
pub(crate) fn field(pool: &Pool, handle: Handle) -> Field<'_> {
    let bytes = pool.get(handle);
    let deadline =
        bytes.strip_prefix(&MARK).and_then(|rest| rest.first_chunk()).map(|bytes| i64::from_le_bytes(*bytes));
    let (name, value) = read_pair(if deadline.is_some() { &bytes[DEADLINE_BYTES..] } else { bytes });
    Field { name, value, deadline }
}

/// Replaces a field of the same name; the record may get another handle.
pub(crate) fn set_field(pool: &mut Pool, handle: Handle, field: Field<'_>) -> Handle {
    let handle = pool.resize(handle, field.bytes());
    field.write(pool.get_mut(handle));
    handle
}

/// Changes the deadline of a field and nothing else; the record may get another handle.
pub(crate) fn set_field_deadline(pool: &mut Pool, handle: Handle, deadline: Option<i64>) -> Handle {
    let old = field(pool, handle);
    let (has_one, len) = (old.deadline.is_some(), pair_bytes(old.name, old.value));
    match (has_one, deadline) {
        (false, None) => handle,
        (true, None) => {
            pool.get_mut(handle).copy_within(DEADLINE_BYTES..DEADLINE_BYTES + len, 0);
            pool.resize(handle, len)
        }
        (_, Some(deadline)) => {
            let handle = if has_one { handle } else { pool.resize(handle, DEADLINE_BYTES + len) };
            let bytes = pool.get_mut(handle);
            if !has_one {
                bytes.copy_within(..len, DEADLINE_BYTES);
            }
            write_deadline(bytes, deadline);
            handle
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_texts_when_deadlines_change() {
        let mut pool = Pool::default();
        for (name, value) in [(0, 0), (1, 0), (0, 9), (127, 128), (300, 205), (300, 206), (505, 4), (520, 16_384)] {
            let (name, value) = (vec![7; name], vec![9; value]);
            let plain = Field { name: &name, value: &value, deadline: None };
            let mut handle = new_pair(&mut pool, &name, &value);
            for deadline in [None, Some(5), Some(i64::MAX), None, None, Some(0)] {
                handle = set_field_deadline(&mut pool, handle, deadline);
                assert_eq!(field(&pool, handle), Field { deadline, ..plain });
            }
            let other = Field { name: &name, value: b"other", deadline: Some(3) };
            handle = set_field(&mut pool, handle, other);
            assert_eq!(field(&pool, handle), other);
            let fresh = new_field(&mut pool, Field { deadline: Some(-1), ..plain });
            assert_eq!(field(&pool, fresh).deadline, Some(-1));
            pool.free(fresh);
            pool.free(handle);
        }
    }

    #[test]
    fn records_give_back_what_was_put_in() {
        let mut pool = Pool::default();
        for len in [0, 1, 127, 128, 500, 520, 16_383, 16_384, 2_097_152] {
            let (short, long) = (vec![7; len / 2], vec![9; len]);
            let one = new_text(&mut pool, &long);
            assert_eq!(text(&pool, one), long);
            let scored = new_scored(&mut pool, 2.5, &long);
            set_score(&mut pool, scored, -0.5);
            assert_eq!((score(&pool, scored), scored_text(&pool, scored)), (-0.5, &long[..]));
            let two = new_pair(&mut pool, &short, &long);
            assert_eq!(pair(&pool, two), (&short[..], &long[..]));
            let two = set_second(&mut pool, two, &short, b"other");
            assert_eq!(pair(&pool, two), (&short[..], &b"other"[..]));
        }
    }
}
