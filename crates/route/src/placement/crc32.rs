//! redis-sharding's rule: CRC-32 (the one of zlib) of the tag or key, modulo the number of nodes in the order listed.
//!
//! Its Standard ML and Haskell versions use the tag rule [`LastBrace`](crate::TagRule::LastBrace), its Perl version
//! [`FirstBrace`](crate::TagRule::FirstBrace). A change of the number of nodes moves nearly every key.

use crc::{CRC_32_ISO_HDLC, Crc, Table};

use crate::node::NodeIndex;

pub(super) const CRC32: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);
static CRC: Crc<u32, Table<16>> = CRC32;

#[derive(Clone, Debug)]
pub(super) struct Crc32 {
    nodes: u32,
}

impl Crc32 {
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes: nodes as u32 }
    }

    #[inline]
    pub(super) fn place(&self, hashed: &[u8]) -> NodeIndex {
        NodeIndex::new((checksum(hashed) % self.nodes) as usize)
    }
}

/// CRC-32 as zlib computes it.
#[inline]
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    CRC.checksum(bytes)
}
