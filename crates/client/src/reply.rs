//! A reply as the caller gets it.
//!
//! What has no elements is one small value. An aggregate is kept as the node wrote it, in one piece of memory, and taken apart when
//! it is read.

use crate::ServerError;
use bytes::Bytes;
use respool_wire::{Part, ReplyKind, part, split_reply};

/// A reply. RESP2 and RESP3 give the same wherever they mean the same.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Nothing: a null of either dialect.
    Null,
    /// An integer.
    Integer(i64),
    /// A boolean of RESP3.
    Boolean(bool),
    /// A double of RESP3.
    Double(f64),
    /// A status, as `OK`.
    Status(Bytes),
    /// A string of any bytes. A verbatim string comes without its format.
    Bulk(Bytes),
    /// The digits of an integer of any size.
    BigNumber(Bytes),
    /// An error of the server's.
    Error(ServerError),
    /// An array or a push.
    Array(Elements),
    /// A set.
    Set(Elements),
    /// A map: key, value, key, value.
    Map(Elements),
}

/// The elements of an aggregate, in the order in which they were sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elements {
    bytes: Bytes,
    left: u64,
}

impl Reply {
    /// Whether it is a null.
    pub fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// What it is, for errors of conversion.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Integer(_) => "integer",
            Self::Boolean(_) => "boolean",
            Self::Double(_) => "double",
            Self::Status(_) => "status",
            Self::Bulk(_) => "string",
            Self::BigNumber(_) => "big number",
            Self::Error(_) => "error",
            Self::Array(_) => "array",
            Self::Set(_) => "set",
            Self::Map(_) => "map",
        }
    }

    /// A complete reply that is copied. An integer, a null and the usual statuses cost no memory, everything else one allocation.
    pub(crate) fn copied(bytes: &[u8]) -> Option<Self> {
        // The two that most requests have, without a second look at their form: the scanner has found them whole.
        match bytes {
            b"+OK\r\n" => return Some(Self::Status(Bytes::from_static(b"OK"))),
            [b'$', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => {
                let start = rest.iter().position(|&byte| byte == b'\n')? + 1;
                return Some(Self::Bulk(Bytes::copy_from_slice(rest.get(start..rest.len().checked_sub(2)?)?)));
            }
            _ => {}
        }
        match part(bytes)? {
            Part::Leaf(kind, text) => Self::leaf(kind, text, Bytes::copy_from_slice),
            Part::Aggregate(walk) => {
                Some(Self::aggregate(walk.kind(), Bytes::copy_from_slice(walk.rest()), walk.declared()))
            }
        }
    }

    /// A complete reply in memory of its own, which is not copied.
    pub(crate) fn owned(bytes: &Bytes) -> Option<Self> {
        match part(bytes)? {
            Part::Leaf(kind, text) => Self::leaf(kind, text, |text| bytes.slice_ref(text)),
            Part::Aggregate(walk) => Some(Self::aggregate(walk.kind(), bytes.slice_ref(walk.rest()), walk.declared())),
        }
    }

    fn leaf(kind: ReplyKind, text: &[u8], keep: impl Fn(&[u8]) -> Bytes) -> Option<Self> {
        let scalar = || std::str::from_utf8(text).ok();
        Some(match kind {
            ReplyKind::Bulk => Self::Bulk(keep(text)),
            ReplyKind::Simple => Self::Status(match text {
                b"OK" => Bytes::from_static(b"OK"),
                b"QUEUED" => Bytes::from_static(b"QUEUED"),
                b"PONG" => Bytes::from_static(b"PONG"),
                text => keep(text),
            }),
            ReplyKind::Integer => Self::Integer(scalar()?.parse().ok()?),
            ReplyKind::NullBulk | ReplyKind::NullArray | ReplyKind::Null => Self::Null,
            ReplyKind::Boolean => Self::Boolean(text == b"t"),
            ReplyKind::Double => Self::Double(scalar()?.parse().ok()?),
            ReplyKind::BigNumber => Self::BigNumber(keep(text)),
            ReplyKind::Verbatim => Self::Bulk(keep(text.get(4..)?)),
            ReplyKind::Error | ReplyKind::BlobError => Self::Error(ServerError::new(keep(text))),
            ReplyKind::Array | ReplyKind::Map | ReplyKind::Set | ReplyKind::Push => return None,
        })
    }

    fn aggregate(kind: ReplyKind, bytes: Bytes, left: u64) -> Self {
        let elements = Elements { bytes, left };
        match kind {
            ReplyKind::Map => Self::Map(elements),
            ReplyKind::Set => Self::Set(elements),
            _ => Self::Array(elements),
        }
    }

    /// Bytes of its text, or of its elements as they were sent.
    #[inline]
    pub(crate) fn payload(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) | Self::Boolean(_) | Self::Double(_) => 0,
            Self::Status(text) | Self::Bulk(text) | Self::BigNumber(text) => text.len(),
            Self::Error(error) => error.bytes().len(),
            Self::Array(elements) | Self::Set(elements) | Self::Map(elements) => elements.bytes.len(),
        }
    }

    /// Bytes that it holds on to.
    #[cfg(feature = "cache")]
    pub(crate) fn bytes(&self) -> usize {
        self.payload() + std::mem::size_of::<Self>()
    }

    /// Appends it as a node writes it. Returns its kind.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> ReplyKind {
        let mut line = |mark: u8, text: &[u8]| {
            out.push(mark);
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        };
        match self {
            Self::Null => line(b'_', b""),
            Self::Integer(number) => line(b':', number.to_string().as_bytes()),
            Self::Boolean(is_true) => line(b'#', if *is_true { b"t" } else { b"f" }),
            Self::Double(number) => line(b',', number.to_string().as_bytes()),
            Self::Status(text) => line(b'+', text),
            Self::BigNumber(digits) => line(b'(', digits),
            Self::Bulk(text) => {
                line(b'$', text.len().to_string().as_bytes());
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            Self::Error(error) => {
                line(b'!', error.bytes().len().to_string().as_bytes());
                out.extend_from_slice(error.bytes());
                out.extend_from_slice(b"\r\n");
            }
            Self::Array(elements) | Self::Set(elements) => {
                line(if matches!(self, Self::Set(_)) { b'~' } else { b'*' }, elements.left.to_string().as_bytes());
                out.extend_from_slice(&elements.bytes);
            }
            Self::Map(elements) => {
                line(b'%', (elements.left / 2).to_string().as_bytes());
                out.extend_from_slice(&elements.bytes);
            }
        }
        match self {
            Self::Null => ReplyKind::Null,
            Self::Integer(_) => ReplyKind::Integer,
            Self::Boolean(_) => ReplyKind::Boolean,
            Self::Double(_) => ReplyKind::Double,
            Self::Status(_) => ReplyKind::Simple,
            Self::BigNumber(_) => ReplyKind::BigNumber,
            Self::Bulk(_) => ReplyKind::Bulk,
            Self::Error(_) => ReplyKind::BlobError,
            Self::Array(_) => ReplyKind::Array,
            Self::Set(_) => ReplyKind::Set,
            Self::Map(_) => ReplyKind::Map,
        }
    }

    /// The elements of an aggregate of any kind.
    pub fn into_elements(self) -> Result<Elements, Self> {
        match self {
            Self::Array(elements) | Self::Set(elements) | Self::Map(elements) => Ok(elements),
            other => Err(other),
        }
    }
}

