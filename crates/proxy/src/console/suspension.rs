//! `PROXY SUSPEND`: nothing is sent to nodes, and nothing is read of the clients that are there, but for the one that gave the
//! order. Who connects afterwards is read, so that the console can be reached; its requests to nodes are held back.
//!
//! A client that is in the middle of a large request is read to its end: the node has its beginning.

use crate::session::{Pause, Session};
use crate::worker::Worker;
use respool_command::Execute;

/// A suspension, as one worker keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspension {
    since_us: u64,
    /// Number of the client that gave the order.
    by: u64,
}

impl<E: Execute> Worker<E> {
    /// Clients that are there are not read from now on.
    pub(super) fn begin_suspension(&mut self, by: u64) {
        self.suspension = Some(Suspension { since_us: self.now.mono_us, by });
        self.suspend_clients();
    }

    /// They are read again.
    pub(super) fn end_suspension(&mut self) {
        if self.suspension.take().is_none() {
            return;
        }
        let suspended = self.clients.sessions.iter().filter(|(_, session)| session.pause.has(Pause::SUSPENDED));
        let suspended: Vec<u32> = suspended.map(|(index, _)| index).collect();
        suspended.into_iter().for_each(|index| self.clients.unpause(index, Pause::SUSPENDED));
    }

    /// Whether a client is one that is not to be read.
    pub(super) fn suspends(&self, session: &Session) -> bool {
        let is_meant = |it: &Suspension| session.cold.connected_us <= it.since_us && session.id != it.by;
        self.suspension.as_ref().is_some_and(is_meant)
    }

    /// Has those not read that are not to be, and may be left where they are.
    pub(super) fn suspend_clients(&mut self) {
        let Some(Suspension { since_us, by }) = self.suspension else { return };
        let mut left = Vec::new();
        for (index, session) in self.clients.sessions.iter_mut() {
            let is_meant = session.cold.connected_us <= since_us && session.id != by;
            let is_amid_request = session.large.as_ref().is_some_and(|large| large.sending.is_some());
            if is_meant && !is_amid_request && !session.pause.has(Pause::SUSPENDED) {
                session.pause.add(Pause::SUSPENDED);
                if session.cold.has_hung_up {
                    left.push(index);
                }
            }
        }
        left.into_iter().for_each(|index| self.drop_rest(index));
    }
}
