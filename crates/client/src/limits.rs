//! Every bound of this crate, with its reason.

use std::time::Duration;

/// Bytes of a request that lie in its [`Command`](crate::Command): GET and SET of short keys and values.
pub const INLINE_BYTES: usize = 128;

/// The smallest [`Bytes`](bytes::Bytes) that is written from where it lies, in bytes. A smaller one is copied, which costs less than a
/// segment more in a write.
pub const KEPT_BYTES_MIN: usize = respool_connection::limits::SEGMENT_BYTES_MIN;

/// Bytes that one read of a socket takes at most.
pub const READ_BYTES: usize = 64 * 1024;

/// Bytes that a read over TLS leaves room for: one record with all around it.
#[cfg(feature = "tls")]
pub(crate) const TLS_RECORD_BYTES: usize = 18 * 1024;

/// Bytes that are encrypted ahead of the kernel: four records.
#[cfg(feature = "tls")]
pub(crate) const TLS_FLIGHT_BYTES: usize = 64 * 1024;

/// Requests that may wait for replies on one connection, by default. Those whose callers have left count until they are answered.
pub const REQUESTS_MAX: usize = 100_000;

/// Bytes of requests that may wait to be written, by default.
pub const QUEUED_BYTES_MAX: usize = 64 << 20;

/// Requests of one batch or transaction.
pub const BATCH_MAX: usize = 100_000;

/// How often a request that can do no harm is sent again after its connection was lost: a request that ends connections shall not end
/// those of all other callers until its time is over.
pub const REPEATS_MAX: u32 = 2;

/// How deep a reply may be nested that is read by way of serde, whose types may be as deep as the reply: as for JSON.
pub const STRUCTURED_DEPTH_MAX: usize = 128;

/// Connections of their own that blocking requests and watched keys may have, by default. A server allows ten thousand clients, and other
/// programs want some.
pub const LANES_MAX: usize = 64;

/// How long a connection of that kind stays open when nothing wants it.
pub const LANES_IDLE: Duration = Duration::from_secs(30);

/// How long a server may take to let go of a blocking request, and how long its reply may take then. After that its connection is closed.
pub const RELEASE_LIMIT: Duration = Duration::from_secs(1);

/// Bytes of a cache, by default.
#[cfg(feature = "cache")]
pub const CACHE_BYTES: usize = 64 << 20;

/// How long a value is cached at most, by default.
#[cfg(feature = "cache")]
pub const CACHE_TTL: Duration = Duration::from_secs(60);

/// How long values are given out of a cache without a word from the server, by default.
#[cfg(feature = "cache")]
pub const CACHE_SILENCE: Duration = Duration::from_secs(5);

/// Reads for a cache that are sent and not answered at a time.
#[cfg(feature = "cache")]
pub(crate) const CACHE_ASKED_MAX: usize = 1024;

/// Sentinels that a client knows, those that others have told of among them.
pub(crate) const SENTINELS_MAX: usize = 32;

/// How long a sentinel is silent, also when it is asked whether it lives, before another is listened to.
pub(crate) const SENTINEL_SILENCE: Duration = Duration::from_secs(4);

/// Messages that may wait to be taken in one subscription, by default.
pub const SUBSCRIPTION_MESSAGES: usize = 10_000;

/// Bytes of them, by default.
pub const SUBSCRIPTION_BYTES: usize = 16 << 20;

/// Requests for subscriptions that are sent and not confirmed at a time.
pub const PUSH_ASKED_MAX: usize = 1024;

/// How long a connection of subscriptions is silent before it is asked whether it lives. When it is silent for twice that it is made anew.
pub const PING_AFTER: Duration = Duration::from_secs(10);

/// Nodes of a cluster that a client has connections to: those of its table, and those that redirects have named since. Redirects may name
/// any address.
pub const CLUSTER_NODES_MAX: usize = respool_route::limits::CLUSTER_MEMBERS_MAX;

/// Seeds of a cluster that an address may name.
pub const CLUSTER_SEEDS_MAX: usize = 64;

/// After how long a silence a shared connection is replaced, by default: a server that is alone with a slow script answers again before.
pub const SILENCE: Duration = Duration::from_secs(30);

/// How long a server that refuses to write keeps its connection while others wait there, and how often connections to it are made anew at
/// most: its name may lead to another. A client that is meant for a replica dials no more often for a write that goes astray.
pub const DEMOTION_PAUSE: Duration = Duration::from_secs(1);

/// How long a connection is idle before the kernel asks the other host whether it is there. Middleboxes forget connections after minutes.
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// How long it waits for each answer.
pub const KEEPALIVE_PAUSE: Duration = Duration::from_secs(5);

/// How often it asks before the connection is lost.
pub const KEEPALIVE_PROBES: u32 = 3;

/// How late a task is woken whose time is over, at most, while a connection of subscriptions or of a cache always has something to read.
pub(crate) const LATE_MAX: Duration = Duration::from_millis(10);

/// How long a node of a cluster may be silent before the others are asked whether it is still there. The call waits on meanwhile.
pub const CLUSTER_SILENCE: Duration = Duration::from_secs(1);

/// How often a walk over all keys of a cluster goes through a node: each once, and again those whose slots have moved meanwhile.
pub const CLUSTER_WALKS_MAX: usize = 4 * CLUSTER_NODES_MAX;

/// How often it is looked whether a blocking request belongs to another node of its cluster by now. A node that is gone says nothing.
pub const MOVED_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// After which time a sharded channel that its node has sent elsewhere is asked for there again, if no other node is known by then, and a
/// channel that was refused because the server is busy or loads.
pub const MOVED_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// From how many bytes on a request or a reply is large, by default: what a socket is read for at a time, and what a server writes in one
/// turn. A smaller one makes others wait for some ten microseconds.
pub const LARGE_BYTES: usize = READ_BYTES;

/// Requests that are remembered to have had large replies, by command and first argument: 8 KiB for each connection.
pub(crate) const SIZES_REQUESTS: usize = 1024;

/// Forms of such requests that are remembered, by command and what keys have in common: 4 KiB.
pub(crate) const SIZES_FORMS: usize = 512;
