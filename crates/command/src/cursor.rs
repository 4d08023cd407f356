//! The cursor of SCAN and its kin, as a request spells it.

/// The unsigned integer that `text` spells, as C's `strtoul` reads a string in base ten: nothing at all is zero, and what
/// stands behind a NUL is not seen.
pub fn parse_cursor(text: &[u8]) -> Option<u64> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    let (is_negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let value = digits.iter().try_fold(0_u64, |value, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })?;
    (!digits.is_empty()).then_some(if is_negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::parse_cursor;

    #[test]
    fn cursors_are_read_as_c_reads_numbers() {
        for (text, value) in [("0", 0), ("", 0), ("17", 17), ("+5", 5), ("-1", u64::MAX), ("007", 7), ("5\0x", 5)] {
            assert_eq!(parse_cursor(text.as_bytes()), Some(value), "{text}");
        }
        assert_eq!(parse_cursor(b"18446744073709551615"), Some(u64::MAX));
        for text in ["x", "-", " 1", "1 ", "18446744073709551616", "1.0"] {
            assert_eq!(parse_cursor(text.as_bytes()), None, "{text}");
        }
    }
}
