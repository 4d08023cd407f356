//! Reply slots of one client, in request order.
//!
//! Every request takes a place when it is read; its reply, wherever it comes from and whenever it arrives, leaves in that
//! place. The reply at the head goes straight into the outbox; one behind a gap waits in its slot.
//!
//! ```text
//!   expect() ->  [ head: waiting ][ ready "+OK" ][ waiting ][ ready ":1" ] waiting waiting
//!                      ^ feed(): bytes go to the outbox, then every ready slot behind it until the next gap
//! ```
//!
//! Places behind the last reply that waits are only counted: replies of one node come in order, and then there are no slots.

use std::collections::VecDeque;

/// The place of one reply among those of its client. Wraps around; only places within the ring are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seq(pub u32);

#[derive(Debug)]
enum Slot {
    /// Nothing of the reply is here. At the head, the beginning of it may have left already.
    Waiting,
    /// The beginning of a reply that is still arriving, behind a gap.
    Growing(Vec<u8>),
    /// A whole reply behind a gap.
    Ready(Vec<u8>),
}

/// Pushes by the place of the reply that they wait for.
type Behind = VecDeque<(Seq, Vec<u8>)>;

/// The slots of one client's outstanding replies.
#[derive(Debug, Default)]
pub struct Ring {
    /// The first places, up to the last one that something is here for.
    slots: VecDeque<Slot>,
    head: u32,
    /// How many places are outstanding, those without slots too.
    len: u32,
    /// The beginning of the head's reply has been handed to the outbox: it can no longer be replaced by an error.
    is_head_open: bool,
    /// Bytes that wait in slots.
    waiting_bytes: usize,
    /// Pushes that must not leave before the reply in a place has: by place, in order.
    behind: Option<Box<Behind>>,
}

/// More capacity than this is given back when no slot is needed, in slots: a client that once sent a long pipeline and then
/// idles should not keep its ring.
const IDLE_SLOTS_MAX: usize = 64;

impl Ring {
    /// A ring without slots.
    pub const fn new() -> Self {
        Self { slots: VecDeque::new(), head: 0, len: 0, is_head_open: false, waiting_bytes: 0, behind: None }
    }

    /// How many replies are outstanding or wait behind one that is.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no reply is outstanding.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of replies that wait behind a gap.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Whether `seq` is the latest place that was taken, and still outstanding.
    pub fn is_last(&self, seq: Seq) -> bool {
        !self.is_empty() && seq.0 == self.head.wrapping_add(self.len - 1)
    }

    /// Whether `seq` is the earliest place that is outstanding.
    pub fn is_head(&self, seq: Seq) -> bool {
        !self.is_empty() && seq.0 == self.head
    }

    /// The place that [`Self::expect`] would take.
    pub fn next_place(&self) -> Seq {
        Seq(self.head.wrapping_add(self.len))
    }

    /// Takes the next place.
    #[inline]
    pub fn expect(&mut self) -> Seq {
        let seq = self.next_place();
        self.len += 1;
        seq
    }

    /// Puts a whole reply that is known already behind all others. The ring must not be empty: with nothing outstanding
    /// such a reply goes straight to the outbox.
    pub fn append_ready(&mut self, reply: Vec<u8>) {
        debug_assert!(!self.is_empty());
        self.waiting_bytes += reply.len();
        let index = self.len as usize;
        self.len += 1;
        *self.slot(index) = Slot::Ready(reply);
    }

    /// Puts bytes that are no reply between replies: at once, but never inside a reply, and not before the one in place
    /// `after` if that is outstanding.
    pub fn push(&mut self, after: Option<Seq>, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let is_outstanding = |seq: &Seq| seq.0.wrapping_sub(self.head) < self.len;
        let open = self.is_head_open.then_some(Seq(self.head));
        let Some(seq) = after.filter(is_outstanding).or(open) else { return write(out) };
        let behind = self.behind.get_or_insert_default();
        // Whoever waits already for a later place keeps the order of pushes: this one joins it.
        let is_joining = |last: &Seq| last.0.wrapping_sub(self.head) >= seq.0.wrapping_sub(self.head);
        if behind.back().is_none_or(|(last, _)| !is_joining(last)) {
            behind.push_back((seq, Vec::new()));
        }
        if let Some((_, waiting)) = behind.back_mut() {
            let before = waiting.len();
            write(waiting);
            self.waiting_bytes += waiting.len() - before;
        }
    }

