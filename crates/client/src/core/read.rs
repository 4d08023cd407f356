//! Reading: one caller at a time reads for all.

use super::slots::{Ended, SlotId, Waiter};
use super::system::{Job, Step};
use super::{Core, Leader, Link, State, Wait, Wakes, system};
use crate::limits::READ_BYTES;
use crate::{ErrorKind, Outcome, Reply};
use bytes::Bytes;
use respool_connection::{Event, Fault};
use respool_wire::ReplyLimits;
use std::io;
use std::sync::{Arc, MutexGuard, Weak};

/// What is needed to read. Whatever holds it reads, and nothing else does.
#[derive(Debug)]
pub(crate) struct ReadHalf {
    link: Arc<Link>,
    epoch: u64,
    buffer: Box<[u8]>,
    /// Memory for what is woken.
    spare: Vec<Waiter>,
}

/// What a read has brought.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadOnce {
    /// Nothing, there was nothing.
    Nothing,
    /// Replies, or a part of one.
    Some,
    /// The connection is gone.
    Lost,
}

impl ReadHalf {
    pub(crate) fn new(link: Arc<Link>, epoch: u64) -> Box<Self> {
        Box::new(Self { link, epoch, buffer: vec![0; READ_BYTES].into(), spare: Vec::new() })
    }

    #[cfg(test)]
    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Reads once and gives every reply to its caller. Gives itself back to the state, unless the connection is gone. The state is given to
    /// the reader, locked, which looks next whether its own reply was there.
    pub(crate) fn read(
        self: Box<Self>,
        core: &Arc<Core>,
        wait: Wait,
        reader: Leader,
    ) -> (MutexGuard<'_, State>, ReadOnce) {
        self.read_by(core, reader, |link, buffer| link.recv(buffer, wait))
    }

    /// As [`Self::read`], by a function that reads.
    pub(super) fn read_by(
        mut self: Box<Self>,
        core: &Arc<Core>,
        reader: Leader,
        recv: impl FnOnce(&Link, &mut [u8]) -> io::Result<usize>,
    ) -> (MutexGuard<'_, State>, ReadOnce) {
        let read = recv(&self.link, &mut self.buffer);
        let mut wakes = Wakes::with_room(std::mem::take(&mut self.spare));
        let mut guard = core.lock();
        let state = &mut *guard;
        if state.epoch != self.epoch {
            drop(guard);
            drop(self);
            return (core.lock(), ReadOnce::Lost);
        }
        state.counts.reads += 1;
        let lost = match read {
            Ok(0) => Err(io::Error::from(io::ErrorKind::UnexpectedEof).to_string()),
            Ok(bytes) => {
                let result = state.take_replies(&self.buffer[..bytes], &mut wakes).map_err(|fault| fault.to_string());
                result.map(|()| ReadOnce::Some)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                state.vain_reads += 1;
                Ok(ReadOnce::Nothing)
            }
            Err(error) => Err(error.to_string()),
        };
        let once = match lost {
            Ok(once) => {
                state.make_room(core, &mut wakes);
                state.gathering.note_woken(wakes.len());
                state.hand_on(reader, &mut wakes);
                once
            }
            Err(how) => {
                state.lose_link(&how, core.now_us(), &mut wakes);
                state.open_lobby(&mut wakes);
                ReadOnce::Lost
            }
        };
        if once == ReadOnce::Lost {
            drop(guard);
            drop(self);
            wakes.run_on(core);
            return (core.lock(), once);
        }
        // Given back before anything is woken: what is woken may lead.
        state.read_half = Some(self);
        if !wakes.is_quiet() {
            drop(guard);
            wakes.run_on(core);
            guard = core.lock();
        }
        if let Some(half) = &mut guard.read_half {
            half.spare = wakes.into_room();
        }
        (guard, once)
    }
}

/// How long the thread that serves tasks of no runtime stays when none of them waits, in microseconds.
const SERVE_US: u64 = 250_000;

impl Core {
    /// A thread reads for tasks that no runtime wakes when something can be read.
    pub(crate) fn serve_by_thread(self: &Arc<Self>) {
        let mut state = self.lock();
        if matches!(state.leader, Leader::Thread(_)) {
            // It has begun to read since the lock was released, and appoints another when it leaves.
            return;
        }
        if state.link.is_none() {
            // Lost since then: there is nothing to read.
            return;
        }
        state.leader = Leader::Driver;
        if std::mem::replace(&mut state.is_served, true) {
            return;
        }
        drop(state);
        if let Err(error) = system::spawn(Job::Serve(Server { core: Arc::downgrade(self), reads: None })) {
            let mut state = self.lock();
            state.is_served = false;
            if state.leader == Leader::Driver {
                // Nothing reads for those that wait.
                self.end_link(state, &error);
            }
        }
    }
}

