//! RESP2 and RESP3: bytes to frames and back.
//!
//! Owns the wire format and nothing else: it knows no command, no socket and no clock. Everything here is incremental
//! (any chunking gives the same result), linear (no byte is looked at twice) and bounded (memory grows with the bytes
//! that were received, never with a count that a peer declared).
#![forbid(unsafe_code)]

mod args;
mod protocol;

pub use args::{Args, ArgsBuf, Span};
pub use protocol::Protocol;
