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
//! What waits costs little more than its bytes, so that a client cannot have much kept by asking for little: small replies
//! lie one behind the other in one buffer, and a slot says where. A reply that is known at once and comes right behind one
//! that is ready joins it and takes no place at all.

use crate::BufferPool;
use crate::buffer::occupied_bytes;
use crate::limits::{RING_LARGE_BYTES, RING_SPENT_BYTES_MAX};
use std::collections::VecDeque;

/// The place of one reply among those of its client. Wraps around; only places within the ring are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seq(pub u32);

/// What is here of the reply in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Nothing. At the head, the beginning of it may have left already.
    Waiting,
    /// The whole reply, in the store.
    Small { at: u32, len: u32 },
    /// The whole reply, in a buffer of its own.
    Large { buffer: u32 },
    /// The beginning of a reply that is still arriving, in a buffer of its own.
    Growing { buffer: u32 },
}

/// Pushes by the place of the reply that they wait for.
type Behind = VecDeque<(Seq, Vec<u8>)>;

/// What waits behind a gap.
#[derive(Debug, Default)]
struct Waiting {
    /// The first places, up to the last one that something is here for.
    slots: VecDeque<Slot>,
    /// Small replies in the order in which they came, those that have left among them.
    store: Vec<u8>,
    /// Bytes in the store that have not left.
    live_bytes: usize,
    /// The others. Empty ones are free.
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
    /// What the buffers occupy.
    buffers_bytes: usize,
}

/// The slots of one client's outstanding replies.
#[derive(Debug, Default)]
pub struct Ring {
    waiting: Option<Box<Waiting>>,
    head: u32,
    /// How many places are outstanding, those without slots too.
    len: u32,
    /// The beginning of the head's reply has been handed to the outbox: it can no longer be replaced by an error.
    is_head_open: bool,
    /// Bytes of replies and pushes that wait.
    waiting_bytes: usize,
    /// Pushes that must not leave before the reply in a place has: by place, in order.
    behind: Option<Box<Behind>>,
}

/// More capacity than this is given back when no slot is needed, in slots: a client that once sent a long pipeline and then
/// idles should not keep its ring.
const IDLE_SLOTS_MAX: usize = 64;

impl Waiting {
    /// The slot of a place, made if there is none.
    fn slot(&mut self, index: usize) -> &mut Slot {
        if self.slots.len() <= index {
            self.slots.resize(index + 1, Slot::Waiting);
        }
        &mut self.slots[index]
    }

    /// Keeps a whole reply.
    fn keep(&mut self, bytes: &[u8], pool: &mut BufferPool) -> Slot {
        if bytes.len() > RING_LARGE_BYTES || !self.has_room_for(bytes.len()) {
            return Slot::Large { buffer: self.keep_apart(bytes.to_vec()) };
        }
        let at = self.store(pool).len();
        self.store.extend_from_slice(bytes);
        self.stored(at)
    }

    /// Keeps a whole reply that `write` appends.
    fn write(&mut self, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) -> (Slot, usize) {
        let at = self.store(pool).len();
        if !self.has_room_for(0) {
            let mut reply = Vec::new();
            write(&mut reply);
            let bytes = reply.len();
            return (Slot::Large { buffer: self.keep_apart(reply) }, bytes);
        }
        write(&mut self.store);
        let bytes = self.store.len() - at;
        if bytes > RING_LARGE_BYTES {
            let reply = self.store.split_off(at);
            self.store.shrink_to(at + RING_LARGE_BYTES);
            return (Slot::Large { buffer: self.keep_apart(reply) }, bytes);
        }
        (self.stored(at), bytes)
    }

    /// Whether places in the store can be told with so many bytes more.
    fn has_room_for(&self, bytes: usize) -> bool {
        self.store.len() + bytes <= (u32::MAX / 2) as usize
    }

    fn store(&mut self, pool: &mut BufferPool) -> &mut Vec<u8> {
        if self.store.capacity() == 0 {
            self.store = pool.take();
        }
        &mut self.store
    }

    fn stored(&mut self, at: usize) -> Slot {
        let len = self.store.len() - at;
        self.live_bytes += len;
        Slot::Small { at: at as u32, len: len as u32 }
    }

