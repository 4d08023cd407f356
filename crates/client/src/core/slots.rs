//! Where callers wait: a place for each request, which takes its reply.
//!
//! A place has a number and a generation. A caller that leaves frees its place at once; the ticket of its request stays in the
//! connection's queue, meets a place of another generation when the reply comes, and the reply is discarded.

use super::deadline_heap::DeadlineHeap;
use super::note::Note;
use super::system::Parked;
use crate::{Command, ErrorKind, Outcome, Reply};
use respool_connection::Ticket;
use std::collections::HashMap;
use std::task::Waker;

/// The place of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    Thread(Parked),
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

impl Ended {
    /// Bytes of its reply, as [`Reply::payload`].
    pub(crate) fn payload(&self) -> usize {
        match self {
            Self::Reply(reply) => reply.payload(),
            Self::Failed(..) => 0,
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    is_taken: bool,
    ended: Option<Ended>,
    waiter: Waiter,
    /// When the caller gives up, in microseconds on the connection's clock.
    until_us: u64,
    /// It is among the fresh ones.
    is_fresh: bool,
    /// Nothing waited here when its time was over.
    is_passed: bool,
    /// The request.
    note: Note,
}

impl Slot {
    /// Its caller gives up at this time. Whether it is a fresh one by that.
    #[inline]
    fn begin_until(&mut self, until_us: u64) -> bool {
        (self.until_us, self.is_passed) = (until_us, false);
        until_us < u64::MAX && !std::mem::replace(&mut self.is_fresh, true)
    }

    /// Its caller has taken what has ended, or has left.
    #[inline]
    fn free(&mut self) {
        self.is_taken = false;
        self.generation = self.generation.wrapping_add(1);
    }

    /// Whether its caller gives up at this time.
    fn is_until(&self, until_us: u64) -> bool {
        self.is_taken && self.ended.is_none() && self.until_us == until_us
    }
}

/// The places of one connection.
///
/// When callers give up is put in order when it is looked for late ones, not when a place is taken: most places are free again by then.
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
    /// Places that were taken, or whose callers give up at another time, since it was looked for late ones. Each is here once.
    fresh: Vec<u32>,
    /// When the callers at the other places give up.
    deadlines: DeadlineHeap<SlotId>,
    /// The requests that have no reply and whose callers have left.
    left: HashMap<SlotId, Note>,
    /// How many entries of the two were looked at.
    #[cfg(test)]
    looked_at: usize,
}

impl Slots {
    /// Takes a place for a request that is queued now.
    #[inline]
    pub(crate) fn take(&mut self, until_us: u64, (command, now_us): (&Command, u64)) -> SlotId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.is_taken = true;
        slot.note.set(command, now_us);
        self.waiting += 1;
        if slot.begin_until(until_us) {
            self.fresh.push(index);
        }
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
        slot.free();
        self.free.push(id.index);
        Some(ended)
    }

    /// Whether a request has ended.
    pub(crate) fn has_ended(&mut self, id: SlotId) -> bool {
        self.get(id).is_none_or(|slot| slot.ended.is_some())
    }

    /// The caller gives up at this time.
    #[inline]
    pub(crate) fn set_until(&mut self, id: SlotId, until_us: u64) {
        if self.get(id).is_some_and(|slot| slot.begin_until(until_us)) {
            self.fresh.push(id.index);
        }
    }

    /// Whether nothing waited here when the time of the caller was over.
    #[inline]
    pub(crate) fn is_passed(&mut self, id: SlotId) -> bool {
        self.get(id).is_some_and(|slot| slot.is_passed)
    }

    /// The caller has left. Returns what it would have been woken by, to be dropped without the lock.
    pub(crate) fn leave(&mut self, id: SlotId) -> (Waiter, Option<Ended>) {
        let Some(slot) = self.get(id) else { return (Waiter::None, None) };
        let (waiter, ended) = (std::mem::take(&mut slot.waiter), slot.ended.take());
        slot.free();
        let note = ended.is_none().then(|| slot.note.clone());
        self.free.push(id.index);
        if let Some(note) = note {
            self.left.insert(id, note);
            self.waiting -= 1;
            self.uncount(&waiter);
        }
        (waiter, ended)
    }

    /// A request is answered whose caller may have left.
    pub(crate) fn forget(&mut self, id: SlotId) {
        self.left.remove(&id);
    }

    /// No request whose caller has left is answered any more.
    pub(crate) fn forget_left(&mut self) {
        self.left = HashMap::new();
    }

