//! Every bound of the load generator, named, with its reason.

use std::time::Duration;

/// Connections of one run. More than a process may have files open anyway, and a number that was mistyped ends here.
pub const CONNECTIONS_MAX: usize = 1_000_000;

/// Threads of one run.
pub const THREADS_MAX: usize = 500;

/// Requests that are written together on one connection.
pub const PIPELINE_MAX: usize = 1_000_000;

/// Requests of one run: a count that fits in 53 bits survives JSON.
pub const REQUESTS_MAX: u64 = 1 << 53;

/// Bytes of one value: what a server takes for a bulk string.
pub const VALUE_BYTES_MAX: usize = 512 << 20;

/// Distinct keys: a number of twelve digits, which is what replaces `__rand_int__`.
pub const KEYS_MAX: u64 = 1_000_000_000_000;

/// Kinds of requests in one mix. Each has two histograms of 200 KB for every thread.
pub const OPERATIONS_MAX: usize = 64;

/// Requests a second in all.
pub const RATE_MAX: f64 = 100_000_000.0;

/// The longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Requests of an open loop that are not answered, for each thread. Beyond that arrivals are not sent and counted: the server is
/// overloaded for good, and memory would grow until the end of the run.
pub const OUTSTANDING_MAX: usize = 1 << 20;

/// The longest latency that a histogram tells from longer ones, in nanoseconds. A longer one counts as this.
pub const LATENCY_NS_MAX: u64 = 100_000_000_000;

/// How long replies are waited for when nothing is sent any more.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A run in which nothing has been answered for so long has failed, if a reply is owed, or if a closed loop has no connection to
/// ask on.
pub const STALL: Duration = Duration::from_secs(60);

/// How long all connections together may take to be there before a run begins.
pub const CONNECT_PATIENCE: Duration = Duration::from_secs(30);

/// How long the first of a thread's TLS handshakes may take. A server that does not speak TLS may wait for the end of a line for
/// ever, and says nothing.
pub const TLS_PATIENCE: Duration = Duration::from_secs(4);

/// How long before a request is due a thread stops sleeping and looks again and again: the kernel's wait is in whole milliseconds.
pub const SPIN_US: u64 = 1_200;

/// The longest time between two looks at whether the run is to end, in microseconds.
pub const LOOK_US: u64 = 50_000;

/// Room for what one read brings.
pub const READ_BYTES: usize = 64 << 10;

/// Points of a plot of throughput over time, at most: a long run has longer intervals.
pub const INTERVALS_MAX: usize = 1_000;

/// Processes whose processor time is taken.
pub const PIDS_MAX: usize = 64;

/// Targets of one run.
pub const TARGETS_MAX: usize = 32;

/// Rounds of a comparison.
pub const ROUNDS_MAX: usize = 1_000;
