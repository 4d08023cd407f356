//! RESP2 and RESP3: bytes to frames and back.
//!
//! Owns the wire format and nothing else: it knows no command, no socket and no clock. Everything here is incremental
//! (any chunking gives the same result), linear (no byte is looked at twice) and bounded (memory grows with the bytes
//! that were received, never with a count that a peer declared).
#![forbid(unsafe_code)]

mod args;
mod convert;
mod double;
mod elements;
mod encode;
mod error;
mod inline;
pub mod limits;
mod number;
mod protocol;
pub mod replies;
mod reply;
mod request;
mod spans;
mod token;
mod value;

pub use args::{Args, ArgsBuf, Span};
pub use convert::to_resp2;
pub use double::DoubleText;
pub use elements::{Elements, elements};
pub use encode::{Encoder, encode_request, request_bulk, request_head};
pub use error::{ReplyError, RequestError};
pub use limits::{ReplyLimits, RequestLimits, Strictness};
pub use protocol::Protocol;
pub use reply::{ReplyKind, ReplyScanner, Scan};
pub use request::{Request, RequestDecoder, Step};
pub use value::Value;
