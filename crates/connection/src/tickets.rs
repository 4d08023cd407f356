//! Who is owed the replies of one node connection, in the order in which they will come.
//!
//! A RESP connection answers in order, so the n-th reply belongs to the n-th ticket and to nobody else. A ticket whose owner
//! no longer wants the reply (it timed out, or its client left) becomes a *tombstone*: it stays in its place and swallows
//! the reply when it comes, so that the connection and everybody else's requests on it live on.
//!
//! ```text
//!   front                                   sent|queued
//!   [tombstone][client 7][client 7][client 9]   [client 7][part 3 of 12]
//!    `-expired-'
//! ```

use crate::Seq;
use std::collections::VecDeque;

/// Whose request a ticket stands for. Handles carry a generation: a handle whose owner has gone meets another generation
/// in its place and is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A request of a client as a whole.
    Client {
        /// The client's place in the worker's table.
        index: u32,
        /// Which client of those that had the place.
        generation: u32,
        /// The reply's place among the client's replies.
        seq: Seq,
    },
    /// One part of a request that was split.
    Part {
        /// The place of what joins the parts in the worker's table.
        gather: u32,
        /// Which of those that had the place.
        generation: u32,
        /// The part's number.
        part: u16,
    },
    /// One request of a task of the worker's own, which reads its reply before anybody else does.
    Task {
        /// The task's place in the worker's table.
        task: u32,
        /// Which of those that had the place.
        generation: u32,
        /// Which of the task's requests.
        step: u16,
    },
    /// A request of a client that wants no reply: the reply is swallowed, and the client is told that it has come.
    Unanswered {
        /// The client's place in the worker's table.
        index: u32,
        /// Which client of those that had the place.
        generation: u32,
    },
    /// Nobody any more: the reply is swallowed.
    Nobody,
}

/// One owed reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// Who gets it.
    pub owner: Owner,
}

/// Requests that were written together.
#[derive(Clone, Copy, Debug)]
struct Batch {
    outstanding: usize,
    written_us: u64,
}

/// The tickets of one node connection.
#[derive(Debug, Default)]
pub struct Tickets {
    queue: VecDeque<Ticket>,
    /// How many tickets at the front have had at least their first byte written.
    sent: usize,
    /// How many tickets at the front have passed their deadline and are tombstones.
    expired: usize,
    batches: VecDeque<Batch>,
}

/// More capacity than this is given back when the queue runs empty, in tickets.
const IDLE_TICKETS_MAX: usize = 1024;

