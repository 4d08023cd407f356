//! Durations and sizes with their units: `500ms`, `64mb`.
//!
//! Durations always need a unit. Sizes may be plain bytes; `kb`, `mb`, `gb` are powers of 1024, as in redis.conf.
//! Redis' short forms `64m` (a power of 1000) are refused: half of the people who write them mean the other thing.

use std::time::Duration;

const DURATIONS: [(&str, u64); 6] =
    [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000), ("d", 86_400_000_000)];

const SIZES: [(&str, u64); 8] = [
    ("", 1),
    ("b", 1),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
];

/// Reads a duration: a whole number and one of us, ms, s, m, h, d.
///
/// # Errors
/// Says what a duration looks like.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let explain = || "a duration is a whole number with a unit (us, ms, s, m, h, d), such as 500ms".to_owned();
    scaled(text, &DURATIONS).map(Duration::from_micros).ok_or_else(explain)
}

/// Reads a number of bytes: a whole number, alone or with one of b, kb, mb, gb (powers of 1024).
///
/// # Errors
/// Says what a size looks like.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    scaled(text, &SIZES).ok_or_else(|| {
        let short = matches!(text.trim_start_matches(|c: char| c.is_ascii_digit()), "k" | "m" | "g" | "K" | "M" | "G");
        let rule = "a size is a whole number of bytes, or one with kb, mb or gb (powers of 1024)";
        if short { format!("{rule}; did you mean {text}b?") } else { format!("{rule}, such as 64mb") }
    })
}

fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (_, scale) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    digits.parse::<u64>().ok()?.checked_mul(*scale)
}

/// Writes a duration with the largest unit that divides it.
#[must_use]
pub fn duration(time: Duration) -> String {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let fits = |(_, scale): &&(&str, u64)| micros.is_multiple_of(*scale) && micros >= *scale;
    let (unit, scale) = DURATIONS.iter().rev().find(fits).unwrap_or(&DURATIONS[2]);
    format!("{}{unit}", micros / scale)
}

/// Writes a number of bytes with the largest unit that divides it.
#[must_use]
pub fn bytes(count: u64) -> String {
    let fits = |(_, scale): &&(&str, u64)| count.is_multiple_of(*scale) && count >= *scale;
    let (unit, scale) = SIZES[1..5].iter().rev().find(fits).unwrap_or(&SIZES[1]);
    format!("{}{unit}", count / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, time, canonical) in [
            ("500ms", Duration::from_millis(500), "500ms"),
            ("1000ms", Duration::from_secs(1), "1s"),
            ("90s", Duration::from_secs(90), "90s"),
            ("5M", Duration::from_secs(300), "5m"),
            ("0s", Duration::ZERO, "0s"),
            ("24h", Duration::from_secs(86_400), "1d"),
        ] {
            assert_eq!(parse_duration(text), Ok(time), "{text}");
            assert_eq!(duration(time), canonical, "{text}");
        }
        for text in ["", "5", "ms", "-5s", "+5s", "1.5s", "5 s", "5sec", "18446744073709551615d", "5s5s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, count, canonical) in [
            ("64mb", 64 << 20, "64mb"),
            ("64MB", 64 << 20, "64mb"),
            ("64MiB", 64 << 20, "64mb"),
            ("1024", 1024, "1kb"),
            ("1025b", 1025, "1025b"),
            ("0", 0, "0b"),
        ] {
            assert_eq!(parse_bytes(text), Ok(count), "{text}");
            assert_eq!(bytes(count), canonical, "{text}");
        }
        for text in ["", "mb", "-1", "1tb", "1.5gb", "99999999999gb", "64 mb"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_ambiguous_size_is_refused_with_the_likely_word() {
        assert!(parse_bytes("64m").unwrap_err().ends_with("did you mean 64mb?"));
        assert!(parse_bytes("1G").unwrap_err().ends_with("did you mean 1Gb?"));
    }
}
