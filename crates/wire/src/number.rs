//! Integers as RESP writes them, parsed and printed by hand.
//!
//! Heads are a few bytes long, so a loop over digits beats every general parser; see `benches/wire.rs`.

/// What the bytes behind a type byte hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberLine {
    /// A canonical integer and CR LF; `width` counts both.
    Whole { value: i64, width: usize },
    /// The start of one.
    Incomplete,
    /// Bytes that can never become one.
    Invalid,
}

/// Reads a type byte, a canonical non-negative integer of at most five digits and CR LF from the start of `bytes`: nearly
/// every head there is. Gives the value and the bytes taken. `None` says nothing, ask [`number_line`].
///
/// One load and a few compares on the word; testing byte by byte takes twice as many instructions (`reply_bulk`,
/// `request_get` in `benches/wire.rs`). Wants eight bytes, which all but the shortest message has behind its last head.
#[inline(always)]
pub(crate) fn short_head(of: u8, bytes: &[u8]) -> Option<(usize, usize)> {
    let word = u64::from_le_bytes(*bytes.first_chunk()?);
    let of = u64::from(of);
    // XOR with the expected bytes leaves only the value of the digit. The rotation moves differing bytes to the top, so
    // that one comparison checks the frame and the digit.
    let one = (word ^ (of | ZERO << 8 | CRLF << 16)) as u32;
    let one = one.rotate_right(8);
    if one < 10 {
        return Some((one as usize, 4));
    }
    let two = (word ^ (of | ZERO << 8 | ZERO << 16 | CRLF << 24)) << 24;
    let two = two.rotate_right(32);
    let first = two & 0xff;
    if two < 10 << 8 && first.wrapping_sub(1) < 9 {
        return Some(((first * 10 + (two >> 8)) as usize, 5));
    }
    if word & 0xff != of || (word >> 8 & 0xff).wrapping_sub(ZERO + 1) >= 9 {
        return None;
    }
    digits_and_crlf(word >> 8)
}

const ZERO: u64 = b'0' as u64;

const CRLF: u64 = u16::from_le_bytes(*b"\r\n") as u64;

/// The value of the three to five digits in the low bytes of `word`, the first not zero, if CR LF follows; and the width of the
/// head that they make with a type byte.
#[inline(always)]
fn digits_and_crlf(word: u64) -> Option<(usize, usize)> {
    // Digits become their values, and adding 0x76 sets the top bit of whatever is no digit. Bytes behind the first such may be
    // wrong by a carry, but only the first counts.
    let values = word ^ 0x3030_3030_3030_3030;
    let odd = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let digits = odd.trailing_zeros() / 8;
    if !(3..=5).contains(&digits) || word >> (8 * digits) & 0xffff != CRLF {
        return None;
    }
    // Eight digits, the missing ones in front zero: first pairs of digits, then all pairs weighted and summed in one half.
    let eight = values << (64 - 8 * digits);
    let pairs = eight.wrapping_mul(10).wrapping_add(eight >> 8);
    let upper = (pairs & 0xff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & 0xff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some(((upper.wrapping_add(lower) >> 32) as usize, digits as usize + 3))
}

/// Reads a canonical integer (no `+`, no leading zero, no `-0`, within 64 bits) and its CR LF from the start of `bytes`.
/// Looks at no more than 22 bytes, so calling it again for an unfinished head is not a rescan worth remembering.
pub(crate) fn number_line(bytes: &[u8]) -> NumberLine {
    let (is_negative, text) = match bytes {
        [b'-', text @ ..] => (true, text),
        text => (false, text),
    };
    let mut magnitude: u64 = 0;
    let mut digits = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if digits == SAFE_DIGITS {
            return NumberLine::Invalid;
        }
        magnitude = magnitude * 10 + u64::from(digit);
        digits += 1;
    }
    let has_odd_zero = text.first() == Some(&b'0') && (is_negative || digits > 1);
    if has_odd_zero || magnitude > i64::MAX as u64 + u64::from(is_negative) {
        return NumberLine::Invalid;
    }
    match text.get(digits..) {
        None | Some([]) => NumberLine::Incomplete,
        Some([b'\r']) if digits > 0 => NumberLine::Incomplete,
        Some([b'\r', b'\n', ..]) if digits > 0 => {
            NumberLine::Whole { value: signed(magnitude, is_negative), width: usize::from(is_negative) + digits + 2 }
        }
        Some(_) => NumberLine::Invalid,
    }
}

/// Decimal digits of which every sequence fits 64 unsigned bits.
const SAFE_DIGITS: usize = 19;

/// The canonical integer that is all of `text`, if it is one: what Redis takes for a number.
pub(crate) fn number(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let magnitude = match digits {
        [b'0'] if !is_negative => 0,
        [b'1'..=b'9', ..] => digits.iter().try_fold(0, |sum, &digit| append_digit(sum, digit, is_negative))?,
        _ => return None,
    };
    Some(signed(magnitude, is_negative))
}

