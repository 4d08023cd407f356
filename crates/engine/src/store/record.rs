//! The records of collections: one text (a member), two texts (a field and its value), or a score and a text.
//!
//! Lengths are written seven bits at a time, the low ones first; a score is eight bytes in front.

use super::pool::{Handle, Pool};

/// Bytes of a score.
const SCORE_BYTES: usize = 8;

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
    let bytes = pool.get(handle);
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

#[cfg(test)]
mod tests {
    use super::*;

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
