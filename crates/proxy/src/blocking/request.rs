//! One request that may wait: until when, how it is sent, and what undoes it.

use crate::ids::{Asker, ClientNumber, Handle, LaneHandle, NodeId};
use crate::integer::integer;
use crate::interfaces::release::Release;
use crate::pool::key_id::LaneKeyUse;
pub(crate) use respool_command::timeout_us;
use respool_command::{
    Command, GenericCommand, ListCommand as L, Row, SortedSetCommand as Z, StreamCommand, TimeoutUnit, WaitId,
    timeout_place,
};
use respool_connection::Now;
use respool_wire::{Args, ArgsBuf, Protocol, ReplyKind, Value, encode_request, request_bulk, request_head};
use std::sync::Arc;

/// The owner of the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A client.
    Client { asker: Asker },
    /// A request that several nodes answer.
    Part { gather: Handle, part: u16 },
}

/// A request that may wait, in words.
#[derive(Debug)]
pub(crate) struct Wording {
    /// As it is sent.
    pub(crate) args: ArgsBuf,
    /// As the client said it, if its keys have other names at the node.
    pub(crate) said: Option<ArgsBuf>,
}

impl Wording {
    /// A request that the client said so.
    pub(crate) fn of(said: ArgsBuf, target: crate::request::Target) -> Self {
        match target.renamed {
            Some(args) => Self { args, said: Some(said) },
            None => Self { args: said, said: None },
        }
    }
}

/// Where a request waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitsAt {
    pub(crate) node: NodeId,
    /// See [`BlockedRequest::stands_for`].
    pub(crate) stands_for: Option<NodeId>,
}

impl WaitsAt {
    pub(crate) fn of(target: &crate::request::Target) -> Self {
        Self { node: target.node, stands_for: target.stands_for() }
    }
}

impl From<NodeId> for WaitsAt {
    fn from(node: NodeId) -> Self {
        Self { node, stands_for: None }
    }
}

/// How far a request that may wait has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// No connection is free; it stands in the queue.
    Queued,
    /// It stands in the queue, and is being tried without waiting on the shared lane.
    Tried,
    /// It waits at the node.
    Sent(LaneHandle),
}

/// A request that may wait.
#[derive(Debug)]
pub(crate) struct BlockedRequest {
    pub(crate) target: Target,
    pub(crate) client: ClientNumber,
    pub(crate) protocol: Protocol,
    pub(crate) node: NodeId,
    /// The node that has its keys, if that was down and this is another: it is asked back once that one is of use again.
    pub(crate) stands_for: Option<NodeId>,
    pub(crate) class: LaneKeyUse,
    pub(crate) row: &'static Row,
    /// As it is sent.
    pub(crate) args: ArgsBuf,
    /// As the client said it, if its keys have other names at the node.
    pub(crate) said: Option<ArgsBuf>,
    /// The keys that it takes elements from, see [`crate::blocking::fairness`].
    pub(crate) takes: Vec<Taken>,
    /// It waits on a connection that its client has to itself.
    pub(crate) is_on_own: bool,
    /// Its place in its node's queue.
    pub(crate) turn: u64,
    /// What its session's account has of it.
    pub(crate) held_bytes: usize,
    pub(crate) arrived_us: u64,
    /// When its time has run out, by [`crate::env::waiting_us`]; `None`: never, or the node has to say what is wrong with its timeout.
    pub(crate) deadline_us: Option<u64>,
    /// The same by the clock of clients, by which an embedded node goes.
    pub(crate) client_deadline_us: Option<u64>,
    /// When it is looked after while it queues: at its deadline, or once more.
    pub(crate) due_us: Option<u64>,
    /// The node has been asked and had nothing for it.
    pub(crate) is_looked: bool,
    pub(crate) state: State,
    pub(crate) release: Option<Release>,
    /// When the node was to let it go for the first time.
    pub(crate) released_us: Option<u64>,
    /// How often the node has been asked to let it go.
    pub(crate) asked: u8,
    /// What an engine in this process has parked it under.
    pub(crate) wait: Option<WaitId>,
}

/// Whether what the request waits for depends on the moment at which the node reads it: `$` is the end of a stream then.
pub(crate) fn begins_at_arrival(row: &Row, args: Args<'_>) -> bool {
    row.command == Command::Stream(StreamCommand::Xread) && args.iter().skip(2).any(|a| a == b"$")
}

