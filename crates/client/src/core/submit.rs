//! Queueing a request: encoded by its caller, appended under the lock.

use super::read::ReadHalf;
use super::slots::Waiter;
use super::{Core, Leader, Link, SlotId, State, Wakes, system};
use crate::{Command, ErrorKind, Overload};
use respool_connection::flush::CallerQueue;
use respool_connection::{Outbox, Segments};
use respool_wire::request_head;
use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

/// What became of a request that a caller wants to queue.
#[derive(Debug)]
pub(crate) enum Submitted {
    /// Its places begin to wait; they are in the vector that was given.
    Queued,
    /// There is no connection, or no room: the caller waits outside.
    Outside,
    /// Nothing was asked for a while, or it was not looked for long: the connection is looked at first, by [`Core::look`].
    Unseen(Arc<Link>),
    /// It cannot be queued.
    Refused(ErrorKind),
}

/// A caller that waits for a connection or for room.
#[derive(Debug)]
pub(super) struct Outside {
    number: u64,
    pub(super) waiter: Waiter,
}

/// What a look at a connection does to it.
#[derive(Debug)]
pub(super) enum Looking {
    /// It leaves everything where it is.
    Peeking,
    /// TLS takes encrypted records from the socket. What waits for the socket meanwhile would not learn of it, so it needs the means
    /// of reading, if nothing else has them.
    Taking(Option<Box<ReadHalf>>),
}

/// Where the caller with this number waits: the numbers grow.
fn find_outside(lobby: &VecDeque<Outside>, number: u64) -> Option<usize> {
    lobby.binary_search_by_key(&number, |outside| outside.number).ok()
}

/// Whether the caller is a thread or a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    Thread,
    Task,
}