    /// What is kept of a request that has no reply.
    pub(super) fn note(&self, id: SlotId) -> Option<&Note> {
        let slot = self.slots.get(id.index as usize).filter(|slot| slot.is_taken && slot.generation == id.generation);
        slot.map(|slot| &slot.note).or_else(|| self.left.get(&id))
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
    pub(crate) fn wait_as_thread(&mut self, id: SlotId, thread: Option<Parked>) -> Waiter {
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

    /// Puts the waker of a task back, unless its request has ended or another waker is there. Returns the waker that is not needed, which
    /// the caller drops after it has released the lock.
    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn wait_again(&mut self, id: SlotId, waiter: Waiter) -> Waiter {
        let Some(slot) = self.get(id).filter(|slot| slot.ended.is_none()) else { return waiter };
        if !matches!((&slot.waiter, &waiter), (Waiter::None, Waiter::Task(_))) {
            return waiter;
        }
        slot.waiter = waiter;
        self.tasks += 1;
        Waiter::None
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
        for index in self.fresh.drain(..) {
            let slot = &mut self.slots[index as usize];
            slot.is_fresh = false;
            #[cfg(test)]
            (self.looked_at += 1);
            if slot.is_until(slot.until_us) && slot.until_us < u64::MAX {
                self.deadlines.add(slot.until_us, SlotId { index, generation: slot.generation });
            }
        }
        while let Some((until_us, id)) = self.deadlines.take(now_us) {
            #[cfg(test)]
            (self.looked_at += 1);
            let Some(slot) = self.get(id).filter(|slot| slot.is_until(until_us)) else { continue };
            let waiter = std::mem::take(&mut slot.waiter);
            slot.is_passed = matches!(waiter, Waiter::None);
            self.uncount(&waiter);
            if !matches!(waiter, Waiter::None) {
                late.push(waiter);
            }
        }
        let Self { slots, deadlines, waiting, .. } = self;
        #[cfg(test)]
        let looked_at = &mut self.looked_at;
        let mut is_there = |until_us, id: SlotId| {
            #[cfg(test)]
            (*looked_at += 1);
            let slot = &slots[id.index as usize];
            slot.generation == id.generation && slot.is_until(until_us)
        };
        deadlines.tidy(*waiting, &mut is_there);
        deadlines.next_us(is_there)
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
    use crate::cmd;

    fn ping() -> (&'static Command, u64) {
        static PING: std::sync::LazyLock<Command> = std::sync::LazyLock::new(|| cmd("PING"));
        (&PING, 0)
    }

    #[test]
    fn a_reply_to_a_caller_that_left_meets_no_other() {
        let mut slots = Slots::default();
        let left = slots.take(0, ping());
        slots.leave(left);
        let other = slots.take(0, ping());
        assert_eq!(left.index, other.index);
        slots.end(left, Ended::Reply(Reply::Integer(1)));
        assert!(slots.is_waiting(other) && !slots.has_ended(other));
        slots.end(other, Ended::Reply(Reply::Integer(2)));
        assert!(matches!(slots.take_ended(other), Some(Ended::Reply(Reply::Integer(2)))));
        assert!(slots.take_ended(left).is_none());
        assert_eq!((slots.taken(), slots.waiting()), (0, 0));
    }

    #[test]
    fn what_is_kept_of_requests_goes_with_their_replies() {
        let mut slots = Slots::default();
        let ids: Vec<SlotId> = (0..100).map(|_| slots.take(0, ping())).collect();
        ids.iter().for_each(|id| drop(slots.leave(*id)));
        let other = slots.take(0, (&cmd("GET"), 0));
        let name = |slots: &Slots, id| slots.note(id).map(|note| note.ahead(0, 0).command);
        assert!(ids.iter().all(|id| name(&slots, *id).as_deref() == Some("PING")));
        assert_eq!(name(&slots, other).as_deref(), Some("GET"));
        // An answer to what a caller waits for, or to one of those that have left.
        slots.end(other, Ended::Reply(Reply::Null));
        slots.take_ended(other);
        ids[1..].iter().for_each(|id| slots.forget(*id));
        assert_eq!((name(&slots, other), name(&slots, ids[0]).as_deref()), (None, Some("PING")));
        assert_eq!(slots.left.len(), 1);
        slots.forget_left();
        assert_eq!(name(&slots, ids[0]), None);
    }

    #[test]
    fn a_task_does_not_wait_at_a_place_that_has_ended() {
        let mut slots = Slots::default();
        let id = slots.take(0, ping());
        slots.end(id, Ended::Reply(Reply::Integer(1)));
        slots.wait_as_task(id, Waker::noop());
        assert!(slots.tasks() == 0 && slots.take_ended(id).is_some());
    }

    #[test]
    fn what_waits_is_counted() {
        let mut slots = Slots::default();
        let (a, b) = (slots.take(5, ping()), slots.take(9, ping()));
        slots.wait_as_task(a, Waker::noop());
        slots.wait_as_thread(b, Some(super::super::current()));
        assert_eq!((slots.waiting(), slots.tasks(), slots.threads()), (2, 1, 1));
        let mut late = Vec::new();
        assert_eq!(slots.take_late(5, &mut late), 9);
        assert_eq!((late.len(), slots.tasks(), slots.threads()), (1, 0, 1));
        slots.leave(b);
        slots.leave(a);
        assert_eq!((slots.waiting(), slots.tasks(), slots.threads(), slots.taken()), (0, 0, 0, 0));
    }

    #[test]
    fn late_calls_cost_no_look_at_those_that_are_in_time() {
        const CALLS: u64 = 100_000;
        let mut slots = Slots::default();
        let ids: Vec<SlotId> = (1..=CALLS).map(|until_us| slots.take(until_us, ping())).collect();
        for id in &ids {
            slots.wait_as_task(*id, Waker::noop());
        }
        let mut late = Vec::new();
        // What was taken since then is put in order once.
        assert_eq!(slots.take_late(0, &mut late), 1);
        let ordered = slots.looked_at;
        for now_us in 1..=1_000 {
            assert_eq!(slots.take_late(now_us, &mut late), now_us + 1);
            assert_eq!(late.len() as u64, now_us);
            slots.leave(ids[now_us as usize - 1]);
        }
        assert_eq!(slots.tasks() as u64, CALLS - 1_000);
        let looked_at = slots.looked_at - ordered;
        assert!(ordered as u64 <= CALLS + 1 && looked_at <= 2_000, "{ordered}, then {looked_at} for 1,000 late calls");
    }

    #[test]
    fn calls_that_are_answered_in_time_leave_nothing_behind() {
        let mut slots = Slots::default();
        let mut late = Vec::new();
        for now_us in 0..10_000 {
            let id = slots.take(now_us + 1_000_000, ping());
            slots.take_late(now_us, &mut late);
            slots.end(id, Ended::Reply(Reply::Null));
            slots.take_ended(id);
        }
        let looked_at = slots.looked_at;
        assert_eq!(slots.take_late(20_000, &mut late), u64::MAX);
        assert!(late.is_empty() && slots.fresh.is_empty());
        assert!(slots.looked_at - looked_at <= 100 && looked_at <= 50_000, "{looked_at}");
    }

    #[test]
    fn a_call_gives_up_at_the_time_that_it_was_told_last() {
        let mut slots = Slots::default();
        let (sooner, later) = (slots.take(50, ping()), slots.take(50, ping()));
        let mut late = Vec::new();
        for id in [sooner, later] {
            slots.wait_as_task(id, Waker::noop());
        }
        assert_eq!(slots.take_late(0, &mut late), 50);
        slots.set_until(sooner, 20);
        slots.set_until(later, 90);
        assert_eq!((slots.take_late(19, &mut late), late.len()), (20, 0));
        assert_eq!((slots.take_late(50, &mut late), late.len()), (90, 1));
        // One of another place that is found there in the meantime is no reason to give up.
        slots.leave(later);
        let other = slots.take(100, ping());
        slots.wait_as_task(other, Waker::noop());
        assert_eq!((slots.take_late(90, &mut late), late.len()), (100, 1));
    }

    #[test]
    fn a_place_at_which_nothing_waits_in_time_is_known() {
        let mut slots = Slots::default();
        let id = slots.take(50, ping());
        let mut late = Vec::new();
        assert!(!slots.is_passed(id));
        assert_eq!((slots.take_late(50, &mut late), late.len()), (u64::MAX, 0));
        assert!(slots.is_passed(id));
        slots.set_until(id, 70);
        slots.wait_as_task(id, Waker::noop());
        assert!(!slots.is_passed(id));
        assert_eq!((slots.take_late(70, &mut late), late.len()), (u64::MAX, 1));
    }
}