impl Elements {
    /// How many are left; a pair of a map counts twice.
    pub fn declared(&self) -> u64 {
        self.left
    }
}

impl Iterator for Elements {
    type Item = Reply;

    fn next(&mut self) -> Option<Reply> {
        self.left = self.left.checked_sub(1)?;
        let (first, rest) = split_reply(&self.bytes)?;
        let rest = rest.len();
        let first = self.bytes.slice_ref(first);
        self.bytes = self.bytes.slice(self.bytes.len() - rest..);
        Reply::owned(&first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_taken_apart() {
        let bulk = |text: &'static str| Reply::Bulk(Bytes::from_static(text.as_bytes()));
        for (bytes, expected) in [
            (&b"+OK\r\n"[..], Reply::Status(Bytes::from_static(b"OK"))),
            (b"+other\r\n", Reply::Status(Bytes::from_static(b"other"))),
            (b":-7\r\n", Reply::Integer(-7)),
            (b"$3\r\na\r\n\r\n", bulk("a\r\n")),
            (b"$-1\r\n", Reply::Null),
            (b"*-1\r\n", Reply::Null),
            (b"_\r\n", Reply::Null),
            (b"#t\r\n", Reply::Boolean(true)),
            (b",1.5\r\n", Reply::Double(1.5)),
            (b"=7\r\ntxt:abc\r\n", bulk("abc")),
            (b"(123\r\n", Reply::BigNumber(Bytes::from_static(b"123"))),
            (b"-ERR no\r\n", Reply::Error(ServerError::new(Bytes::from_static(b"ERR no")))),
            (b"|1\r\n+a\r\n+b\r\n:1\r\n", Reply::Integer(1)),
        ] {
            assert_eq!(Reply::copied(bytes), Some(expected.clone()));
            let mut written = Vec::new();
            expected.write(&mut written);
            assert_eq!(Reply::copied(&written).as_ref(), Some(&expected));
            assert_eq!(Reply::owned(&Bytes::from_static(bytes)), Some(expected));
        }
        for bytes in [&b"*2\r\n:1\r\n*1\r\n+a\r\n"[..], b"%1\r\n+a\r\n:1\r\n", b"~1\r\n:1\r\n", b"*0\r\n"] {
            let mut written = Vec::new();
            Reply::copied(bytes).unwrap().write(&mut written);
            assert_eq!(written, bytes);
        }
    }

    #[test]
    fn elements_come_in_order_and_nest() {
        let reply = Reply::copied(b"*3\r\n:1\r\n%1\r\n+a\r\n*0\r\n$1\r\nx\r\n").unwrap();
        let elements: Vec<Reply> = reply.into_elements().unwrap().collect();
        assert_eq!(elements[0], Reply::Integer(1));
        assert_eq!(elements[2], Reply::Bulk(Bytes::from_static(b"x")));
        let Reply::Map(pair) = elements[1].clone() else { panic!("{elements:?}") };
        assert_eq!(pair.declared(), 2);
        let pair: Vec<Reply> = pair.collect();
        assert!(matches!(&pair[..], [Reply::Status(_), Reply::Array(none)] if none.declared() == 0));
    }
}
