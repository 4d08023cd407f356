//! Every bound of this crate, with its reason.

/// Buffers that a [`crate::BufferPool`] keeps for reuse. Enough for every connection that is busy in one turn of a loop on
/// a small machine; more would only keep memory that a quiet moment should give back.
pub const POOLED_BUFFERS_MAX: usize = 256;

/// The largest buffer that is kept for reuse, in bytes. A larger one served a rare large value and is given back to the
/// allocator, so that one such value does not stay in the process for ever.
pub const POOLED_BUFFER_BYTES_MAX: usize = 64 * 1024;

/// The largest reply that lies among others while it waits for those before it, in bytes. A larger one has memory of its
/// own, which is given back as soon as it leaves.
pub const RING_LARGE_BYTES: usize = 16 * 1024;

/// Bytes of replies that have left a ring and are still in its memory; with more, and more than what waits, they are
/// forgotten. Fewer are not worth moving the others for.
pub const RING_SPENT_BYTES_MAX: usize = 16 * 1024;

/// What an allocator keeps beside a piece of memory, in bytes.
pub const ALLOCATION_BYTES: usize = 16;

/// The capacity of a fresh buffer, in bytes: one small reply or a short pipeline.
pub const FRESH_BUFFER_BYTES: usize = 1024;

/// The smallest value that is a segment of its own among the bytes to write, in bytes. A smaller one is copied: a slice more for the
/// kernel, and a value to let go, cost as much.
pub const SEGMENT_BYTES_MIN: usize = 4 * 1024;

/// Places for segments that an empty outbox keeps. More served a rare burst of large values.
pub const SEGMENTS_KEPT: usize = 64;

/// A reply larger than this is passed on to the client as it arrives instead of being collected first, in bytes. Small
/// replies are collected because a node that dies in the middle of one then costs the client an error, not the connection.
pub const CUT_THROUGH_BYTES: usize = 64 * 1024;

/// Abandoned requests whose replies a shared connection may still owe. A connection that owes more is answering too slowly
/// to be of use and is replaced.
pub const TOMBSTONES_MAX: usize = 100_000;

/// Unanswered batches of one connection whose requests are kept for the slow log. With more, the node is far behind and the
/// first of them tell why.
pub const RECORDED_BATCHES_MAX: usize = 64;

/// Bytes that a node which has just come back is sent at once: some hundred small requests.
pub const RAMP_BYTES_MIN: u64 = 16 * 1024;

/// Bytes that it may have been sent when it is treated like any other again.
pub const RAMP_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often it is looked at whether more may be sent, in microseconds.
pub const RAMP_STEP_US: u64 = 1_000;

/// Channels named by one command that tells a node of subscriptions. Enough to make the command's head cheap, few enough
/// that a node does not stay with one command for long.
pub const PUSH_COMMAND_NAMES_MAX: usize = 256;

/// Channels that wait to be named by such commands before each is kept once: a server that is told nothing for a while may be told
/// of the same one very often otherwise, as its subscribers come and go. Rarely do so many wait.
pub const PUSH_CHANGES_MIN: usize = 16 * 1024;

/// Bytes of names in one such command. A name may be larger: it goes alone.
pub const PUSH_COMMAND_BYTES_MAX: usize = 16 * 1024;

/// Patterns that a node is told of before it has acknowledged them: other requests are served between such slices.
pub const PUSH_PATTERN_ORDERS_MAX: usize = 1_000;
/// The same of a node that has very many.
pub const PUSH_PATTERN_ORDERS_MIN: usize = 32;
/// A server looks through all patterns of a connection for each that it is told of. So many steps, of some eight nanoseconds in
/// redis-server 7.0, may be asked of it at once; they bound a slice between the two numbers above.
pub const PUSH_PATTERN_STEPS_MAX: usize = 1_000_000;

/// Messages whose channels are looked up together: more than a processor waits for at once would do no more, and what is found has
/// to stay near until the last of them is delivered.
pub const LOOK_AHEAD_MESSAGES: usize = 16;

/// With fewer channels the tables are near anyway.
pub const LOOK_AHEAD_CHANNELS_MIN: usize = 16_384;

/// Memory for replies that wait for their proof that a connection keeps while none does, in bytes.
pub const INTEGRITY_KEPT_BYTES: usize = 64 * 1024;
