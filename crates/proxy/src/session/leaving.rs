//! How the environment lets go of a client, whose connection is closed or gone. Features hear of it by [`crate::ended`].

use crate::env::Env;
use crate::session::Session;
use crate::session::id::{ClientHandle, ClientId};
use respool_command::Execute;
use respool_connection::Action;

impl<E: Execute> Env<E> {
    /// Forgets a client and has its connection closed. Its place stays taken until the loop has been told: otherwise the
    /// order to close could meet the next client in the place.
    pub(crate) fn close_client(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        if let Some(session) = self.clients.sessions.retire(index) {
            self.forget(client, session);
            self.actions.push_back(Action::Close { conn: index.conn() });
        }
    }

    /// Has the connection of a client closed that is owed nothing, so that it cannot lose what it was sent before.
    pub(crate) fn finish_client(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        if let Some(session) = self.clients.sessions.retire(index) {
            self.forget(client, session);
            self.actions.push_back(Action::Finish { conn: index.conn() });
        }
    }

    /// Forgets a client whose connection is gone already.
    pub(crate) fn drop_client(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        if let Some(session) = self.clients.sessions.remove(index) {
            self.forget(client, session);
        }
    }

    fn forget(&mut self, client: ClientHandle, mut session: Session) {
        self.clients.awaited.forget(&mut session.pace);
        self.forget_states(client, &mut session);
        session.leave_user();
        session.input.iter_mut().for_each(|input| input.wipe());
        session.down.clear(&mut self.clients.pool);
        self.shared.ledger.account(session.accounted, 0);
        self.shared.ledger.leave();
        self.counters.clients.set(self.clients.sessions.len() as u64);
    }
}
