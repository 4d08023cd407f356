//! Integers as text: strict as Redis, so that one number has one text.

/// Digits and sign of the longest 64-bit integer.
pub(crate) const TEXT_BYTES_MAX: usize = 20;

/// The integer that `text` is the only text of: no sign but a minus, no leading zero, no space, no overflow.
#[inline]
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() < TEXT_BYTES_MAX => {}
        _ => return None,
    }
    let mut magnitude = 0_u64;
    for &digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(value))?;
    }
    if is_negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The text of one integer, on the stack.
pub(crate) struct IntegerText {
    bytes: [u8; TEXT_BYTES_MAX],
    start: u8,
}

impl IntegerText {
    /// Writes `value` in base ten.
    #[inline]
    pub(crate) fn new(value: i64) -> Self {
        let mut bytes = [0; TEXT_BYTES_MAX];
        let mut start = TEXT_BYTES_MAX;
        let mut magnitude = value.unsigned_abs();
        loop {
            start -= 1;
            bytes[start] = b'0' + (magnitude % 10) as u8;
            magnitude /= 10;
            if magnitude == 0 {
                break;
            }
        }
        if value < 0 {
            start -= 1;
            bytes[start] = b'-';
        }
        Self { bytes, start: start as u8 }
    }

    /// The digits.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[usize::from(self.start)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_are_one_to_one() {
        for value in [0, 1, -1, 9, 10, -10, 12_345, i64::MAX, i64::MIN, i64::MAX - 1, i64::MIN + 1, 1 << 31, 1 << 32] {
            assert_eq!(IntegerText::new(value).as_bytes(), value.to_string().as_bytes());
            assert_eq!(parse(value.to_string().as_bytes()), Some(value));
        }
    }

    #[test]
    fn other_spellings_are_no_integers() {
        let refused =
            ["", "-", "+1", "01", "-0", "00", " 1", "1 ", "1.0", "9223372036854775808", "-9223372036854775809"];
        for text in refused.into_iter().chain(["123456789012345678901", "1e3", "0x10", "--1", "1-"]) {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
