//! Writing: one caller at a time writes what has been queued by all, and never waits for the kernel.

use super::system::{Job, Step};
use super::{Core, Link, State, Wakes, system};
use bytes::Bytes;
use respool_connection::{Outbox, Segments};
use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// How long a thread that writes what did not fit waits before it looks whether the client is still there.
const TAIL_LOOK: Duration = Duration::from_millis(500);

/// What is needed to write. Whatever holds it writes, and nothing else does.
#[derive(Debug)]
pub(crate) struct WriteHalf {
    link: Arc<Link>,
    epoch: u64,
    /// What is written now.
    batch: Segments<Bytes>,
}

impl WriteHalf {
    pub(super) fn new(link: Arc<Link>, epoch: u64) -> Box<Self> {
        Box::new(Self { link, epoch, batch: Segments::default() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Gives the kernel what it takes at once.
    fn send(&self) -> io::Result<usize> {
        let front = self.batch.front();
        if front.len() == self.batch.len() {
            return self.link.send(std::iter::once(front));
        }
        self.link.send(self.batch.slices())
    }
}

impl State {
    /// Whether something waits that could be written now.
    pub(crate) fn wants_write(&self) -> bool {
        self.write_half.is_some() && self.link.is_some() && self.upstream.queued_bytes() > 0
    }
}

impl Core {
    /// The connection cannot be used any longer.
    pub(super) fn end_link(self: &Arc<Self>, mut state: MutexGuard<'_, State>, how: &io::Error) {
        let mut wakes = Wakes::default();
        state.lose_link(how, self.now_us(), &mut wakes);
        state.open_lobby(&mut wakes);
        drop(state);
        wakes.run_on(self);
    }

    /// Writes what waits, until nothing does or the kernel takes no more.
    pub(crate) fn write<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while state.wants_write() {
            let Some(mut half) = state.write_half.take() else { break };
            state.upstream.swap_output(&mut half.batch, 0);
            state.gathering.note_write();
            drop(state);
            let sent = half.send();
            state = self.lock();
            if state.epoch != half.epoch {
                // Perhaps the last hold on the socket.
                drop(state);
                drop(half);
                return self.lock();
            }
            state.counts.writes += 1;
            match sent {
                Ok(bytes) => half.batch.advance(bytes, &mut state.pool),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.end_link(state, &error);
                    // What it was to write may be large, and the socket's last holder closes it.
                    drop(half);
                    return self.lock();
                }
            }
            if !half.batch.is_empty() || !half.link.is_flushed() {
                // A thread writes the rest, so that no caller has to stay for it.
                let tail = Tail { core: Arc::downgrade(self), half: Some(half) };
                if let Err(error) = system::spawn(Job::Write(tail)) {
                    // What it was to write is gone with it.
                    self.end_link(state, &error);
                    return self.lock();
                }
                break;
            }
            state.write_half = Some(half);
            if !state.lobby.is_empty() {
                let mut wakes = Wakes::default();
                state.make_room(self, &mut wakes);
                drop(state);
                wakes.run_on(self);
                state = self.lock();
            }
        }
        state
    }
}

/// What the kernel did not take.
#[derive(Debug)]
pub(super) struct Tail {
    core: std::sync::Weak<Core>,
    half: Option<Box<WriteHalf>>,
}

impl Tail {
    /// The connection that it writes to.
    #[cfg(test)]
    pub(super) fn link(&self) -> Option<&Arc<Link>> {
        self.half.as_ref().map(|half| &half.link)
    }

    /// Writes what the kernel takes, once it takes something.
    pub(super) fn step(&mut self) -> Step {
        let Some(mut half) = self.half.take() else { return Step::Over };
        let writable = half.link.wait_writable(TAIL_LOOK);
        let Some(core) = self.core.upgrade() else { return Step::Over };
        let sent = match writable {
            Ok(true) => half.send(),
            Ok(false) => Ok(0),
            Err(error) => Err(error),
        };
        let mut state = core.lock();
        if state.epoch != half.epoch {
            drop(state);
            return Step::Over;
        }
        match sent {
            Ok(bytes) => {
                half.batch.advance(bytes, &mut state.pool);
                if bytes > 0 {
                    state.note_confirmed();
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                core.end_link(state, &error);
                return Step::Over;
            }
        }
        if half.is_empty() && half.link.is_flushed() {
            state.write_half = Some(half);
            drop(core.write(state));
            return Step::Over;
        }
        drop(state);
        self.half = Some(half);
        Step::Next
    }
}
