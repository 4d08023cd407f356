//! Redis Cluster's hash slots, shared out over a fixed list of nodes.
//!
//! The slot of a key is CRC-16 (XMODEM) of its tag modulo 16,384, as the Cluster specification says. The slots are
//! split into one contiguous range a node, in the order listed: node `i` of `n` starts at slot `i * 16384 / n`, rounded
//! to the nearest (halves upwards). Three nodes hold 0-5460, 5461-10922 and 10923-16383. For up to 77 nodes this is
//! what `redis-cli --cluster create` hands out (run for 3 to 24); beyond that its single-precision sums drift by a slot.

use std::ops::Range;

use crc::{CRC_16_XMODEM, Crc, Table};

use crate::node::NodeIndex;

/// How many hash slots there are.
pub const SLOTS: u16 = 16_384;

static CRC: Crc<u16, Table<16>> = Crc::<u16, Table<16>>::new(&CRC_16_XMODEM);

/// The hash slot of the bytes that a tag rule chose from a key.
#[inline]
pub fn slot(hashed: &[u8]) -> u16 {
    CRC.checksum(hashed) % SLOTS
}

/// The slots of node `index` among `nodes`.
pub fn slots_of(index: NodeIndex, nodes: usize) -> Range<u16> {
    let start = |index: usize| ((2 * index * SLOTS as usize + nodes) / (2 * nodes)) as u16;
    start(index.get())..start(index.get() + 1)
}

#[derive(Clone, Debug)]
pub(super) struct Slots {
    nodes: u32,
}

impl Slots {
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes: nodes as u32 }
    }

    #[inline]
    pub(super) fn place(&self, hashed: &[u8]) -> NodeIndex {
        self.owner(slot(hashed))
    }

    /// Turns [`slots_of`] around without a table: the largest `i` whose start `floor(i * 16384 / n + 1/2)` is not above
    /// `slot` is the largest with `i * 32768 < (2 * slot + 1) * n`.
    #[inline]
    fn owner(&self, slot: u16) -> NodeIndex {
        let product = (2 * u32::from(slot) + 1) * self.nodes;
        NodeIndex::new(((product - 1) / (2 * u32::from(SLOTS))) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::NODES_MAX;

    #[test]
    fn every_slot_belongs_to_the_node_whose_range_holds_it() {
        for nodes in 1..=NODES_MAX {
            let slots = Slots::new(nodes);
            let mut next = 0;
            for index in (0..nodes).map(NodeIndex::new) {
                let range = slots_of(index, nodes);
                assert_eq!(range.start, next, "{nodes} nodes");
                assert!(range.len() >= 16_384 / nodes && range.len() <= 16_384 / nodes + 1, "{nodes} nodes: {range:?}");
                next = range.end;
                for slot in [range.start, range.start + range.len() as u16 / 2, range.end - 1] {
                    assert_eq!(slots.owner(slot), index, "slot {slot} of {nodes} nodes");
                }
            }
            assert_eq!(next, SLOTS);
        }
    }
}