/// `magnitude` with one more decimal digit, if `digit` is one and the result fits 64 signed bits.
#[inline]
pub(crate) fn append_digit(magnitude: u64, digit: u8, is_negative: bool) -> Option<u64> {
    let digit = digit.wrapping_sub(b'0');
    let grown = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
    (digit < 10 && grown <= i64::MAX as u64 + u64::from(is_negative)).then_some(grown)
}

/// The value of a magnitude that [`append_digit`] made.
#[inline]
pub(crate) fn signed(magnitude: u64, is_negative: bool) -> i64 {
    if is_negative { (magnitude as i64).wrapping_neg() } else { magnitude as i64 }
}

/// Bytes that the longest 64-bit integer takes with its sign.
pub(crate) const DIGITS_MAX: usize = 20;

/// A printed integer on the stack.
pub(crate) struct Digits {
    bytes: [u8; DIGITS_MAX],
    start: usize,
}

impl Digits {
    /// Prints an unsigned integer.
    #[inline]
    pub(crate) fn unsigned(value: u64) -> Self {
        let mut digits = Self { bytes: [0; DIGITS_MAX], start: DIGITS_MAX };
        digits.print(value);
        digits
    }

    /// Prints a signed integer.
    #[inline]
    pub(crate) fn signed(value: i64) -> Self {
        let mut digits = Self::unsigned(value.unsigned_abs());
        if value < 0 {
            digits.put(b'-');
        }
        digits
    }

    /// The text.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    #[inline]
    fn print(&mut self, mut value: u64) {
        while value >= 10 {
            self.put(b'0' + (value % 10) as u8);
            value /= 10;
        }
        self.put(b'0' + value as u8);
    }

    #[inline]
    fn put(&mut self, byte: u8) {
        self.start = self.start.saturating_sub(1);
        if let Some(place) = self.bytes.get_mut(self.start) {
            *place = byte;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANONICAL: [i64; 12] = [0, 1, 9, 10, 99, 100, -1, -9, -10, i64::MAX, i64::MIN, i32::MAX as i64 + 1];

    #[test]
    fn canonical_integers_are_read_back_from_their_text() {
        for value in CANONICAL {
            let text = value.to_string();
            assert_eq!(number(text.as_bytes()), Some(value));
            assert_eq!(Digits::signed(value).as_bytes(), text.as_bytes());
            let line = format!("{text}\r\n");
            let whole = NumberLine::Whole { value, width: line.len() };
            assert_eq!(number_line(format!("{line}rest").as_bytes()), whole);
            for cut in 0..line.len() {
                assert_eq!(number_line(&line.as_bytes()[..cut]), NumberLine::Incomplete, "{line:?} cut at {cut}");
            }
        }
        assert_eq!(Digits::unsigned(u64::MAX).as_bytes(), u64::MAX.to_string().as_bytes());
    }

    #[test]
    fn everything_else_is_no_integer() {
        let odd = ["", "-", "+1", "01", "-0", "00", " 1", "1 ", "1a", "0x1", "-01", "9223372036854775808"];
        for text in odd.iter().chain(&["-9223372036854775809", "99999999999999999999", "1-", "--1"]) {
            assert_eq!(number(text.as_bytes()), None, "{text:?}");
            assert_eq!(number_line(format!("{text}\r\n").as_bytes()), NumberLine::Invalid, "{text:?}");
        }
        for line in ["1\n", "1\rx", "1\r\r\n", "\r\n", "\n"] {
            assert_eq!(number_line(line.as_bytes()), NumberLine::Invalid, "{line:?}");
        }
    }

    #[test]
    fn short_heads_agree_with_long_ones() {
        for value in 0..100_000 {
            let head = format!("${value}\r\n");
            let bytes = format!("{head}\r\n9~");
            assert_eq!(short_head(b'$', bytes.as_bytes()), Some((value, head.len())));
        }
        for bytes in
            ["$12\r\nab", "*12\r\nabc", "$012\r\nab", "$123456\r\n", "$-1\r\n+OK\r\n", "$\r\n+OK\r\n", "$?\r\nabcdef"]
        {
            assert_eq!(short_head(b'$', bytes.as_bytes()), None, "{bytes:?}");
        }
    }

    #[test]
    fn what_short_heads_take_is_always_a_head() {
        // Every pair of bytes in every place of heads of one to five digits.
        for digits in 1..=5 {
            let head = [b"$".as_slice(), &b"12345"[..digits], b"\r\n12345"].concat();
            for (place, first, second) in
                (0..7).flat_map(|at| (0..=255).flat_map(move |a| (0..=255).map(move |b| (at, a, b))))
            {
                let mut bytes = head.clone();
                bytes[place] = first;
                bytes[place + 1] = second;
                let expected = match number_line(&bytes[1..]) {
                    NumberLine::Whole { value: value @ 0..=99_999, width } if bytes[0] == b'$' => {
                        Some((value as usize, width + 1))
                    }
                    _ => None,
                };
                assert_eq!(short_head(b'$', &bytes), expected, "{}", bytes.escape_ascii());
            }
        }
    }
}
