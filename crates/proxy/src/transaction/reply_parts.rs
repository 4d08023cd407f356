//! The parts of a reply to EXEC that are left.

use crate::reply::progress::ReplyMode;
use respool_command::Row;
use respool_wire::SecretArgs;
use std::collections::VecDeque;

/// One part of the reply to an EXEC that is put together here.
#[derive(Debug)]
pub(crate) enum Part {
    /// The node's replies.
    Remote(Vec<u8>),
    /// One of them behind a HELLO, in RESP2 and in RESP3.
    BehindHello([Vec<u8>; 2]),
    /// The node has selected a database.
    Select(u32),
    /// The proxy executes this, and replies.
    Local(&'static Row, SecretArgs),
}

impl Part {
    /// Memory held for it.
    fn held_bytes(&self) -> usize {
        let bytes = match self {
            Self::Remote(bytes) => bytes.capacity(),
            Self::BehindHello(both) => both.iter().map(Vec::capacity).sum(),
            Self::Select(_) => 0,
            Self::Local(_, args) => args.as_args().iter().map(|arg| arg.len() + size_of::<usize>()).sum(),
        };
        size_of::<Self>() + bytes
    }
}

/// The elements of an EXEC reply that are left; some are executed here. The client is not read before they are done.
#[derive(Debug)]
pub(crate) struct ExecReply {
    parts: VecDeque<Part>,
    /// Memory held for the parts.
    held_bytes: usize,
    /// What the client wants of replies afterwards, if none of these is wanted.
    pub(crate) restored: Option<ReplyMode>,
}

impl ExecReply {
    pub(crate) fn new(parts: VecDeque<Part>, restored: Option<ReplyMode>) -> Self {
        let held_bytes = parts.iter().map(Part::held_bytes).sum();
        Self { parts, held_bytes, restored }
    }

    /// Memory held for what is left.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(super) fn take_part(&mut self) -> Option<Part> {
        let part = self.parts.pop_front()?;
        self.held_bytes -= part.held_bytes();
        Some(part)
    }

    /// A part is the next one again.
    pub(super) fn put_back(&mut self, part: Part) {
        self.held_bytes += part.held_bytes();
        self.parts.push_front(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use respool_command::lookup;
    use respool_wire::ArgsBuf;

    #[test]
    fn memory_is_held_for_the_parts_that_are_left() {
        let row = lookup(b"ECHO").expect("a known command");
        let args: ArgsBuf = ["ECHO", "text"].iter().collect();
        let parts = [Part::Remote(vec![0; 1_000]), Part::Select(1), Part::Local(row, args.as_args().into())];
        let mut reply = ExecReply::new(parts.into(), None);
        let all = reply.held_bytes();
        assert!(all > 1_000);
        let large = reply.take_part().expect("it is the first");
        let rest = reply.held_bytes();
        assert!(rest <= all - 1_000);
        reply.put_back(large);
        assert_eq!(reply.held_bytes(), all);
        while reply.take_part().is_some() {}
        assert_eq!(reply.held_bytes(), 0);
    }
}
