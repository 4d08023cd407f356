//! The engine's bounds, each with its reason.

/// Databases, unless configured otherwise: what Redis has.
pub(crate) const DATABASES: usize = 16;

/// Bytes that a string may grow to: Redis's `proto-max-bulk-len`, 512 MB.
pub(crate) const STRING_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Records of forgotten values that one request frees; the rest waits for ticks. Small values are freed at once.
pub(crate) const REAPED_AT_ONCE: usize = 1024;

/// Records of forgotten values that one tick frees: about a millisecond.
pub(crate) const REAPED_PER_TICK: usize = 16 * 1024;

/// Deadlines of one database that one tick looks at. They lie side by side, so this is some tens of microseconds.
pub(crate) const SWEPT_AT_ONCE: usize = 32 * 1024;

/// Keys, or fields of hashes, of one database that one tick expires: about a millisecond.
pub(crate) const EXPIRED_AT_ONCE: usize = 4 * 1024;

/// Expired fields of a hash that one request removes before it reads the hash: some tenths of a millisecond. Few in debug builds, so
/// that tests meet hashes with expired fields that are left.
pub(crate) const FIELDS_EXPIRED_AT_ONCE: usize = if cfg!(debug_assertions) { 2 } else { 1024 };

/// The list of deadlines gives memory back only above this many entries.
pub(crate) const EXPIRING_SLACK: usize = 1024;

/// Milliseconds between two turns of the active cycle while a deadline is near; Redis's `hz 10`.
pub(crate) const TICK_BUSY_MS: u64 = 100;

/// Milliseconds between two turns while none is: a request may set one at any time, and a turn costs next to nothing.
pub(crate) const TICK_IDLE_MS: u64 = 1000;

/// Integers below this are shared objects in Redis, which `OBJECT REFCOUNT` shows.
pub(crate) const SHARED_INTEGERS: i64 = 10_000;

/// Elements in the reply to a random choice with repetition: a request of a few bytes must not make a reply without end.
pub(crate) const RANDOM_ELEMENTS_MAX: i64 = 16 * 1024 * 1024;

/// Bytes that one reply may have. Arguments that repeat a key repeat its value, so a request of a megabyte could otherwise
/// ask for a reply of any size.
pub(crate) const REPLY_BYTES_MAX: usize = 1 << 30;

/// Keys that one request, or one turn of the active cycle, may change before all keys count as changed.
pub(crate) const JOURNAL_KEYS_MAX: usize = 100_000;

/// Bytes at which a stream's listpack takes no further entry: Redis's `stream-node-max-bytes`.
pub(crate) const STREAM_NODE_BYTES_MAX: usize = 4096;

/// Entries of one of a stream's listpacks, deleted ones included: Redis's `stream-node-max-entries`.
pub(crate) const STREAM_NODE_ENTRIES_MAX: i64 = 100;

/// Entries that approximate trimming removes by default: a hundred listpacks, as in Redis.
pub(crate) const STREAM_TRIMMED_AT_ONCE: usize = 10_000;

/// Bytes of one stream entry: what Redis takes.
pub(crate) const STREAM_ENTRY_BYTES_MAX: usize = 1 << 30;

/// Entries that a request without `COUNT` gets after it was blocked, as in Redis.
pub(crate) const STREAM_AWAITED_ENTRIES: i64 = 1000;

/// Entries that one XAUTOCLAIM may ask for. Redis refuses what it cannot find memory for.
pub(crate) const CLAIMED_AT_ONCE: i64 = 1 << 30;

/// Bytes that the compressed strings of one serialised value may become: what a reply may have, since a value that is larger could not
/// have been dumped.
pub(crate) const READ_BYTES_MAX: usize = REPLY_BYTES_MAX;
