//! What a client asked its connection to be, and was refused for reasons of ours: another database, user or dialect.
//!
//! ```text
//!              SELECT, AUTH, HELLO that a server would have granted, and that cannot be granted here
//!   [served] ---------------------------------------------------------------------------------------> [unmet]
//!      ^                                                                                                 |
//!      '---- the same asked for again and granted; RESET ---------------------------------------------- -'
//! ```
//!
//! Clients send what comes behind a SELECT or AUTH without waiting for the reply, and not all look at it afterwards. At a
//! server those requests would have run in the database, or as the user, that was asked for; so they must not run in another.
//! Until the client is told that it is where it wants to be, it is refused what depends on that. A refusal that a server would
//! give as well (a database that does not exist, a wrong password) changes nothing, here as there.

use crate::env::Env;
use crate::error_text;
use crate::ids::ClientId;
use crate::session::marks::{UnmetStates, WantedState, WatchFailure};
use crate::session::table::Clients;
use crate::session::{Flow, SessionFlags};
use respool_access::needs_no_auth;
use respool_command::{Command, Execute, Lane, PubsubCommand as P, Row, TransactionsCommand as T};
use respool_wire::Args;

impl Clients {
    /// What a client asked for cannot be granted, for reasons that a server would not have.
    #[cold]
    pub(crate) fn note_unmet(&mut self, index: ClientId, wish: WantedState) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        session.details.unmet.0 |= wish as u8;
        session.flags.add(SessionFlags::UNMET);
        self.counters.states_refused.add(1);
    }

    /// A client is what it asked for.
    pub(crate) fn note_met(&mut self, index: ClientId, wishes: &[WantedState]) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        if !session.flags.has(SessionFlags::UNMET) {
            return;
        }
        wishes.iter().for_each(|wish| session.details.unmet.0 &= !(*wish as u8));
        if session.details.unmet == UnmetStates::default() {
            session.flags.remove(SessionFlags::UNMET);
        }
    }
}

impl<E: Execute> Env<E> {
    /// A client that is not what it asked for asks for something. `None`: it may, because it comes to the same.
    pub(crate) fn ask_unmet(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        let unmet = self.clients.sessions.at(index)?.details.unmet;
        let words = if unmet.has(WantedState::User) && !needs_no_auth(row) {
            error_text::NO_USER
        } else if unmet.has(WantedState::Dialect) && !needs_no_auth(row) {
            error_text::NO_DIALECT
        } else if unmet.has(WantedState::Database) && depends_on_database(row, args) {
            error_text::NO_DATABASE
        } else {
            return None;
        };
        if row.command == Command::Transactions(T::Watch)
            && let Some(session) = self.clients.sessions.at_mut(index)
        {
            // Nor may an EXEC succeed as if its keys had been watched.
            session.pins_mut().watches.failure = WatchFailure::Unseen;
        }
        // A block that is being queued is spoilt, so that its EXEC runs nothing.
        Some(self.refuse_for_ours(index, words))
    }
}

/// Whether it matters for a request which database is selected. Channels, too, are led by databases under routes.
fn depends_on_database(row: &Row, args: Args<'_>) -> bool {
    match row.lane(args) {
        Lane::Local => false,
        Lane::Pinned => row.command == Command::Transactions(T::Watch),
        Lane::Push => !matches!(row.command, Command::Pubsub(P::Unsubscribe | P::Punsubscribe | P::Sunsubscribe)),
        Lane::Shared | Lane::Admin | Lane::Script | Lane::Blocking | Lane::Dedicated => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{env_with_node, request};

    #[test]
    fn a_refused_state_fails_what_depends_on_it() {
        for (wish, refused, allowed) in [
            (WantedState::Database, "GET k", "PING"),
            (WantedState::Database, "SUBSCRIBE c", "UNSUBSCRIBE c"),
            (WantedState::Database, "WATCH k", "MULTI"),
            (WantedState::User, "GET k", "AUTH p"),
            (WantedState::Dialect, "PING", "HELLO 3"),
        ] {
            let mut env = env_with_node();
            let client = env.test_client();
            env.clients.note_unmet(client, wish);
            assert!(env.test_session(client).flags.has(SessionFlags::UNMET));
            assert_eq!(request(allowed, |row, args| env.ask_unmet(client, row, args)), None, "{allowed}");
            assert_eq!(request(refused, |row, args| env.ask_unmet(client, row, args)), Some(Flow::Next), "{refused}");
            assert!(env.take_output(client).starts_with('-'), "{refused}");
            env.clients.note_met(client, &[wish]);
            assert!(!env.test_session(client).flags.has(SessionFlags::UNMET));
        }
    }

    #[test]
    fn each_wish_is_met_by_itself() {
        let mut env = env_with_node();
        let client = env.test_client();
        env.clients.note_unmet(client, WantedState::Database);
        env.clients.note_unmet(client, WantedState::Dialect);
        env.clients.note_met(client, &[WantedState::Database, WantedState::User]);
        assert!(env.test_session(client).flags.has(SessionFlags::UNMET), "the dialect is another still");
        assert_eq!(env.counters.states_refused.value(), 2);
    }
}
