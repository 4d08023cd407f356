//! Where callers wait: a place for each request, which takes its reply.
//!
//! A place has a number and a generation. A caller that leaves frees its place at once; the ticket of its request stays in the
//! connection's queue, meets a place of another generation when the reply comes, and the reply is discarded.

use crate::{ErrorKind, Outcome, Reply};
use respool_connection::Ticket;
use std::task::Waker;
use std::thread::Thread;

/// The place of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId {
    index: u32,
    generation: u32,
}

impl SlotId {
    /// The place of no request.
    pub(crate) const NONE: Self = Self { index: u32::MAX, generation: 0 };
}

impl Ticket for SlotId {
    fn tombstone() -> Self {
        Self::NONE
    }

    fn takes_pieces(&self) -> bool {
        true
    }
}

/// What is woken when a place has its reply.
#[derive(Debug, Default)]
pub(crate) enum Waiter {
    /// Nothing.
    #[default]
    None,
    /// A task.
    Task(Waker),
    /// A thread that is parked.
    Thread(Thread),
}

impl Waiter {
    pub(crate) fn wake(self) {
        match self {
            Self::None => {}
            Self::Task(waker) => waker.wake(),
            Self::Thread(thread) => thread.unpark(),
        }
    }
}

/// How a request ended.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// With a reply.
    Reply(Reply),
    /// Without one.
    Failed(ErrorKind, Outcome),
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    is_taken: bool,
    ended: Option<Ended>,
    waiter: Waiter,
    /// When the caller gives up, in microseconds on the connection's clock.
    until_us: u64,
}

/// The places of one connection.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Places that are taken and have no reply.
    waiting: usize,
    /// Of them, those at which a task waits.
    tasks: usize,
    /// Of them, those at which a thread is parked.
    threads: usize,
}

