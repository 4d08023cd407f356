//! What values stand on: the pool, the hash function, chance, and the sizes at which compact encodings end.

use std::hash::Hasher;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

use super::pool::Pool;
use super::random::Random;

/// The sizes up to which values keep their compact encodings, by Redis's names and defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingLimits {
    /// `hash-max-listpack-entries`: fields of a compact hash.
    pub hash_entries_max: usize,
    /// `hash-max-listpack-value`: bytes of a field or value of a compact hash.
    pub hash_value_bytes_max: usize,
    /// `set-max-intset-entries`: members of a compact set of integers.
    pub set_integers_max: usize,
    /// `zset-max-listpack-entries`: members of a compact sorted set.
    pub sorted_set_entries_max: usize,
    /// `zset-max-listpack-value`: bytes of a member of a compact sorted set.
    pub sorted_set_value_bytes_max: usize,
    /// `hll-sparse-max-bytes`: the greatest size of a sparse HyperLogLog.
    pub hyperloglog_sparse_bytes_max: usize,
    /// `stream-node-max-bytes`: bytes at which a stream's listpack takes no further entry; zero is no limit.
    pub stream_node_bytes_max: usize,
    /// `stream-node-max-entries`: entries of one of a stream's listpacks, deleted ones included; zero is no limit.
    pub stream_node_entries_max: usize,
}

impl Default for EncodingLimits {
    fn default() -> Self {
        Self {
            hash_entries_max: 512,
            hash_value_bytes_max: 64,
            set_integers_max: 512,
            sorted_set_entries_max: 128,
            sorted_set_value_bytes_max: 64,
            hyperloglog_sparse_bytes_max: 3_000,
            stream_node_bytes_max: 4_096,
            stream_node_entries_max: 100,
        }
    }
}

/// The engine's hash function: keyed, so that no client can choose keys that collide.
pub(crate) struct KeyHasher {
    seed: u64,
    shared: SharedSeed,
}

impl KeyHasher {
    /// The function that `seed` picks.
    pub(crate) fn new(seed: [u64; 2]) -> Self {
        Self { seed: seed[0], shared: SharedSeed::from_u64(seed[1]) }
    }

    /// The hash of a key, field or member.
    #[inline]
    pub(crate) fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        hasher.write(bytes);
        hasher.finish()
    }
}

/// See the module's text.
pub(crate) struct Heap {
    pub(crate) pool: Pool,
    pub(crate) hasher: KeyHasher,
    pub(crate) random: Random,
    pub(crate) encodings: EncodingLimits,
    /// The time of the request or the tick, in milliseconds since the Unix epoch: fields whose deadline is earlier do not exist.
    pub(crate) now: i64,
}

impl Heap {
    /// An empty heap.
    pub(crate) fn new(encodings: EncodingLimits, seed: [u64; 2]) -> Self {
        let random = Random::new(seed[0] ^ seed[1]);
        Self { pool: Pool::default(), hasher: KeyHasher::new(seed), random, encodings, now: 0 }
    }
}