impl State {
    /// Queues requests, which follow each other on the connection. Each gets a place.
    pub(crate) fn submit<'c>(
        &mut self,
        core: &Core,
        commands: impl ExactSizeIterator<Item = &'c Command>,
        (now_us, until_us): (u64, u64),
        mut place: impl FnMut(SlotId),
        face: Face,
        wakes: &mut Wakes,
    ) -> Submitted {
        if self.is_closed {
            return Submitted::Refused(ErrorKind::Closed);
        }
        let idle_us = now_us.saturating_sub(self.last_used_us);
        let unseen = self.counts.requests.wrapping_sub(self.looked_over);
        if (idle_us > IDLE_US || unseen >= LOOK_REQUESTS)
            && unseen > 0
            && self.slots.waiting() == 0
            && let Some(link) = self.link.clone()
        {
            return Submitted::Unseen(link);
        }
        self.last_used_us = now_us;
        if self.link.is_none() && self.is_pinned {
            return Submitted::Refused(ErrorKind::Lost("the connection was lost, and what it watched with it".into()));
        }
        if self.link.is_none() {
            if !std::mem::replace(&mut self.is_dialling, true) {
                wakes.rare().dial = true;
            }
            return Submitted::Outside;
        }
        let in_flight = self.upstream.tickets().len();
        let is_full = in_flight + commands.len() > core.config.requests_max && in_flight > 0
            || self.upstream.queued_bytes() > core.config.queued_bytes_max;
        if is_full {
            if self.slots.waiting() == 0 {
                self.serve_abandoned(wakes);
            }
            return match core.config.overload {
                Overload::Wait => Submitted::Outside,
                Overload::Fail => Submitted::Refused(ErrorKind::Overloaded),
            };
        }
        let Self { upstream, pool, slots, .. } = self;
        for command in commands {
            let id = slots.take(until_us, (command, now_us));
            upstream.send_with(id, 0, |out: &mut Segments<_>| {
                let buffer = out.appender(pool);
                request_head(buffer, command.arguments());
                if let Some(text) = command.copied() {
                    return buffer.extend_from_slice(text);
                }
                for (text, kept) in command.parts() {
                    out.appender(pool).extend_from_slice(text);
                    if let Some(value) = kept {
                        out.keep(value.clone(), pool);
                    }
                }
            });
            self.counts.requests += 1;
            place(id);
        }
        if face == Face::Task {
            self.note_deadline(until_us, wakes);
        }
        Submitted::Queued
    }

    /// The caller waits until there is a connection or room. Its number is a new one if it does not wait there yet. Returns what waited there
    /// before, to be dropped without the lock.
    pub(crate) fn wait_outside(
        &mut self,
        number: &mut Option<u64>,
        until_us: u64,
        waiter: Waiter,
        wakes: &mut Wakes,
    ) -> Waiter {
        let is_task = matches!(waiter, Waiter::Task(_));
        if is_task {
            self.note_deadline(until_us, wakes);
        }
        if let Some(place) = self.place_outside(*number) {
            return std::mem::replace(&mut self.lobby[place].waiter, waiter);
        }
        self.lobby_count += 1;
        *number = Some(self.lobby_count);
        self.lobby.push_back(Outside { number: self.lobby_count, waiter });
        // A thread looks at the time itself.
        if is_task && until_us < u64::MAX {
            let Self { lobby, lobby_deadlines, .. } = self;
            lobby_deadlines.add(until_us, self.lobby_count);
            lobby_deadlines.tidy(lobby.len(), |_, number| find_outside(lobby, number).is_some());
        }
        Waiter::None
    }

    /// Where the caller with this number waits.
    fn place_outside(&self, number: Option<u64>) -> Option<usize> {
        find_outside(&self.lobby, number?)
    }

    /// Lets those go that give up at `now_us` or before. Returns when the next does.
    pub(super) fn take_late_outside(&mut self, now_us: u64, late: &mut Vec<Waiter>) -> u64 {
        while let Some((_, number)) = self.lobby_deadlines.take(now_us) {
            let place = self.place_outside(Some(number));
            late.extend(place.and_then(|place| self.lobby.remove(place)).map(|outside| outside.waiter));
        }
        let Self { lobby, lobby_deadlines, .. } = self;
        lobby_deadlines.next_us(|_, number| find_outside(lobby, number).is_some())
    }

    /// The caller has queued its requests and is not woken for room any more. Returns what waited there.
    pub(crate) fn enter_from_outside(&mut self, number: Option<u64>) -> Waiter {
        let left = self.place_outside(number).and_then(|place| self.lobby.remove(place));
        left.map_or(Waiter::None, |outside| outside.waiter)
    }

    /// The caller does not wait outside any longer. What it was woken for is passed on.
    pub(crate) fn leave_outside(&mut self, core: &Core, number: Option<u64>, wakes: &mut Wakes) -> Waiter {
        let left = self.enter_from_outside(number);
        self.make_room(core, wakes);
        left
    }

    /// Something has been answered or written: callers that wait for room may look again.
    pub(super) fn make_room(&mut self, core: &Core, wakes: &mut Wakes) {
        if self.lobby.is_empty() || self.link.is_none() || self.upstream.queued_bytes() > core.config.queued_bytes_max {
            return;
        }
        let room = core.config.requests_max.saturating_sub(self.upstream.tickets().len());
        for outside in self.lobby.drain(..room.min(self.lobby.len())) {
            wakes.push(outside.waiter);
        }
    }

    /// A call gives up at this time.
    pub(crate) fn note_deadline(&mut self, until_us: u64, wakes: &mut Wakes) {
        if until_us < self.keeper_us {
            self.keeper_us = until_us;
            wakes.rare().keeper = true;
        }
    }

    /// Why a call fails that waits outside since `failed_dials` was so, if it does.
    pub(crate) fn why_outside(&self, failed_dials: u64, has_deadline: bool) -> Option<ErrorKind> {
        if self.link.is_some() || self.failed_dials == failed_dials {
            return None;
        }
        let lost = self.last_failure.clone().filter(|_| !has_deadline).map(ErrorKind::Lost);
        self.refusal.clone().or(lost)
    }

    /// Why a call's time is over that waits outside.
    pub(crate) fn why_late(&self) -> ErrorKind {
        let lost = self.last_failure.clone().filter(|_| self.link.is_none());
        lost.map_or(ErrorKind::Timeout(None), ErrorKind::Lost)
    }
}

