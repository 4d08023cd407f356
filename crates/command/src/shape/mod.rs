//! What replies look like in the two dialects, where more differs than the marks of types.
//!
//! A node that speaks RESP2 alone (Redis before 6.0, or one whose HELLO is out of reach) says less than a client that
//! speaks RESP3 expects: that an array is a map, that a string is a number. A row's shape knows it, so replies can be
//! converted in either direction. Shapes are data; which row has which is said in the tables.

mod forms;

use respool_wire::{Args, Encoder, Protocol, ReplyError, ReplyKind, Value, elements, to_resp2, to_resp3};

pub(crate) use forms::*;

/// The shape of a reply or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// The same in both dialects, but for nulls.
    Plain,
    /// A floating point number; a string in RESP2.
    Double,
    /// Text for people; a plain string in RESP2.
    Text,
    /// An array in both, of parts of this shape.
    Array(&'static Shape),
    /// An array in both; those of its elements that are arrays themselves have this shape.
    Nested(&'static Shape),
    /// An array in both, each element of its own shape; the last one is that of all that follow.
    Tuple(&'static [Shape]),
    /// A set; an array in RESP2.
    Set(&'static Shape),
    /// A set if it is empty and an array otherwise: how `COMMAND` tells of subcommands.
    Subcommands(&'static Shape),
    /// Names and values of this shape in turn: a map in RESP3.
    Map(&'static Shape),
    /// Names and values in turn, a map in RESP3: the values of these names have these shapes, all others the last.
    Fields(&'static [(&'static str, Shape)], &'static Shape),
    /// Pairs whose second half has this shape: in turn in RESP2, an array each in RESP3.
    Pairs(&'static Shape),
    /// Pairs: an array each in RESP2, a map in RESP3. The values have this shape.
    Entries(&'static Shape),
}

/// Decides a reply's shape by the request.
pub type ShapeOf = fn(Args<'_>) -> &'static Shape;

impl Shape {
    /// Appends a complete RESP2 reply of this shape as RESP3 has it. What does not look as it should is left as it is, but
    /// for nulls. On an error nothing is appended.
    pub fn to_resp3(&self, reply: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
        let start = out.len();
        let result = self.up(reply, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn up(&self, reply: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
        let walk = match reply.first() {
            Some(b'*') => elements(reply),
            Some(b'$') => return self.string_up(reply, out),
            _ => return to_resp3(reply, out),
        };
        let Some(walk) = walk else { return to_resp3(reply, out) };
        let count = usize::try_from(walk.declared()).unwrap_or(usize::MAX);
        let is_even = count.is_multiple_of(2);
        let mut encoder = Encoder::new(out, Protocol::Resp3);
        match *self {
            Self::Plain | Self::Double | Self::Text => to_resp3(reply, out),
            Self::Array(of) => {
                encoder.array(count);
                walk.into_iter().try_for_each(|element| of.up(element, out))
            }
            Self::Nested(of) => {
                encoder.array(count);
                walk.into_iter().try_for_each(|element| of.inner(element).up(element, out))
            }
            Self::Tuple(shapes) => {
                encoder.array(count);
                walk.enumerate().try_for_each(|(at, element)| nth(shapes, at).up(element, out))
            }
            Self::Set(of) => {
                encoder.set(count);
                walk.into_iter().try_for_each(|element| of.up(element, out))
            }
            Self::Subcommands(of) => {
                if count == 0 {
                    encoder.set(0);
                } else {
                    encoder.array(count);
                }
                walk.into_iter().try_for_each(|element| of.up(element, out))
            }
            Self::Map(_) | Self::Fields(..) if is_even => {
                encoder.map(count / 2);
                let mut name: &[u8] = &[];
                walk.enumerate().try_for_each(|(at, element)| {
                    if at % 2 == 0 {
                        name = element;
                        return to_resp3(element, out);
                    }
                    self.of_name(name).up(element, out)
                })
            }
            Self::Pairs(of) if is_even => {
                encoder.array(count / 2);
                walk.enumerate().try_for_each(|(at, element)| {
                    if at % 2 == 0 {
                        Encoder::new(out, Protocol::Resp3).array(2);
                        return to_resp3(element, out);
                    }
                    of.up(element, out)
                })
            }
            Self::Entries(of) if walk.clone().all(|pair| elements(pair).is_some_and(|it| it.declared() == 2)) => {
                encoder.map(count);
                walk.filter_map(elements).try_for_each(|pair| {
                    pair.enumerate()
                        .try_for_each(|(at, half)| if at == 0 { to_resp3(half, out) } else { of.up(half, out) })
                })
            }
            Self::Map(_) | Self::Fields(..) | Self::Pairs(_) | Self::Entries(_) => to_resp3(reply, out),
        }
    }

    /// A string, which may stand for something else.
    fn string_up(&self, reply: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
        let mut encoder = Encoder::new(out, Protocol::Resp3);
        match (self, Value::parse(reply)) {
            (Self::Double, Ok(Value::Bulk(digits))) => {
                encoder.raw(&[b",", &digits[..], b"\r\n"].concat());
                Ok(())
            }
            (Self::Text, Ok(Value::Bulk(text))) => {
                encoder.verbatim_bytes(*b"txt", &text);
                Ok(())
            }
            _ => to_resp3(reply, out),
        }
    }

    /// Appends a complete RESP3 reply of this shape as RESP2 has it. On an error nothing is appended.
    pub fn to_resp2(&self, reply: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
        let start = out.len();
        let result = self.down(reply, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn down(&self, reply: &[u8], out: &mut Vec<u8>) -> Result<(), ReplyError> {
        let is_whole_aggregate = matches!(self, Self::Array(_) | Self::Entries(_) | Self::Tuple(_));
        if reply == b"_\r\n" && is_whole_aggregate {
            Encoder::new(out, Protocol::Resp2).null_array();
            return Ok(());
        }
        let Some(walk) = elements(reply) else { return to_resp2(reply, out) };
        let count = usize::try_from(walk.declared()).unwrap_or(usize::MAX);
        let mut encoder = Encoder::new(out, Protocol::Resp2);
        match *self {
            Self::Plain | Self::Double | Self::Text => to_resp2(reply, out),
            Self::Pairs(of) if walk.clone().all(|pair| elements(pair).is_some_and(|it| it.declared() == 2)) => {
                encoder.array(count * 2);
                walk.filter_map(elements).try_for_each(|pair| {
                    pair.enumerate()
                        .try_for_each(|(at, half)| if at == 0 { to_resp2(half, out) } else { of.down(half, out) })
                })
            }
            Self::Entries(of) if walk.kind() == ReplyKind::Map => {
                encoder.array(count / 2);
                walk.enumerate().try_for_each(|(at, element)| {
                    if at % 2 == 0 {
                        Encoder::new(out, Protocol::Resp2).array(2);
                        return to_resp2(element, out);
                    }
                    of.down(element, out)
                })
            }
            Self::Pairs(_) | Self::Entries(_) => to_resp2(reply, out),
            Self::Map(_) | Self::Fields(..) => {
                encoder.array(count);
                let mut name: &[u8] = &[];
                walk.enumerate().try_for_each(|(at, element)| {
                    if at % 2 == 0 {
                        name = element;
                        return to_resp2(element, out);
                    }
                    self.of_name(name).down(element, out)
                })
            }
            Self::Array(of) | Self::Set(of) | Self::Subcommands(of) => {
                encoder.array(count);
                walk.into_iter().try_for_each(|element| of.down(element, out))
            }
            Self::Nested(of) => {
                encoder.array(count);
                walk.into_iter().try_for_each(|element| of.inner(element).down(element, out))
            }
            Self::Tuple(shapes) => {
                encoder.array(count);
                walk.enumerate().try_for_each(|(at, element)| nth(shapes, at).down(element, out))
            }
        }
    }

    /// This shape if `element` is an aggregate, else a plain one.
    fn inner(&'static self, element: &[u8]) -> &'static Self {
        if matches!(element.first(), Some(b'*' | b'%' | b'~')) { self } else { &Self::Plain }
    }

    /// The shape of the value that belongs to a name of a map.
    fn of_name(&self, name: &[u8]) -> &'static Self {
        match *self {
            Self::Map(of) => of,
            Self::Fields(fields, others) => {
                let text = match Value::parse(name) {
                    Ok(Value::Bulk(text) | Value::Simple(text)) => text,
                    _ => return others,
                };
                fields.iter().find(|(field, _)| field.as_bytes() == text).map_or(others, |(_, shape)| shape)
            }
            _ => &Self::Plain,
        }
    }
}

fn nth(shapes: &'static [Shape], at: usize) -> &'static Shape {
    shapes.get(at).or(shapes.last()).unwrap_or(&Shape::Plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both directions, as goldens.
    #[track_caller]
    fn check(shape: &Shape, resp2: &str, resp3: &str) {
        let mut out = b"before".to_vec();
        assert_eq!(shape.to_resp3(resp2.as_bytes(), &mut out), Ok(()));
        assert_eq!(String::from_utf8_lossy(&out), format!("before{resp3}"), "up");
        let mut out = Vec::new();
        assert_eq!(shape.to_resp2(resp3.as_bytes(), &mut out), Ok(()));
        assert_eq!(String::from_utf8_lossy(&out), resp2, "down");
    }

    #[test]
    fn plain_replies_differ_in_their_nulls_alone() {
        check(&Shape::Plain, "+OK\r\n", "+OK\r\n");
        check(&Shape::Plain, "-ERR no\r\n", "-ERR no\r\n");
        check(&Shape::Plain, ":-5\r\n", ":-5\r\n");
        check(&Shape::Plain, "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n");
        check(&Shape::Plain, "$-1\r\n", "_\r\n");
        check(&Shape::Plain, "*2\r\n$-1\r\n*1\r\n$-1\r\n", "*2\r\n_\r\n*1\r\n_\r\n");
    }

    #[test]
    fn doubles_and_texts_are_strings_in_resp2() {
        check(&Shape::Double, "$3\r\n1.5\r\n", ",1.5\r\n");
        check(&Shape::Double, "$4\r\n-inf\r\n", ",-inf\r\n");
        check(&Shape::Double, "$-1\r\n", "_\r\n");
        check(&Shape::Double, "-ERR no\r\n", "-ERR no\r\n");
        check(&Shape::Double, ":1\r\n", ":1\r\n");
        check(&Shape::Text, "$4\r\na\r\nb\r\n", "=8\r\ntxt:a\r\nb\r\n");
    }

    #[test]
    fn arrays_keep_their_form_and_their_parts_have_theirs() {
        check(&Shape::Array(&Shape::Double), "*2\r\n$1\r\n1\r\n$-1\r\n", "*2\r\n,1\r\n_\r\n");
        check(&Shape::Array(&Shape::Double), "*-1\r\n", "_\r\n");
        check(&Shape::Array(&Shape::Double), "*0\r\n", "*0\r\n");
        check(
            &Shape::Nested(&Shape::Array(&Shape::Double)),
            "*2\r\n$1\r\n1\r\n*1\r\n$1\r\n1\r\n",
            "*2\r\n$1\r\n1\r\n*1\r\n,1\r\n",
        );
        check(&Shape::Tuple(&[Shape::Plain, Shape::Double]), "*2\r\n$1\r\n1\r\n$1\r\n2\r\n", "*2\r\n$1\r\n1\r\n,2\r\n");
        check(
            &Shape::Tuple(&[Shape::Plain, Shape::Double]),
            "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n",
            "*3\r\n$1\r\n1\r\n,2\r\n,3\r\n",
        );
    }

    #[test]
    fn sets_are_arrays_in_resp2() {
        check(&Shape::Set(&Shape::Plain), "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "~2\r\n$1\r\na\r\n$1\r\nb\r\n");
        check(&Shape::Subcommands(&Shape::Plain), "*0\r\n", "~0\r\n");
        check(&Shape::Subcommands(&Shape::Plain), "*1\r\n:1\r\n", "*1\r\n:1\r\n");
    }

    #[test]
    fn maps_are_names_and_values_in_turn_in_resp2() {
        check(
            &Shape::Map(&Shape::Plain),
            "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n$-1\r\n",
            "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n_\r\n",
        );
        check(&Shape::Map(&Shape::Plain), "*0\r\n", "%0\r\n");
        let fields = Shape::Fields(&[("x", Shape::Double), ("y", Shape::Set(&Shape::Plain))], &Shape::Plain);
        check(
            &fields,
            "*6\r\n+x\r\n$1\r\n1\r\n$1\r\ny\r\n*1\r\n:1\r\n$1\r\nz\r\n$1\r\n1\r\n",
            "%3\r\n+x\r\n,1\r\n$1\r\ny\r\n~1\r\n:1\r\n$1\r\nz\r\n$1\r\n1\r\n",
        );
    }

    #[test]
    fn pairs_stand_in_turn_or_by_themselves() {
        check(
            &Shape::Pairs(&Shape::Double),
            "*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$3\r\n2.5\r\n",
            "*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2.5\r\n",
        );
        check(&Shape::Pairs(&Shape::Double), "*0\r\n", "*0\r\n");
        check(
            &Shape::Entries(&Shape::Plain),
            "*2\r\n*2\r\n$1\r\na\r\n*0\r\n*2\r\n$1\r\nb\r\n:1\r\n",
            "%2\r\n$1\r\na\r\n*0\r\n$1\r\nb\r\n:1\r\n",
        );
        check(&Shape::Entries(&Shape::Plain), "*-1\r\n", "_\r\n");
    }

    #[test]
    fn what_is_not_of_its_shape_is_left_alone() {
        for shape in [Shape::Map(&Shape::Plain), Shape::Pairs(&Shape::Double), Shape::Entries(&Shape::Plain)] {
            let mut out = Vec::new();
            assert_eq!(shape.to_resp3(b"*1\r\n$-1\r\n", &mut out), Ok(()));
            assert_eq!(out, b"*1\r\n_\r\n");
            assert!(shape.to_resp3(b"?1\r\n", &mut out).is_err());
            assert_eq!(out, b"*1\r\n_\r\n", "nothing is appended");
        }
    }
}
