//! The payload of `DUMP` and `RESTORE`: a value, two bytes of version and eight of checksum.

use crc::{CRC_64_REDIS, Crc, Table};

use super::format::kind;

/// The version that is written, and the newest one of Redis that is accepted.
const VERSION: u16 = 10;
/// The version of Valkey 9, which hashes with deadlines are written in. Types of values that it has added are refused by their type.
const VALKEY_VERSION: u16 = 80;
/// Bytes of version and checksum.
const FOOTER_BYTES: usize = 10;

const CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// Appends version and checksum to a value.
pub(crate) fn seal(mut value: Vec<u8>) -> Vec<u8> {
    let version = if value.first() == Some(&kind::HASH_WITH_DEADLINES) { VALKEY_VERSION } else { VERSION };
    value.extend_from_slice(&version.to_le_bytes());
    let sum = CHECKSUM.checksum(&value);
    value.extend_from_slice(&sum.to_le_bytes());
    value
}

/// The value before version and checksum; `None` if one of them is wrong.
pub(crate) fn open(payload: &[u8]) -> Option<&[u8]> {
    open_with(payload, false)
}

/// As [`open`], and whether any checksum will do.
pub(crate) fn open_with(payload: &[u8], skips_checksum: bool) -> Option<&[u8]> {
    let len = payload.len().checked_sub(FOOTER_BYTES)?;
    let (value, footer) = payload.split_at(len);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let is_right = || footer[2..] == CHECKSUM.checksum(&payload[..len + 2]).to_le_bytes();
    let is_known = version <= VERSION || version == VALKEY_VERSION;
    (is_known && (skips_checksum || is_right())).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_that_of_redis() {
        // Redis's own: `SET k hello`, `DUMP k`.
        let payload = seal(b"\0\x05hello".to_vec());
        assert_eq!(payload, b"\0\x05hello\x0a\0cr\xdfve4 \x0a");
        assert_eq!(open(&payload), Some(&b"\0\x05hello"[..]));
        for at in 0..payload.len() {
            let mut broken = payload.clone();
            broken[at] ^= 1;
            assert_eq!(open(&broken), None);
            assert_eq!(open(&payload[..at]), None);
        }
    }
}
