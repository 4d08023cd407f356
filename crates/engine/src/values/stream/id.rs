//! The id of an entry: milliseconds and a number within them, ordered as one number of 128 bits.

use crate::number::integer;
use respool_command::words::until_nul;

/// See the module documentation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Id {
    pub(crate) ms: u64,
    pub(crate) seq: u64,
}

/// The greatest length of an argument that is an id: the size of Redis's buffer.
const TEXT_BYTES_MAX: usize = 127;
/// Digits of the largest number of 64 bits.
const DIGITS_MAX: usize = 20;

impl Id {
    /// The least id, which no entry has.
    pub(crate) const MIN: Self = Self { ms: 0, seq: 0 };
    /// The greatest id.
    pub(crate) const MAX: Self = Self { ms: u64::MAX, seq: u64::MAX };

    /// The id as one number.
    pub(crate) fn number(self) -> u128 {
        u128::from(self.ms) << 64 | u128::from(self.seq)
    }

    /// The id that is this number.
    pub(crate) fn of_number(number: u128) -> Self {
        Self { ms: (number >> 64) as u64, seq: number as u64 }
    }

    /// The next id; `None` after the greatest.
    pub(crate) fn next(self) -> Option<Self> {
        self.number().checked_add(1).map(Self::of_number)
    }

    /// The previous id; `None` before the least.
    pub(crate) fn previous(self) -> Option<Self> {
        self.number().checked_sub(1).map(Self::of_number)
    }

    /// How far this id is from `master`, by its two parts. Differences are kept as signed numbers, as in Redis.
    pub(super) fn distance(self, master: Self) -> (i64, i64) {
        (self.ms.wrapping_sub(master.ms) as i64, self.seq.wrapping_sub(master.seq) as i64)
    }

    /// The id that is so far from `master`.
    #[inline]
    pub(super) fn at_distance(master: Self, ms: i64, seq: i64) -> Self {
        Self { ms: master.ms.wrapping_add(ms as u64), seq: master.seq.wrapping_add(seq as u64) }
    }

    /// The text `ms-seq`.
    pub(crate) fn text(self) -> IdText {
        let mut text = IdText { bytes: [0; 2 * DIGITS_MAX + 1], start: 2 * DIGITS_MAX as u8 + 1 };
        text.write(self.seq);
        text.put(b'-');
        text.write(self.ms);
        text
    }
}

/// The text of one id, on the stack; written from its end.
pub(crate) struct IdText {
    bytes: [u8; 2 * DIGITS_MAX + 1],
    start: u8,
}

impl IdText {
    fn put(&mut self, byte: u8) {
        self.start -= 1;
        self.bytes[usize::from(self.start)] = byte;
    }

    fn write(&mut self, mut value: u64) {
        loop {
            self.put(b'0' + (value % 10) as u8);
            value /= 10;
            if value == 0 {
                return;
            }
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

/// An id as the client wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub(crate) ms: u64,
    /// `None`: it is missing.
    pub(crate) seq: Option<Seq>,
}

/// The sequence number of an id as the client wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seq {
    Number(u64),
    /// `*`: the server generates it.
    Any,
}

/// Reads `ms`, `ms-seq` or `ms-*`.
pub(crate) fn parse(text: &[u8]) -> Option<Said> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let text = until_nul(text);
    let Some(dash) = text.iter().position(|&byte| byte == b'-') else {
        return Some(Said { ms: unsigned(text)?, seq: None });
    };
    let (ms, seq) = (unsigned(&text[..dash])?, &text[dash + 1..]);
    let seq = if seq == b"*" { Seq::Any } else { Seq::Number(unsigned(seq)?) };
    Some(Said { ms, seq: Some(seq) })
}

/// Parses an unsigned number as Redis does: strictly at first, and otherwise as `strtoull`, with leading spaces, a sign and
/// leading zeros.
fn unsigned(text: &[u8]) -> Option<u64> {
    if let Some(value) = integer::parse(text) {
        return u64::try_from(value).ok();
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let text = &text[text.iter().take_while(|byte| is_space(byte)).count()..];
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for byte in digits {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value = value.checked_mul(10)?.checked_add(digit)?;
    }
    Some(if is_negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_text_and_neighbours() {
        for (ms, seq, text) in
            [(0, 0, "0-0"), (5, 17, "5-17"), (u64::MAX, u64::MAX, "18446744073709551615-18446744073709551615")]
        {
            let id = Id { ms, seq };
            assert_eq!(id.text().as_bytes(), text.as_bytes());
            assert_eq!(parse(text.as_bytes()), Some(Said { ms, seq: Some(Seq::Number(seq)) }));
            assert_eq!(Id::of_number(id.number()), id);
        }
        assert_eq!((Id::MIN.previous(), Id::MAX.next()), (None, None));
        assert_eq!(Id { ms: 1, seq: u64::MAX }.next(), Some(Id { ms: 2, seq: 0 }));
        assert_eq!(Id { ms: 2, seq: 0 }.previous(), Some(Id { ms: 1, seq: u64::MAX }));
    }

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let said = |text: &str| parse(text.as_bytes());
        assert_eq!(said("7"), Some(Said { ms: 7, seq: None }));
        assert_eq!(said("7-*"), Some(Said { ms: 7, seq: Some(Seq::Any) }));
        assert_eq!(said("+7- 08"), Some(Said { ms: 7, seq: Some(Seq::Number(8)) }));
        assert_eq!(said("7--03"), Some(Said { ms: 7, seq: Some(Seq::Number(u64::MAX - 2)) }));
        assert_eq!(said("7\0x"), Some(Said { ms: 7, seq: None }));
        let long = "1".repeat(128);
        for text in ["", "-", "+", "-7", "7-", "*", "7-x", "7--3", "x", "7-1-1", "18446744073709551616", "7 ", &long] {
            assert_eq!(said(text), None, "{text}");
        }
    }
}