impl Slots {
    /// Takes a place.
    pub(crate) fn take(&mut self, until_us: u64) -> SlotId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        (slot.is_taken, slot.until_us) = (true, until_us);
        self.waiting += 1;
        SlotId { index, generation: slot.generation }
    }

    fn get(&mut self, id: SlotId) -> Option<&mut Slot> {
        self.slots.get_mut(id.index as usize).filter(|slot| slot.is_taken && slot.generation == id.generation)
    }

    /// Whether a caller waits for the reply with this ticket.
    pub(crate) fn is_waiting(&mut self, id: SlotId) -> bool {
        self.get(id).is_some_and(|slot| slot.ended.is_none())
    }

    /// A request has ended. Returns the waker of its caller.
    #[inline]
    pub(crate) fn end(&mut self, id: SlotId, ended: Ended) -> Waiter {
        let Some(slot) = self.get(id).filter(|slot| slot.ended.is_none()) else { return Waiter::None };
        slot.ended = Some(ended);
        let waiter = std::mem::take(&mut slot.waiter);
        self.waiting -= 1;
        self.uncount(&waiter);
        waiter
    }

    fn uncount(&mut self, waiter: &Waiter) {
        match waiter {
            Waiter::None => {}
            Waiter::Task(_) => self.tasks -= 1,
            Waiter::Thread(_) => self.threads -= 1,
        }
    }

    /// Takes what has ended, and frees the place.
    #[inline]
    pub(crate) fn take_ended(&mut self, id: SlotId) -> Option<Ended> {
        let slot = self.get(id)?;
        let ended = slot.ended.take()?;
        self.free(id);
        Some(ended)
    }

    /// Whether a request has ended.
    pub(crate) fn has_ended(&mut self, id: SlotId) -> bool {
        self.get(id).is_none_or(|slot| slot.ended.is_some())
    }

    /// The caller gives up at another time.
    pub(crate) fn set_until(&mut self, id: SlotId, until_us: u64) {
        if let Some(slot) = self.get(id) {
            slot.until_us = until_us;
        }
    }

    fn free(&mut self, id: SlotId) {
        if let Some(slot) = self.get(id) {
            slot.is_taken = false;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(id.index);
        }
    }

    /// The caller has left. Returns what it would have been woken by, to be dropped without the lock.
    pub(crate) fn leave(&mut self, id: SlotId) -> (Waiter, Option<Ended>) {
        let Some(slot) = self.get(id) else { return (Waiter::None, None) };
        let (waiter, ended) = (std::mem::take(&mut slot.waiter), slot.ended.take());
        if ended.is_none() {
            self.waiting -= 1;
            self.uncount(&waiter);
        }
        self.free(id);
        (waiter, ended)
    }

    /// The task waits here. Returns what waited before, to be dropped without the lock.
    #[inline]
    pub(crate) fn wait_as_task(&mut self, id: SlotId, waker: &Waker) -> Waiter {
        let Some(slot) = self.get(id).filter(|slot| slot.ended.is_none()) else { return Waiter::None };
        if let Waiter::Task(old) = &slot.waiter
            && old.will_wake(waker)
        {
            return Waiter::None;
        }
        let old = std::mem::replace(&mut slot.waiter, Waiter::Task(waker.clone()));
        self.uncount(&old);
        self.tasks += 1;
        old
    }

    /// The thread is parked here, or is not any longer.
    pub(crate) fn wait_as_thread(&mut self, id: SlotId, thread: Option<Thread>) -> Waiter {
        let Some(slot) = self.get(id).filter(|slot| slot.ended.is_none()) else { return Waiter::None };
        let is_there = thread.is_some();
        let old = std::mem::replace(&mut slot.waiter, thread.map_or(Waiter::None, Waiter::Thread));
        self.uncount(&old);
        self.threads += usize::from(is_there);
        old
    }

    /// Takes the waker of a place.
    pub(crate) fn take_waiter(&mut self, id: SlotId) -> Waiter {
        let Some(slot) = self.get(id) else { return Waiter::None };
        let waiter = std::mem::take(&mut slot.waiter);
        self.uncount(&waiter);
        waiter
    }

    /// Takes all tasks that wait.
    #[cfg(feature = "tokio")]
    pub(crate) fn take_tasks(&mut self, tasks: &mut Vec<Waiter>) {
        for slot in &mut self.slots {
            if matches!(slot.waiter, Waiter::Task(_)) {
                tasks.push(std::mem::take(&mut slot.waiter));
            }
        }
        self.tasks -= tasks.len();
    }

    /// Whether a thread is parked at a place, or a task waits there.
    pub(crate) fn is_thread(&mut self, id: SlotId) -> bool {
        self.get(id).is_some_and(|slot| matches!(slot.waiter, Waiter::Thread(_)))
    }

    /// As [`Self::is_thread`], of a task.
    pub(crate) fn is_task(&mut self, id: SlotId) -> bool {
        self.get(id).is_some_and(|slot| matches!(slot.waiter, Waiter::Task(_)))
    }

    /// What waits at places whose callers give up at `now_us` or before, and when the next gives up.
    pub(crate) fn take_late(&mut self, now_us: u64, late: &mut Vec<Waiter>) -> u64 {
        let mut next_us = u64::MAX;
        let (mut tasks, mut threads) = (0, 0);
        for slot in self.slots.iter_mut().filter(|slot| slot.is_taken && slot.ended.is_none()) {
            if slot.until_us > now_us {
                next_us = next_us.min(slot.until_us);
                continue;
            }
            match &slot.waiter {
                Waiter::None => continue,
                Waiter::Task(_) => tasks += 1,
                Waiter::Thread(_) => threads += 1,
            }
            late.push(std::mem::take(&mut slot.waiter));
        }
        self.tasks -= tasks;
        self.threads -= threads;
        next_us
    }

    /// Places that are taken and have no reply.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Of them, those at which a task waits.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks
    }

    /// Of them, those at which a thread is parked.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Places that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_to_a_caller_that_left_meets_no_other() {
        let mut slots = Slots::default();
        let left = slots.take(0);
        slots.leave(left);
        let other = slots.take(0);
        assert_eq!(left.index, other.index);
        slots.end(left, Ended::Reply(Reply::Integer(1)));
        assert!(slots.is_waiting(other) && !slots.has_ended(other));
        slots.end(other, Ended::Reply(Reply::Integer(2)));
        assert!(matches!(slots.take_ended(other), Some(Ended::Reply(Reply::Integer(2)))));
        assert!(slots.take_ended(left).is_none());
        assert_eq!((slots.taken(), slots.waiting()), (0, 0));
    }

    #[test]
    fn a_task_does_not_wait_at_a_place_that_has_ended() {
        let mut slots = Slots::default();
        let id = slots.take(0);
        slots.end(id, Ended::Reply(Reply::Integer(1)));
        slots.wait_as_task(id, Waker::noop());
        assert!(slots.tasks() == 0 && slots.take_ended(id).is_some());
    }

    #[test]
    fn what_waits_is_counted() {
        let mut slots = Slots::default();
        let (a, b) = (slots.take(5), slots.take(9));
        slots.wait_as_task(a, Waker::noop());
        slots.wait_as_thread(b, Some(std::thread::current()));
        assert_eq!((slots.waiting(), slots.tasks(), slots.threads()), (2, 1, 1));
        let mut late = Vec::new();
        assert_eq!(slots.take_late(5, &mut late), 9);
        assert_eq!((late.len(), slots.tasks(), slots.threads()), (1, 0, 1));
        slots.leave(b);
        slots.leave(a);
        assert_eq!((slots.waiting(), slots.tasks(), slots.threads(), slots.taken()), (0, 0, 0, 0));
    }
}
