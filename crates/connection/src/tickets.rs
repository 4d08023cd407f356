//! What is owed on one node connection, in the order in which the replies will come.
//!
//! A RESP connection answers in order, so the n-th reply belongs to the n-th ticket and to no other. A ticket whose owner
//! no longer wants the reply (it timed out, or its client left) becomes a *tombstone*: it stays in its place and swallows
//! the reply when it comes, so that the connection and all other requests on it live on.
//!
//! ```text
//!   front                                   sent|queued
//!   [tombstone][client 7][client 7][client 9]   [client 7][part 3 of 12]
//!    `-expired-'
//! ```

use std::collections::VecDeque;

/// What a caller keeps for a request until its reply comes: a handle into a table, the sender of a channel.
pub trait Ticket {
    /// What stays in the place of a ticket whose owner no longer wants the reply.
    fn tombstone() -> Self;

    /// Whether a large reply is delivered in pieces as it arrives. Otherwise it is collected and comes whole. Of a tombstone:
    /// `true`, so that nothing is collected of a reply that is discarded.
    fn takes_pieces(&self) -> bool;

    /// Whether its request is from the sender of the one that was queued right before it, whose ticket is `before`. The requests of one
    /// pipeline are read at once and share a write anyway, so when a write is worth waiting for depends on how many senders share it
    /// ([`crate::flush`]). By default each request is from a sender of its own.
    fn is_of_same_sender(&self, before: &Self) -> bool {
        let _ = before;
        false
    }

    /// Whether `push`, which came while this ticket was the next to be answered, ends its request: SUBSCRIBE in RESP3 is answered by a
    /// push for each channel, and by a reply only if it is refused. Asked of every push that is delivered. A ticket of this kind must
    /// stay one when it expires: a tombstone in its place would take the reply to the next request.
    fn is_ended_by(&mut self, push: &[u8]) -> bool {
        let _ = push;
        false
    }
}

/// Replies that are wanted whole; `None` is the tombstone.
impl<T> Ticket for Option<T> {
    fn tombstone() -> Self {
        None
    }

    fn takes_pieces(&self) -> bool {
        self.is_none()
    }
}

/// Requests that were written together.
#[derive(Clone, Copy, Debug)]
struct Batch {
    outstanding: usize,
    written_us: u64,
}

/// The tickets of one node connection.
#[derive(Debug)]
pub struct Tickets<T> {
    queue: VecDeque<T>,
    /// How many tickets at the front have had at least their first byte written.
    sent: usize,
    /// How many tickets at the front have passed their deadline and are tombstones.
    expired: usize,
    batches: VecDeque<Batch>,
}

/// More capacity than this is given back when the queue runs empty, in tickets.
const IDLE_TICKETS_MAX: usize = 1024;

impl<T> Default for Tickets<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Tickets<T> {
    /// No tickets.
    pub const fn new() -> Self {
        Self { queue: VecDeque::new(), sent: 0, expired: 0, batches: VecDeque::new() }
    }

    /// How many replies are owed or will be.
    #[inline]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Memory that is held.
    pub fn held_bytes(&self) -> usize {
        self.queue.capacity() * size_of::<T>() + self.batches.capacity() * size_of::<Batch>()
    }

