//! Reading of lengths, numbers and texts of serialised values.

use std::borrow::Cow;

use super::format::{Broken, length, special};
use super::{foreign, lzf};
use crate::limits::READ_BYTES_MAX;
use crate::number::double;
use crate::number::integer::IntegerText;
use crate::store::listpack::Listpack;

/// A reader of serialised bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes to which compressed strings may still expand.
    left: usize,
}

/// A length, or the encoding of a string that has none.
enum Length {
    Count(u64),
    Special(u8),
}

impl<'a> Reader<'a> {
    /// Reads from these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, left: READ_BYTES_MAX }
    }

    /// Whether everything has been read.
    #[cfg(feature = "scripting")]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Broken> {
        let len = usize::try_from(len).map_err(|_| Broken)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Broken)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Broken> {
        let mut array = [0; LEN];
        array.copy_from_slice(self.take(LEN as u64)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Broken> {
        Ok(self.array::<1>()?[0])
    }

    fn length(&mut self) -> Result<Length, Broken> {
        let lead = self.byte()?;
        let low = u64::from(lead & 0x3f);
        let count = match lead >> 6 {
            length::SHORT => low,
            length::MIDDLE => low << 8 | u64::from(self.byte()?),
            length::LONG => match lead {
                length::FOUR_BYTES => u32::from_be_bytes(self.array()?).into(),
                length::EIGHT_BYTES => u64::from_be_bytes(self.array()?),
                _ => return Err(Broken),
            },
            _ => return Ok(Length::Special(lead & 0x3f)),
        };
        Ok(Length::Count(count))
    }

    /// The number of elements that follow.
    pub(super) fn count(&mut self) -> Result<u64, Broken> {
        match self.length()? {
            Length::Count(count) => Ok(count),
            // As in Redis, the encodings of strings are small numbers here.
            Length::Special(how) => Ok(how.into()),
        }
    }

    /// A string.
    pub(super) fn text(&mut self) -> Result<Cow<'a, [u8]>, Broken> {
        let how = match self.length()? {
            Length::Count(len) => return self.take(len).map(Cow::Borrowed),
            Length::Special(how) => how,
        };
        let value: i64 = match how {
            special::ONE_BYTE => i8::from_le_bytes(self.array()?).into(),
            special::TWO_BYTES => i16::from_le_bytes(self.array()?).into(),
            special::FOUR_BYTES => i32::from_le_bytes(self.array()?).into(),
            special::COMPRESSED => {
                let (compressed_len, len) = (self.count()?, self.count()?);
                let compressed = self.take(compressed_len)?;
                let len = usize::try_from(len).map_err(|_| Broken)?;
                self.left = self.left.checked_sub(len).ok_or(Broken)?;
                return match len {
                    // As in Redis, an empty string may have any compressed form.
                    0 => Ok(Cow::Borrowed(b"")),
                    _ => lzf::decompress(compressed, len).map(Cow::Owned).ok_or(Broken),
                };
            }
            _ => return Err(Broken),
        };
        Ok(Cow::Owned(IntegerText::new(value).as_bytes().to_vec()))
    }

    /// A score in eight bytes.
    pub(super) fn score(&mut self) -> Result<f64, Broken> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A score as text; three lengths stand for NaN and the infinities.
    pub(super) fn score_text(&mut self) -> Result<f64, Broken> {
        match self.byte()? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => double::parse(self.take(len.into())?).ok_or(Broken),
        }
    }

    pub(super) fn listpack(&mut self) -> Result<Listpack, Broken> {
        Listpack::from_bytes(&self.text()?).ok_or(Broken)
    }

    pub(super) fn ziplist(&mut self) -> Result<Listpack, Broken> {
        foreign::ziplist(&self.text()?).ok_or(Broken)
    }
}
