//! The end of a connection that faces a client: places for replies, and the outbox they leave by.

use crate::{BufferPool, Output, Ring, Seq};

/// Replies of one client on their way out.
#[derive(Debug, Default)]
pub struct Downstream {
    ring: Ring,
    output: Output,
    /// Requests without a place in the ring whose replies are not wanted and that nodes have not answered.
    unanswered: u32,
    /// An array reply whose elements have places of their own in the ring.
    joint: Option<Box<Joint>>,
}

/// Where an answer stands: in the outbox, or behind replies that are outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerPosition {
    is_behind: bool,
    at: usize,
}

/// Pushes are held back until the last element of such a reply has left.
#[derive(Debug, Default)]
struct Joint {
    /// Pushes since the reply's header.
    pushes: Vec<u8>,
    /// The place of the last element, once that is known.
    last: Option<Seq>,
}

impl Downstream {
    /// Nothing outstanding, nothing to write.
    pub const fn new() -> Self {
        Self { ring: Ring::new(), output: Output::new(), unanswered: 0, joint: None }
    }

    /// Takes the next place for a reply that comes from elsewhere.
    #[inline]
    pub fn expect(&mut self) -> Seq {
        self.ring.expect()
    }

    /// The place that [`Self::expect`] would take.
    pub fn next_place(&self) -> Seq {
        self.ring.next_place()
    }

    /// The place that was taken last.
    pub fn last_place(&self) -> Seq {
        self.ring.last_place()
    }

    /// Whether the reply in place `seq` has not left.
    pub fn is_outstanding(&self, seq: Seq) -> bool {
        self.ring.places_before(seq).is_some()
    }

    /// Answers at once, in request order: `write` appends the whole reply to the buffer that it is given.
    #[inline]
    pub fn answer(&mut self, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        if self.ring.is_empty() {
            write(self.output.appender(pool));
        } else {
            self.ring.append_ready(pool, write);
        }
    }

    /// Where the bytes of the next answer will stand, if [`Self::answer`] is given it now.
    pub fn answer_position(&self) -> AnswerPosition {
        match self.ring.is_empty() {
            true => AnswerPosition { is_behind: false, at: self.output.len() },
            false => AnswerPosition { is_behind: true, at: self.ring.kept().len() },
        }
    }

    /// What has been answered since that, unless some of it has left meanwhile, or it waits behind others and is large.
    pub fn answer_since(&self, position: AnswerPosition) -> &[u8] {
        let bytes = if position.is_behind { self.ring.kept() } else { self.output.as_slice() };
        bytes.get(position.at..).unwrap_or_default()
    }

    /// Bytes of the reply in place `seq`; `is_last` ends it.
    #[inline]
    pub fn feed(&mut self, seq: Seq, bytes: &[u8], is_last: bool, pool: &mut BufferPool) {
        self.ring.feed(seq, bytes, is_last, self.output.appender(pool), pool);
    }

    /// Answers the request in place `seq` with `error` instead. `false`: too late, the connection has to be closed.
    #[must_use]
    pub fn fail(&mut self, seq: Seq, error: &[u8], pool: &mut BufferPool) -> bool {
        self.ring.fail(seq, error, self.output.appender(pool), pool)
    }

    /// Whether the request in place `seq` is the latest that was read, and is not answered yet.
    pub fn is_last(&self, seq: Seq) -> bool {
        self.ring.is_last(seq)
    }

    /// Whether the reply in place `seq` is the next to leave.
    pub fn is_next(&self, seq: Seq) -> bool {
        self.ring.is_head(seq)
    }

    /// Puts bytes that are no reply between replies: at once, but never inside a reply, and behind the reply in place
    /// `after` if that is outstanding.
    pub fn push(&mut self, after: Option<Seq>, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        let after = match &mut self.joint {
            None => after,
            Some(joint) if joint.last.is_none() => return write(&mut joint.pushes),
            Some(_) => self.behind_joint(after),
        };
        self.ring.push(after, self.output.appender(pool), write);
    }

    /// The header of an array reply follows, and its elements in places of their own. Pushes are held back until
    /// [`Self::end_joint`].
    pub fn begin_joint(&mut self) {
        self.joint.get_or_insert_default().last = None;
    }

    /// Ends the array: its last element has its place. Deferred pushes, and pushes that arrive before that place is written, follow
    /// it.
    pub fn end_joint(&mut self, pool: &mut BufferPool) {
        let Some(joint) = &mut self.joint else { return };
        let (last, pushes) = (self.ring.last_place(), std::mem::take(&mut joint.pushes));
        joint.last = Some(last);
        if self.ring.places_before(last).is_none() {
            self.joint = None;
        }
        if !pushes.is_empty() {
            self.ring.push(Some(last), self.output.appender(pool), |out| out.extend_from_slice(&pushes));
        }
    }

