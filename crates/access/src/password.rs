//! Passwords, which are only ever kept as their SHA-256.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use zeroize::zeroize_stack;

/// Hexadecimal digits of a hash.
const DIGITS: usize = 64;

/// More than a digest needs of the stack, in bytes.
const STACK_BYTES: usize = 4096;

/// The SHA-256 of a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PasswordHash([u8; DIGITS / 2]);

impl PasswordHash {
    /// Of a password.
    pub(crate) fn of(password: &[u8]) -> Self {
        let hash = digest(password);
        zeroize_stack::<STACK_BYTES>();
        Self(hash)
    }

    /// From 64 small hexadecimal digits.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != DIGITS {
            return None;
        }
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; DIGITS / 2];
        for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
            *byte = value(pair[0])? * 16 + value(pair[1])?;
        }
        Some(Self(hash))
    }

    /// Appends the 64 digits.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        const DIGIT: &[u8; 16] = b"0123456789abcdef";
        for byte in self.0 {
            out.extend([DIGIT[usize::from(byte >> 4)], DIGIT[usize::from(byte & 15)]]);
        }
    }

    /// Whether it is one of `known`. All of them are compared, byte by byte to the end, whether or not one was found; where
    /// there are none, with something all the same.
    pub(crate) fn is_among(&self, known: &[Self]) -> bool {
        const ABSENT: &[PasswordHash] = &[PasswordHash([0; DIGITS / 2])];
        let compared = if known.is_empty() { ABSENT } else { known };
        let found = compared.iter().fold(Choice::from(0), |found, hash| found | self.0.ct_eq(&hash.0));
        bool::from(found) && !known.is_empty()
    }
}

/// Not inlined, so that what it leaves on the stack is where `zeroize_stack` writes: the last block of a password as it is.
#[inline(never)]
fn digest(password: &[u8]) -> [u8; DIGITS / 2] {
    Sha256::digest(password).into()
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sha_256() {
        let mut out = Vec::new();
        PasswordHash::of(b"abc").write(&mut out);
        assert_eq!(out, b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(PasswordHash::parse(&out), Some(PasswordHash::of(b"abc")));
        assert_eq!(PasswordHash::parse(&out.to_ascii_uppercase()), None);
        assert_eq!(PasswordHash::parse(&out[1..]), None);
    }

    #[test]
    fn only_a_known_password_is_found_and_none_is_shown() {
        let known = [PasswordHash::of(b"a"), PasswordHash::of(b"b")];
        assert!(PasswordHash::of(b"b").is_among(&known) && !PasswordHash::of(b"c").is_among(&known));
        assert!(!PasswordHash::of(b"").is_among(&[]) && !PasswordHash([0; 32]).is_among(&[]));
        assert_eq!(format!("{:?}", known[0]), "(hidden)");
    }
}
