//! Clients that send and fetch large values, and nodes that take and give them.

use super::chance::Chance;
use super::socket::Queue;
use respool_proxy::limits::LARGE_REPLY_BYTES;
use respool_wire::{
    Encoder, Protocol, ReplyLimits, ReplyScanner, RequestDecoder, RequestLimits, Scan, Step, encode_request,
};
use std::collections::VecDeque;

/// Sizes of values: small ones, some that are collected, some that are passed on in pieces, and some that fill every queue.
const SIZES: [usize; 6] = [5, 900, 30_000, 90_000, 300_000, LARGE_REPLY_BYTES + 50_000];

/// The user of the clients that may ask for little in a second.
pub(super) const LIMITED: &str = "limited";

/// The value that a key has at its node. Its name says how large it is.
fn value_of(key: &[u8]) -> Vec<u8> {
    let size = key.last().and_then(|digit| SIZES.get(usize::from(digit.wrapping_sub(b'0')))).copied().unwrap_or(0);
    let mut value = [b"value of ", key].concat();
    value.resize(value.len().max(size), b'.');
    value
}

/// One client.
pub(super) struct Client {
    name: usize,
    asked: usize,
    /// What it has asked and not sent.
    pub(super) to_send: Queue,
    expected: VecDeque<Vec<u8>>,
    scanner: ReplyScanner,
    received: Vec<u8>,
    scanned: usize,
    /// It takes so many bytes in a turn.
    pub(super) pace: usize,
    pub(super) is_leaving: bool,
    pub(super) errors: Vec<String>,
    pub(super) answered: usize,
}

impl Client {
    pub(super) fn new(name: usize) -> Self {
        Self {
            name,
            asked: 0,
            to_send: Queue::default(),
            expected: VecDeque::new(),
            scanner: ReplyScanner::default(),
            received: Vec::new(),
            scanned: 0,
            pace: usize::MAX,
            is_leaving: false,
            errors: Vec::new(),
            answered: 0,
        }
    }

    /// Says that it is of the user that may ask for little in a second.
    pub(super) fn become_limited(&mut self) {
        let mut out = Vec::new();
        encode_request(&mut out, [&b"AUTH"[..], LIMITED.as_bytes(), b"secret"].into_iter());
        self.to_send.put(&out);
        self.expected.push_back(b"+OK\r\n".to_vec());
    }

    /// Asks for something, mostly about a large value.
    pub(super) fn ask(&mut self, chance: &mut Chance) {
        self.asked += 1;
        let key = format!("{}:{}:{}", self.name, self.asked, chance.below(SIZES.len()));
        let mut out = Vec::new();
        let expected = match chance.below(8) {
            0..=3 => {
                encode_request(&mut out, [&b"SET"[..], key.as_bytes(), &value_of(key.as_bytes())].into_iter());
                b"+OK\r\n".to_vec()
            }
            4..=5 => {
                encode_request(&mut out, [&b"GET"[..], key.as_bytes()].into_iter());
                bulk(&value_of(key.as_bytes()))
            }
            6 => {
                let small = format!("{key}.0");
                encode_request(&mut out, [&b"GET"[..], small.as_bytes()].into_iter());
                bulk(&value_of(small.as_bytes()))
            }
            _ => {
                encode_request(&mut out, [&b"ECHO"[..], key.as_bytes()].into_iter());
                bulk(key.as_bytes())
            }
        };
        self.to_send.put(&out);
        self.expected.push_back(expected);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.expected.is_empty()
    }

    /// Compares what has come with what it waits for: that, or an error about a node.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
        loop {
            let rest = &self.received[self.scanned..];
            if rest.is_empty() {
                return;
            }
            match self.scanner.scan(rest, &ReplyLimits::default()).expect("clients get RESP") {
                Scan::Partial => {
                    self.scanned = self.received.len();
                    return;
                }
                Scan::Complete { consumed, .. } => {
                    let end = self.scanned + consumed;
                    let reply: Vec<u8> = self.received.drain(..end).collect();
                    self.scanned = 0;
                    let shown = String::from_utf8_lossy(&reply[..reply.len().min(120)]).into_owned();
                    let expected = self.expected.pop_front().unwrap_or_else(|| panic!("{} got {shown}", self.name));
                    if reply == expected {
                        self.answered += 1;
                    } else {
                        let is_about_a_node =
                            ["-ERR node ", "-ERR the nodes were changed", "-ERR Protocol error: invalid"]
                                .iter()
                                .any(|words| shown.starts_with(words));
                        assert!(is_about_a_node, "client {} got {shown}", self.name);
                        self.errors.push(shown);
                    }
                }
            }
        }
    }

    /// What it waits for, for people.
    pub(super) fn shown(&self) -> String {
        let first = self.expected.front().map_or(&b""[..], |expected| &expected[..expected.len().min(40)]);
        format!(
            "client {} waits for {} replies, first {:?}, has {} bytes of it, and has not sent {} bytes",
            self.name,
            self.expected.len(),
            String::from_utf8_lossy(first),
            self.received.len(),
            self.to_send.len()
        )
    }
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// A node's end of one connection.
pub(super) struct NodeEnd {
    pub(super) node: usize,
    decoder: RequestDecoder,
    received: Vec<u8>,
    pub(super) to_send: Queue,
    /// It has seen a fault in what it was sent, and ends the connection once it has said so.
    pub(super) is_done: bool,
}

impl NodeEnd {
    pub(super) fn new(node: usize) -> Self {
        Self { node, decoder: RequestDecoder::new(), received: Vec::new(), to_send: Queue::default(), is_done: false }
    }

    /// Takes a part of what it was sent, and answers the requests that are whole.
    pub(super) fn receive(&mut self, bytes: &[u8], is_calm: bool, chance: &mut Chance) {
        self.received.extend_from_slice(bytes);
        let mut used = 0;
        while !self.is_done && used < self.received.len() {
            match self
                .decoder
                .decode(&self.received[used..], &RequestLimits::default())
                .expect("requests are canonical")
            {
                Step::Incomplete => break,
                Step::Empty { .. } => panic!("no request is empty"),
                Step::Request(request) => {
                    used += request.consumed;
                    let (args, mut out) = (request.args, Vec::new());
                    let mut reply = Encoder::new(&mut out, Protocol::Resp2);
                    match args.name() {
                        b"PING" => reply.simple("PONG"),
                        b"ECHO" => reply.bulk(args.at(1)),
                        b"GET" => reply.bulk(&value_of(args.at(1))),
                        b"SET" => {
                            assert!(args.at(2) == value_of(args.at(1)), "the value of another key, or half of one");
                            reply.simple("OK");
                        }
                        other => panic!("a node was sent {}", String::from_utf8_lossy(other)),
                    }
                    self.to_send.put(&out);
                }
            }
        }
        self.received.drain(..used);
        if !is_calm && self.received.len() > 1_000 && chance.one_in(400) {
            // In the midst of a request it says what is wrong with it, and goes.
            self.to_send.put(b"-ERR Protocol error: invalid bulk length\r\n");
            self.is_done = true;
        }
    }
}
