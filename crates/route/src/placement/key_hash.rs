//! The 32-bit key hashes that twemproxy and libmemcached offer for their ketama ring.
//!
//! They are what those programs compute on x86-64, oddities included: there a `char` is signed, so several of them
//! extend a byte from 128 on with ones before they mix it in, and `fnv1a_64` and `fnv1_64` keep only the low half.
//! twemproxy's `hsieh` is not offered, because its author's licence would reach into this code.

use std::fmt;
use std::str::FromStr;

use crc::{CRC_16_XMODEM, Crc, Table};
use md5::{Digest, Md5};

use super::crc32;

/// How a key becomes a point on the ketama ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyHash {
    /// The first four bytes of MD5: libketama's, and libmemcached's for ketama.
    Md5,
    /// CRC-16 (XMODEM) with a remainder that is never cut to 16 bits.
    Crc16,
    /// Fifteen bits of CRC-32, as libmemcached has it.
    Crc32,
    /// CRC-32 as zlib has it.
    Crc32a,
    /// FNV-1, low half of 64 bits.
    Fnv1With64,
    /// FNV-1a, low half of 64 bits: twemproxy's default.
    #[default]
    Fnv1aWith64,
    /// FNV-1, 32 bits.
    Fnv1With32,
    /// FNV-1a, 32 bits.
    Fnv1aWith32,
    /// Jenkins's one-at-a-time.
    OneAtATime,
    /// MurmurHash2 with a seed made from the length.
    Murmur,
    /// Jenkins's lookup3, seeded as libmemcached does.
    Jenkins,
}

impl KeyHash {
    /// All hashes, for help texts and completions.
    pub const ALL: [Self; 11] = [
        Self::Md5,
        Self::Crc16,
        Self::Crc32,
        Self::Crc32a,
        Self::Fnv1With64,
        Self::Fnv1aWith64,
        Self::Fnv1With32,
        Self::Fnv1aWith32,
        Self::OneAtATime,
        Self::Murmur,
        Self::Jenkins,
    ];

    /// The name in settings: the same as in twemproxy's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Crc16 => "crc16",
            Self::Crc32 => "crc32",
            Self::Crc32a => "crc32a",
            Self::Fnv1With64 => "fnv1_64",
            Self::Fnv1aWith64 => "fnv1a_64",
            Self::Fnv1With32 => "fnv1_32",
            Self::Fnv1aWith32 => "fnv1a_32",
            Self::OneAtATime => "one_at_a_time",
            Self::Murmur => "murmur",
            Self::Jenkins => "jenkins",
        }
    }

    /// The hash of `bytes`.
    #[inline]
    pub fn hash(self, bytes: &[u8]) -> u32 {
        match self {
            Self::Md5 => md5_word(&Md5::digest(bytes).into(), 0),
            Self::Crc16 => crc16(bytes),
            Self::Crc32 => (crc32::checksum(bytes) >> 16) & 0x7fff,
            Self::Crc32a => crc32::checksum(bytes),
            Self::Fnv1With64 => fnv1(bytes, FNV_64_LOW),
            Self::Fnv1aWith64 => fnv1a(bytes, FNV_64_LOW),
            Self::Fnv1With32 => fnv1(bytes, FNV_32),
            Self::Fnv1aWith32 => fnv1a(bytes, FNV_32),
            Self::OneAtATime => one_at_a_time(bytes),
            Self::Murmur => murmur2(bytes),
            Self::Jenkins => lookup3(bytes),
        }
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No key hash has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownKeyHash;

impl FromStr for KeyHash {
    type Err = UnknownKeyHash;

    fn from_str(name: &str) -> Result<Self, UnknownKeyHash> {
        Self::ALL.into_iter().find(|hash| hash.name() == name).ok_or(UnknownKeyHash)
    }
}

/// The remainders of single bytes, by which [`crc16`] proceeds.
static CRC16_TABLE: [u16; 256] = {
    let crc = Crc::<u16, Table<0>>::new(&CRC_16_XMODEM);
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = crc.checksum(&[byte as u8]);
        byte += 1;
    }
    table
};

/// The low 16 bits are the CRC; above them stays what the textbook loop shifts out.
fn crc16(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u32, |crc, &byte| {
        let index = ((crc >> 8) as u8 ^ byte) as usize;
        crc << 8 ^ u32::from(CRC16_TABLE[index])
    })
}

