//! What a node says on a push lane, and what clients are told of it.
//!
//! A message is the same bytes in both dialects but for the first, `>` or `*`, so one that came is passed on as it is.

use respool_wire::{Encoder, Protocol, ReplyKind, elements};

/// The three name spaces of channels. A name in one has nothing to do with the same name in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Of `SUBSCRIBE`.
    Channel,
    /// Of `PSUBSCRIBE`.
    Pattern,
    /// Of `SSUBSCRIBE`.
    Shard,
}

impl Kind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];

    /// The command, which is also the first word of its acknowledgement.
    pub const fn word(self, verb: Verb) -> &'static [u8] {
        match (self, verb) {
            (Self::Channel, Verb::Subscribe) => b"subscribe",
            (Self::Channel, Verb::Unsubscribe) => b"unsubscribe",
            (Self::Pattern, Verb::Subscribe) => b"psubscribe",
            (Self::Pattern, Verb::Unsubscribe) => b"punsubscribe",
            (Self::Shard, Verb::Subscribe) => b"ssubscribe",
            (Self::Shard, Verb::Unsubscribe) => b"sunsubscribe",
        }
    }
}

/// Which way a subscription changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// It begins.
    Subscribe,
    /// It ends.
    Unsubscribe,
}

impl Verb {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::Subscribe, Self::Unsubscribe];
}

