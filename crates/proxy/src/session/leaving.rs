//! How the environment lets go of a client, whose connection is closed or gone. Features hear of it by [`crate::ended`].
//!
//! ```text
//!   MULTI  SET a 1  EVAL late  SET b 2  EXEC
//!          |- done -|- runs -|- is still done, though the client leaves here; then the client is let go of
//! ```
//!
//! The engine of this process executes a transaction as a whole. Only a late script interrupts it, and others are told BUSY
//! meanwhile. A client that leaves during that stays until its transaction is done, and is told nothing more.

use crate::ended::Ended;
use crate::env::Env;
use crate::ids::{ClientHandle, ClientId};
use crate::reply::progress::ReplyMode;
use crate::session::marks::Departure;
use crate::session::table::Clients;
use crate::session::{PauseReasons, Session};
use respool_command::Execute;
use respool_connection::Action;

impl<E: Execute> Env<E> {
    /// Forgets a client and has its connection closed. Its place stays taken until the loop has been told: otherwise the
    /// order to close could meet the next client in the place.
    pub(crate) fn close_client(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        if self.stays_for_exec(client, Departure::Closing) {
            return;
        }
        if self.clients.departure_of(index) == Some(Departure::Gone) {
            return self.let_go(client);
        }
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
        if !self.stays_for_exec(client, Departure::Gone) {
            self.let_go(client);
        }
    }

    fn let_go(&mut self, client: ClientHandle) {
        if let Some(session) = self.clients.sessions.remove(client.index) {
            self.forget(client, session);
        }
    }

    /// A client is to be let go of. `true`: the engine of this process is in the midst of its transaction. It is told nothing from
    /// now on, and goes once that is done, or the time of a drain is over.
    #[cold]
    fn stays_for_exec(&mut self, client: ClientHandle, departure: Departure) -> bool {
        let is_late = self.slices.script.as_ref().is_some_and(|late| late.is_of(client));
        let is_over = self.drain_until_us.is_some_and(|until_us| self.now.mono_us >= until_us);
        let Some(session) = self.clients.sessions.get_mut(client).filter(|_| is_late && !is_over) else { return false };
        let Some(pins) = session.pins.as_mut().filter(|pins| pins.is_replying()) else { return false };
        pins.departure = pins.departure.max(Some(departure));
        session.pause.add(PauseReasons::CLOSING);
        session.reply_mode = ReplyMode::Off;
        // Nothing is written to it any more.
        session.is_blocked = true;
        if let Some(mut input) = session.input.take() {
            input.wipe();
        }
        if let Some(late) = &mut self.slices.script {
            late.asker.is_wanted = false;
        }
        let subscriber = session.subscriber.take();
        if subscriber.is_some() {
            self.ended.push_back(Ended::Client { client, subscriber, blocked: Vec::new() });
        }
        true
    }

    fn forget(&mut self, client: ClientHandle, mut session: Session) {
        self.clients.full.remove(&client.index);
        self.clients.arrivals.forget(&mut session.pace);
        self.forget_states(client, &mut session);
        session.leave_user(self.now.mono_us);
        session.input.iter_mut().for_each(|input| input.wipe());
        session.down.clear(&mut self.clients.pool);
        self.shared.ledger.account(session.accounted, 0);
        self.shared.ledger.leave();
        self.counters.clients.set(self.clients.sessions.len() as u64);
    }
}

impl Clients {
    /// How a client has left in the midst of its transaction, if it has.
    pub(crate) fn departure_of(&self, index: ClientId) -> Option<Departure> {
        self.sessions.at(index)?.departure()
    }
}

impl Session {
    /// How its client has left in the midst of its transaction, if it has.
    pub(crate) fn departure(&self) -> Option<Departure> {
        self.pins.as_ref()?.departure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::push::subscriber::Subscriber;
    use crate::testing::{env_with_engine, env_with_node};
    use crate::transaction::reply_parts::ExecReply;
    use crate::transaction::state::Transaction;

    #[test]
    fn a_place_is_free_once_closed_and_at_once_if_it_was_gone() {
        let mut env = env_with_node();
        let [closed, gone] = [(), ()].map(|()| env.test_client());
        env.close_client(closed);
        env.drop_client(gone);
        assert!(env.clients.sessions.is_empty());
        assert!(matches!(env.actions.pop_front(), Some(Action::Close { conn }) if conn == closed.conn()));
        assert!(env.actions.is_empty(), "the loop knows that the other has gone");
        assert_eq!(env.test_client(), gone, "the other place is taken until the loop was told");
    }

    #[test]
    fn features_are_told_of_a_client_that_they_knew() {
        let mut env = env_with_node();
        let [unknown, subscriber] = [(), ()].map(|()| env.test_client());
        env.test_session(subscriber).subscriber = Some(Box::new(Subscriber::new(0)));
        env.close_client(unknown);
        assert!(env.ended.is_empty());
        env.finish_client(subscriber);
        assert!(matches!(env.ended.pop_front(), Some(Ended::Client { subscriber: Some(_), .. })));
    }

    #[test]
    fn a_client_amid_a_late_transaction_stays_until_the_deadline() {
        let mut env = env_with_engine();
        let client = env.test_client();
        env.slices.script = Some(env.test_late_script(client, "EVAL s 0"));
        let exec_reply = Some(ExecReply::new(Default::default(), None));
        env.test_session(client).pins_mut().transaction = Some(Box::new(Transaction { queued: None, exec_reply }));
        env.close_client(client);
        assert_eq!(env.clients.departure_of(client), Some(Departure::Closing));
        env.drop_client(client);
        assert_eq!(env.clients.departure_of(client), Some(Departure::Gone), "it cannot be written any more");
        assert!(env.slices.script.as_ref().is_some_and(|late| !late.asker.is_wanted));
        env.drain_until_us = Some(env.now.mono_us);
        env.drop_client(client);
        assert!(env.clients.sessions.is_empty());
    }
}