impl BlockedRequest {
    /// Writes the request, with what is left of its time by the clock of clients if some of it has passed.
    pub(crate) fn encode(&self, now: Now, out: &mut Vec<u8>) {
        let args = self.args.as_args();
        let is_late = now.mono_us.saturating_sub(self.arrived_us) >= 1_000;
        let (Some(deadline_us), Some((at, unit)), true) =
            (self.client_deadline_us, timeout_place(self.row, args), is_late)
        else {
            return encode_request(out, args.iter());
        };
        let left_ms = deadline_us.saturating_sub(now.client_us).div_ceil(1_000).max(1);
        let left = match unit {
            TimeoutUnit::Millis => left_ms.to_string(),
            TimeoutUnit::Seconds => format!("{}.{:03}", left_ms / 1_000, left_ms % 1_000),
        };
        request_head(out, args.len());
        for (index, arg) in args.iter().enumerate() {
            request_bulk(out, if index == at { left.as_bytes() } else { arg });
        }
    }

    /// Whether a reply is more than that nothing came in time.
    pub(crate) fn is_served_by(&self, kind: ReplyKind, reply: &[u8]) -> bool {
        if self.row.command != Command::Generic(GenericCommand::Wait) {
            return !kind.is_null();
        }
        let wanted = self.args.as_args().get(1).and_then(integer);
        let digits = reply.strip_prefix(b":").and_then(|reply| reply.strip_suffix(b"\r\n"));
        kind.is_error() || digits.and_then(integer).zip(wanted).is_some_and(|(counted, wanted)| counted >= wanted)
    }

    /// Writes the request so that it hardly waits, should a node take it for one outside of a transaction: there it means
    /// the same. A timeout that the node has to refuse stays as it is.
    pub(crate) fn encode_at_once(&self, out: &mut Vec<u8>) {
        let args = self.args.as_args();
        let Some((at, _)) = timeout_place(self.row, args).filter(|(at, _)| self.waits(args.get(*at))) else {
            return encode_request(out, args.iter());
        };
        request_head(out, args.len());
        for (index, arg) in args.iter().enumerate() {
            // A second, or a millisecond; less than a second is no timeout to servers before 6.0.
            request_bulk(out, if index == at { b"1" } else { arg });
        }
    }

    /// Whether what stands for the timeout is one.
    fn waits(&self, timeout: Option<&[u8]>) -> bool {
        let is_zero = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| text.parse() == Ok(0.0));
        self.deadline_us.is_some() || timeout.is_some_and(is_zero)
    }

    /// Whether its client has left after it had waited: what it takes is put back.
    pub(crate) fn is_put_back(&self) -> bool {
        self.release == Some(Release::Vanished)
    }

    /// Whether its reply has something that was taken, and that can be put back.
    pub(crate) fn can_be_undone(&self) -> bool {
        let command = self.row.command;
        let is_pop = matches!(command, Command::List(L::Blpop | L::Brpop | L::Blmpop));
        is_pop || matches!(command, Command::SortedSet(Z::Bzpopmin | Z::Bzpopmax | Z::Bzmpop))
    }

    /// The request that undoes a reply that was not delivered, if it took anything away. What was moved is where it was to go,
    /// and what a group has read is still owed to its reader. A member that has been added again meanwhile keeps its new score.
    pub(crate) fn undo(&self, reply: &[u8]) -> Option<ArgsBuf> {
        let Ok(Value::Array(parts)) = Value::parse(reply) else { return None };
        let args = self.args.as_args();
        // Of BLMPOP, behind its keys, of which one may be called so.
        let side = args.get(2).and_then(integer).and_then(|keys| args.get(usize::try_from(keys).ok()?.checked_add(3)?));
        let from_left = side.is_some_and(|side| side.eq_ignore_ascii_case(b"LEFT"));
        let (name, key, taken): (&str, &Value, Vec<&[u8]>) = match (self.row.command, parts.as_slice()) {
            (Command::List(L::Blpop), [key, element]) => ("LPUSH", key, vec![bytes(element)?]),
            (Command::List(L::Brpop), [key, element]) => ("RPUSH", key, vec![bytes(element)?]),
            (Command::List(L::Blmpop), [key, Value::Array(elements)]) => {
                let name = if from_left { "LPUSH" } else { "RPUSH" };
                (name, key, elements.iter().rev().map(bytes).collect::<Option<_>>()?)
            }
            (Command::SortedSet(Z::Bzpopmin | Z::Bzpopmax), [key, member, score]) => {
                let score = score_text(score)?;
                return Some([b"ZADD", bytes(key)?, b"NX", score.as_bytes(), bytes(member)?].into_iter().collect());
            }
            (Command::SortedSet(Z::Bzmpop), [key, Value::Array(pairs)]) => {
                let mut request: ArgsBuf = [&b"ZADD"[..], bytes(key)?, b"NX"].into_iter().collect();
                for pair in pairs {
                    let Value::Array(pair) = pair else { return None };
                    let [member, score] = pair.as_slice() else { return None };
                    request.push(score_text(score)?.as_bytes());
                    request.push(bytes(member)?);
                }
                return Some(request);
            }
            _ => return None,
        };
        Some([name.as_bytes(), bytes(key)?].into_iter().chain(taken).collect())
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::Bulk(bytes) => Some(bytes),
        _ => None,
    }
}

