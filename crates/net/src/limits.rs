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