/// One whole reply or push of a node, as far as subscriptions care.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message for all subscribers of `name`, which is the pattern for one that came by a pattern.
    Message {
        /// What was subscribed to.
        kind: Kind,
        /// The channel, or the pattern.
        name: &'a [u8],
    },
    /// The node has done what it was told about `name`. No name: there was nothing to give up.
    Done {
        /// What it was told about.
        kind: Kind,
        /// What it was told.
        verb: Verb,
        /// The channel, or the pattern.
        name: Option<&'a [u8]>,
    },
    /// OK.
    Ok,
    /// The answer to a PING.
    SubscriberPing,
    /// The node refused a command, in its own words with the line's end.
    Refused(&'a [u8]),
    /// Keys that have changed, as an array; `None` stands for all keys.
    Invalid(Option<&'a [u8]>),
    /// Something else that a node may push.
    Other,
    /// Nothing that a node may say here.
    Nonsense,
}

impl<'a> Frame<'a> {
    /// Reads a whole reply of `kind`.
    pub fn read(kind: ReplyKind, bytes: &'a [u8]) -> Self {
        match kind {
            ReplyKind::Push | ReplyKind::Array => {}
            ReplyKind::Simple if bytes == respool_wire::replies::PONG => return Self::SubscriberPing,
            ReplyKind::Simple if bytes == respool_wire::replies::OK => return Self::Ok,
            ReplyKind::Error => return Self::Refused(bytes),
            _ => return Self::Nonsense,
        }
        let unknown = if kind == ReplyKind::Push { Self::Other } else { Self::Nonsense };
        Self::read_push(bytes).unwrap_or(unknown)
    }

    fn read_push(bytes: &'a [u8]) -> Option<Self> {
        let mut parts = elements(bytes)?;
        let declared = parts.declared();
        let word = bulk(parts.next()?)?;
        let message = |kind, name| Some(Self::Message { kind, name: bulk(name)? });
        match (word, declared) {
            (b"message", 3) => return message(Kind::Channel, parts.next()?),
            (b"pmessage", 4) => return message(Kind::Pattern, parts.next()?),
            (b"smessage", 3) => return message(Kind::Shard, parts.next()?),
            (b"pong", 2) => return Some(Self::SubscriberPing),
            (b"invalidate", 2) => return Some(Self::Invalid(parts.next().filter(|keys| keys.starts_with(b"*")))),
            (_, 3) => {}
            _ => return None,
        }
        let every = Kind::ALL.into_iter().flat_map(|kind| Verb::BOTH.map(|verb| (kind, verb)));
        let (kind, verb) = every.into_iter().find(|(kind, verb)| kind.word(*verb) == word)?;
        Some(Self::Done { kind, verb, name: bulk(parts.next()?) })
    }
}

/// The channel and the text of a message.
pub fn parts(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = elements(message)?;
    let before = usize::try_from(parts.declared().checked_sub(2)?).ok()?;
    let mut last = parts.by_ref().skip(before);
    Some((bulk(last.next()?)?, bulk(last.next()?)?))
}

/// The bytes of a bulk string; `None` for a null and for anything else.
pub fn bulk(reply: &[u8]) -> Option<&[u8]> {
    let reply = reply.strip_prefix(b"$")?;
    let head = reply.iter().position(|byte| *byte == b'\n')? + 1;
    reply.get(head..)?.strip_suffix(b"\r\n")
}

/// Acknowledges one channel to a client: `count` is what it subscribes to now.
pub fn acknowledge(out: &mut Encoder<'_>, kind: Kind, verb: Verb, name: Option<&[u8]>, count: usize) {
    out.push(3);
    out.bulk(kind.word(verb));
    match name {
        Some(name) => out.bulk(name),
        None => out.null(),
    }
    out.integer(count as i64);
}

/// A message as a client of `protocol` gets it; `pattern` is the one it came by.
pub fn message(
    out: &mut Vec<u8>,
    protocol: Protocol,
    kind: Kind,
    pattern: Option<&[u8]>,
    channel: &[u8],
    payload: &[u8],
) {
    let mut out = Encoder::new(out, protocol);
    out.push(if pattern.is_some() { 4 } else { 3 });
    out.bulk(match kind {
        Kind::Channel => b"message",
        Kind::Pattern => b"pmessage",
        Kind::Shard => b"smessage",
    });
    pattern.into_iter().for_each(|pattern| out.bulk(pattern));
    out.bulk(channel);
    out.bulk(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_say_is_understood_in_both_dialects() {
        for (first, kind) in [('*', ReplyKind::Array), ('>', ReplyKind::Push)] {
            let read =
                |rest: &str, check: &dyn Fn(Frame<'_>)| check(Frame::read(kind, format!("{first}{rest}").as_bytes()));
            read("3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n", &|frame| {
                assert_eq!(frame, Frame::Message { kind: Kind::Channel, name: b"c" });
            });
            read("4\r\n$8\r\npmessage\r\n$2\r\nc*\r\n$1\r\nc\r\n$2\r\nhi\r\n", &|frame| {
                assert_eq!(frame, Frame::Message { kind: Kind::Pattern, name: b"c*" });
            });
            read("3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n", &|frame| {
                assert_eq!(frame, Frame::Done { kind: Kind::Shard, verb: Verb::Unsubscribe, name: Some(b"s") });
            });
            read("2\r\n$4\r\npong\r\n$0\r\n\r\n", &|frame| assert_eq!(frame, Frame::SubscriberPing));
        }
        assert_eq!(Frame::read(ReplyKind::Simple, b"+PONG\r\n"), Frame::SubscriberPing);
        assert_eq!(Frame::read(ReplyKind::Simple, b"+OK\r\n"), Frame::Ok);
        assert_eq!(Frame::read(ReplyKind::Simple, b"+QUEUED\r\n"), Frame::Nonsense);
        assert_eq!(Frame::read(ReplyKind::Error, b"-NOPERM x\r\n"), Frame::Refused(b"-NOPERM x\r\n"));
        assert_eq!(Frame::read(ReplyKind::Push, b">1\r\n+x\r\n"), Frame::Other);
        assert_eq!(Frame::read(ReplyKind::Array, b"*1\r\n+x\r\n"), Frame::Nonsense);
        let flush = Frame::read(ReplyKind::Push, b">2\r\n$10\r\ninvalidate\r\n_\r\n");
        assert!(matches!(flush, Frame::Invalid(None)));
    }

    #[test]
    fn what_we_say_ourselves_is_what_a_node_would_say() {
        let mut out = Vec::new();
        acknowledge(&mut Encoder::new(&mut out, Protocol::Resp2), Kind::Pattern, Verb::Subscribe, Some(b"a*"), 2);
        assert_eq!(out, b"*3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:2\r\n");
        out.clear();
        message(&mut out, Protocol::Resp3, Kind::Pattern, Some(b"a*"), b"ab", b"hi");
        assert_eq!(out, b">4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$2\r\nab\r\n$2\r\nhi\r\n");
    }
}
