//! The 80-bit floats of x87, in which Redis computes `INCRBYFLOAT` and `HINCRBYFLOAT`.
//!
//! Plain doubles give other digits for nine results in ten, so sums are made with software floats of the right width and
//! printed exactly, with seventeen digits behind the point and trailing zeros cut off.

use rustc_apfloat::ieee::{Double, X87DoubleExtended};
use rustc_apfloat::{Float, FloatConvert};

use super::double::parse_hex;

/// Redis refuses longer texts.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// Digits behind the point.
const FRACTION_DIGITS: usize = 17;
/// What makes the fraction an integer.
const FRACTION_SCALE: u128 = 10_u128.pow(FRACTION_DIGITS as u32);
/// The exponent of a mantissa of 64 bits is biased by this.
const EXPONENT_BIAS: i32 = 16_383 + 63;
/// The largest biased exponent, which means infinity or no number.
const EXPONENT_MAX: u16 = 0x7fff;

/// One 80-bit float that is a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LongDouble(X87DoubleExtended);

impl LongDouble {
    /// Reads the float that is all of `text`, as C's `strtold` does. Refuses NaN, space and overflow.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.is_empty() || text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        let (is_negative, magnitude) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let value = parse_magnitude(magnitude)?;
        Some(Self(if is_negative { -value } else { value }))
    }

    /// The float that equals an integer.
    pub(crate) fn from_integer(value: i64) -> Self {
        Self(X87DoubleExtended::from_i128(i128::from(value)).value)
    }

    /// The float that equals a double.
    pub(crate) fn from_f64(value: f64) -> Self {
        let mut is_inexact = false;
        Self(Double::from_bits(u128::from(value.to_bits())).convert(&mut is_inexact).value)
    }

    /// The sum, rounded to 80 bits; `None` if it is no finite number.
    pub(crate) fn checked_add(self, other: Self) -> Option<Self> {
        let sum = (self.0 + other.0).value;
        sum.is_finite().then_some(Self(sum))
    }

    /// The nearest double.
    pub(crate) fn to_f64(self) -> f64 {
        let mut is_inexact = false;
        let double: Double = self.0.convert(&mut is_inexact).value;
        u64::try_from(double.to_bits()).map_or(f64::NAN, f64::from_bits)
    }

    /// Whether it is a finite number.
    pub(crate) fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// The text for people: no exponent, no trailing zeros, no minus before a lone zero.
    pub(crate) fn to_text(self) -> Vec<u8> {
        let bits = self.0.to_bits();
        let mantissa = bits as u64;
        let exponent = (bits >> 64) as u16;
        let mut digits = scaled_digits(mantissa, i32::from(exponent & EXPONENT_MAX).max(1) - EXPONENT_BIAS);
        while digits.len() <= FRACTION_DIGITS {
            digits.push(b'0');
        }
        // Digits run from the least significant on; the first seventeen are the fraction.
        let zeros = digits[..FRACTION_DIGITS].iter().take_while(|&&digit| digit == b'0').count();
        let mut text = Vec::with_capacity(digits.len() + 2);
        if exponent > EXPONENT_MAX && digits.iter().any(|&digit| digit != b'0') {
            text.push(b'-');
        }
        text.extend(digits[FRACTION_DIGITS..].iter().rev());
        if zeros < FRACTION_DIGITS {
            text.push(b'.');
            text.extend(digits[zeros..FRACTION_DIGITS].iter().rev());
        }
        text
    }
}

fn parse_magnitude(text: &str) -> Option<X87DoubleExtended> {
    if text.eq_ignore_ascii_case("inf") || text.eq_ignore_ascii_case("infinity") {
        return Some(X87DoubleExtended::INFINITY);
    }
    let value: X87DoubleExtended = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => parse_hex(hex)?,
        None if is_decimal(text) => text.parse().ok()?,
        None => return None,
    };
    let is_zero_by_underflow = value.is_zero() && !is_written_zero(text);
    (value.is_finite() && !is_zero_by_underflow).then_some(value)
}

