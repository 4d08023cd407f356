//! Numbers as C prints and reads them: `%.14g` and `strtod`.

use crate::number::integer::IntegerText;

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
    if digits == SHORT_DIGITS && short(number, out) {
        return;
    }
    exactly(number, digits, out);
}

fn exactly(number: f64, digits: usize, out: &mut Vec<u8>) {
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

/// Digits that scripts ask for, unless they set something else.
const SHORT_DIGITS: usize = 14;

/// Prints a number that is written with few digits, as most are. False: it is not.
///
/// Fourteen digits name one double, so if the double nearest to a decimal of so many is this number, that decimal is what it prints as.
fn short(number: f64, out: &mut Vec<u8>) -> bool {
    const LEAST: f64 = 1e-4;
    const BELOW: f64 = 1e14;
    let magnitude = number.abs();
    if magnitude < LEAST && magnitude != 0.0 {
        return false;
    }
    for (places, scale) in [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6].into_iter().enumerate() {
        let scaled = (magnitude * scale).round();
        if scaled >= BELOW {
            return false;
        }
        if scaled / scale != magnitude {
            continue;
        }
        if number.is_sign_negative() {
            out.push(b'-');
        }
        let (whole, fraction) = (scaled as u64 / scale as u64, scaled as u64 % scale as u64);
        out.extend_from_slice(IntegerText::new(whole as i64).as_bytes());
        if places > 0 {
            out.push(b'.');
            let digits = IntegerText::new(fraction as i64);
            out.resize(out.len() + places - digits.as_bytes().len(), b'0');
            out.extend_from_slice(digits.as_bytes());
        }
        return true;
    }
    false
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
    // Integers that a double holds exactly, which most are.
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_whole = !matches!(rest.get(digits), Some(b'.' | b'e' | b'E' | b'x' | b'X'));
    if (1..=15).contains(&digits) && is_whole {
        let whole = rest[..digits].iter().fold(0_u64, |all, digit| all * 10 + u64::from(digit - b'0'));
        return Some((signed(whole as f64), sign + digits));
    }
    let is_word = |word: &[u8]| rest.len() >= word.len() && rest[..word.len()].eq_ignore_ascii_case(word);
    for (word, number) in [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY)] {
        if is_word(word) {
            return Some((signed(number), sign + word.len()));
        }
    }
    if is_word(b"nan") {
        return Some((signed(f64::NAN), sign + 3 + payload(&rest[3..])));
    }
    let count = |from: usize, is_digit: fn(&u8) -> bool| rest[from..].iter().take_while(|byte| is_digit(byte)).count();
    if is_word(b"0x")
        && let Some((number, length)) = hexadecimal(&rest[2..])
    {
        return Some((signed(number), sign + 2 + length));
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

/// How long the part in brackets is that C takes as part of `nan`.
fn payload(text: &[u8]) -> usize {
    let Some(inner) = text.strip_prefix(b"(") else { return 0 };
    let length = inner.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    if inner.get(length) == Some(&b')') { length + 2 } else { 0 }
}

/// A number behind `0x`, as C's `strtod` reads it, and how long it is.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize)> {
    let digits =
        |from: usize| text.get(from..).unwrap_or_default().iter().map_while(|byte| char::from(*byte).to_digit(16));
    let (mut bits, mut exponent) = (0_u64, 0_i32);
    // Of digits behind those that fit it only counts how many there are, and for rounding whether all are zero.
    let mut add = |digit: u32| match bits >> 60 {
        0 => bits = bits << 4 | u64::from(digit),
        _ => {
            bits |= u64::from(digit > 0);
            exponent = exponent.saturating_add(4);
        }
    };
    let whole = digits(0).map(&mut add).count();
    let fraction = if text.get(whole) == Some(&b'.') { digits(whole + 1).map(&mut add).count() } else { 0 };
    if whole + fraction == 0 {
        return None;
    }
    let mut end = if text.get(whole) == Some(&b'.') { whole + 1 + fraction } else { whole };
    exponent = exponent.saturating_sub(i32::try_from(fraction).unwrap_or(i32::MAX).saturating_mul(4));
    if let Some(b'p' | b'P') = text.get(end) {
        let is_negative = text.get(end + 1) == Some(&b'-');
        let start = end + 1 + usize::from(matches!(text.get(end + 1), Some(b'-' | b'+')));
        let length = text.get(start..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length > 0 {
            let number = std::str::from_utf8(&text[start..start + length]).ok()?.parse().unwrap_or(i32::MAX);
            exponent = exponent.saturating_add(if is_negative { -number } else { number });
            end = start + length;
        }
    }
    // In two halves: one alone may be beyond what a double holds although the product is not.
    let half = exponent / 2;
    let number = if bits == 0 { 0.0 } else { bits as f64 * 2_f64.powi(half) * 2_f64.powi(exponent - half) };
    Some((number, end))
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
            (-0.0, "-0"),
            (3.75, "3.75"),
            (-0.5, "-0.5"),
            (1.000001, "1.000001"),
            (10.05, "10.05"),
            (0.1 + 0.2, "0.3"),
            (0.00010005, "0.00010005"),
            (99999999.999999, "99999999.999999"),
            (9999999999999.5, "9999999999999.5"),
            (4.35, "4.35"),
            (1e13 / 3.0, "3333333333333.3"),
        ] {
            let mut out = Vec::new();
            general(number, 14, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }

    #[test]
    fn short_numbers_are_printed_as_others_are() {
        let mut state = 1_u64;
        for _ in 0..50_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (digits, places) = ((state >> 20) % 10_u64.pow((state >> 58) as u32 % 16), (state >> 10 & 7) as i32);
            let number = digits as f64 / 10_f64.powi(places);
            let (mut short, mut long) = (Vec::new(), Vec::new());
            general(number, 14, &mut short);
            exactly(number, 14, &mut long);
            assert_eq!(String::from_utf8_lossy(&short), String::from_utf8_lossy(&long));
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
            ("0x1p4,", Some((16.0, 5))),
            ("-0x.8p-1", Some((-0.25, 8))),
            ("0x1.8p", Some((1.5, 5))),
            ("0xg", Some((0.0, 1))),
            ("0x1p99999999999", Some((f64::INFINITY, 15))),
            ("0x0p99999999999", Some((0.0, 15))),
            ("0x1p-99999999999", Some((0.0, 16))),
            ("0x1000000000000081", Some((1_152_921_504_606_847_232.0, 18))),
            ("0x10000000000000801", Some((18_446_744_073_709_555_712.0, 19))),
            ("0x1000000000000008", Some((1_152_921_504_606_846_976.0, 18))),
            ("0x.8x", Some((0.5, 4))),
            ("0x1.", Some((1.0, 4))),
            ("0x.", Some((0.0, 1))),
            ("-inf", Some((f64::NEG_INFINITY, 4))),
            ("-", None),
            (".", None),
            ("x", None),
        ] {
            assert_eq!(read_number(text.as_bytes()), expected, "{text}");
        }
    }
}
