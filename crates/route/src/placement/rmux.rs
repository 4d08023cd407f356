//! The table of rmux (0.3 and its predecessors since 2014): Bernstein's hash of the whole key, masked to a table of
//! nodes.
//!
//! The table was meant to stay balanced when a node fails and its keys walk on to the next entry: for the smallest prime
//! `p` that is not below the number of nodes it holds, for each multiplier `m` from 1 to `p - 1` and each value `v` from
//! 0 to `p - 1`, the node `m * v mod p`, or the node of the entry before if there is none of that number. The length is
//! the next power of two, and the rest repeats the start. A change of the list moves nearly every key.
//!
//! rmux hashes the first *argument*, Respool the first *key*; they differ only for commands that rmux refuses or sends
//! to a meaningless node (`OBJECT ENCODING key`, `EVAL`). A request without arguments goes to the first node there.

use super::PlacementError;
use crate::limits::RMUX_NODES_MAX;
use crate::node::NodeIndex;

const PRIMES: [usize; 26] =
    [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, RMUX_NODES_MAX];

/// The table for one number of nodes; its length is a power of two.
#[derive(Clone, Debug)]
pub(super) struct Rmux {
    table: Box<[NodeIndex]>,
}

impl Rmux {
    pub(super) fn new(nodes: usize) -> Result<Self, PlacementError> {
        let Some(prime) = PRIMES.into_iter().find(|prime| nodes <= *prime) else {
            return Err(PlacementError::TooManyNodes { nodes, nodes_max: RMUX_NODES_MAX });
        };
        let period = prime * (prime - 1);
        let mut table = Vec::with_capacity(period.next_power_of_two());
        let mut last = NodeIndex::FIRST;
        for multiplier in 1..prime {
            for value in 0..prime {
                let wanted = multiplier * value % prime;
                if wanted < nodes {
                    last = NodeIndex::new(wanted);
                }
                table.push(last);
            }
        }
        table.extend_from_within(..period.next_power_of_two() - period);
        Ok(Self { table: table.into() })
    }

    #[inline]
    pub(super) fn place(&self, key: &[u8]) -> NodeIndex {
        let hash = key.iter().fold(0u32, |hash, &byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        self.table[hash as usize & (self.table.len() - 1)]
    }
}
