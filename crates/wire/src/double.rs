//! Doubles as Redis 7.0 prints them: C's `%.17g`, and `inf`, `-inf`, `nan`.

use std::fmt::{self, Write};

/// Significant digits. Seventeen tell every two doubles apart.
const DIGITS: usize = 17;

/// Bytes that the longest text takes: sign, `0.000`, seventeen digits; or sign, digits with a point, `e-308`.
const TEXT_BYTES_MAX: usize = 32;

/// The text of a double, on the stack.
///
/// ```
/// # use respool_wire::DoubleText;
/// assert_eq!(DoubleText::new(3.3).as_bytes(), b"3.2999999999999998");
/// assert_eq!(DoubleText::new(1e20).as_bytes(), b"1e+20");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct DoubleText {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
}

impl DoubleText {
    /// Prints a double.
    pub fn new(value: f64) -> Self {
        let mut text = Self::default();
        if value.is_nan() {
            text.put(b"nan");
        } else if value.is_infinite() {
            text.put(if value > 0.0 { b"inf" } else { b"-inf" });
        } else if value == value.trunc() && value.abs() < 1e15 && (value != 0.0 || value.is_sign_positive()) {
            // Whole numbers are what scores mostly are; they need no digits generated and none cut.
            text.put(crate::number::Digits::signed(value as i64).as_bytes());
        } else {
            text.print(value);
        }
        text
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Prints through the scientific form, which has exactly the wanted digits, rounded as C does.
    fn print(&mut self, value: f64) {
        let mut scientific = Self::default();
        let is_written = write!(scientific, "{:.*e}", DIGITS - 1, value.abs()).is_ok();
        debug_assert!(is_written, "17 digits, a point and an exponent fit");
        let (digits, exponent) = split_scientific(scientific.as_bytes());
        let kept = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
        if value.is_sign_negative() {
            self.put(b"-");
        }
        if exponent < -4 || exponent >= DIGITS as i32 {
            self.put(&digits[..1]);
            self.put_fraction(&digits[1..kept]);
            self.put(if exponent < 0 { b"e-" } else { b"e+" });
            let power = exponent.unsigned_abs();
            if power < 10 {
                self.put(b"0");
            }
            self.put(crate::number::Digits::unsigned(power.into()).as_bytes());
        } else if exponent < 0 {
            self.put(b"0.");
            self.put(&b"000"[..(-exponent - 1) as usize]);
            self.put(&digits[..kept]);
        } else {
            let whole = exponent as usize + 1;
            self.put(&digits[..whole]);
            self.put_fraction(digits.get(whole..kept).unwrap_or_default());
        }
    }

    fn put_fraction(&mut self, digits: &[u8]) {
        if !digits.is_empty() {
            self.put(b".");
            self.put(digits);
        }
    }

    fn put(&mut self, more: &[u8]) {
        let end = self.length + more.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(more);
            self.length = end;
        }
    }
}

impl Write for DoubleText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let wanted = self.length + more.len();
        self.put(more.as_bytes());
        if self.length == wanted { Ok(()) } else { Err(fmt::Error) }
    }
}

/// The digits and the power of ten of a text like `1.2345e-6`.
fn split_scientific(text: &[u8]) -> ([u8; DIGITS], i32) {
    let mut digits = [b'0'; DIGITS];
    let mut parts = text.split(|&byte| byte == b'e');
    let mantissa = parts.next().unwrap_or_default();
    for (place, &digit) in digits.iter_mut().zip(mantissa.iter().filter(|byte| byte.is_ascii_digit())) {
        *place = digit;
    }
    let exponent = parts.next().and_then(crate::number::number).unwrap_or_default();
    (digits, exponent as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, expected: &str) {
        assert_eq!(String::from_utf8_lossy(DoubleText::new(value).as_bytes()), expected);
    }

    #[test]
    fn doubles_are_printed_as_c_prints_them() {
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(-17.0, "-17");
        check(3.3, "3.2999999999999998");
        check(0.1, "0.10000000000000001");
        check(0.5, "0.5");
        check(-2.25, "-2.25");
        check(1e15, "1000000000000000");
        check(1e16, "10000000000000000");
        check(1e17, "1e+17");
        check(123456789012345678.0, "1.2345678901234568e+17");
        check(99999999999999999.0, "1e+17");
        check(9007199254740993.0, "9007199254740992");
        check(0.0001, "0.0001");
        check(0.00012345, "0.00012344999999999999");
        check(0.00001, "1.0000000000000001e-05");
        check(1e-7, "9.9999999999999995e-08");
        check(5e-324, "4.9406564584124654e-324");
        check(f64::MAX, "1.7976931348623157e+308");
        check(f64::MIN_POSITIVE, "2.2250738585072014e-308");
        check(f64::INFINITY, "inf");
        check(f64::NEG_INFINITY, "-inf");
        check(f64::NAN, "nan");
        check(1.0 / 3.0, "0.33333333333333331");
        check(2.0f64.powi(-18), "3.814697265625e-06");
    }
}