    /// The next bytes of the reply in place `seq`; `is_last` ends it. Bytes that may leave are appended to `out`. Returns
    /// whether anything was; a place that is not outstanding is ignored.
    #[inline]
    pub fn feed(&mut self, seq: Seq, bytes: &[u8], is_last: bool, out: &mut Vec<u8>) -> bool {
        let index = seq.0.wrapping_sub(self.head) as usize;
        if index == 0 && self.len > 0 {
            out.extend_from_slice(bytes);
            self.is_head_open = !is_last;
            if is_last {
                self.advance(out);
            }
            return true;
        }
        self.feed_behind(index, bytes, is_last);
        false
    }

    fn feed_behind(&mut self, index: usize, bytes: &[u8], is_last: bool) {
        if index >= self.len as usize {
            return;
        }
        self.waiting_bytes += bytes.len();
        let slot = self.slot(index);
        let mut reply = match std::mem::replace(slot, Slot::Waiting) {
            Slot::Waiting => Vec::with_capacity(bytes.len()),
            Slot::Growing(begun) => begun,
            Slot::Ready(done) => {
                *slot = Slot::Ready(done);
                self.waiting_bytes -= bytes.len();
                debug_assert!(false, "a reply is fed once");
                return;
            }
        };
        reply.extend_from_slice(bytes);
        *slot = if is_last { Slot::Ready(reply) } else { Slot::Growing(reply) };
    }

