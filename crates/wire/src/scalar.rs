//! The numbers and lines of a reply, one byte at a time: what may follow what came, and whether it may end here.
//!
//! Only heads that arrive in pieces, and the scalars of RESP3, are read in this way.

use crate::number::{append_digit, signed};
use crate::{ReplyError, ReplyKind};

/// A number in progress behind the type byte `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) of: u8,
    sign: u8,
    digits: u8,
    magnitude: u64,
}

impl Number {
    /// No digit yet.
    pub(crate) const fn new(of: u8) -> Self {
        Self { of, sign: 0, digits: 0, magnitude: 0 }
    }

    /// The number with one more byte. Lengths are canonical; integers may have a plus sign and leading zeros.
    pub(crate) fn after(self, byte: u8) -> Result<Self, ReplyError> {
        let is_integer = self.of == b':';
        let is_first = self.digits == 0 && self.sign == 0;
        match byte {
            b'-' if is_first => Ok(Self { sign: byte, ..self }),
            b'+' if is_first && is_integer => Ok(Self { sign: byte, ..self }),
            b'?' if is_first && !is_integer => Err(ReplyError::Streamed(self.of)),
            b'0'..=b'9' if self.digits < 20 && (is_integer || self.digits == 0 || self.magnitude > 0) => {
                let magnitude = append_digit(self.magnitude, byte, self.sign == b'-').ok_or(self.error())?;
                if self.sign == b'-' && magnitude == 0 && !is_integer {
                    return Err(self.error());
                }
                Ok(Self { digits: self.digits + 1, magnitude, ..self })
            }
            _ => Err(self.error()),
        }
    }

    /// What is wrong if this is no number.
    pub(crate) const fn error(self) -> ReplyError {
        if self.of == b':' { ReplyError::InvalidScalar } else { ReplyError::InvalidLength }
    }

    /// Whether the number may end here.
    pub(crate) const fn is_whole(self) -> bool {
        self.digits > 0
    }

    /// The number.
    pub(crate) fn value(self) -> i64 {
        signed(self.magnitude, self.sign == b'-')
    }
}

/// What a line may hold, and how far into it we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Anything.
    Text,
    /// Nothing, the null.
    Nothing,
    /// `t` or `f`: awaited, or seen.
    Boolean { is_seen: bool },
    /// A double.
    Double(Double),
}

/// Places in the text of a double: `[+-]digits[.digits][e[+-]digits]`, `[+-]inf`, `[+-]nan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Double {
    Start,
    Signed,
    Whole,
    Dot,
    Fraction,
    E,
    ESigned,
    Exponent,
    I,
    In,
    Inf,
    N,
    Na,
    Nan,
}

impl Double {
    const fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Start, b'+' | b'-') => Self::Signed,
            (Self::Start | Self::Signed | Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Start | Self::Signed, b'i') => Self::I,
            (Self::Start | Self::Signed, b'n') => Self::N,
            (Self::Whole, b'.') => Self::Dot,
            (Self::Dot | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Whole | Self::Fraction, b'e' | b'E') => Self::E,
            (Self::E, b'+' | b'-') => Self::ESigned,
            (Self::E | Self::ESigned | Self::Exponent, b'0'..=b'9') => Self::Exponent,
            (Self::I, b'n') => Self::In,
            (Self::In, b'f') => Self::Inf,
            (Self::N, b'a') => Self::Na,
            (Self::Na, b'n') => Self::Nan,
            _ => return None,
        })
    }

    const fn is_whole(self) -> bool {
        matches!(self, Self::Whole | Self::Fraction | Self::Exponent | Self::Inf | Self::Nan)
    }
}

impl Line {
    /// The line behind a type byte, if that type has one.
    pub(crate) const fn of(byte: u8) -> Option<(Self, ReplyKind)> {
        Some(match byte {
            b'+' => (Self::Text, ReplyKind::Simple),
            b'-' => (Self::Text, ReplyKind::Error),
            b'_' => (Self::Nothing, ReplyKind::Null),
            b'#' => (Self::Boolean { is_seen: false }, ReplyKind::Boolean),
            b',' => (Self::Double(Double::Start), ReplyKind::Double),
            // Redis writes whatever text a script called a big number; what is in it ends no connection.
            b'(' => (Self::Text, ReplyKind::BigNumber),
            _ => return None,
        })
    }

    /// The line with one more byte, if it may follow.
    pub(crate) const fn after(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Text, _) => Some(self),
            (Self::Boolean { is_seen: false }, b't' | b'f') => Some(Self::Boolean { is_seen: true }),
            (Self::Double(place), byte) => match place.after(byte) {
                Some(next) => Some(Self::Double(next)),
                None => None,
            },
            _ => None,
        }
    }

    /// Whether the line may end here.
    pub(crate) const fn is_whole(self) -> bool {
        match self {
            Self::Text | Self::Nothing => true,
            Self::Boolean { is_seen } => is_seen,
            Self::Double(place) => place.is_whole(),
        }
    }
}
