//! The elements of an aggregate reply, as they are written.
//!
//! For joining and reordering replies without reading their elements.

use crate::ReplyKind;
use crate::token::{Token, skip, split_element, token};

/// Walks the elements of a complete aggregate reply; an attribute before it is skipped. `None` if the reply is no aggregate.
///
/// ```
/// # use respool_wire::{ReplyKind, elements};
/// let walk = elements(b"*3\r\n:1\r\n$-1\r\n*1\r\n+a\r\n").unwrap();
/// assert_eq!((walk.kind(), walk.declared()), (ReplyKind::Array, 3));
/// assert_eq!(walk.collect::<Vec<_>>(), [&b":1\r\n"[..], b"$-1\r\n", b"*1\r\n+a\r\n"]);
/// ```
pub fn elements(reply: &[u8]) -> Option<Elements<'_>> {
    let behind_attribute = match token(reply).ok()? {
        (Token::Attribute { elements }, rest) => skip(rest, elements).ok()?,
        _ => reply,
    };
    match token(behind_attribute).ok()? {
        (Token::Open { kind, elements }, rest) => Some(Elements { kind, declared: elements, left: elements, rest }),
        _ => None,
    }
}

/// A complete reply, taken apart by one level.
#[derive(Clone, Debug)]
pub enum Part<'a> {
    /// A reply without elements: what it says, without its head and line ends.
    Leaf(ReplyKind, &'a [u8]),
    /// A reply with elements.
    Aggregate(Elements<'a>),
}

/// Takes a complete reply apart; an attribute before it is skipped. `None` if it is not complete.
///
/// ```
/// # use respool_wire::{Part, ReplyKind, part};
/// assert!(matches!(part(b"$3\r\nabc\r\n"), Some(Part::Leaf(ReplyKind::Bulk, b"abc"))));
/// assert!(matches!(part(b"*1\r\n:1\r\n"), Some(Part::Aggregate(walk)) if walk.declared() == 1));
/// assert!(part(b"$3\r\nab").is_none());
/// ```
pub fn part(reply: &[u8]) -> Option<Part<'_>> {
    match token(reply).ok()? {
        (Token::Leaf { kind, text, .. }, _) => Some(Part::Leaf(kind, text)),
        (Token::Open { kind, elements }, rest) => {
            Some(Part::Aggregate(Elements { kind, declared: elements, left: elements, rest }))
        }
        (Token::Attribute { elements }, rest) => match token(skip(rest, elements).ok()?).ok()? {
            (Token::Leaf { kind, text, .. }, _) => Some(Part::Leaf(kind, text)),
            (Token::Open { kind, elements }, rest) => {
                Some(Part::Aggregate(Elements { kind, declared: elements, left: elements, rest }))
            }
            (Token::Attribute { .. }, _) => None,
        },
    }
}

/// The first of several complete replies, and what follows it. `None` if it is not complete.
pub fn split_reply(replies: &[u8]) -> Option<(&[u8], &[u8])> {
    split_element(replies).ok()
}

/// The elements of one aggregate: slices that are each a complete reply with its attribute, if it has one. A map gives key,
/// value, key, value. Ends early if the reply was not complete after all.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    kind: ReplyKind,
    declared: u64,
    left: u64,
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// What the aggregate is.
    pub fn kind(&self) -> ReplyKind {
        self.kind
    }

    /// How many elements its head declares; a pair of a map counts twice. Nothing to allocate by.
    pub fn declared(&self) -> u64 {
        self.declared
    }

    /// The bytes of the elements that are still to come.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        let Ok((element, rest)) = split_element(self.rest) else {
            self.left = 0;
            return None;
        };
        self.rest = rest;
        Some(element)
    }
}

impl std::iter::FusedIterator for Elements<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_whole_replies() {
        let walk =
            elements(b"|1\r\n+k\r\n*1\r\n:1\r\n%2\r\n+a\r\n|1\r\n+x\r\n+y\r\n:1\r\n+b\r\n*2\r\n:1\r\n:2\r\n").unwrap();
        assert_eq!(walk.kind(), ReplyKind::Map);
        assert_eq!(walk.declared(), 4);
        let written: Vec<&[u8]> = walk.collect();
        assert_eq!(written, [&b"+a\r\n"[..], b"|1\r\n+x\r\n+y\r\n:1\r\n", b"+b\r\n", b"*2\r\n:1\r\n:2\r\n"]);
        assert_eq!(elements(b"*0\r\n").unwrap().next(), None);
    }

    #[test]
    fn what_is_no_aggregate_has_no_elements() {
        for reply in ["+OK\r\n", "*-1\r\n", "$3\r\nabc\r\n", "_\r\n", "", "*", "*?\r\n", "x"] {
            assert!(elements(reply.as_bytes()).is_none(), "{reply:?}");
        }
    }

    #[test]
    fn a_reply_that_was_not_complete_ends_early() {
        let mut walk = elements(b"*3\r\n:1\r\n$5\r\nab").unwrap();
        assert_eq!(walk.next(), Some(&b":1\r\n"[..]));
        assert_eq!(walk.next(), None);
        assert_eq!(walk.next(), None);
    }
}
