//! The node at the other end of a connection. It executes the numbers that it is sent, and answers each with its number.

use super::pipe::{Ending, Pipe};
use crate::Reply;
use respool_testkit::Rng;
use std::collections::VecDeque;
use std::sync::Arc;

/// How a node takes a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Kind,
    /// It refuses for good.
    Refuses,
    /// It refuses for now.
    Loads,
    /// It ends the connection within its answer.
    Ends,
    Silent,
    /// What it sends is no RESP.
    Babbles,
}

/// One connection, as its node sees it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) pipe: Arc<Pipe>,
    manner: Manner,
    input: Vec<u8>,
    /// Its replies that were not sent yet.
    out: VecDeque<u8>,
    /// It sends nothing for now.
    pub(super) is_silent: bool,
    /// What it has executed last.
    last: Option<u64>,
}

/// A request as the node reads it.
pub(super) enum Asked {
    Greeting(Vec<u8>),
    Number(u64),
}

/// One argument at `at`, and where the next is.
fn bulk(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, start) = line(input, at)?;
    let end = start + length;
    (input.len() >= end + 2).then(|| (&input[start..end], end + 2))
}

/// The number in a head, and where what follows it is.
fn line(input: &[u8], at: usize) -> Option<(usize, usize)> {
    let length = input.get(at + 1..)?.iter().position(|byte| *byte == b'\r')?;
    let end = at + 1 + length;
    (input.len() >= end + 2).then(|| (std::str::from_utf8(&input[at + 1..end]).unwrap().parse().unwrap(), end + 2))
}

/// The first request, and its length.
fn request(input: &[u8]) -> Option<(Asked, usize)> {
    let (count, at) = line(input, 0)?;
    let (name, mut at) = bulk(input, at)?;
    let mut number = None;
    for place in 1..count {
        let (argument, next) = bulk(input, at)?;
        if place == 1 {
            number = Some(argument);
        }
        at = next;
    }
    let asked = match name {
        b"GET" | b"INCR" | b"SET" => {
            Asked::Number(std::str::from_utf8(number.unwrap()).unwrap().parse().expect("a number"))
        }
        _ => Asked::Greeting(name.to_vec()),
    };
    Some((asked, at))
}

/// Bytes that follow from a number.
pub(super) fn padding(number: u64) -> Vec<u8> {
    let mut rng = Rng::part(1, number);
    let length = if rng.once_in(2_000) { rng.between(60_000, 200_000) } else { rng.below(60) };
    (0..length).map(|at| b'a' + ((number + at as u64) % 26) as u8).collect()
}

/// The reply to a number, as it is sent.
pub(super) fn reply_to(number: u64) -> Vec<u8> {
    match number % 8 {
        0 | 1 => format!(":{number}\r\n").into_bytes(),
        2 => format!("*3\r\n:{number}\r\n*1\r\n$-1\r\n$2\r\n\r\n\r\n").into_bytes(),
        3 => format!("-ERR {number}\r\n").into_bytes(),
        4 => format!("+{number}\r\n").into_bytes(),
        _ => {
            let value = [format!("{number}:").as_bytes(), &padding(number)].concat();
            [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat()
        }
    }
}

/// Whether it is the reply to a number.
pub(super) fn is_reply_to(number: u64, reply: &Reply) -> bool {
    let text = number.to_string();
    match (number % 8, reply) {
        (0 | 1, Reply::Integer(integer)) => *integer == number as i64,
        (2, Reply::Array(elements)) => {
            let elements: Vec<Reply> = elements.clone().collect();
            elements.len() == 3
                && elements[0] == Reply::Integer(number as i64)
                && matches!(elements[1], Reply::Array(_))
        }
        (3, Reply::Error(error)) => error.to_string().ends_with(&format!(" {text}")),
        (4, Reply::Status(status)) => status == text.as_bytes(),
        (_, Reply::Bulk(bulk)) => {
            bulk.strip_prefix(text.as_bytes()).and_then(|rest| rest.strip_prefix(b":")) == Some(&padding(number)[..])
        }
        _ => false,
    }
}

impl Node {
    pub(super) fn new(pipe: Arc<Pipe>, manner: Manner) -> Self {
        Self { pipe, manner, input: Vec::new(), out: VecDeque::new(), is_silent: manner == Manner::Silent, last: None }
    }

    /// Takes so many bytes of what it was sent. Gives `executed` each number, and the one before.
    pub(super) fn take(&mut self, count: usize, mut executed: impl FnMut(u64, Option<u64>)) -> bool {
        let mut kernel = self.pipe.lock();
        let count = count.min(kernel.sent.len());
        self.input.extend(kernel.sent.drain(..count));
        drop(kernel);
        let mut at = 0;
        while let Some((asked, length)) = request(&self.input[at..]) {
            at += length;
            match asked {
                Asked::Number(number) => {
                    executed(number, self.last.replace(number));
                    self.out.extend(reply_to(number));
                }
                Asked::Greeting(name) => self.greet(&name),
            }
        }
        self.input.drain(..at);
        count > 0
    }

    fn greet(&mut self, name: &[u8]) {
        let answer: &[u8] = match (name, self.manner) {
            (_, Manner::Babbles) => b"HTTP/1.1 400 Bad Request\r\n\r\n",
            (b"HELLO", _) => b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n",
            (b"PING", Manner::Refuses) => b"-NOAUTH Authentication required.\r\n",
            (b"PING", Manner::Loads) => b"-LOADING the dataset in memory\r\n",
            (b"PING", Manner::Ends) => b"+PO",
            (b"PING", _) => b"+PONG\r\n",
            _ => b"+OK\r\n",
        };
        self.out.extend(answer);
    }

    /// Sends so many bytes of its replies.
    pub(super) fn deliver(&mut self, count: usize) -> bool {
        if self.is_silent || self.pipe.lock().ending.is_some() {
            return false;
        }
        let count = count.min(self.out.len());
        if count > 0 {
            self.pipe.lock().arrived.extend(self.out.drain(..count));
            self.pipe.tell_readers();
        }
        if self.manner == Manner::Ends && self.out.is_empty() && count > 0 {
            self.pipe.end(Ending::Closed);
        }
        count > 0
    }

    /// Sends a push, behind all replies that it has begun.
    pub(super) fn push(&mut self) {
        if self.last.is_some() && self.manner == Manner::Kind {
            self.out.extend(b">2\r\n+news\r\n*1\r\n:1\r\n");
        }
    }

    /// Sends what is no reply, behind all replies.
    pub(super) fn babble(&mut self) {
        self.out.extend(b"?\r\n");
    }

    pub(super) fn describe(&self) -> String {
        let kernel = self.pipe.lock();
        let (sent, arrived) = (kernel.sent.len(), kernel.arrived.len());
        let (ending, input, out) = (kernel.ending, self.input.len(), self.out.len());
        format!(
            "{:?} {ending:?}: {sent} sent, {input} taken, {out} to send, {arrived} arrived, {:?}",
            self.manner,
            kernel.watched()
        )
    }

    pub(super) fn has_output(&self) -> bool {
        !self.out.is_empty()
    }
}