/// The thread that serves.
#[derive(Debug)]
pub(super) struct Server {
    core: Weak<Core>,
    /// It reads next, by this. Whether one caller waited, if any, when it was taken.
    reads: Option<(Box<ReadHalf>, bool)>,
}

impl Server {
    /// Takes the means of reading and reads, in two steps.
    pub(super) fn step(&mut self) -> Step {
        let Some(core) = self.core.upgrade() else { return Step::Over };
        match self.reads.take() {
            None => self.begin(&core),
            Some((half, is_calm)) => read_and_hand_on(&core, half, is_calm),
        }
    }

    fn begin(&mut self, core: &Arc<Core>) -> Step {
        let mut guard = core.lock();
        if guard.upstream.queued_bytes() > 0 {
            guard = core.write(guard);
        }
        let state = &mut *guard;
        let is_over = state.leader != Leader::Driver || state.link.is_none();
        let half = if is_over { None } else { state.read_half.take() };
        let Some(half) = half else {
            state.is_served = false;
            state.is_serve_due = !is_over;
            return Step::Over;
        };
        self.reads = Some((half, state.slots.waiting() <= 1));
        Step::Next
    }

    /// The connection by which it reads next.
    #[cfg(test)]
    pub(super) fn link(&self) -> Option<&Arc<Link>> {
        self.reads.as_ref().map(|(half, _)| half.link())
    }
}

#[cfg_attr(not(feature = "tokio"), allow(unused_variables, reason = "a driver takes over from it"))]
fn read_and_hand_on(core: &Arc<Core>, half: Box<ReadHalf>, is_calm: bool) -> Step {
    let (mut state, once) = half.read(core, Wait::For { usual_us: SERVE_US, left_us: SERVE_US }, Leader::Driver);
    let is_wanted = state.is_drained || !state.lobby.is_empty();
    let is_owed = is_wanted && !state.upstream.tickets().is_empty();
    if state.serves_outside && state.slots.waiting() > 0 {
        // They have room, and read for themselves.
        state.serves_outside = false;
        if state.leader == Leader::Driver {
            let mut wakes = Wakes::default();
            state.appoint(&mut wakes);
            drop(state);
            wakes.run_on(core);
            return Step::Next;
        }
    }
    if once == ReadOnce::Nothing && state.slots.waiting() == 0 && !is_owed && state.leader == Leader::Driver {
        state.leader = Leader::None;
    }
    #[cfg(feature = "tokio")]
    if once == ReadOnce::Some && state.driver.is_calm(is_calm) && state.leader == Leader::Driver {
        // One task is left, of a runtime that tells it when there is something to read.
        let mut wakes = Wakes::default();
        state.appoint(&mut wakes);
        drop(state);
        wakes.run_on(core);
    }
    Step::Next
}

impl State {
    /// What `reader` needed to read is there again.
    pub(super) fn hand_on(&mut self, reader: Leader, wakes: &mut Wakes) {
        if std::mem::take(&mut self.is_serve_due) && self.leader == Leader::Driver {
            wakes.rare().serve = true;
        }
        // Another was appointed meanwhile, and waits for the means.
        if self.leader != reader {
            match self.leader {
                Leader::Thread(id) | Leader::Task(id) => wakes.push(self.slots.take_waiter(id)),
                Leader::Driver => self.drive(wakes),
                Leader::None => {}
            }
        }
    }

    /// Gives replies to their callers.
    fn take_replies(&mut self, mut input: &[u8], wakes: &mut Wakes) -> Result<(), Fault> {
        let limits = ReplyLimits::default();
        while let Some(event) = self.upstream.next_event(&mut input, &limits, 0)? {
            match event {
                Event::Reply { ticket, bytes, .. } => {
                    if ticket != SlotId::NONE && self.slots.is_waiting(ticket) {
                        let reply = if self.large.is_empty() {
                            Reply::copied(bytes)
                        } else {
                            self.large.extend_from_slice(bytes);
                            Reply::owned(&Bytes::from(std::mem::take(&mut self.large)))
                        };
                        let ended = reply.map_or_else(
                            || Ended::Failed(ErrorKind::Lost("a reply cannot be read".into()), Outcome::Replied),
                            Ended::Reply,
                        );
                        wakes.push(self.slots.end(ticket, ended));
                    } else {
                        self.large = Vec::new();
                        self.slots.forget(ticket);
                    }
                }
                Event::Piece { ticket, bytes } => {
                    let ticket = *ticket;
                    if self.slots.is_waiting(ticket) {
                        self.large.extend_from_slice(bytes);
                    } else {
                        self.large = Vec::new();
                    }
                }
                Event::Push { .. } => {}
            }
        }
        Ok(())
    }
}
