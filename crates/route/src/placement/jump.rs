//! Jump consistent hashing (Lamping and Veach, 2014): no table, perfectly even, and a node added at the end takes
//! exactly its share from the others. Nodes can only be added and removed at the end of the list.
//!
//! The paper leaves the 64-bit hash of the key open; here it is XXH3 (64 bits, no seed) of the tag or key.

use xxhash_rust::xxh3::xxh3_64;

use crate::node::NodeIndex;

#[derive(Clone, Debug)]
pub(super) struct Jump {
    nodes: u64,
}

impl Jump {
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes: nodes as u64 }
    }

    #[inline]
    pub(super) fn place(&self, hashed: &[u8]) -> NodeIndex {
        NodeIndex::new(bucket(xxh3_64(hashed), self.nodes) as usize)
    }
}

/// Follows the places where the key with this hash would move as buckets are added one by one, and stops at the last
/// one below `buckets`. Takes about ln(`buckets`) steps.
fn bucket(mut hash: u64, buckets: u64) -> u64 {
    let mut here = 0;
    let mut next = 0;
    while next < buckets {
        here = next;
        hash = hash.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let ratio = (1u64 << 31) as f64 / ((hash >> 33) + 1) as f64;
        next = ((here + 1) as f64 * ratio) as u64;
    }
    here
}
