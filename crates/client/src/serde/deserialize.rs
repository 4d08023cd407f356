//! A reply as serde reads it.

use std::fmt;

use ::serde::de::value::StringDeserializer;
use ::serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use ::serde::forward_to_deserialize_any;

use crate::from_reply::pairs;
use crate::limits::STRUCTURED_DEPTH_MAX;
use crate::{DecodeError, Elements, FromReply, Reply};

/// A reply that is read, and how many levels may be below it.
pub(super) struct Of(Reply, usize);

impl Of {
    /// A reply that is no part of another.
    pub(super) fn outermost(reply: Reply) -> Self {
        Self(reply, STRUCTURED_DEPTH_MAX)
    }

    /// How many levels may be below its elements.
    fn below(&self) -> Result<usize, DecodeError> {
        self.1.checked_sub(1).ok_or(DecodeError::Invalid("this flat"))
    }
}

impl Error for DecodeError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self::Message(text.to_string())
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $number:ty),*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
            visitor.$visit(<$number>::from_reply(self.0)?)
        })*
    };
}

impl<'de> Deserializer<'de> for Of {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let below = self.below();
        match self.0 {
            Reply::Null => visitor.visit_unit(),
            Reply::Integer(number) => visitor.visit_i64(number),
            Reply::Boolean(value) => visitor.visit_bool(value),
            Reply::Double(number) => visitor.visit_f64(number),
            Reply::Status(bytes) | Reply::Bulk(bytes) | Reply::BigNumber(bytes) => {
                match String::from_utf8(bytes.into()) {
                    Ok(text) => visitor.visit_string(text),
                    Err(error) => visitor.visit_byte_buf(error.into_bytes()),
                }
            }
            Reply::Error(error) => Err(DecodeError::Server(error)),
            Reply::Array(elements) | Reply::Set(elements) => {
                let mut seq = Seq(elements, below?);
                let value = visitor.visit_seq(&mut seq)?;
                if seq.0.declared() == 0 { Ok(value) } else { Err(DecodeError::Invalid("as few elements")) }
            }
            map @ Reply::Map(_) => Self(map, self.1).deserialize_map(visitor),
        }
    }

    numbers!(
        deserialize_bool visit_bool bool,
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_i128 visit_i128 i128,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128,
        deserialize_f32 visit_f32 f32,
        deserialize_f64 visit_f64 f64,
        deserialize_str visit_string String,
        deserialize_string visit_string String,
        deserialize_bytes visit_byte_buf Vec<u8>,
        deserialize_byte_buf visit_byte_buf Vec<u8>
    );

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        visitor.visit_map(Map { below: self.below()?, entries: pairs(self.0), value: None })
    }

    /// Fields by their names. A reply that is an array of a struct's fields in their order is a tuple.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        self.deserialize_map(visitor)
    }

    /// A text is a variant without fields; a map of one entry a variant and what it holds.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let below = self.below();
        match self.0 {
            reply @ Reply::Map(_) => {
                let mut entries = pairs::<String, Reply>(reply);
                let (Some(entry), None) = (entries.next(), entries.next()) else {
                    return Err(DecodeError::Invalid("a variant: a text or a map of one entry"));
                };
                let (name, value) = entry?;
                visitor.visit_enum(Variant { name, value: Some(Self(value, below?)) })
            }
            reply => visitor.visit_enum(Variant { name: String::from_reply(reply)?, value: None }),
        }
    }

    forward_to_deserialize_any! {
        unit unit_struct seq tuple tuple_struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, DecodeError> for Of {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

struct Seq(Elements, usize);

impl<'de> SeqAccess<'de> for Seq {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DecodeError> {
        self.0.next().map(|element| seed.deserialize(Of(element, self.1))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        // What a server announces is no reason to allocate more than what has come.
        None
    }
}

struct Map<I> {
    /// How many levels may be below a key or value.
    below: usize,
    entries: I,
    value: Option<Reply>,
}

impl<'de, I: Iterator<Item = Result<(Reply, Reply), DecodeError>>> MapAccess<'de> for Map<I> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DecodeError> {
        let Some(entry) = self.entries.next() else { return Ok(None) };
        let (key, value) = entry?;
        self.value = Some(value);
        seed.deserialize(Of(key, self.below)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DecodeError> {
        seed.deserialize(Of(self.value.take().ok_or(DecodeError::Invalid("pairs"))?, self.below))
    }
}

struct Variant {
    name: String,
    value: Option<Of>,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = DecodeError;
    type Variant = Holds;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Holds), DecodeError> {
        let name: StringDeserializer<DecodeError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, Holds(self.value)))
    }
}

/// What a variant holds; `None`: it was a text alone.
struct Holds(Option<Of>);

impl Holds {
    fn value(self) -> Result<Of, DecodeError> {
        self.0.ok_or(DecodeError::Invalid("a variant that holds something"))
    }
}

impl<'de> VariantAccess<'de> for Holds {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        match self.0 {
            None | Some(Of(Reply::Null, _)) => Ok(()),
            Some(_) => Err(DecodeError::Invalid("a variant without fields")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DecodeError> {
        seed.deserialize(self.value()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, DecodeError> {
        self.value()?.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, DecodeError> {
        self.value()?.deserialize_map(visitor)
    }
}