    fn keep_apart(&mut self, bytes: Vec<u8>) -> u32 {
        self.buffers_bytes += occupied_bytes(&bytes);
        if let Some(free) = self.free.pop() {
            self.buffers[free as usize] = bytes;
            return free;
        }
        self.buffers.push(bytes);
        (self.buffers.len() - 1) as u32
    }

    /// More of a reply has come.
    fn grow(&mut self, buffer: u32, bytes: &[u8]) {
        let buffer = &mut self.buffers[buffer as usize];
        self.buffers_bytes -= occupied_bytes(buffer);
        buffer.extend_from_slice(bytes);
        self.buffers_bytes += occupied_bytes(buffer);
    }

    /// Takes what is in a buffer, which is free then.
    fn take(&mut self, buffer: u32) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.buffers[buffer as usize]);
        self.buffers_bytes -= occupied_bytes(&bytes);
        self.free.push(buffer);
        bytes
    }

    /// So many bytes of the store have left. What has left is forgotten once it is more than what has not, so that the
    /// bytes that are moved are no more than those that came since.
    fn spend(&mut self, bytes: usize) {
        self.live_bytes -= bytes;
        let spent = self.store.len() - self.live_bytes;
        if spent > RING_SPENT_BYTES_MAX.max(self.live_bytes).max(self.slots.len()) {
            self.forget_spent();
        }
    }

    #[cold]
    fn forget_spent(&mut self) {
        let mut store = Vec::with_capacity(self.live_bytes);
        for slot in &mut self.slots {
            if let Slot::Small { at, len } = slot {
                let from = *at as usize;
                *at = store.len() as u32;
                store.extend_from_slice(&self.store[from..from + *len as usize]);
            }
        }
        self.store = store;
    }

    /// Nothing waits any more: what is large of the memory is given back.
    fn rest(&mut self, pool: &mut BufferPool) {
        if self.slots.capacity() > IDLE_SLOTS_MAX {
            self.slots = VecDeque::new();
        }
        if self.store.capacity() > 0 {
            pool.put(std::mem::take(&mut self.store));
        }
        if self.buffers.capacity() > 0 {
            (self.buffers, self.free) = (Vec::new(), Vec::new());
        }
    }

    fn held_bytes(&self) -> usize {
        let tables = self.buffers.capacity() * size_of::<Vec<u8>>() + self.free.capacity() * size_of::<u32>();
        let slots = self.slots.capacity() * size_of::<Slot>();
        size_of::<Self>() + slots + tables + occupied_bytes(&self.store) + self.buffers_bytes
    }
}

impl Ring {
    /// A ring without slots.
    pub const fn new() -> Self {
        Self { waiting: None, head: 0, len: 0, is_head_open: false, waiting_bytes: 0, behind: None }
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

    /// Small replies that wait behind a gap in the order in which they came, those that have left among them.
    pub fn kept(&self) -> &[u8] {
        self.waiting.as_ref().map_or(&[], |waiting| &waiting.store)
    }

    /// Memory that is held for what waits behind a gap.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        if self.waiting.is_none() && self.behind.is_none() { 0 } else { self.held_behind_gap() }
    }

    #[cold]
    fn held_behind_gap(&self) -> usize {
        let pushes = |behind: &Behind| {
            let places = behind.capacity() * size_of::<(Seq, Vec<u8>)>();
            places + behind.iter().map(|(_, bytes)| occupied_bytes(bytes)).sum::<usize>()
        };
        let waiting = self.waiting.as_ref().map_or(0, |waiting| waiting.held_bytes());
        waiting + self.behind.as_deref().map_or(0, pushes)
    }

    /// How many replies have left since the ring was made. Wraps around.
    #[inline]
    pub fn left(&self) -> u32 {
        self.head
    }

    /// Whether `seq` is the latest place that was taken, and still outstanding.
    pub fn is_last(&self, seq: Seq) -> bool {
        !self.is_empty() && seq.0 == self.head.wrapping_add(self.len - 1)
    }