fn score_text(value: &Value) -> Option<String> {
    match value {
        Value::Bulk(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Double(score) => Some(format!("{score}")),
        _ => None,
    }
}

/// A request as it is when it has just arrived.
#[cfg(test)]
pub(crate) fn blocked(words: &[&str], arrived_us: u64) -> BlockedRequest {
    let args: ArgsBuf = words.iter().collect();
    let row = respool_command::resolve(args.as_args()).expect("the test knows its commands");
    let deadline_us = timeout_us(row, args.as_args()).map(|t| arrived_us + t);
    let session = crate::slab::Slab::<(), crate::ids::ClientId>::default().insert(());
    BlockedRequest {
        target: Target::Client { asker: Asker { session, seq: respool_connection::Seq(0), is_wanted: true } },
        client: ClientNumber::new(1),
        protocol: Protocol::Resp2,
        node: NodeId::nth(0),
        stands_for: None,
        class: LaneKeyUse::of_plain(),
        row,
        args,
        said: None,
        takes: Vec::new(),
        is_on_own: false,
        turn: 0,
        held_bytes: 0,
        arrived_us,
        deadline_us,
        client_deadline_us: deadline_us,
        due_us: None,
        is_looked: false,
        state: State::Queued,
        release: None,
        released_us: None,
        asked: 0,
        wait: None,
    }
}

/// A key that a request takes elements from, with its database.
pub(crate) type Taken = (u32, Arc<[u8]>);

/// Whether it moves keys to another server: no other request says whether it could be served, and in a transaction its node would wait for
/// that server.
pub(crate) fn is_migrate(row: &Row) -> bool {
    row.command == Command::Generic(GenericCommand::Migrate)
}

pub(crate) fn is_wait(row: &Row) -> bool {
    row.command == Command::Generic(GenericCommand::Wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(words: &[&str], after_us: u64) -> String {
        let mut out = Vec::new();
        blocked(words, 5_000_000).encode(Now::of_clocks(5_000_000 + after_us, 0), &mut out);
        let text = String::from_utf8(out).expect("the test sends text");
        text.split("\r\n").skip(2).step_by(2).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_late_request_has_what_is_left_of_its_time() {
        assert_eq!(sent(&["BLPOP", "a", "b", "2.5"], 0), "BLPOP a b 2.5");
        assert_eq!(sent(&["BLPOP", "a", "b", "2.5"], 1_250_000), "BLPOP a b 1.250");
        assert_eq!(sent(&["BLPOP", "a", "0"], 1_250_000), "BLPOP a 0");
        assert_eq!(sent(&["BLMPOP", "1", "1", "a", "LEFT"], 400_000), "BLMPOP 0.600 1 a LEFT");
        let xread = ["XREAD", "BLOCK", "100", "COUNT", "1", "STREAMS", "BLOCK", "0"];
        assert_eq!(sent(&xread, 40_000), "XREAD BLOCK 60 COUNT 1 STREAMS BLOCK 0");
        let group = ["XREADGROUP", "GROUP", "streams", "BLOCK", "BLOCK", "100", "STREAMS", "s", ">"];
        assert_eq!(sent(&group, 40_000), "XREADGROUP GROUP streams BLOCK BLOCK 60 STREAMS s >");
        assert_eq!(sent(&["BRPOP", "a", "nonsense"], 40_000), "BRPOP a nonsense");
        assert_eq!(sent(&["WAIT", "1", "100"], 99_999), "WAIT 1 1");
        for keys in ["MIGRATE h 1 k 0 5000", "MIGRATE h 1 x 0 5000 KEYS a 7"] {
            let words: Vec<&str> = keys.split(' ').collect();
            assert_eq!(sent(&words, 40_000), keys, "its time is about another server");
        }
    }

    #[test]
    fn a_timeout_is_read_as_nodes_read_it() {
        let timeout = |text: &str| blocked(&["BLPOP", "a", text], 0).deadline_us;
        for (text, us) in [("1", 1_000_000), ("+1.5", 1_500_000), ("1e-9", 1_000), (".5", 500_000)] {
            assert_eq!(timeout(text), Some(us), "{text}");
        }
        for (text, us) in [("0x1", 1_000_000), ("0X1.8", 1_500_000), ("+0x.8p1", 1_000_000), ("0xap-1", 5_000_000)] {
            assert_eq!(timeout(text), Some(us), "{text}");
        }
        for text in ["0", "0x0", "0x", "0x.", "0xg", "0x1p", "0x1p99999999999", "-1", "nan", "inf", "x", ""] {
            assert_eq!(timeout(text), None, "{text}");
        }
    }

    #[test]
    fn a_request_that_is_tried_waits_a_moment_at_most() {
        let tried = |words: &[&str]| {
            let mut out = Vec::new();
            blocked(words, 0).encode_at_once(&mut out);
            let text = String::from_utf8(out).expect("the test sends text");
            text.split("\r\n").skip(2).step_by(2).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(tried(&["BLPOP", "a", "b", "0"]), "BLPOP a b 1");
        assert_eq!(tried(&["BLPOP", "a", "0.0"]), "BLPOP a 1");
        assert_eq!(tried(&["BLMPOP", "3600", "1", "a", "LEFT"]), "BLMPOP 1 1 a LEFT");
        assert_eq!(tried(&["XREAD", "BLOCK", "0", "STREAMS", "s", "0"]), "XREAD BLOCK 1 STREAMS s 0");
        for refused in [["BLPOP", "a", "nonsense"], ["BLPOP", "a", "-1"]] {
            assert_eq!(tried(&refused), refused.join(" "));
        }
    }

    #[test]
    fn what_was_taken_in_vain_is_put_back_where_it_was() {
        let undo = |words: &[&str], reply: &str| {
            let made = blocked(words, 0).undo(reply.as_bytes())?;
            let words: Vec<_> = made.as_args().iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect();
            Some(words.join(" "))
        };
        let pair = "*2\r\n$1\r\nk\r\n$1\r\nv\r\n";
        assert_eq!(undo(&["BLPOP", "k", "0"], pair).as_deref(), Some("LPUSH k v"));
        assert_eq!(undo(&["BRPOP", "k", "0"], pair).as_deref(), Some("RPUSH k v"));
        let several = "*2\r\n$1\r\nk\r\n*2\r\n$1\r\nv\r\n$1\r\nw\r\n";
        assert_eq!(undo(&["BLMPOP", "0", "1", "k", "LEFT"], several).as_deref(), Some("LPUSH k w v"));
        assert_eq!(undo(&["BLMPOP", "0", "1", "k", "RIGHT"], several).as_deref(), Some("RPUSH k w v"));
        assert_eq!(undo(&["BLMPOP", "0", "2", "left", "k", "RIGHT"], several).as_deref(), Some("RPUSH k w v"));
        assert_eq!(
            undo(&["BLMPOP", "0", "2", "k", "right", "left", "COUNT", "2"], several).as_deref(),
            Some("LPUSH k w v")
        );
        let scored = "*3\r\n$1\r\nk\r\n$1\r\nm\r\n,1.5\r\n";
        assert_eq!(undo(&["BZPOPMIN", "k", "0"], scored).as_deref(), Some("ZADD k NX 1.5 m"));
        let scores = "*2\r\n$1\r\nk\r\n*1\r\n*2\r\n$1\r\nm\r\n$1\r\n2\r\n";
        assert_eq!(undo(&["BZMPOP", "0", "1", "k", "MIN"], scores).as_deref(), Some("ZADD k NX 2 m"));
        assert_eq!(undo(&["BLMOVE", "a", "b", "LEFT", "LEFT", "0"], "$1\r\nv\r\n"), None);
        assert_eq!(undo(&["BLPOP", "k", "0"], "*-1\r\n"), None);
    }
}
