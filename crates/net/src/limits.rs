//! Every bound of this crate, with its reason.

/// Readiness events taken from the kernel at once. More than this many ready sockets simply take two turns.
pub const EVENTS_MAX: usize = 1024;

/// Connections accepted from one listener in one turn, so that a storm of them cannot keep a worker from its clients.
pub const ACCEPTS_PER_TURN_MAX: usize = 256;

/// How long a worker that ran out of file descriptors leaves a listener alone, in microseconds.
pub const ACCEPT_PAUSE_US: u64 = 100_000;

/// Rounds of "do the actions, write the outboxes" in one turn. What is left after them is done in the next turn.
pub const SETTLE_ROUNDS_MAX: usize = 16;

/// Names that may wait to be resolved. A further dial fails at once; nodes are few, so this is reached only by a loop.
pub const RESOLUTIONS_MAX: usize = 1024;

/// A yield that took longer than this, in microseconds, gave the core to somebody; one is enough then.
pub const YIELD_ALONE_US_MAX: u64 = 20;

/// A yield of the core that took longer than this, in microseconds, was no favour to clients that are about to send:
/// fifty of them take some hundred microseconds on one core.
pub const YIELD_US_MAX: u64 = 1_000;

/// How long the core is not yielded after a yield that took too long, in microseconds. Doubles while that goes on, so that
/// beside a process that wants the core for itself next to nobody pays for the attempt.
pub const YIELD_PAUSE_US_MIN: u64 = 250_000;

/// The longest such pause, in microseconds.
pub const YIELD_PAUSE_US_MAX: u64 = 30_000_000;