    /// Whether `seq` is the earliest place that is outstanding.
    pub fn is_head(&self, seq: Seq) -> bool {
        !self.is_empty() && seq.0 == self.head
    }

    /// How many places are before `seq`, if that is outstanding.
    pub fn places_before(&self, seq: Seq) -> Option<u32> {
        Some(seq.0.wrapping_sub(self.head)).filter(|places| *places < self.len)
    }

    /// The place that was taken last.
    pub fn last_place(&self) -> Seq {
        Seq(self.next_place().0.wrapping_sub(1))
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

    /// Puts a whole reply that is known already behind all others: `write` appends it. The ring must not be empty: with
    /// nothing outstanding such a reply goes straight to the outbox.
    pub fn append_ready(&mut self, pool: &mut BufferPool, write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(!self.is_empty());
        let index = self.len as usize;
        let waiting = self.waiting.get_or_insert_default();
        let (slot, bytes) = waiting.write(pool, write);
        self.waiting_bytes += bytes;
        // A push may wait for the place before.
        if self.behind.is_none()
            && let Slot::Small { at, len } = slot
            && let Some(Slot::Small { at: at_before, len: len_before }) = waiting.slots.get_mut(index - 1)
            && *at_before + *len_before == at
        {
            *len_before += len;
            return;
        }
        *waiting.slot(index) = slot;
        self.len += 1;
    }

    /// Puts bytes that are no reply between replies: at once, but never inside a reply, and not before the one in place
    /// `after` if that is outstanding. The reply that would have had the next place may have joined the last one.
    pub fn push(&mut self, after: Option<Seq>, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let next = self.next_place();
        let after = after.map(|seq| if seq == next { Seq(seq.0.wrapping_sub(1)) } else { seq });
        let is_outstanding = |seq: &Seq| seq.0.wrapping_sub(self.head) < self.len;
        let open = self.is_head_open.then_some(Seq(self.head));
        let Some(seq) = after.filter(is_outstanding).or(open) else { return write(out) };
        let behind = self.behind.get_or_insert_default();
        // A push that already waits for a later place keeps the order: this one joins it.
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
    pub fn feed(&mut self, seq: Seq, bytes: &[u8], is_last: bool, out: &mut Vec<u8>, pool: &mut BufferPool) -> bool {
        let index = seq.0.wrapping_sub(self.head) as usize;
        if index == 0 && self.len > 0 {
            out.extend_from_slice(bytes);
            self.is_head_open = !is_last;
            if is_last {
                self.advance(out, pool);
            }
            return true;
        }
        self.feed_behind(index, bytes, is_last, pool);
        false
    }

    fn feed_behind(&mut self, index: usize, bytes: &[u8], is_last: bool, pool: &mut BufferPool) {
        if index >= self.len as usize {
            return;
        }
        let waiting = self.waiting.get_or_insert_default();
        let filled = match (*waiting.slot(index), is_last) {
            (Slot::Waiting, true) => waiting.keep(bytes, pool),
            (Slot::Waiting, false) => Slot::Growing { buffer: waiting.keep_apart(bytes.to_vec()) },
            (Slot::Growing { buffer }, _) => {
                waiting.grow(buffer, bytes);
                if is_last { Slot::Large { buffer } } else { Slot::Growing { buffer } }
            }
            (Slot::Small { .. } | Slot::Large { .. }, _) => {
                debug_assert!(false, "a reply is fed once");
                return;
            }
        };
        self.waiting_bytes += bytes.len();
        *waiting.slot(index) = filled;
    }

    /// Replaces the reply in place `seq` by `error`, whatever of it has arrived. Returns `false` if its beginning has left
    /// already: then only closing the connection tells the client the truth.
    pub fn fail(&mut self, seq: Seq, error: &[u8], out: &mut Vec<u8>, pool: &mut BufferPool) -> bool {
        let index = seq.0.wrapping_sub(self.head) as usize;
        if index == 0 && self.is_head_open {
            return false;
        }
        if let Some(waiting) = &mut self.waiting
            && let Some(slot) = waiting.slots.get_mut(index)
            && let Slot::Growing { buffer } = *slot
        {
            *slot = Slot::Waiting;
            self.waiting_bytes -= waiting.take(buffer).len();
        }
        self.feed(seq, error, true, out, pool);
        true
    }

    /// The head is complete: lets it and all that waited behind it leave, up to the next gap.
    #[inline]
    fn advance(&mut self, out: &mut Vec<u8>, pool: &mut BufferPool) {
        self.pop(out);
        if self.waiting.is_some() {
            self.advance_further(out, pool);
        }
    }

    #[inline(never)]
    fn advance_further(&mut self, out: &mut Vec<u8>, pool: &mut BufferPool) {
        let Some(mut waiting) = self.waiting.take() else { return };
        // The place that has left had a slot, if any has.
        waiting.slots.pop_front();
        while let Some(slot) = waiting.slots.front().copied() {
            match slot {
                Slot::Waiting => break,
                Slot::Growing { buffer } => {
                    let begun = waiting.take(buffer);
                    self.waiting_bytes -= begun.len();
                    out.extend_from_slice(&begun);
                    self.is_head_open = true;
                    waiting.slots[0] = Slot::Waiting;
                    break;
                }
                Slot::Small { at, len } => {
                    let (from, bytes) = (at as usize, len as usize);
                    self.waiting_bytes -= bytes;
                    out.extend_from_slice(&waiting.store[from..from + bytes]);
                    waiting.slots.pop_front();
                    waiting.spend(bytes);
                    self.pop(out);
                }
                Slot::Large { buffer } => {
                    let reply = waiting.take(buffer);
                    self.waiting_bytes -= reply.len();
                    out.extend_from_slice(&reply);
                    waiting.slots.pop_front();
                    self.pop(out);
                }
            }
        }
        if waiting.slots.is_empty() {
            waiting.rest(pool);
        }
        self.waiting = Some(waiting);
    }

    #[inline]
    fn pop(&mut self, out: &mut Vec<u8>) {
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
        if behind.front().is_some_and(|(seq, _)| *seq == left)
            && let Some((_, bytes)) = behind.pop_front()
        {
            self.waiting_bytes -= bytes.len();
            out.extend_from_slice(&bytes);
        }
        if behind.is_empty() {
            self.behind = None;
        }
    }

    /// Forgets everything and gives the memory back.
    pub fn clear(&mut self, pool: &mut BufferPool) {
        if let Some(waiting) = &mut self.waiting
            && waiting.store.capacity() > 0
        {
            pool.put(std::mem::take(&mut waiting.store));
        }
        *self = Self::new();
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
            let (mut out, mut pool) = (Vec::new(), BufferPool::new());
            for place in order {
                ring.feed(seqs[place], &[b'a' + place as u8], true, &mut out, &mut pool);
            }
            assert_eq!(out, b"abc", "{order:?}");
            assert!(ring.is_empty());
            assert_eq!(ring.waiting_bytes(), 0);
        }
    }

    #[test]
    fn a_local_reply_stands_behind_what_is_outstanding() {
        let mut ring = Ring::new();
        let (mut out, mut pool) = (Vec::new(), BufferPool::new());
        let first = ring.expect();
        ring.append_ready(&mut pool, |out| out.extend_from_slice(b"-ERR local\r\n"));
        let third = ring.expect();
        assert!(!ring.feed(third, b":3\r\n", true, &mut out, &mut pool));
        assert!(out.is_empty());
        assert!(ring.feed(first, b":1\r\n", true, &mut out, &mut pool));
        assert_eq!(out, b":1\r\n-ERR local\r\n:3\r\n");
    }

    #[test]
    fn a_reply_in_pieces_streams_at_the_head_and_waits_elsewhere() {
        let mut ring = Ring::new();
        let (mut out, mut pool) = (Vec::new(), BufferPool::new());
        let (first, second) = (ring.expect(), ring.expect());
        ring.feed(second, b"se", false, &mut out, &mut pool);
        assert!(out.is_empty());
        ring.feed(first, b"fir", false, &mut out, &mut pool);
        assert_eq!(out, b"fir");
        ring.feed(first, b"st", true, &mut out, &mut pool);
        assert_eq!(out, b"firstse", "what waited of the second may leave with the first's end");
        ring.feed(second, b"cond", true, &mut out, &mut pool);
        assert_eq!(out, b"firstsecond");
    }

    #[test]
    fn a_failure_replaces_a_reply_unless_its_beginning_has_left() {
        let mut ring = Ring::new();
        let (mut out, mut pool) = (Vec::new(), BufferPool::new());
        let (first, second) = (ring.expect(), ring.expect());
        assert!(ring.is_last(second) && !ring.is_last(first));
        ring.feed(second, b"half", false, &mut out, &mut pool);
        assert!(ring.fail(second, b"-E\r\n", &mut out, &mut pool));
        ring.feed(first, b"ha", false, &mut out, &mut pool);
        assert!(!ring.fail(first, b"-E\r\n", &mut out, &mut pool));
        ring.feed(first, b"lf", true, &mut out, &mut pool);
        assert_eq!(out, b"half-E\r\n");
        assert_eq!(ring.waiting_bytes(), 0);
    }

    #[test]
    fn a_push_leaves_at_once_but_never_inside_a_reply() {
        let mut ring = Ring::new();
        let (mut out, mut pool) = (Vec::new(), BufferPool::new());
        let push = |ring: &mut Ring, after, text: &str, out: &mut Vec<u8>| {
            ring.push(after, out, |out| out.extend_from_slice(text.as_bytes()));
        };
        push(&mut ring, None, "<1>", &mut out);
        let (first, second) = (ring.expect(), ring.expect());
        push(&mut ring, None, "<2>", &mut out);
        ring.feed(first, b"fir", false, &mut out, &mut pool);
        push(&mut ring, None, "<3>", &mut out);
        push(&mut ring, None, "<4>", &mut out);
        assert_eq!(out, b"<1><2>fir");
        assert_eq!(ring.waiting_bytes(), 6);
        ring.feed(first, b"st", true, &mut out, &mut pool);
        ring.feed(second, b"second", true, &mut out, &mut pool);
        assert_eq!(out, b"<1><2>first<3><4>second");
        assert_eq!(ring.waiting_bytes(), 0);
    }

    #[test]
    fn a_push_waits_for_the_reply_it_is_about_and_stays_in_order() {
        let mut ring = Ring::new();
        let (mut out, mut pool) = (Vec::new(), BufferPool::new());
        let push = |ring: &mut Ring, after, text: &str, out: &mut Vec<u8>| {
            ring.push(after, out, |out| out.extend_from_slice(text.as_bytes()));
        };
        let (first, second, third) = (ring.expect(), ring.expect(), ring.expect());
        push(&mut ring, Some(second), "<1>", &mut out);
        ring.feed(first, b"a", false, &mut out, &mut pool);
        push(&mut ring, None, "<2>", &mut out);
        ring.feed(third, b"c", true, &mut out, &mut pool);
        ring.feed(second, b"b", true, &mut out, &mut pool);
        assert_eq!(out, b"a");
        ring.feed(first, b"a", true, &mut out, &mut pool);
        assert_eq!(out, b"aab<1><2>c");
        push(&mut ring, Some(second), "<3>", &mut out);
        assert_eq!(out, b"aab<1><2>c<3>", "what has left is not waited for");
        assert!(ring.behind.is_none() && ring.waiting_bytes() == 0);
    }

    #[test]
    fn a_place_that_is_not_outstanding_is_ignored() {
        let mut ring = Ring::new();
        let (mut out, mut pool) = (Vec::new(), BufferPool::new());
        let first = ring.expect();
        ring.feed(first, b"1", true, &mut out, &mut pool);
        assert!(!ring.feed(first, b"again", true, &mut out, &mut pool));
        assert!(!ring.feed(Seq(99), b"x", true, &mut out, &mut pool));
        assert_eq!(out, b"1");
    }

    /// What the model of a ring keeps: whole replies by place, in order.
    #[test]
    fn what_waits_leaves_whole_in_any_order_and_memory_follows() {
        let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: u64| {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            chance % below
        };
        let (mut ring, mut out, mut pool) = (Ring::new(), Vec::new(), BufferPool::new());
        let mut expected = Vec::new();
        let mut open: Vec<(Seq, Vec<u8>, usize)> = Vec::new();
        for step in 0..20_000_u32 {
            match next(4) {
                0 if !ring.is_empty() => {
                    let reply = format!("<local {step}>").into_bytes();
                    ring.append_ready(&mut pool, |out| out.extend_from_slice(&reply));
                    expected.extend_from_slice(&reply);
                }
                0 | 1 if open.len() < 300 => {
                    let long = if next(50) == 0 { RING_LARGE_BYTES + 3 } else { next(40) as usize };
                    let reply = format!("<{step}{}>", "x".repeat(long)).into_bytes();
                    expected.extend_from_slice(&reply);
                    open.push((ring.expect(), reply, 0));
                }
                _ if open.is_empty() => {}
                _ => {
                    let at = next(open.len().min(40) as u64) as usize;
                    let (seq, reply, done) = &mut open[at];
                    let left = reply.len() - *done;
                    let step = if next(3) == 0 { 1 + next(left as u64) as usize } else { left };
                    ring.feed(*seq, &reply[*done..*done + step], step == left, &mut out, &mut pool);
                    *done += step;
                    if step == left {
                        open.remove(at);
                    }
                }
            }
            let payload = ring.waiting_bytes();
            assert!(ring.held_bytes() <= 4 * payload + 12 * 2 * 1024 + 3 * RING_SPENT_BYTES_MAX, "{payload} {ring:?}");
        }
        while let Some((seq, reply, done)) = open.pop() {
            ring.feed(seq, &reply[done..], true, &mut out, &mut pool);
        }
        assert!(out == expected && ring.is_empty() && ring.waiting_bytes() == 0);
        assert!(ring.held_bytes() < 4096, "{}", ring.held_bytes());
    }

    #[test]
    fn small_replies_behind_a_gap_cost_little_more_than_their_bytes() {
        let (mut ring, mut out, mut pool) = (Ring::new(), Vec::new(), BufferPool::new());
        let first = ring.expect();
        for _ in 0..100_000 {
            ring.append_ready(&mut pool, |out| out.extend_from_slice(b"+PONG\r\n"));
        }
        assert_eq!(ring.waiting_bytes(), 700_000);
        assert!(ring.held_bytes() < 1_100_000, "{}", ring.held_bytes());
        ring.feed(first, b"+OK\r\n", true, &mut out, &mut pool);
        assert_eq!(out.len(), 700_005);
        assert!(ring.is_empty() && ring.held_bytes() < 1024);
    }

    #[test]
    fn a_reply_made_here_does_not_pass_a_push_that_waits_before_it() {
        let (mut ring, mut out, mut pool) = (Ring::new(), Vec::new(), BufferPool::new());
        let first = ring.expect();
        ring.append_ready(&mut pool, |out| out.extend_from_slice(b"<1>"));
        let last = Seq(ring.next_place().0.wrapping_sub(1));
        ring.push(Some(last), &mut out, |out| out.extend_from_slice(b"<push>"));
        ring.append_ready(&mut pool, |out| out.extend_from_slice(b"<2>"));
        ring.feed(first, b"<0>", true, &mut out, &mut pool);
        assert_eq!(out, b"<0><1><push><2>");
    }

    #[test]
    fn a_push_does_not_pass_the_reply_made_here_that_it_is_about() {
        let (mut ring, mut out, mut pool) = (Ring::new(), Vec::new(), BufferPool::new());
        let first = ring.expect();
        ring.append_ready(&mut pool, |out| out.extend_from_slice(b"<1>"));
        let about = ring.next_place();
        ring.append_ready(&mut pool, |out| out.extend_from_slice(b"<2>"));
        ring.push(Some(about), &mut out, |out| out.extend_from_slice(b"<push>"));
        ring.feed(first, b"<0>", true, &mut out, &mut pool);
        assert_eq!(out, b"<0><1><2><push>");
        ring.push(Some(ring.next_place()), &mut out, |out| out.extend_from_slice(b"<at once>"));
        assert!(out.ends_with(b"<at once>"));
    }
}