/// Whether `text` is digits with at most one point and maybe an exponent.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let points = mantissa.bytes().filter(|&byte| byte == b'.').count();
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
    let is_mantissa = points <= 1 && digits > 0 && points + digits == mantissa.len();
    let is_exponent = exponent.is_none_or(|power| {
        let power = power.strip_prefix(['-', '+']).unwrap_or(power);
        !power.is_empty() && power.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_mantissa && is_exponent
}

fn is_written_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E', 'p', 'P']).next().unwrap_or_default();
    mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'x' | b'X'))
}

/// The decimal digits of `mantissa * 2^exponent * 10^17`, rounded half to even, least significant first.
fn scaled_digits(mantissa: u64, exponent: i32) -> Vec<u8> {
    let scaled = u128::from(mantissa) * FRACTION_SCALE;
    if exponent >= 0 {
        return shifted_digits(scaled, exponent as u32);
    }
    let shift = exponent.unsigned_abs();
    let whole = scaled.checked_shr(shift).unwrap_or(0);
    let rest = if shift >= 128 { scaled } else { scaled & ((1 << shift) - 1) };
    // A shift past 128 leaves less than a half of anything that 121 bits hold.
    let half = 1_u128.checked_shl(shift - 1).unwrap_or(u128::MAX);
    let rounds_up = rest > half || (rest == half && whole % 2 == 1);
    shifted_digits(whole + u128::from(rounds_up), 0)
}

/// The decimal digits of `value << shift`, least significant first.
fn shifted_digits(mut value: u128, shift: u32) -> Vec<u8> {
    const LIMB: u128 = 1_000_000_000;
    let mut limbs = Vec::new();
    while value > 0 {
        limbs.push((value % LIMB) as u32);
        value /= LIMB;
    }
    let mut left = shift;
    while left > 0 {
        let step = left.min(32);
        let mut carry = 0_u64;
        for limb in &mut limbs {
            let wide = (u64::from(*limb) << step) + carry;
            *limb = (wide % LIMB as u64) as u32;
            carry = wide / LIMB as u64;
        }
        while carry > 0 {
            limbs.push((carry % LIMB as u64) as u32);
            carry /= LIMB as u64;
        }
        left -= step;
    }
    let mut digits: Vec<u8> = limbs
        .iter()
        .flat_map(|&limb| (0..9).scan(limb, |rest, _| Some(b'0' + (std::mem::replace(rest, *rest / 10) % 10) as u8)))
        .collect();
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        let sum = LongDouble::parse(a.as_bytes())?.checked_add(LongDouble::parse(b.as_bytes())?)?;
        Some(String::from_utf8(sum.to_text()).expect("digits are ASCII"))
    }

    #[test]
    fn sums_have_the_digits_of_redis() {
        // Taken from redis-server 7.0.15 on x86-64.
        let cases: &[(&str, &str, Option<&str>)] = &[
            ("10.50", "0.1", Some("10.6")),
            ("5.0e3", "2.0e2", Some("5200")),
            ("0.1", "0.2", Some("0.3")),
            ("3.0", "1.1", Some("4.1")),
            ("1", "-1", Some("0")),
            ("-0", "0", Some("0")),
            ("1e17", "1", Some("100000000000000001")),
            ("9223372036854775807", "1", Some("9223372036854775808")),
            ("1.5", "inf", None),
            ("nan", "1", None),
            ("abc", "1", None),
            (" 1", "1", None),
            ("0x10", "1", Some("17")),
        ];
        for &(a, b, expected) in cases {
            assert_eq!(sum(a, b).as_deref(), expected, "{a} + {b}");
        }
    }

    #[test]
    fn huge_numbers_print_all_their_digits() {
        let text = sum("1e300", "0").expect("it is finite");
        assert_eq!(text.len(), 301);
        assert!(sum("1e4932", "0").is_some_and(|text| text.len() == 4_933));
        assert_eq!(sum("1e4932", "1e4932"), None);
        assert_eq!(sum("1e9999", "0"), None);
    }
}
