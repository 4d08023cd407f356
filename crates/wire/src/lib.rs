//! RESP2 and RESP3: bytes to frames and back.
//!
//! Owns the wire format and nothing else: it knows no command, no socket and no clock. Everything here is incremental
//! (any chunking gives the same result), linear (the work is in proportion to the bytes, however they arrive) and bounded
//! (memory grows with the bytes that were received, never with a count that a peer declared).
//!
//! A proxy needs two of its machines: [`RequestDecoder`] cuts what clients send into arguments, [`ReplyScanner`] finds where
//! the replies of nodes end. Neither owns the bytes.
//!
//! ```
//! use respool_wire::{ReplyKind, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step};
//!
//! let mut decoder = RequestDecoder::new();
//! let received = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nPING\r\n*1\r\n$4\r\nPI";
//! let mut rest = &received[..];
//! let mut names = Vec::new();
//! loop {
//!     rest = match decoder.decode(rest, &RequestLimits::default())? {
//!         Step::Request(request) => {
//!             names.push(request.args.name().to_vec());
//!             &rest[request.consumed..]
//!         }
//!         Step::Empty { consumed } => &rest[consumed..],
//!         Step::Incomplete => break, // keep `rest`, receive more behind it, decode again
//!     };
//! }
//! assert_eq!(names, [b"GET".to_vec(), b"PING".to_vec()]);
//! assert_eq!(rest, b"*1\r\n$4\r\nPI");
//!
//! let mut scanner = ReplyScanner::new();
//! assert_eq!(scanner.scan(b"$5\r\nhel", &ReplyLimits::default())?, Scan::Partial);
//! let scan = scanner.scan(b"lo\r\n+OK\r\n", &ReplyLimits::default())?;
//! assert_eq!(scan, Scan::Complete { consumed: 4, kind: ReplyKind::Bulk });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
mod scalar;
mod spans;
mod tail;
mod token;
mod value;
mod wipe;

pub use args::{Args, ArgsBuf, SecretArgs, Span, split_words};
pub use convert::{to_resp2, to_resp3};
pub use double::DoubleText;
pub use elements::{Elements, Part, elements, part, split_reply};
pub use encode::{Encoder, Head, encode_request, request_bulk, request_head};
pub use error::{ReplyError, RequestError};
pub use limits::{ReplyLimits, RequestBounds, RequestLimits, Strictness};
pub use protocol::Protocol;
pub use reply::{ReplyKind, ReplyScanner, Scan};
pub use request::{Begun, Request, RequestDecoder, Step};
pub use tail::RequestTail;
pub use value::Value;
pub use wipe::{wipe, wipe_all};
