//! Every bound of this crate, with its reason.

/// Most nodes one topology may name. A request to all nodes costs one part for each, so this also bounds the fan-out;
/// it is the number of primaries that the Redis Cluster specification recommends as the most.
pub const NODES_MAX: usize = 1_000;

/// Most nodes of the `rmux` placement: its table is made from a prime number that is not below the number of nodes, and
/// the list of primes that fixes the layout ends with this one.
pub const RMUX_NODES_MAX: usize = 101;

/// Largest weight of a node. Weights are ratios; five digits express any sensible one, and the sum of [`NODES_MAX`] of
/// them stays exact in 32 bits.
pub const WEIGHT_MAX: u32 = 65_535;

/// Keys that a [`Scratch`](crate::Scratch) keeps room for; once a request had more, the next one that has several keys
/// gives the memory back. A worker has one scratch, so this is under 1 MiB a worker.
pub const SCRATCH_KEYS_KEPT: usize = 65_536;

/// Bytes of a key that an error text shows.
pub const KEY_TEXT_BYTES_MAX: usize = 64;

/// Bytes of a node's error message that a joint reply repeats. Messages of scripts carry user data of any length.
pub const FAILURE_TEXT_BYTES_MAX: usize = 4_096;

/// Digits behind the point of a joint figure of INFO: more than a number of 64 bits can tell. Nodes tell six at most.
pub const FIGURE_DECIMALS_MAX: usize = 17;

/// Bytes of replies that an idle [`Gather`](crate::Gather) keeps room for.
pub const GATHER_BYTES_KEPT: usize = 16_384;

/// Keys, elements and numbers that an idle [`Gather`](crate::Gather) keeps room for.
pub const GATHER_ITEMS_KEPT: usize = 1_024;

/// Most pools that routes may lead to. A node of each worker has a connection, so this is no natural bound; it keeps one
/// mistake in a file from costing minutes.
pub const POOLS_MAX: usize = 256;

/// Most routes, each prefix counting as one. They are tried one by one for every key of a request, so a request of a
/// million keys costs at most this many comparisons for each.
pub const ROUTES_MAX: usize = 256;

/// Bytes of a prefix that a route asks for, or puts in front of a key.
pub const PREFIX_BYTES_MAX: usize = 256;
