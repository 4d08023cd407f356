//! Integers as clients and nodes write them.

/// An integer as Redis reads one: no blanks, no plus sign, no leading zeros.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if is_canonical { std::str::from_utf8(text).ok()?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn integers_are_read_as_redis_reads_them() {
        for (text, value) in [("0", 0), ("7", 7), ("-7", -7), ("9223372036854775807", i64::MAX)] {
            assert_eq!(integer(text.as_bytes()), Some(value));
        }
        for text in ["", "-", "+1", "01", "-0", " 1", "1 ", "9223372036854775808", "x"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }
}
