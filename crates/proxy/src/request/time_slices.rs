//! Long requests of one client are executed in slices, one per turn, so that other clients are served in between.
//!
//! The client is not read meanwhile. The rest of the request is kept by the feature that executes it; this list has the clients
//! that continue in the next turn.

use crate::env::Env;
use crate::scripts::engine::LateScript;
use crate::session::Pause;
use crate::session::id::{ClientHandle, ClientId};
use crate::worker::Worker;
use respool_command::Execute;

/// Clients whose request continues in the next turn.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    clients: Vec<ClientHandle>,
    /// The script that the engine of this process has left.
    pub(crate) script: Option<LateScript>,
    /// Its client has left too: it goes on in the next turn all the same.
    is_orphaned: bool,
}

impl Slices {
    /// Whether no client does.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty() && !self.is_orphaned
    }
}

impl<E: Execute> Env<E> {
    /// A client's slice of this turn is used up.
    #[cold]
    pub(crate) fn end_slice(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.pause.add(Pause::SLICE);
        self.slices.clients.push(client);
    }
}

impl<E: Execute> Worker<E> {
    /// The turn is over: the clients in the list continue.
    #[inline]
    pub(crate) fn begin_slices(&mut self) {
        if self.env.slices.script.is_some() {
            self.env.slices.is_orphaned = self.blocking.run_orphaned_script(&mut self.env, &mut self.subscriptions);
        }
        for client in std::mem::take(&mut self.env.slices.clients) {
            if self.env.clients.sessions.get(client).is_some() {
                self.env.clients.unpause(client.index, Pause::SLICE);
            }
        }
    }
}
