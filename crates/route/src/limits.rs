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

/// Most parts of one request, and most nodes of all pools, since some requests are sent to every node. A part's number has 16
/// bits, and the last of them means that there is none.
pub const PARTS_MAX: usize = u16::MAX as usize;

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

/// Most members of a cluster, replicas among them, that one node's report may name: [`NODES_MAX`] primaries with three replicas
/// each. A longer report is refused.
pub const CLUSTER_MEMBERS_MAX: usize = 4 * NODES_MAX;

/// Most ranges of slots that a report may name: each slot on its own. A node that repeats ranges sends more, and is refused.
pub const CLUSTER_RANGES_MAX: usize = crate::SLOTS as usize;

/// Bytes of a report in text form (`CLUSTER NODES`). A line has about 150 bytes, and each migration of a slot about 60 more.
pub const CLUSTER_NODES_BYTES_MAX: usize = 4 << 20;

/// Bytes of a host name or address: 253 for a name in the DNS, and as many for an address with a zone.
pub const HOST_BYTES_MAX: usize = 253;

/// Bytes of a member's id. Redis writes 40 digits.
pub const MEMBER_ID_BYTES_MAX: usize = 64;

/// Bytes of an availability zone's name.
pub const ZONE_BYTES_MAX: usize = 64;

/// Bytes of an error that is looked at for a redirect. `MOVED` with the longest host has under 300.
pub const REDIRECT_BYTES_MAX: usize = 512;

/// How often one request follows `MOVED` and `ASK` at once. Nodes that agree send it on once or twice; those that do not would
/// send it in a circle, so it waits after that many.
pub const HOPS_MAX: u8 = 5;

/// How often one request that has no deadline waits before it is tried again. With [`RETRY_PAUSE_MAX_US`] this is 14 to 29 seconds:
/// longer than a failover takes with the default time limit of nodes. A request with a deadline waits until that, however often.
pub const PAUSES_MAX: u8 = 64;

/// The first pause of a request that is tried again, in microseconds. Each further one is twice as long.
pub const RETRY_PAUSE_MIN_US: u64 = 5_000;

/// The longest pause of a request that is tried again, in microseconds.
pub const RETRY_PAUSE_MAX_US: u64 = 500_000;

/// How many nodes' reports decide when they differ from what is known. One node that lags behind is outvoted by two.
pub const REFRESH_VOTES: usize = 3;

/// Questions that are under way at once.
pub const REFRESH_QUESTIONS_MAX: usize = 3;

/// Nodes that one round asks at most: two thirds of a cluster of a hundred nodes may be gone.
pub const REFRESH_ASKED_MAX: usize = 64;

/// Bytes of a node's answer to SYNC, PSYNC or MONITOR before it must have said whether it agrees. It is one line.
pub const AGREEMENT_BYTES_MAX: usize = 16 * 1024;

/// Bytes that are held of each node's replication stream while another node's is passed on: some reads of it. Nodes keep
/// what is not read, up to their `client-output-buffer-limit replica`.
pub const MERGED_WINDOW_BYTES: usize = 256 * 1024;

/// Bytes of a command of a replication stream that is held whole, since its arguments say what it is: `FUNCTION RESTORE` of
/// many libraries.
pub const MERGED_COMMAND_BYTES_MAX: usize = 4 << 20;

/// Bytes of the name of such a command; longer ones are of no known command.
pub const MERGED_NAME_BYTES_MAX: usize = 64;

/// Bytes of a line that counts arguments or bytes in a replication stream: twenty digits and what is around them.
pub const MERGED_LINE_BYTES_MAX: usize = 24;

/// Positions of a node's stream that wait for the follower to have come to them. With more, the last one is moved on.
pub const MERGED_CHECKPOINTS_MAX: usize = 16;

/// Bytes of one field at the beginning of a snapshot. Those of Redis have some dozens.
pub const SNAPSHOT_FIELD_BYTES_MAX: usize = 64 * 1024;

/// So many patterns of one `SORT` are each compared with the routes that they may reach. More count as reaching all routes, since each costs as many
/// steps as there are routes.
pub const PATTERNS_TOLD_APART_MAX: usize = 256;
