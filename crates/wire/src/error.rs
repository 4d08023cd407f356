//! What peers do wrong, in the words that clients match on.
//!
//! Incomplete input is no error and has no place here. A request's error is the client's fault and is answered, then the
//! connection is closed; a reply's error is the node's fault, and its connection can never be used again.

use std::fmt::{self, Write as _};

/// Why a request was refused. `Display` gives Redis' text as it follows `ERR Protocol error: `.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The number of arguments is not a canonical integer or too large.
    InvalidMultibulkLength,
    /// More arguments than an unauthenticated client may send.
    UnauthenticatedMultibulkLength,
    /// The length of an argument is not a canonical integer, is negative or too large.
    InvalidBulkLength,
    /// A longer argument than an unauthenticated client may send.
    UnauthenticatedBulkLength,
    /// An argument began with this byte.
    ExpectedDollar(u8),
    /// The head of a request did not end (lenient mode only).
    TooBigMultibulkCount,
    /// The head of an argument did not end (lenient mode only).
    TooBigBulkCount,
    /// An inline request did not end.
    TooBigInline,
    /// A quote in an inline request was not closed, or was closed in the middle of a word.
    UnbalancedQuotes,
    /// An argument was not followed by CR LF (strict mode only; Redis does not look, so the text is ours).
    UnterminatedBulk,
    /// A NUL in an inline request (strict mode only; Redis stops reading there, so the text is ours).
    NulInline,
    /// The request as a whole is too long (Redis closes without a word, so the text is ours).
    TooBigRequest,
    /// The command's name is `POST` or `Host:`: a browser was made to speak to us. Closed without a reply, and whatever was
    /// waiting to be sent to this client is dropped.
    CrossProtocol,
}

impl RequestError {
    /// Whether the connection is closed without an answer.
    pub const fn is_silent(self) -> bool {
        matches!(self, Self::CrossProtocol)
    }

    /// Appends the error reply, `-ERR Protocol error: ...` with its CR LF; nothing if the error is silent.
    pub fn append_reply(self, out: &mut Vec<u8>) {
        if self.is_silent() {
            return;
        }
        out.extend_from_slice(b"-ERR Protocol error: ");
        match self {
            Self::ExpectedDollar(byte) => {
                let byte = if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
                out.extend_from_slice(b"expected '$', got '");
                out.extend_from_slice(&[byte, b'\'']);
            }
            _ => out.extend_from_slice(self.text().as_bytes()),
        }
        out.extend_from_slice(b"\r\n");
    }

    const fn text(self) -> &'static str {
        match self {
            Self::InvalidMultibulkLength => "invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => "unauthenticated multibulk length",
            Self::InvalidBulkLength => "invalid bulk length",
            Self::UnauthenticatedBulkLength => "unauthenticated bulk length",
            Self::ExpectedDollar(_) => "expected '$'",
            Self::TooBigMultibulkCount => "too big mbulk count string",
            Self::TooBigBulkCount => "too big bulk count string",
            Self::TooBigInline => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::UnterminatedBulk => "bulk string not followed by CRLF",
            Self::NulInline => "NUL byte in inline request",
            Self::TooBigRequest => "too big request",
            Self::CrossProtocol => "HTTP spoken to a RESP port",
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ExpectedDollar(byte) => {
                f.write_str("expected '$', got '")?;
                match byte {
                    b'\r' | b'\n' => f.write_char(' ')?,
                    b' '..=b'~' => f.write_char(char::from(byte))?,
                    other => write!(f, "{}", other.escape_ascii())?,
                }
                f.write_char('\'')
            }
            other => f.write_str(other.text()),
        }
    }
}

impl std::error::Error for RequestError {}

/// Why a reply was refused. The connection that it came from is at no known boundary any more and must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// A reply began with this byte.
    UnknownType(u8),
    /// A streamed string or aggregate (`$?`, `*?`, `;`, `.`): no server sends them, and we do not forward them.
    Streamed(u8),
    /// A reply, or a part of it, began with this byte, which only RESP3 has, where RESP2 is spoken.
    OtherDialect(u8),
    /// The length of a string or aggregate is not a canonical integer, or is negative where no null is meant.
    InvalidLength,
    /// The text of an integer, double, boolean or null is not one.
    InvalidScalar,
    /// A lone CR or LF in a line; a reader that splits lines elsewhere would lose step.
    BareNewline,
    /// A string was not followed by CR LF.
    UnterminatedBulk,
    /// A verbatim string without its three letters and colon.
    InvalidVerbatim,
    /// A push inside of another reply.
    NestedPush,
    /// An attribute on an attribute: refused, as such a chain would never have to end.
    ChainedAttribute,
    /// A string is longer than the limit.
    BulkTooLong,
    /// A line is longer than the limit.
    LineTooLong,
    /// An aggregate has more elements than the limit.
    TooManyElements,
    /// Aggregates lie deeper in each other than the limit.
    TooDeep,
    /// A reply that was to be complete is not, or something follows it.
    Incomplete,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::UnknownType(byte) => return write!(f, "unknown reply type '{}'", byte.escape_ascii()),
            Self::Streamed(byte) => return write!(f, "streamed reply type '{}'", byte.escape_ascii()),
            Self::OtherDialect(byte) => return write!(f, "reply type '{}' of RESP3 in RESP2", byte.escape_ascii()),
            Self::InvalidLength => "invalid length",
            Self::InvalidScalar => "invalid number, boolean or null",
            Self::BareNewline => "lone CR or LF in a line",
            Self::UnterminatedBulk => "string not followed by CRLF",
            Self::InvalidVerbatim => "verbatim string without a format",
            Self::NestedPush => "push inside of a reply",
            Self::ChainedAttribute => "attribute on an attribute",
            Self::BulkTooLong => "string over the limit",
            Self::LineTooLong => "line over the limit",
            Self::TooManyElements => "more elements than the limit",
            Self::TooDeep => "nested deeper than the limit",
            Self::Incomplete => "not exactly one complete reply",
        })
    }
}

impl std::error::Error for ReplyError {}