/// One of the four little-endian words of an MD5 digest.
#[inline]
pub(super) fn md5_word(digest: &[u8; 16], word: usize) -> u32 {
    u32::from_le_bytes([digest[4 * word], digest[4 * word + 1], digest[4 * word + 2], digest[4 * word + 3]])
}

/// A byte as a signed C `char` converted to 32 bits.
#[inline]
fn widened(byte: u8) -> u32 {
    i32::from(byte as i8) as u32
}

#[derive(Clone, Copy)]
struct Fnv {
    basis: u32,
    prime: u32,
}

const FNV_32: Fnv = Fnv { basis: 0x811c_9dc5, prime: 0x0100_0193 };
/// The low halves of the 64-bit constants. The low half of the product depends on the low halves alone.
const FNV_64_LOW: Fnv = Fnv { basis: 0x8422_2325, prime: 0x0000_01b3 };

#[inline]
fn fnv1(bytes: &[u8], fnv: Fnv) -> u32 {
    bytes.iter().fold(fnv.basis, |hash, &byte| hash.wrapping_mul(fnv.prime) ^ widened(byte))
}

#[inline]
fn fnv1a(bytes: &[u8], fnv: Fnv) -> u32 {
    bytes.iter().fold(fnv.basis, |hash, &byte| (hash ^ widened(byte)).wrapping_mul(fnv.prime))
}

fn one_at_a_time(bytes: &[u8]) -> u32 {
    let mut hash = bytes.iter().fold(0u32, |hash, &byte| {
        let hash = hash.wrapping_add(widened(byte));
        let hash = hash.wrapping_add(hash << 10);
        hash ^ (hash >> 6)
    });
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

fn murmur2(bytes: &[u8]) -> u32 {
    const MULTIPLIER: u32 = 0x5bd1_e995;
    let length = bytes.len() as u32;
    let mut hash = 0xdead_beef_u32.wrapping_mul(length) ^ length;
    let (words, tail) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        k ^= k >> 24;
        hash = hash.wrapping_mul(MULTIPLIER) ^ k.wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        hash = (hash ^ little_endian(tail)).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

fn lookup3(bytes: &[u8]) -> u32 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(13);
    let [mut a, mut b, mut c] = [start; 3];
    let mut rest = bytes;
    while let Some((block, behind)) = rest.split_first_chunk::<12>().filter(|(_, behind)| !behind.is_empty()) {
        a = a.wrapping_add(little_endian(&block[..4]));
        b = b.wrapping_add(little_endian(&block[4..8]));
        c = c.wrapping_add(little_endian(&block[8..]));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        rest = behind;
    }
    if rest.is_empty() {
        return c;
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    a = a.wrapping_add(little_endian(&last[..4]));
    b = b.wrapping_add(little_endian(&last[4..8]));
    c = c.wrapping_add(little_endian(&last[8..]));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

/// At most four bytes as the low end of a word.
#[inline]
fn little_endian(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for hash in KeyHash::ALL {
            assert_eq!(hash.name().parse(), Ok(hash));
        }
        assert_eq!("hsieh".parse::<KeyHash>(), Err(UnknownKeyHash));
    }

    #[test]
    fn published_check_values_hold() {
        // The check values of "123456789" in the CRC catalogue, and the digests of RFC 1321 and the FNV draft.
        assert_eq!(KeyHash::Crc16.hash(b"123456789") as u16, 0x31c3);
        assert_eq!(KeyHash::Crc32a.hash(b"123456789"), 0xcbf4_3926);
        assert_eq!(KeyHash::Crc32.hash(b"123456789"), 0xcbf4_3926 >> 16 & 0x7fff);
        assert_eq!(KeyHash::Md5.hash(b"abc"), 0x9850_0190);
        assert_eq!(KeyHash::Fnv1aWith32.hash(b"foobar"), 0xbf9c_f968);
        assert_eq!(KeyHash::Fnv1With32.hash(b"foobar"), 0x31f0_b262);
        assert_eq!(KeyHash::Fnv1aWith64.hash(b"foobar"), 0x8594_4171_f739_67e8_u64 as u32);
        assert_eq!(KeyHash::Fnv1With64.hash(b"foobar"), 0x340d_8765_a4dd_a9c2_u64 as u32);
    }
}
