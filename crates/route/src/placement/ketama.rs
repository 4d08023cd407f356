//! The ketama ring: every node puts many points on a circle of 2^32, a key belongs to the next point at or behind its
//! hash.
//!
//! Point for point the ring of twemproxy (`distribution: ketama`), and with [`KeyHash::Md5`] that of libketama. A node
//! of average weight has 160 points: for each `i` from 0 to 39 the four little-endian words of MD5 of `name-i`. A node's
//! name is `host:port` unless another is given; twemproxy leaves `:port` out when the port is 11211.
//! With equal weights a node that comes or goes moves only its own share, unless rounding then gives all nodes 156 points
//! instead of 160 or the other way round, which begins with 25 nodes.
//!
//! twemproxy's `auto_eject_hosts` rebuilds the ring without a failed node. Respool does not: keys that wander silently
//! to another node and back are lost writes.

use md5::{Digest, Md5};

use super::KeyHash;
use super::key_hash::md5_word;
use crate::node::{Node, NodeIndex};

/// The ring, cut at zero: hashes in ascending order and, in parallel, whose points they are.
#[derive(Clone, Debug)]
pub(super) struct Ketama {
    key_hash: KeyHash,
    points: Box<[u32]>,
    owners: Box<[NodeIndex]>,
}

impl Ketama {
    pub(super) fn new(key_hash: KeyHash, nodes: &[Node]) -> Self {
        let mut ring: Vec<(u32, NodeIndex)> = Vec::new();
        let weight_sum = nodes.iter().map(|node| node.weight).sum();
        for (index, node) in nodes.iter().enumerate() {
            for quad in 0..quads(node.weight, weight_sum, nodes.len()) {
                let digest = Md5::digest(format!("{}-{quad}", node.name)).into();
                ring.extend((0..4).map(|word| (md5_word(&digest, word), NodeIndex::new(index))));
            }
        }
        // Points that coincide stay in the order of the list; the first of them has the keys.
        ring.sort_by_key(|(point, _)| *point);
        let (points, owners): (Vec<_>, Vec<_>) = ring.into_iter().unzip();
        Self { key_hash, points: points.into(), owners: owners.into() }
    }

    #[inline]
    pub(super) fn place(&self, hashed: &[u8]) -> NodeIndex {
        // The empty key is not hashed but taken for zero, as twemproxy does.
        let hash = if hashed.is_empty() { 0 } else { self.key_hash.hash(hashed) };
        let next = self.points.partition_point(|point| *point < hash);
        self.owners.get(next).or(self.owners.first()).copied().unwrap_or_default()
    }
}

/// How many times four points a node gets, in the single-precision steps of the original: its rounding decides whether a
/// node has 160 points or 156.
fn quads(weight: u32, weight_sum: u32, nodes: usize) -> u32 {
    let share = weight as f32 / weight_sum as f32;
    let quads = f64::from(share * 160.0 / 4.0 * nodes as f32) + 0.000_000_000_1;
    (quads as f32).floor() as u32
}
