//! Doubles as Redis reads them, which is as C's `strtod` does.

use rustc_apfloat::Float;
use rustc_apfloat::ieee::Double;

/// Reads a double that is all of `text`: what `ZADD`, `ZINCRBY` and `SORT` take. Refuses NaN, leading space, and what a
/// double cannot hold (too large, or so small that it becomes zero).
pub(crate) fn parse(text: &[u8]) -> Option<f64> {
    let value = parse_c(text)?;
    (!is_out_of_range(text, value)).then_some(value)
}

/// Reads a bound of a score range, without the `(` that excludes it. More is let through than in [`parse`], because Redis
/// looks at it as a C string: leading space, nothing at all (zero), and whatever stands behind a NUL.
pub(crate) fn parse_bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let start = text.iter().position(|byte| !is_c_space(*byte))?;
    parse_c(&text[start..])
}

/// Reads what `SORT` sorts by: as [`parse_bound`], but nothing may be out of range, nor so small that digits are lost.
pub(crate) fn parse_weight(text: &[u8]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    let value = parse_bound(text)?;
    (!is_out_of_range(text, value) && !value.is_subnormal()).then_some(value)
}

/// Whether `value` is what C makes of a text that says more than a double can hold.
fn is_out_of_range(text: &[u8], value: f64) -> bool {
    let names_infinity = || text.iter().any(|byte| matches!(byte, b'n' | b'N'));
    if value.is_infinite() { !names_infinity() } else { value == 0.0 && has_nonzero_digit(text) }
}

fn is_c_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn parse_c(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let value = if let Some(hex) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let magnitude = f64::from_bits(u64::try_from(Double::to_bits(hex.parse_hex()?)).ok()?);
        if text.starts_with('-') { -magnitude } else { magnitude }
    } else {
        text.parse().ok()?
    };
    (!f64::is_nan(value)).then_some(value)
}

/// Hexadecimal digits behind `0x`, with the exponent that C lets one leave out.
trait HexFloat {
    fn parse_hex<F: Float>(&self) -> Option<F>;
}

impl HexFloat for str {
    fn parse_hex<F: Float>(&self) -> Option<F> {
        let (mantissa, exponent) = match self.split_once(['p', 'P']) {
            Some((mantissa, exponent)) => (mantissa, exponent),
            None => (self, "0"),
        };
        let digits = mantissa.bytes().filter(|byte| *byte != b'.');
        let is_mantissa = digits.clone().count() > 0
            && digits.clone().all(|byte| byte.is_ascii_hexdigit())
            && mantissa.bytes().filter(|byte| *byte == b'.').count() <= 1;
        let power = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let is_exponent = !power.is_empty() && power.bytes().all(|byte| byte.is_ascii_digit());
        if !is_mantissa || !is_exponent {
            return None;
        }
        F::from_str(&format!("0x{mantissa}p{exponent}")).ok()
    }
}

/// Reads hexadecimal digits behind `0x` as any float.
pub(crate) fn parse_hex<F: Float>(digits: &str) -> Option<F> {
    digits.parse_hex()
}

/// Whether the digits before the exponent are not all zero, so that zero can only come from underflow.
fn has_nonzero_digit(text: &[u8]) -> bool {
    let is_hex = text.iter().any(|byte| matches!(byte, b'x' | b'X'));
    let mantissa =
        text.split(|byte| if is_hex { matches!(byte, b'p' | b'P') } else { matches!(byte, b'e' | b'E') }).next();
    mantissa.unwrap_or_default().iter().any(|byte| byte.is_ascii_hexdigit() && *byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_as_c_reads_them() {
        let cases: &[(&str, Option<f64>)] = &[
            ("1", Some(1.0)),
            ("+1", Some(1.0)),
            ("-1.5e3", Some(-1500.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x10", Some(16.0)),
            ("-0x1.8p1", Some(-3.0)),
            ("0x", None),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("nan", None),
            ("1e400", None),
            ("1e-400", None),
            ("0e-400", Some(0.0)),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("1e", None),
            ("abc", None),
            ("1_0", None),
        ];
        for &(text, expected) in cases {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
        assert_eq!(parse_bound(b""), Some(0.0));
        assert_eq!(parse_bound(b" 2"), Some(2.0));
        assert_eq!(parse_bound(b"2\0x"), Some(2.0));
        assert_eq!(parse_bound(b"2 "), None);
        assert_eq!(parse_bound(b"1e400"), Some(f64::INFINITY));
    }
}
