//! Dumps of values and of libraries, as Redis ends them.

/// What a version and a checksum take.
#[allow(dead_code, reason = "a target may only seal")]
pub(crate) const FOOTER_BYTES: usize = 10;

/// A dump of this content with a version and its checksum: CRC-64 as Redis computes it, bit by bit.
pub(crate) fn sealed(content: &[u8], version: u16) -> Vec<u8> {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    let mut dump = content.to_vec();
    dump.extend_from_slice(&version.to_le_bytes());
    let step = |sum: u64, _| if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
    let sum = dump.iter().fold(0, |sum, &byte| (0..8).fold(sum ^ u64::from(byte), step));
    dump.extend_from_slice(&sum.to_le_bytes());
    dump
}
