//! A reply as a tree that owns its bytes: for tests, for the client library and for the few answers that must be understood
//! before they are joined. Forwarding never builds one.

use crate::limits::VALUE_DEPTH_MAX;
use crate::token::{Token, check_complete, skip, token};
use crate::{Encoder, ReplyError, ReplyKind};

/// One reply. Attributes are not kept.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A simple string.
    Simple(Vec<u8>),
    /// An error, its code first.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A bulk string.
    Bulk(Vec<u8>),
    /// The null bulk string of RESP2.
    NullBulk,
    /// The null array of RESP2.
    NullArray,
    /// The null of RESP3.
    Null,
    /// An array.
    Array(Vec<Value>),
    /// A map, in the order in which it was sent; keys may repeat.
    Map(Vec<(Value, Value)>),
    /// A set, in the order in which it was sent; elements may repeat.
    Set(Vec<Value>),
    /// A push.
    Push(Vec<Value>),
    /// A double.
    Double(f64),
    /// A boolean.
    Boolean(bool),
    /// An error of any bytes.
    BlobError(Vec<u8>),
    /// A string with a format of three letters.
    Verbatim {
        /// `txt` or `mkd`.
        format: [u8; 3],
        /// The string.
        text: Vec<u8>,
    },
    /// An integer of any size, by its digits.
    BigNumber(Vec<u8>),
}

/// An aggregate that is being filled.
struct Open {
    kind: ReplyKind,
    left: u64,
    values: Vec<Value>,
}

