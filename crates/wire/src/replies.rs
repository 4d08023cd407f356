//! Replies that are always the same bytes.

/// `OK`.
pub const OK: &[u8] = b"+OK\r\n";
/// `PONG`.
pub const PONG: &[u8] = b"+PONG\r\n";
/// `QUEUED`, the answer to a command within a transaction.
pub const QUEUED: &[u8] = b"+QUEUED\r\n";
/// `RESET`.
pub const RESET: &[u8] = b"+RESET\r\n";
/// The null of RESP3.
pub const NULL: &[u8] = b"_\r\n";
/// The null bulk string of RESP2.
pub const NULL_BULK: &[u8] = b"$-1\r\n";
/// The null array of RESP2.
pub const NULL_ARRAY: &[u8] = b"*-1\r\n";
/// The empty bulk string.
pub const EMPTY_BULK: &[u8] = b"$0\r\n\r\n";
/// The empty array.
pub const EMPTY_ARRAY: &[u8] = b"*0\r\n";
/// The integer 0.
pub const ZERO: &[u8] = b":0\r\n";
/// The integer 1.
pub const ONE: &[u8] = b":1\r\n";
/// The integer -1.
pub const MINUS_ONE: &[u8] = b":-1\r\n";
/// The integer -2.
pub const MINUS_TWO: &[u8] = b":-2\r\n";
