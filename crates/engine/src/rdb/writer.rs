//! Writing of lengths, numbers and texts of serialised values.

use super::format::{length, special};
use super::lzf::Compressor;
use crate::number::integer::{self, IntegerText};
use crate::store::listpack::Element;

/// Texts up to this many bytes may be written as an integer.
const INTEGER_TEXT_MAX: usize = 11;
/// Texts above this many bytes are compressed if that makes them smaller by more than four bytes.
const COMPRESSED_MIN: usize = 20;
const COMPRESSION_GAIN: usize = 4;

/// A writer of serialised bytes.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    compressor: Compressor,
}

impl Writer {
    /// An empty writer.
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), compressor: Compressor::new() }
    }

    /// The serialised bytes.
    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Plain bytes without a length.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The number of elements, or of bytes of a string, that follow.
    pub(super) fn length(&mut self, len: usize) {
        self.number(len as u64);
    }

    /// A number in the encoding of lengths.
    pub(super) fn number(&mut self, len: u64) {
        match len {
            0..0x40 => self.byte(length::SHORT << 6 | len as u8),
            0x40..0x4000 => self.bytes.extend_from_slice(&[length::MIDDLE << 6 | (len >> 8) as u8, len as u8]),
            _ => match u32::try_from(len) {
                Ok(len) => {
                    self.byte(length::FOUR_BYTES);
                    self.bytes.extend_from_slice(&len.to_be_bytes());
                }
                Err(_) => {
                    self.byte(length::EIGHT_BYTES);
                    self.bytes.extend_from_slice(&len.to_be_bytes());
                }
            },
        }
    }

    /// Writes an integer of at most 32 bits in the integer encoding; returns false for a larger one.
    fn small_integer(&mut self, value: i64) -> bool {
        let le = value.to_le_bytes();
        let (how, width) = match value {
            -0x80..=0x7f => (special::ONE_BYTE, 1),
            -0x8000..=0x7fff => (special::TWO_BYTES, 2),
            -0x8000_0000..=0x7fff_ffff => (special::FOUR_BYTES, 4),
            _ => return false,
        };
        self.byte(length::SPECIAL << 6 | how);
        self.bytes.extend_from_slice(&le[..width]);
        true
    }

    /// A string.
    pub(crate) fn text(&mut self, text: &[u8]) {
        if text.len() <= INTEGER_TEXT_MAX && integer::parse(text).is_some_and(|value| self.small_integer(value)) {
            return;
        }
        if text.len() > COMPRESSED_MIN
            && let Some(compressed) = self.compressor.compress(text, text.len() - COMPRESSION_GAIN)
        {
            self.byte(length::SPECIAL << 6 | special::COMPRESSED);
            self.length(compressed.len());
            self.length(text.len());
            self.bytes.extend_from_slice(&compressed);
            return;
        }
        self.length(text.len());
        self.bytes.extend_from_slice(text);
    }

    /// A string that may be stored as an integer.
    pub(super) fn element(&mut self, element: Element<'_>) {
        match element {
            Element::Bytes(text) => self.text(text),
            Element::Integer(value) if self.small_integer(value) => {}
            Element::Integer(value) => {
                let text = IntegerText::new(value);
                self.length(text.as_bytes().len());
                self.bytes.extend_from_slice(text.as_bytes());
            }
        }
    }
}
