//! The bounds of this crate.

use std::time::Duration;

/// Levels of a reply that are shown: writing one is a call within a call. The server's own replies have fewer than ten.
pub const DEPTH_MAX: usize = respool_wire::limits::VALUE_DEPTH_MAX;

/// One read from a socket or from standard input.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Bytes of a mass insertion that were read and not yet written. Standard input is not read while there are more.
pub(crate) const PIPE_BYTES_MAX: usize = 256 * 1024;

/// Redirections that one command follows: a cluster that moves slots sends one or two.
pub(crate) const REDIRECTIONS_MAX: usize = 16;

/// How long an attempt to connect may take.
pub(crate) const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How long `respool top` waits for the replies of one look. A server that is behind by more is asked again over another connection.
pub(crate) const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// Bytes of an answer of the JSON API, which has 1 MB at most, and headers of it.
pub(crate) const API_BYTES_MAX: usize = 2 * 1024 * 1024;

/// See there.
pub(crate) const API_HEADERS_MAX: usize = 64;

/// How long a wait in the kernel lasts at most before it is looked whether the user wants the program to end: the signal may
/// come just before the wait begins.
pub(crate) const WAIT_MAX: Duration = Duration::from_millis(100);

/// What standard input may hold where all of it is one argument: the largest value that a server takes.
pub(crate) const ARGUMENT_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// A line of commands that are read from a file or a pipe.
pub(crate) const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Pushes that wait to be shown while a line is typed. The socket is not read while there are as many.
pub(crate) const PUSHES_MAX: usize = 256;

/// Lines that the history keeps.
pub(crate) const HISTORY_LINES_MAX: usize = 1_000;

/// Bytes of the pieces that a hint shows.
pub(crate) const HINT_BYTES_MAX: usize = 512;

/// Keys that `--hotkeys` shows.
pub(crate) const HOT_KEYS: usize = 16;