impl Tickets {
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
        self.queue.capacity() * size_of::<Ticket>() + self.batches.capacity() * size_of::<Batch>()
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
    pub fn push(&mut self, owner: Owner) {
        self.queue.push_back(Ticket { owner });
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
    pub fn front(&self) -> Option<Ticket> {
        if self.sent == 0 { None } else { self.queue.front().copied() }
    }

    /// All tickets, in the order in which their replies will come.
    pub fn iter(&self) -> impl Iterator<Item = &Ticket> {
        self.queue.iter()
    }

    /// Takes the ticket that a complete reply belongs to. With it comes the time at which its batch was written if this was
    /// the batch's last: that is a sample of the round trip.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(Ticket, Option<u64>)> {
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

    /// Turns every request written at or before `written_us` into a tombstone and gives their owners to `each`, except the
    /// one whose reply is arriving: it keeps its owner for good. What `each` gives back stays in the place, and is nobody
    /// unless the late reply is to be looked at.
    pub fn expire(&mut self, written_us: u64, is_reply_arriving: bool, mut each: impl FnMut(Owner) -> Owner) {
        let due: usize = self.batches.iter().take_while(|b| b.written_us <= written_us).map(|b| b.outstanding).sum();
        let spared = self.expired.max(usize::from(is_reply_arriving));
        for ticket in self.queue.iter_mut().take(due).skip(spared) {
            ticket.owner = each(ticket.owner);
        }
        self.expired = self.expired.max(due);
    }

    /// Turns those requests written at or before `written_us` into tombstones whose owner `is_due`, and gives their owners to
    /// `each`, except the one whose reply is arriving. What `each` gives back stays in the place, as with [`Self::expire`].
    pub fn expire_where(
        &mut self,
        written_us: u64,
        is_reply_arriving: bool,
        is_due: impl Fn(Owner) -> bool,
        mut each: impl FnMut(Owner) -> Owner,
    ) {
        let due: usize = self.batches.iter().take_while(|b| b.written_us <= written_us).map(|b| b.outstanding).sum();
        for ticket in self.queue.iter_mut().take(due).skip(usize::from(is_reply_arriving)) {
            if is_due(ticket.owner) {
                ticket.owner = each(ticket.owner);
            }
        }
    }

    /// Turns the ticket of the reply that is arriving into a tombstone. Returns its owner.
    pub(crate) fn abandon_front(&mut self) -> Option<Owner> {
        let ticket = self.queue.front_mut().filter(|_| self.sent > 0)?;
        Some(std::mem::replace(&mut ticket.owner, Owner::Nobody))
    }

    /// Takes all tickets; each comes with whether any byte of its request may have been written.
    pub fn drain(&mut self) -> impl Iterator<Item = (Owner, bool)> + use<> {
        let sent = std::mem::take(&mut self.sent);
        self.expired = 0;
        self.batches.clear();
        std::mem::take(&mut self.queue).into_iter().enumerate().map(move |(i, t)| (t.owner, i < sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(seq: u32) -> Owner {
        Owner::Client { index: 1, generation: 1, seq: Seq(seq) }
    }

    fn forget(lost: &mut Vec<Owner>) -> impl FnMut(Owner) -> Owner {
        |owner| {
            lost.push(owner);
            Owner::Nobody
        }
    }

    #[test]
    fn a_late_reply_may_still_be_looked_at() {
        let task = Owner::Task { task: 3, generation: 7, step: 2 };
        let mut tickets = Tickets::new();
        tickets.push(task);
        tickets.push(client(0));
        tickets.mark_sent(1);
        tickets.expire(1, false, |owner| if owner == task { owner } else { Owner::Nobody });
        let mut again = Vec::new();
        tickets.expire(1, false, forget(&mut again));
        assert!(again.is_empty(), "it is told once");
        assert_eq!(tickets.pop().map(|(t, _)| t.owner), Some(task));
        assert_eq!(tickets.pop().map(|(t, _)| t.owner), Some(Owner::Nobody));
    }

    #[test]
    fn a_ticket_is_small() {
        assert!(size_of::<Ticket>() <= 16);
    }

    #[test]
    fn a_task_is_owed_a_reply_like_anybody() {
        let task = Owner::Task { task: 3, generation: 7, step: 2 };
        let mut tickets = Tickets::new();
        tickets.push(task);
        tickets.push(client(0));
        tickets.mark_sent(1);
        assert_eq!(tickets.pop().map(|(t, _)| t.owner), Some(task));
        assert_eq!(tickets.drain().collect::<Vec<_>>(), [(client(0), true)]);
    }

    #[test]
    fn no_reply_is_owed_before_a_byte_was_written() {
        let mut tickets = Tickets::new();
        tickets.push(client(0));
        assert_eq!(tickets.pop(), None);
        tickets.mark_sent(10);
        tickets.push(client(1));
        assert_eq!(tickets.pop(), Some((Ticket { owner: client(0) }, Some(10))));
        assert_eq!(tickets.pop(), None);
    }

    #[test]
    fn the_deadline_makes_tombstones_once_and_keeps_their_places() {
        let mut tickets = Tickets::new();
        for (seq, at) in [(0, 10), (1, 10), (2, 20), (3, 30)] {
            tickets.push(client(seq));
            tickets.mark_sent(at);
        }
        let mut lost = Vec::new();
        tickets.expire(10, false, forget(&mut lost));
        tickets.expire(20, false, forget(&mut lost));
        assert_eq!(lost, [client(0), client(1), client(2)]);
        assert_eq!(tickets.oldest_live_us(), Some(30));
        for _ in 0..3 {
            assert_eq!(tickets.pop().map(|(t, _)| t.owner), Some(Owner::Nobody));
        }
        assert_eq!(tickets.expired(), 0);
        assert_eq!(tickets.pop().map(|(t, _)| t.owner), Some(client(3)));
    }

    #[test]
    fn the_deadline_spares_a_reply_that_is_arriving_and_nobody_behind_it() {
        let mut tickets = Tickets::new();
        for seq in 0..3 {
            tickets.push(client(seq));
        }
        tickets.mark_sent(10);
        let mut lost = Vec::new();
        tickets.expire(20, true, forget(&mut lost));
        tickets.expire(30, false, forget(&mut lost));
        assert_eq!(lost, [client(1), client(2)]);
        assert_eq!(tickets.pop().map(|(t, _)| t.owner), Some(client(0)));
        assert_eq!(tickets.pop().map(|(t, _)| t.owner), Some(Owner::Nobody));
        assert_eq!(tickets.expired(), 1);
    }

    #[test]
    fn draining_says_what_may_have_been_sent() {
        let mut tickets = Tickets::new();
        tickets.push(client(0));
        tickets.mark_sent(1);
        tickets.push(client(1));
        assert_eq!(tickets.drain().collect::<Vec<_>>(), [(client(0), true), (client(1), false)]);
        assert!(tickets.is_empty());
        assert_eq!(tickets.outstanding(), 0);
    }
}