impl Core {
    /// Looks at a connection on which no caller waits for a reply: whether the server has closed it, or, if none is due, has sent one
    /// that nothing asked for, which would be taken for that of the next request.
    pub(crate) fn look<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State>,
        link: &Link,
        wakes: &mut Wakes,
    ) -> MutexGuard<'a, State> {
        if !state.upstream.tickets().is_empty() {
            // Replies are due whose callers have left, and may be there. What has come in front of an end is for no caller.
            return self.look_by(state, Looking::Peeking, || link.has_ended(), wakes);
        }
        let is_between = state.upstream.is_between_replies();
        let half = if link.is_encrypted() { Looking::Taking(state.read_half.take()) } else { Looking::Peeking };
        self.look_by(state, half, || is_between && link.is_spoilt(), wakes)
    }

    /// As [`Self::look`], by a function that looks.
    pub(super) fn look_by<'a>(
        self: &'a Arc<Self>,
        state: MutexGuard<'a, State>,
        looking: Looking,
        look: impl FnOnce() -> bool,
        wakes: &mut Wakes,
    ) -> MutexGuard<'a, State> {
        let (epoch, requests) = (state.epoch, state.counts.requests);
        drop(state);
        // What reads meanwhile sees for itself what there is.
        let is_spoilt = !matches!(looking, Looking::Taking(None)) && look();
        let mut state = self.lock();
        if let Looking::Taking(Some(half)) = looking
            && state.epoch == epoch
        {
            state.read_half = Some(half);
            state.hand_on(Leader::None, wakes);
        }
        // Something may have been asked meanwhile, and what was there may be its reply.
        if state.epoch == epoch && state.counts.requests == requests {
            state.looked_over = requests;
            if is_spoilt {
                state.lose_link(&"closed by the server, or out of step", self.now_us(), wakes);
            }
        }
        state
    }

    /// Writes what was queued just now, or leaves it to what will write it together with more.
    pub(crate) fn flush<'a>(
        self: &'a Arc<Self>,
        mut state: MutexGuard<'a, State>,
        queued: usize,
        face: Face,
        wakes: &mut Wakes,
    ) -> MutexGuard<'a, State> {
        let queue = CallerQueue { added: queued, waiting: state.slots.waiting(), bytes: state.upstream.queued_bytes() };
        if state.gathering.is_write_due(queue) {
            return self.write(state);
        }
        match face {
            Face::Task => {
                #[cfg(feature = "tokio")]
                {
                    let tasks = state.slots.tasks();
                    state.driver.note_runtime(tasks, wakes);
                    if state.driver.wake(wakes) {
                        state.driver.is_flush_due = true;
                        return state;
                    }
                }
                let _ = wakes;
                self.write(state)
            }
            Face::Thread => {
                // Other threads that are about to send do so first.
                drop(state);
                system::yield_now();
                state = self.lock();
                state.gathering.give_up();
                self.write(state)
            }
        }
    }
}

/// A connection on which nothing was asked for so long is looked at before it is written to, in microseconds.
const IDLE_US: u64 = 100_000;

/// One that was not looked at for so many requests is, too.
const LOOK_REQUESTS: u64 = 32;

impl State {
    /// A task waits at `id`: who reads for it? Returns whether it does so itself.
    pub(crate) fn task_waits(&mut self, id: SlotId, wakes: &mut Wakes) -> bool {
        // The task itself is one of those that wait.
        #[cfg(feature = "tokio")]
        self.driver.note_runtime(self.slots.tasks().saturating_sub(1), wakes);
        match self.leader {
            Leader::None if self.slots.tasks() <= 1 && self.slots.threads() == 0 => {
                self.leader = Leader::Task(id);
                true
            }
            Leader::None if self.slots.threads() > 0 => {
                self.appoint(wakes);
                false
            }
            Leader::Task(leader) if leader == id => true,
            Leader::None | Leader::Task(_) => {
                self.drive(wakes);
                false
            }
            Leader::Driver => {
                #[cfg(feature = "tokio")]
                let is_near = self.driver.is_near();
                #[cfg(not(feature = "tokio"))]
                let is_near = false;
                if !is_near && !self.is_served {
                    wakes.rare().serve = true;
                }
                false
            }
            Leader::Thread(_) => false,
        }
    }
}
