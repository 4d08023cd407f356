//! Writing: one caller at a time writes what has been queued by all, and never waits for the kernel.

use super::{Core, Link, State, Wakes};
use bytes::Bytes;
use respool_connection::{Outbox, Segments};
use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// How long a thread that writes what did not fit waits before it looks whether the client is still there.
const TAIL_LOOK: Duration = Duration::from_millis(500);

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
            let (Some(spare), Some(link)) = (state.write_half.take(), state.link.clone()) else { break };
            let epoch = state.epoch;
            let mut batch = state.upstream.take_output(spare, 0);
            drop(state);
            let sent = link.send(batch.slices());
            state = self.lock();
            if state.epoch != epoch {
                break;
            }
            state.counts.writes += 1;
            match sent {
                Ok(bytes) => batch.advance(bytes, &mut state.pool),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    self.end_link(state, &error);
                    return self.lock();
                }
            }
            if !batch.is_empty() || !link.is_flushed() {
                // A thread writes the rest, so that no caller has to stay for it.
                let tail = Tail { core: Arc::downgrade(self), link, epoch, batch };
                let spawned = std::thread::Builder::new().name("respool-write".to_owned()).spawn(move || tail.write());
                if let Err(error) = spawned {
                    // What it was to write is gone with it.
                    self.end_link(state, &error);
                    return self.lock();
                }
                break;
            }
            state.write_half = Some(batch);
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
struct Tail {
    core: std::sync::Weak<Core>,
    link: Arc<Link>,
    epoch: u64,
    batch: Segments<Bytes>,
}

impl Tail {
    fn write(mut self) {
        loop {
            let writable = self.link.wait_writable(TAIL_LOOK);
            let Some(core) = self.core.upgrade() else { return };
            let sent = match writable {
                Ok(true) => self.link.send(self.batch.slices()),
                Ok(false) => Ok(0),
                Err(error) => Err(error),
            };
            let mut state = core.lock();
            if state.epoch != self.epoch {
                return;
            }
            match sent {
                Ok(bytes) => {
                    self.batch.advance(bytes, &mut state.pool);
                    if bytes > 0 {
                        state.note_confirmed();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    core.end_link(state, &error);
                    return;
                }
            }
            if self.batch.is_empty() && self.link.is_flushed() {
                state.write_half = Some(self.batch);
                drop(core.write(state));
                return;
            }
        }
    }
}