impl Open {
    fn finish(self) -> Value {
        match self.kind {
            ReplyKind::Map => {
                let mut pairs = Vec::with_capacity(self.values.len() / 2);
                let mut values = self.values.into_iter();
                while let (Some(key), Some(value)) = (values.next(), values.next()) {
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
            ReplyKind::Set => Value::Set(self.values),
            ReplyKind::Push => Value::Push(self.values),
            _ => Value::Array(self.values),
        }
    }
}

impl Value {
    /// Parses exactly one complete reply, nested as deep as [`VALUE_DEPTH_MAX`].
    pub fn parse(reply: &[u8]) -> Result<Self, ReplyError> {
        check_complete(reply)?;
        let mut rest = reply;
        let mut open: Vec<Open> = Vec::new();
        loop {
            let (token, tail) = token(rest)?;
            rest = tail;
            let mut value = match token {
                Token::Attribute { elements } => {
                    rest = skip(rest, elements)?;
                    continue;
                }
                Token::Open { kind, elements } => {
                    let aggregate = Open { kind, left: elements, values: Vec::new() };
                    if open.len() >= VALUE_DEPTH_MAX {
                        return Err(ReplyError::TooDeep);
                    }
                    if elements > 0 {
                        open.push(aggregate);
                        continue;
                    }
                    aggregate.finish()
                }
                Token::Leaf { kind, text, .. } => Self::leaf(kind, text)?,
            };
            loop {
                let Some(mut aggregate) = open.pop() else { return Ok(value) };
                aggregate.values.push(value);
                aggregate.left = aggregate.left.saturating_sub(1);
                if aggregate.left > 0 {
                    open.push(aggregate);
                    break;
                }
                value = aggregate.finish();
            }
        }
    }

    fn leaf(kind: ReplyKind, text: &[u8]) -> Result<Self, ReplyError> {
        let scalar = || std::str::from_utf8(text).map_err(|_| ReplyError::InvalidScalar);
        Ok(match kind {
            ReplyKind::Simple => Self::Simple(text.to_vec()),
            ReplyKind::Error => Self::Error(text.to_vec()),
            ReplyKind::Integer => Self::Integer(scalar()?.parse().map_err(|_| ReplyError::InvalidScalar)?),
            ReplyKind::NullBulk => Self::NullBulk,
            ReplyKind::NullArray => Self::NullArray,
            ReplyKind::Null => Self::Null,
            ReplyKind::Double => Self::Double(scalar()?.parse().map_err(|_| ReplyError::InvalidScalar)?),
            ReplyKind::Boolean => Self::Boolean(text == b"t"),
            ReplyKind::BlobError => Self::BlobError(text.to_vec()),
            ReplyKind::Verbatim => match *text {
                [a, b, c, b':', ref text @ ..] => Self::Verbatim { format: [a, b, c], text: text.to_vec() },
                _ => return Err(ReplyError::InvalidVerbatim),
            },
            ReplyKind::BigNumber => Self::BigNumber(text.to_vec()),
            ReplyKind::Bulk | ReplyKind::Array | ReplyKind::Map | ReplyKind::Set | ReplyKind::Push => {
                Self::Bulk(text.to_vec())
            }
        })
    }

    /// Writes the reply in the encoder's dialect.
    pub fn encode(&self, encoder: &mut Encoder<'_>) {
        match self {
            Self::Simple(text) => encoder.simple_bytes(text),
            Self::Error(text) => encoder.error(text),
            Self::Integer(value) => encoder.integer(*value),
            Self::Bulk(bytes) => encoder.bulk(bytes),
            Self::NullBulk | Self::Null => encoder.null(),
            Self::NullArray => encoder.null_array(),
            Self::Array(values) => {
                encoder.array(values.len());
                values.iter().for_each(|value| value.encode(encoder));
            }
            Self::Set(values) => {
                encoder.set(values.len());
                values.iter().for_each(|value| value.encode(encoder));
            }
            Self::Push(values) => {
                encoder.push(values.len());
                values.iter().for_each(|value| value.encode(encoder));
            }
            Self::Map(pairs) => {
                encoder.map(pairs.len());
                for (key, value) in pairs {
                    key.encode(encoder);
                    value.encode(encoder);
                }
            }
            Self::Double(value) => encoder.double(*value),
            Self::Boolean(value) => encoder.boolean(*value),
            Self::BlobError(text) => encoder.blob_error(text),
            Self::Verbatim { format, text } => encoder.verbatim_bytes(*format, text),
            Self::BigNumber(digits) => encoder.big_number(digits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::Bulk(text.into())
    }

    #[test]
    fn every_type_is_parsed() {
        let reply =
            b"*16\r\n+s\r\n-e x\r\n:+07\r\n$2\r\n\r\n\r\n$-1\r\n*-1\r\n_\r\n*0\r\n%1\r\n$1\r\nk\r\n*1\r\n:1\r\n\
            ~1\r\n:2\r\n,-inf\r\n,1e3\r\n#t\r\n!3\r\nE\r\n\r\n=5\r\ntxt:x\r\n(123\r\n";
        let expected = Value::Array(vec![
            Value::Simple(b"s".into()),
            Value::Error(b"e x".into()),
            Value::Integer(7),
            bulk("\r\n"),
            Value::NullBulk,
            Value::NullArray,
            Value::Null,
            Value::Array(vec![]),
            Value::Map(vec![(bulk("k"), Value::Array(vec![Value::Integer(1)]))]),
            Value::Set(vec![Value::Integer(2)]),
            Value::Double(f64::NEG_INFINITY),
            Value::Double(1000.0),
            Value::Boolean(true),
            Value::BlobError(b"E\r\n".into()),
            Value::Verbatim { format: *b"txt", text: b"x".into() },
            Value::BigNumber("123".into()),
        ]);
        assert_eq!(Value::parse(reply), Ok(expected));
        assert_eq!(Value::parse(b">1\r\n+x\r\n"), Ok(Value::Push(vec![Value::Simple(b"x".into())])));
        assert!(matches!(Value::parse(b",-nan\r\n"), Ok(Value::Double(value)) if value.is_nan()));
    }

    #[test]
    fn attributes_are_skipped() {
        let reply = b"|1\r\n+a\r\n*1\r\n:0\r\n*2\r\n|1\r\n+b\r\n:9\r\n:1\r\n:2\r\n";
        assert_eq!(Value::parse(reply), Ok(Value::Array(vec![Value::Integer(1), Value::Integer(2)])));
    }

    #[test]
    fn only_exactly_one_reply_is_parsed() {
        for reply in ["", "+OK", "*1\r\n", "$3\r\nab\r\n", "+OK\r\n+OK\r\n", "|0\r\n"] {
            assert!(Value::parse(reply.as_bytes()).is_err(), "{reply:?}");
        }
    }

    #[test]
    fn the_deepest_reply_is_parsed_and_dropped() {
        let deepest = format!("{}:1\r\n", "*1\r\n".repeat(VALUE_DEPTH_MAX));
        let mut value = Value::parse(deepest.as_bytes()).unwrap();
        let mut depth = 0;
        while let Value::Array(mut values) = value {
            value = values.pop().unwrap();
            depth += 1;
        }
        assert_eq!((depth, value), (VALUE_DEPTH_MAX, Value::Integer(1)));
        drop(Value::parse(deepest.as_bytes()));
        assert_eq!(Value::parse(format!("*1\r\n{deepest}").as_bytes()), Err(ReplyError::TooDeep));
    }
}
