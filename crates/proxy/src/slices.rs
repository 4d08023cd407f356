//! What one client has asked for and takes long is done a part in each turn, so that others are served in between.
//!
//! The client is not read meanwhile. What is left to do is kept by whatever does it; here is only whose turn it is.

use crate::session::Pause;
use crate::slab::Handle;
use crate::worker::Worker;
use respool_command::Execute;

/// Clients that go on in the next turn.
#[derive(Debug, Default)]
pub(crate) struct Slices(Vec<Handle>);

impl Slices {
    /// Whether nobody does.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<E: Execute> Worker<E> {
    /// A client has had its part of this turn.
    #[cold]
    pub(crate) fn end_slice(&mut self, index: u32) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.pause.add(Pause::SLICE);
        self.slices.0.push(client);
    }

    /// The turn is over: those who had their part of it go on.
    #[inline]
    pub(crate) fn begin_slices(&mut self) {
        for client in std::mem::take(&mut self.slices.0) {
            if self.clients.sessions.get(client).is_some() {
                self.clients.unpause(client.index, Pause::SLICE);
            }
        }
    }
}
