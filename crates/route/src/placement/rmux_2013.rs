//! The first rmux (December 2013): Bernstein's hash of the whole key, reduced modulo the number of nodes at every step.
//!
//! Only the primary target can be reproduced. That program kept its nodes in a hash map and found number `i` by walking
//! the map, so with any Go since 1.3 the order, and with it the placement, differs from run to run; here the order is
//! that of the list, which is what the older runtime gave to small maps. It also computed a second target modulo
//! the number of nodes *that are up*, used while the first is down. That one depends on when each node was seen to fail,
//! moves keys among healthy nodes with every change of that number, and is not offered: a key whose node is down gets an
//! error.

use crate::node::NodeIndex;

#[derive(Clone, Debug)]
pub(super) struct Rmux2013 {
    nodes: u64,
}

impl Rmux2013 {
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes: nodes as u64 }
    }

    #[inline]
    pub(super) fn place(&self, key: &[u8]) -> NodeIndex {
        // Reducing once in eight bytes gives the same residue as reducing at each: a residue below 2^16 times 33^8 plus
        // eight bytes' contributions stays under 2^58.
        let hash = key
            .chunks(8)
            .fold(0u64, |hash, chunk| chunk.iter().fold(hash, |hash, &byte| hash * 33 + u64::from(byte)) % self.nodes);
        NodeIndex::new(hash as usize)
    }
}