    /// The slot of an outstanding place, made if there is none.
    fn slot(&mut self, index: usize) -> &mut Slot {
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || Slot::Waiting);
        }
        &mut self.slots[index]
    }

    /// Replaces the reply in place `seq` by `error`, whatever of it has arrived. Returns `false` if its beginning has left
    /// already: then only closing the connection tells the client the truth.
    pub fn fail(&mut self, seq: Seq, error: &[u8], out: &mut Vec<u8>) -> bool {
        let index = seq.0.wrapping_sub(self.head) as usize;
        if index == 0 && self.is_head_open {
            return false;
        }
        if let Some(slot @ Slot::Growing(_)) = self.slots.get_mut(index)
            && let Slot::Growing(begun) = std::mem::replace(slot, Slot::Waiting)
        {
            self.waiting_bytes -= begun.len();
        }
        self.feed(seq, error, true, out);
        true
    }

    /// The head is complete: lets it and all that waited behind it leave, up to the next gap.
    #[inline]
    fn advance(&mut self, out: &mut Vec<u8>) {
        self.pop(out);
        if !self.slots.is_empty() {
            self.advance_further(out);
        }
    }

    #[inline(never)]
    fn advance_further(&mut self, out: &mut Vec<u8>) {
        while let Some(slot) = self.slots.front_mut() {
            match slot {
                Slot::Waiting => return,
                Slot::Growing(begun) => {
                    self.waiting_bytes -= begun.len();
                    out.extend_from_slice(begun);
                    self.is_head_open = true;
                    *slot = Slot::Waiting;
                    return;
                }
                Slot::Ready(reply) => {
                    self.waiting_bytes -= reply.len();
                    out.extend_from_slice(reply);
                    self.pop(out);
                }
            }
        }
        if self.slots.capacity() > IDLE_SLOTS_MAX {
            self.slots = VecDeque::new();
        }
    }

    #[inline]
    fn pop(&mut self, out: &mut Vec<u8>) {
        self.slots.pop_front();
        self.len -= 1;
        self.head = self.head.wrapping_add(1);
        if self.behind.is_some() {
            self.let_pushes_go(out);
        }
    }

    /// The place before the head's reply has left: so do the pushes that waited for it.
    #[cold]
    fn let_pushes_go(&mut self, out: &mut Vec<u8>) {
        let Some(behind) = &mut self.behind else { return };
        let left = Seq(self.head.wrapping_sub(1));
        if let Some((_, bytes)) = behind.pop_front_if(|(seq, _)| *seq == left) {
            self.waiting_bytes -= bytes.len();
            out.extend_from_slice(&bytes);
        }
        if behind.is_empty() {
            self.behind = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_leave_in_request_order_whatever_the_order_of_arrival() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut ring = Ring { head: u32::MAX - 1, ..Ring::new() };
            let seqs = [ring.expect(), ring.expect(), ring.expect()];
            let mut out = Vec::new();
            for place in order {
                ring.feed(seqs[place], &[b'a' + place as u8], true, &mut out);
            }
            assert_eq!(out, b"abc", "{order:?}");
            assert!(ring.is_empty());
            assert_eq!(ring.waiting_bytes(), 0);
        }
    }

    #[test]
    fn a_local_reply_stands_behind_what_is_outstanding() {
        let mut ring = Ring::new();
        let mut out = Vec::new();
        let first = ring.expect();
        ring.append_ready(b"-ERR local\r\n".to_vec());
        let third = ring.expect();
        assert!(!ring.feed(third, b":3\r\n", true, &mut out));
        assert!(out.is_empty());
        assert!(ring.feed(first, b":1\r\n", true, &mut out));
        assert_eq!(out, b":1\r\n-ERR local\r\n:3\r\n");
    }

    #[test]
    fn a_reply_in_pieces_streams_at_the_head_and_waits_elsewhere() {
        let mut ring = Ring::new();
        let mut out = Vec::new();
        let (first, second) = (ring.expect(), ring.expect());
        ring.feed(second, b"se", false, &mut out);
        assert!(out.is_empty());
        ring.feed(first, b"fir", false, &mut out);
        assert_eq!(out, b"fir");
        ring.feed(first, b"st", true, &mut out);
        assert_eq!(out, b"firstse", "what waited of the second may leave with the first's end");
        ring.feed(second, b"cond", true, &mut out);
        assert_eq!(out, b"firstsecond");
    }

    #[test]
    fn a_failure_replaces_a_reply_unless_its_beginning_has_left() {
        let mut ring = Ring::new();
        let mut out = Vec::new();
        let (first, second) = (ring.expect(), ring.expect());
        assert!(ring.is_last(second) && !ring.is_last(first));
        ring.feed(second, b"half", false, &mut out);
        assert!(ring.fail(second, b"-E\r\n", &mut out));
        ring.feed(first, b"ha", false, &mut out);
        assert!(!ring.fail(first, b"-E\r\n", &mut out));
        ring.feed(first, b"lf", true, &mut out);
        assert_eq!(out, b"half-E\r\n");
        assert_eq!(ring.waiting_bytes(), 0);
    }

    #[test]
    fn a_push_leaves_at_once_but_never_inside_a_reply() {
        let mut ring = Ring::new();
        let mut out = Vec::new();
        let push = |ring: &mut Ring, after, text: &str, out: &mut Vec<u8>| {
            ring.push(after, out, |out| out.extend_from_slice(text.as_bytes()));
        };
        push(&mut ring, None, "<1>", &mut out);
        let (first, second) = (ring.expect(), ring.expect());
        push(&mut ring, None, "<2>", &mut out);
        ring.feed(first, b"fir", false, &mut out);
        push(&mut ring, None, "<3>", &mut out);
        push(&mut ring, None, "<4>", &mut out);
        assert_eq!(out, b"<1><2>fir");
        assert_eq!(ring.waiting_bytes(), 6);
        ring.feed(first, b"st", true, &mut out);
        ring.feed(second, b"second", true, &mut out);
        assert_eq!(out, b"<1><2>first<3><4>second");
        assert_eq!(ring.waiting_bytes(), 0);
    }

    #[test]
    fn a_push_waits_for_the_reply_it_is_about_and_stays_in_order() {
        let mut ring = Ring::new();
        let mut out = Vec::new();
        let push = |ring: &mut Ring, after, text: &str, out: &mut Vec<u8>| {
            ring.push(after, out, |out| out.extend_from_slice(text.as_bytes()));
        };
        let (first, second, third) = (ring.expect(), ring.expect(), ring.expect());
        push(&mut ring, Some(second), "<1>", &mut out);
        ring.feed(first, b"a", false, &mut out);
        push(&mut ring, None, "<2>", &mut out);
        ring.feed(third, b"c", true, &mut out);
        ring.feed(second, b"b", true, &mut out);
        assert_eq!(out, b"a");
        ring.feed(first, b"a", true, &mut out);
        assert_eq!(out, b"aab<1><2>c");
        push(&mut ring, Some(second), "<3>", &mut out);
        assert_eq!(out, b"aab<1><2>c<3>", "what has left is not waited for");
        assert!(ring.behind.is_none() && ring.waiting_bytes() == 0);
    }

    #[test]
    fn a_place_that_is_not_outstanding_is_ignored() {
        let mut ring = Ring::new();
        let mut out = Vec::new();
        let first = ring.expect();
        ring.feed(first, b"1", true, &mut out);
        assert!(!ring.feed(first, b"again", true, &mut out));
        assert!(!ring.feed(Seq(99), b"x", true, &mut out));
        assert_eq!(out, b"1");
    }
}