    #[cold]
    fn behind_joint(&mut self, after: Option<Seq>) -> Option<Seq> {
        let last = self.joint.as_ref().and_then(|joint| joint.last);
        let Some(joint) = last.and_then(|last| self.ring.places_before(last).map(|places| (places, last))) else {
            self.joint = None;
            return after;
        };
        let after = after.and_then(|after| self.ring.places_before(after).map(|places| (places, after)));
        Some(after.filter(|(places, _)| *places > joint.0).unwrap_or(joint).1)
    }

    /// Replies that are outstanding, or that wait behind one that is.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.ring.len()
    }

    /// A request was sent to a node whose reply is not wanted. It has no place among the replies, and counts until the node
    /// has answered it.
    pub fn note_unanswered(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// One of those has been answered, or never will be.
    pub fn end_unanswered(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
    }

    /// Requests that nodes have not answered, whether their replies are wanted or not.
    pub fn unsettled(&self) -> usize {
        self.ring.len() + self.unanswered as usize
    }

    /// Whether nodes have answered everything that was asked, whether replies are wanted or not.
    #[inline]
    pub fn is_settled(&self) -> bool {
        self.ring.is_empty() && self.unanswered == 0
    }

    /// Whether every reply has been handed out and written.
    pub fn is_drained(&self) -> bool {
        self.ring.is_empty()
            && self.output.is_empty()
            && self.joint.as_ref().is_none_or(|joint| joint.pushes.is_empty())
    }

    /// Bytes that wait in the outbox or behind an outstanding reply.
    #[inline]
    pub fn waiting_bytes(&self) -> usize {
        self.output.len() + self.ring.waiting_bytes() + self.joint.as_ref().map_or(0, |joint| joint.pushes.len())
    }

    /// Memory that is held for replies.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.output.held_bytes()
            + self.ring.held_bytes()
            + self.joint.as_ref().map_or(0, |joint| joint.pushes.capacity())
    }

    /// How many replies have been handed out since the client came. Wraps around.
    #[inline]
    pub fn handed_out(&self) -> u32 {
        self.ring.left()
    }

    /// What may be written now.
    #[inline]
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// The first `bytes` bytes of the outbox were written.
    #[inline]
    pub fn advance(&mut self, bytes: usize, pool: &mut BufferPool) {
        self.output.advance(bytes, pool);
    }

    /// Forgets all replies and gives the memory back.
    pub fn clear(&mut self, pool: &mut BufferPool) {
        self.ring.clear(pool);
        self.unanswered = 0;
        self.joint = None;
        self.output.clear(pool);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_whether_or_not_others_are_outstanding() {
        let (mut down, mut pool) = (Downstream::new(), BufferPool::default());
        let answer = |down: &mut Downstream, pool: &mut BufferPool, bytes: &[u8]| {
            let position = down.answer_position();
            down.answer(pool, |out| out.extend_from_slice(bytes));
            down.answer_since(position).to_vec()
        };
        assert_eq!(answer(&mut down, &mut pool, b"+1\r\n"), b"+1\r\n");
        assert_eq!(answer(&mut down, &mut pool, b"+2\r\n"), b"+2\r\n");
        let place = down.expect();
        assert_eq!(answer(&mut down, &mut pool, b"-3\r\n"), b"-3\r\n", "behind one that is outstanding");
        assert_eq!(answer(&mut down, &mut pool, b"-4\r\n"), b"-4\r\n");
        for _ in 0..2 {
            let position = down.answer_position();
            down.expect();
            assert_eq!(down.answer_since(position), b"", "it is answered later");
            down.feed(place, b":0\r\n", true, &mut pool);
        }
    }

    #[test]
    fn nothing_is_pushed_into_a_reply_that_comes_in_several_places() {
        let (mut down, mut pool) = (Downstream::new(), BufferPool::default());
        down.begin_joint();
        down.answer(&mut pool, |out| out.extend_from_slice(b"*2\r\n:1\r\n"));
        down.push(None, &mut pool, |out| out.extend_from_slice(b">1\r\n+a\r\n"));
        let place = down.expect();
        down.push(Some(place), &mut pool, |out| out.extend_from_slice(b">1\r\n+b\r\n"));
        assert!(down.waiting_bytes() > b"*2\r\n:1\r\n".len() && !down.is_drained());
        // The last element is still outstanding.
        down.end_joint(&mut pool);
        assert_eq!(down.output().as_slice(), b"*2\r\n:1\r\n");
        down.push(None, &mut pool, |out| out.extend_from_slice(b">1\r\n+c\r\n"));
        assert_eq!(down.output().as_slice(), b"*2\r\n:1\r\n");
        down.feed(place, b":2\r\n", true, &mut pool);
        assert_eq!(down.output().as_slice(), b"*2\r\n:1\r\n:2\r\n>1\r\n+a\r\n>1\r\n+b\r\n>1\r\n+c\r\n");
        down.push(None, &mut pool, |out| out.extend_from_slice(b">0\r\n"));
        assert!(down.output().as_slice().ends_with(b">0\r\n"));
    }
}
