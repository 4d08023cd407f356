//! Numbers as C prints and reads them: `%.14g` and `strtod`.

/// Prints a number with so many digits, as C's `%.*g`.
pub(super) fn general(number: f64, digits: usize, out: &mut Vec<u8>) {
    if !number.is_finite() {
        let text = if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        };
        return out.extend_from_slice(text.as_bytes());
    }
    let scientific = format!("{:.*e}", digits.max(1) - 1, number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= digits as i32 {
        let mantissa = if mantissa.contains('.') { trimmed(mantissa) } else { mantissa };
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
    } else {
        let places = usize::try_from(digits as i32 - 1 - exponent).unwrap_or_default();
        let text = format!("{number:.places$}");
        out.extend_from_slice(if text.contains('.') { trimmed(&text) } else { &text }.as_bytes());
    }
}

fn trimmed(text: &str) -> &str {
    text.trim_end_matches('0').trim_end_matches('.')
}

/// Reads the number at the start of a text, as C's `strtod` does. Result: the number, and how much of the text it is.
pub(super) fn read_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let is_negative = text.first() == Some(&b'-');
    let signed = |number: f64| if is_negative { -number } else { number };
    let rest = &text[sign..];
    let is_word = |word: &[u8]| rest.len() >= word.len() && rest[..word.len()].eq_ignore_ascii_case(word);
    for (word, number) in [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY), (b"nan", f64::NAN)] {
        if is_word(word) {
            return Some((signed(number), sign + word.len()));
        }
    }
    let count = |from: usize, is_digit: fn(&u8) -> bool| rest[from..].iter().take_while(|byte| is_digit(byte)).count();
    if is_word(b"0x") {
        let digits = count(2, u8::is_ascii_hexdigit);
        if digits > 0 {
            let value = rest[2..2 + digits]
                .iter()
                .fold(0.0, |all, &digit| all * 16.0 + f64::from(char::from(digit).to_digit(16).unwrap_or_default()));
            return Some((signed(value), sign + 2 + digits));
        }
    }
    let whole = count(0, u8::is_ascii_digit);
    let mut end = whole;
    let mut fraction = 0;
    if rest.get(end) == Some(&b'.') {
        fraction = count(end + 1, u8::is_ascii_digit);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(rest.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(end + 1), Some(b'-' | b'+')));
        let digits = rest.get(end + 1 + sign..).map_or(0, |_| count(end + 1 + sign, u8::is_ascii_digit));
        if digits > 0 {
            end += 1 + sign + digits;
        }
    }
    let number = std::str::from_utf8(&rest[..end]).ok()?.trim_end_matches('.').parse::<f64>().ok()?;
    Some((signed(number), sign + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_c_does() {
        for (number, expected) in [
            (0.0, "0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1, "0.1"),
            (1e14, "1e+14"),
            (123456789012345.0, "1.2345678901234e+14"),
            (99999999999999.0, "99999999999999"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1e300, "1e+300"),
            (f64::NEG_INFINITY, "-inf"),
            (2.66666666666666, "2.6666666666667"),
        ] {
            let mut out = Vec::new();
            general(number, 14, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }

    #[test]
    fn numbers_are_read_as_far_as_they_go() {
        for (text, expected) in [
            ("1.5e2x", Some((150.0, 5))),
            ("-7,", Some((-7.0, 2))),
            ("1e", Some((1.0, 1))),
            ("5.", Some((5.0, 2))),
            (".5", Some((0.5, 2))),
            ("0x1F ", Some((31.0, 4))),
            ("-inf", Some((f64::NEG_INFINITY, 4))),
            ("-", None),
            (".", None),
            ("x", None),
        ] {
            assert_eq!(read_number(text.as_bytes()), expected, "{text}");
        }
    }
}