    /// Whether nothing is owed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How many requests have been written and not been answered, tombstones included.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.sent
    }

    /// How many answers will be swallowed because their deadline has passed.
    pub fn expired(&self) -> usize {
        self.expired
    }

    /// A request was queued behind the others.
    #[inline]
    pub fn push(&mut self, ticket: T) {
        self.queue.push_back(ticket);
    }

    /// Everything queued so far has been written, at least its first byte.
    #[inline]
    pub fn mark_sent(&mut self, now_us: u64) {
        let outstanding = self.queue.len() - self.sent;
        if outstanding > 0 {
            self.sent = self.queue.len();
            self.batches.push_back(Batch { outstanding, written_us: now_us });
        }
    }

    /// The ticket that the next reply belongs to, or `None` if no reply is owed.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        if self.sent == 0 { None } else { self.queue.front() }
    }

    /// As [`Self::front`].
    pub(crate) fn front_mut(&mut self) -> Option<&mut T> {
        if self.sent == 0 { None } else { self.queue.front_mut() }
    }

    /// The ticket of the request that was queued last, if that has not been written.
    #[inline]
    pub(crate) fn last_queued(&self) -> Option<&T> {
        if self.queue.len() > self.sent { self.queue.back() } else { None }
    }

    /// All tickets, in the order in which their replies will come.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.queue.iter()
    }

    /// Takes the ticket that a complete reply belongs to. With it comes the time at which its batch was written if this was
    /// the batch's last: that is a sample of the round trip.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(T, Option<u64>)> {
        if self.sent == 0 {
            return None;
        }
        let ticket = self.queue.pop_front()?;
        self.sent -= 1;
        if self.expired > 0 {
            self.expired -= 1;
        }
        let mut sample = None;
        if let Some(batch) = self.batches.front_mut() {
            batch.outstanding -= 1;
            if batch.outstanding == 0 {
                sample = Some(self.end_batch());
            }
        }
        Some((ticket, sample))
    }

    /// The last of a batch has been answered. Returns when the batch was written.
    fn end_batch(&mut self) -> u64 {
        let batch = self.batches.pop_front();
        // The last ticket of all ends a batch, too.
        if self.queue.is_empty() && self.queue.capacity() > IDLE_TICKETS_MAX {
            (self.queue, self.batches) = (VecDeque::new(), VecDeque::new());
        }
        batch.map_or(0, |batch| batch.written_us)
    }

    /// The last request written has only now been written as a whole.
    pub fn restart(&mut self, now_us: u64) {
        if let Some(batch) = self.batches.back_mut() {
            batch.written_us = now_us;
        }
    }

    /// How many requests of the oldest batch have not been answered.
    pub fn oldest_batch(&self) -> usize {
        self.batches.front().map_or(0, |batch| batch.outstanding)
    }

    /// When the oldest unanswered request was written.
    pub fn oldest_us(&self) -> Option<u64> {
        self.batches.front().map(|b| b.written_us)
    }

    /// When the oldest request that is unanswered *and not expired* was written.
    pub fn oldest_live_us(&self) -> Option<u64> {
        let mut passed = 0;
        self.batches
            .iter()
            .find(|b| {
                passed += b.outstanding;
                passed > self.expired
            })
            .map(|b| b.written_us)
    }

    /// Takes all tickets; each comes with whether any byte of its request may have been written.
    pub fn drain(&mut self) -> impl Iterator<Item = (T, bool)> + use<T> {
        let sent = std::mem::take(&mut self.sent);
        self.expired = 0;
        self.batches.clear();
        std::mem::take(&mut self.queue).into_iter().enumerate().map(move |(i, t)| (t, i < sent))
    }
}

impl<T: Ticket> Tickets<T> {
    /// Turns every request written at or before `written_us` into a tombstone and gives its ticket to `each`, except the one
    /// whose reply is arriving: it keeps its ticket for good. What `each` gives back stays in the place: a tombstone, unless the
    /// late reply is read, too.
    pub fn expire(&mut self, written_us: u64, is_reply_arriving: bool, mut each: impl FnMut(T) -> T) {
        let due: usize = self.batches.iter().take_while(|b| b.written_us <= written_us).map(|b| b.outstanding).sum();
        let spared = self.expired.max(usize::from(is_reply_arriving));
        for ticket in self.queue.iter_mut().take(due).skip(spared) {
            *ticket = each(std::mem::replace(ticket, T::tombstone()));
        }
        self.expired = self.expired.max(due);
    }

    /// As [`Self::expire`], for those tickets alone that are due.
    pub fn expire_where(
        &mut self,
        written_us: u64,
        is_reply_arriving: bool,
        is_due: impl Fn(&T) -> bool,
        mut each: impl FnMut(T) -> T,
    ) {
        let due: usize = self.batches.iter().take_while(|b| b.written_us <= written_us).map(|b| b.outstanding).sum();
        for ticket in self.queue.iter_mut().take(due).skip(usize::from(is_reply_arriving)) {
            if is_due(ticket) {
                *ticket = each(std::mem::replace(ticket, T::tombstone()));
            }
        }
    }

