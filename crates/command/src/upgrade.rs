//! Servers that speak RESP2 alone, for clients that speak RESP3: what each reply on such a connection looks like.
//!
//! What sends requests on the connection keeps a list of shapes, one for each request in their order; the shape is that of the
//! request's row. Replies come in the same order.

use std::collections::VecDeque;

use respool_wire::{Encoder, Protocol, RequestDecoder, RequestLimits, Step, Strictness, elements, to_resp3};

use crate::limits::SHAPES_KEPT;
use crate::{Command, Shape, TransactionsCommand as T, resolve};

/// What one reply looks like.
#[derive(Debug)]
enum ReplyShape {
    One(&'static Shape),
    /// The replies to a transaction's commands.
    Transaction(Vec<&'static Shape>),
}

/// The shapes of the replies that are due on one connection.
#[derive(Debug, Default)]
pub struct ReplyShapes {
    queue: VecDeque<ReplyShape>,
    /// The commands of the transaction that is being sent.
    queued: Option<Vec<&'static Shape>>,
    /// Parts of a reply are coming that are not kept.
    is_passing_over: bool,
}

impl ReplyShapes {
    /// For how many replies it is known what they look like.
    pub fn known(&self) -> usize {
        self.queue.len()
    }

    /// Requests have been queued, these bytes.
    pub fn note(&mut self, mut requests: &[u8]) {
        let limits = RequestLimits::authenticated(Strictness::Lenient);
        // What is queued was written here, so it is whole.
        while let Ok(Step::Request(request)) = RequestDecoder::new().decode(requests, &limits) {
            let row = resolve(request.args).ok();
            let shape = row.map_or(&Shape::Plain, |row| row.shape(request.args));
            let due = match (row.map(|row| row.command), &mut self.queued) {
                (Some(Command::Transactions(T::Multi)), queued) => {
                    *queued = Some(Vec::new());
                    ReplyShape::One(&Shape::Plain)
                }
                (Some(Command::Transactions(T::Exec)), queued) => {
                    ReplyShape::Transaction(queued.take().unwrap_or_default())
                }
                (Some(Command::Transactions(T::Discard)), queued) => {
                    *queued = None;
                    ReplyShape::One(&Shape::Plain)
                }
                (_, Some(queued)) => {
                    queued.push(shape);
                    ReplyShape::One(&Shape::Plain)
                }
                (_, None) => ReplyShape::One(shape),
            };
            self.queue.push_back(due);
            requests = requests.get(request.consumed..).unwrap_or_default();
        }
    }

    /// A request has been queued whose reply looks like this.
    pub fn note_shape(&mut self, shape: &'static Shape) {
        self.queue.push_back(ReplyShape::One(shape));
    }

    /// A part of the next reply has come, which is not kept.
    pub fn pass_over(&mut self) {
        self.is_passing_over = true;
    }

    /// Whether the next reply is one that is not kept.
    pub fn is_passing_over(&self) -> bool {
        self.is_passing_over
    }

    /// The end of such a reply has come.
    pub fn end_passing_over(&mut self) {
        self.is_passing_over = false;
        self.queue.pop_front();
    }

    /// The next reply, as RESP3 has it. `None`: it is none.
    pub fn convert(&mut self, reply: &[u8]) -> Option<Vec<u8>> {
        let due = self.queue.pop_front().unwrap_or(ReplyShape::One(&Shape::Plain));
        if self.queue.is_empty() && self.queue.capacity() > SHAPES_KEPT {
            self.queue = VecDeque::new();
        }
        let mut out = Vec::with_capacity(reply.len() + 16);
        match (due, elements(reply)) {
            (ReplyShape::Transaction(shapes), Some(replies)) => {
                Encoder::new(&mut out, Protocol::Resp3)
                    .array(usize::try_from(replies.declared()).unwrap_or(usize::MAX));
                for (at, reply) in replies.enumerate() {
                    shapes.get(at).copied().unwrap_or(&Shape::Plain).to_resp3(reply, &mut out).ok()?;
                }
            }
            (ReplyShape::Transaction(_), None) => to_resp3(reply, &mut out).ok()?,
            (ReplyShape::One(shape), _) => shape.to_resp3(reply, &mut out).ok()?,
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_wire::encode_request;

    fn requests(lines: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in lines {
            let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
            encode_request(&mut bytes, words.into_iter());
        }
        bytes
    }

    #[test]
    fn each_reply_has_the_shape_of_its_request() {
        let mut dues = ReplyShapes::default();
        dues.note(&requests(&["GET a", "HGETALL h", "ZSCORE z m"]));
        dues.note(&requests(&["SMEMBERS s"]));
        assert_eq!(dues.convert(b"$-1\r\n").unwrap(), b"_\r\n");
        assert_eq!(dues.convert(b"*2\r\n+a\r\n+b\r\n").unwrap(), b"%1\r\n+a\r\n+b\r\n");
        assert_eq!(dues.convert(b"$1\r\n5\r\n").unwrap(), b",5\r\n");
        assert_eq!(dues.convert(b"*0\r\n").unwrap(), b"~0\r\n");
        assert_eq!(dues.convert(b"$-1\r\n").unwrap(), b"_\r\n", "one that nothing is known of");
    }

    #[test]
    fn a_transaction_has_the_shapes_of_its_commands() {
        let mut dues = ReplyShapes::default();
        dues.note(&requests(&["MULTI", "HGETALL h", "GET a", "EXEC", "SMEMBERS s"]));
        for _ in 0..3 {
            assert_eq!(dues.convert(b"+QUEUED\r\n").unwrap(), b"+QUEUED\r\n");
        }
        assert_eq!(dues.convert(b"*2\r\n*0\r\n$-1\r\n").unwrap(), b"*2\r\n%0\r\n_\r\n");
        assert_eq!(dues.convert(b"*0\r\n").unwrap(), b"~0\r\n");
        dues.note(&requests(&["MULTI", "HGETALL h", "EXEC"]));
        dues.convert(b"+OK\r\n");
        dues.convert(b"+QUEUED\r\n");
        assert_eq!(dues.convert(b"*-1\r\n").unwrap(), b"_\r\n", "it was watched in vain");
    }
}
