//! How large values are, and values that prove which key they belong to.

use crate::keys::Keys;
use crate::limits::VALUE_BYTES_MAX;

/// Sizes of values in bytes, each with how often it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// A size and the sum of weights up to it.
    steps: Vec<(usize, u64)>,
}

impl Sizes {
    /// One size.
    pub fn one(bytes: usize) -> Self {
        Self { steps: vec![(bytes, 1)] }
    }

    /// Reads `64`, or a mix: `64:9,4096:1` is nine values of 64 bytes for each of 4096.
    ///
    /// # Errors
    /// Says what a size looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        let mut sum = 0;
        for part in text.split(',') {
            let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
            let form = || format!("{part:?} is no size (write 64, or a mix like 64:9,4096:1)");
            let size: usize = size.trim().parse().map_err(|_| form())?;
            let weight: u32 = weight.trim().parse().map_err(|_| form())?;
            if size > VALUE_BYTES_MAX {
                return Err(format!("a value has {VALUE_BYTES_MAX} bytes at most"));
            }
            sum += u64::from(weight);
            steps.push((size, sum));
        }
        if sum == 0 { Err("one of the sizes needs a weight".to_owned()) } else { Ok(Self { steps }) }
    }

    /// The only size, if there is only one.
    pub fn only(&self) -> Option<usize> {
        match &self.steps[..] {
            [(size, _)] => Some(*size),
            _ => None,
        }
    }

    /// The smallest size.
    pub fn smallest(&self) -> usize {
        self.steps.iter().map(|(size, _)| *size).min().unwrap_or(0)
    }

    /// The largest size.
    pub fn largest(&self) -> usize {
        self.steps.iter().map(|(size, _)| *size).max().unwrap_or(0)
    }

    /// The size of the next value.
    #[inline]
    pub fn draw(&self, chance: &mut Keys) -> usize {
        if let [(size, _)] = self.steps[..] {
            return size;
        }
        let drawn = chance.below(self.steps.last().map_or(1, |(_, sum)| *sum));
        self.steps.iter().find(|(_, sum)| drawn < *sum).map_or(0, |(size, _)| *size)
    }
}

/// Bytes that a value needs at least to prove anything: twelve digits of the key, eight of the writer, two colons, and ten that
/// follow from these and the size.
pub const PROOF_BYTES_MIN: usize = 32;

/// Appends a value of `size` bytes for `key` that request number `writer` writes. Every byte of it follows from these three.
pub fn write_proof(out: &mut Vec<u8>, key: u64, writer: u32, size: usize) {
    let start = out.len();
    out.extend_from_slice(&digits(key));
    out.push(b':');
    (0..8).rev().for_each(|nibble| out.push(b"0123456789abcdef"[(writer >> (nibble * 4) & 0xf) as usize]));
    out.push(b':');
    let mut state = seed_of(key, writer, size);
    while out.len() - start < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Letters from `@` to `_`, so that a value can be read.
        out.extend((0..8).map(|byte| 0x40 | (state >> (byte * 8 + 3)) as u8 & 0x1f).take(size - (out.len() - start)));
    }
}

/// Whether `value` is one that [`write_proof`] made for `key`, of whatever writer and size.
pub fn is_proof(value: &[u8], key: u64, scratch: &mut Vec<u8>) -> bool {
    if value.len() < PROOF_BYTES_MIN {
        return false;
    }
    let Some(writer) = value.get(13..21).and_then(|text| u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok())
    else {
        return false;
    };
    scratch.clear();
    write_proof(scratch, key, writer, value.len());
    scratch == value
}

fn seed_of(key: u64, writer: u32, size: usize) -> u64 {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(writer)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ size as u64
}

/// A number as it replaces `__rand_int__`: twelve digits.
#[inline]
pub fn digits(mut number: u64) -> [u8; 12] {
    let mut text = [b'0'; 12];
    for place in text.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Spread;

    #[test]
    fn sizes_come_as_often_as_their_weights_say() {
        let sizes = Sizes::parse("64:9,4096:1").unwrap();
        let mut chance = Keys::new(Spread::Uniform, 1, 3, 0, 1);
        let large = (0..10_000).filter(|_| sizes.draw(&mut chance) == 4096).count();
        assert!((850..1150).contains(&large), "{large}");
        assert_eq!((sizes.only(), sizes.smallest(), sizes.largest()), (None, 64, 4096));
        assert_eq!(Sizes::parse("3").unwrap().only(), Some(3));
    }

    #[test]
    fn a_bad_size_is_refused_in_words() {
        for text in ["", "x", "64:", "64:9,", "-1", "64:0", "9999999999"] {
            assert!(Sizes::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_proves_its_key_and_nothing_else() {
        let mut scratch = Vec::new();
        for size in [PROOF_BYTES_MIN, 33, 64, 4096] {
            let mut value = Vec::new();
            write_proof(&mut value, 42, 7, size);
            assert_eq!(value.len(), size);
            assert!(is_proof(&value, 42, &mut scratch));
            assert!(!is_proof(&value, 43, &mut scratch), "of another key");
            assert!(!is_proof(&value[..size - 1], 42, &mut scratch), "cut");
            let mut changed = value.clone();
            changed[size - 1] ^= 1;
            assert!(!is_proof(&changed, 42, &mut scratch), "changed");
        }
        assert!(!is_proof(b"", 1, &mut scratch) && !is_proof(b"xxx", 1, &mut scratch));
    }
}