    /// Turns the ticket of the reply that is arriving into a tombstone. Returns it.
    pub(crate) fn abandon_front(&mut self) -> Option<T> {
        let ticket = self.queue.front_mut().filter(|_| self.sent > 0)?;
        Some(std::mem::replace(ticket, T::tombstone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forget(lost: &mut Vec<u32>) -> impl FnMut(Option<u32>) -> Option<u32> {
        |ticket| {
            lost.extend(ticket);
            None
        }
    }

    fn tickets(numbers: &[u32]) -> Tickets<Option<u32>> {
        let mut tickets = Tickets::new();
        numbers.iter().for_each(|number| tickets.push(Some(*number)));
        tickets
    }

    #[test]
    fn a_late_reply_may_still_be_read() {
        let mut tickets = tickets(&[7, 0]);
        tickets.mark_sent(1);
        tickets.expire(1, false, |ticket| ticket.filter(|number| *number == 7));
        let mut again = Vec::new();
        tickets.expire(1, false, forget(&mut again));
        assert!(again.is_empty(), "a ticket expires once");
        assert_eq!(tickets.pop().map(|(ticket, _)| ticket), Some(Some(7)));
        assert_eq!(tickets.pop().map(|(ticket, _)| ticket), Some(None));
    }

    #[test]
    fn a_ticket_need_not_be_a_copy() {
        let mut tickets: Tickets<Option<Box<str>>> = Tickets::new();
        for name in ["a", "b", "c"] {
            tickets.push(Some(name.into()));
        }
        tickets.mark_sent(1);
        assert_eq!(tickets.abandon_front().flatten().as_deref(), Some("a"));
        tickets.expire_where(1, false, |ticket| ticket.as_deref() == Some("b"), |_| None);
        let left: Vec<_> =
            tickets.drain().map(|(ticket, was_sent)| (ticket.as_deref().map(str::to_owned), was_sent)).collect();
        assert_eq!(left, [(None, true), (None, true), (Some("c".to_owned()), true)]);
    }

    #[test]
    fn no_reply_is_owed_before_a_byte_was_written() {
        let mut tickets = tickets(&[0]);
        assert_eq!(tickets.pop(), None);
        tickets.mark_sent(10);
        tickets.push(Some(1));
        assert_eq!(tickets.pop(), Some((Some(0), Some(10))));
        assert_eq!(tickets.pop(), None);
    }

    #[test]
    fn the_deadline_makes_tombstones_once_and_keeps_their_places() {
        let mut tickets = Tickets::new();
        for (number, at) in [(0, 10), (1, 10), (2, 20), (3, 30)] {
            tickets.push(Some(number));
            tickets.mark_sent(at);
        }
        let mut lost = Vec::new();
        tickets.expire(10, false, forget(&mut lost));
        tickets.expire(20, false, forget(&mut lost));
        assert_eq!(lost, [0, 1, 2]);
        assert_eq!(tickets.oldest_live_us(), Some(30));
        for _ in 0..3 {
            assert_eq!(tickets.pop().map(|(ticket, _)| ticket), Some(None));
        }
        assert_eq!(tickets.expired(), 0);
        assert_eq!(tickets.pop().map(|(ticket, _)| ticket), Some(Some(3)));
    }

    #[test]
    fn the_deadline_spares_only_a_reply_that_is_arriving() {
        let mut tickets = tickets(&[0, 1, 2]);
        tickets.mark_sent(10);
        let mut lost = Vec::new();
        tickets.expire(20, true, forget(&mut lost));
        tickets.expire(30, false, forget(&mut lost));
        assert_eq!(lost, [1, 2]);
        assert_eq!(tickets.pop().map(|(ticket, _)| ticket), Some(Some(0)));
        assert_eq!(tickets.pop().map(|(ticket, _)| ticket), Some(None));
        assert_eq!(tickets.expired(), 1);
    }

    #[test]
    fn draining_says_what_may_have_been_sent() {
        let mut tickets = tickets(&[0]);
        tickets.mark_sent(1);
        tickets.push(Some(1));
        assert_eq!(tickets.drain().collect::<Vec<_>>(), [(Some(0), true), (Some(1), false)]);
        assert!(tickets.is_empty());
        assert_eq!(tickets.outstanding(), 0);
    }
}
