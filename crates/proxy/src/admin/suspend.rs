//! `PROXY SUSPEND`: requests for nodes are held back, and connected clients are not read, except the one that gave the
//! order. Clients that connect afterwards are read, so that the console can be reached; their requests to nodes are held
//! back.
//!
//! A large request of which a node has the beginning is not executed before it has the end: its client is read on with all others.

use crate::admin::AdminState;
use crate::env::Env;
use crate::session::{PauseReasons, Session};
use crate::workers::operator_state::Suspension;
use respool_command::Execute;

impl AdminState {
    /// Replaces the suspension of this worker by the one ordered.
    pub(super) fn adopt_suspension(&mut self, env: &mut Env<impl Execute>, ordered: Option<Suspension>) {
        let before = std::mem::replace(&mut self.suspension, ordered);
        if before.is_some() && before != ordered {
            let suspended = env.clients.sessions.places(|session| session.pause.has(PauseReasons::SUSPENDED));
            suspended.into_iter().for_each(|index| env.clients.unpause(index, PauseReasons::SUSPENDED));
        }
        self.suspend_clients(env);
    }

    /// Whether the suspension applies to a client.
    pub(super) fn suspends(&self, session: &Session) -> bool {
        self.suspension.is_some_and(|suspension| applies_to(suspension, session))
    }

    /// Stops reading the clients that the suspension applies to.
    pub(super) fn suspend_clients(&mut self, env: &mut Env<impl Execute>) {
        let Some(suspension) = self.suspension else { return };
        let mut left = Vec::new();
        for (index, session) in env.clients.sessions.iter_mut() {
            if applies_to(suspension, session) && !session.pause.has(PauseReasons::SUSPENDED) {
                session.pause.add(PauseReasons::SUSPENDED);
                if session.details.has_hung_up {
                    left.push(index);
                }
            }
        }
        left.into_iter().for_each(|index| env.clients.drop_rest(index));
    }
}

fn applies_to(suspension: Suspension, session: &Session) -> bool {
    session.details.connected_us <= suspension.since_us && Some(session.id) != suspension.by
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EchoEngine, env_with_node};

    #[test]
    fn earlier_clients_are_not_read_except_the_one_that_ordered_it() {
        let mut env = env_with_node();
        let [operator, old] = [(), ()].map(|()| env.test_client());
        let since_us = env.now.mono_us;
        env.now.mono_us += 1;
        let fresh = env.test_client();
        let by = Some(env.test_session(operator).id);
        let mut admin = AdminState::default();
        admin.adopt_suspension(&mut env, Some(Suspension { since_us, by }));
        let is_suspended =
            |env: &mut Env<EchoEngine>, client| env.test_session(client).pause.has(PauseReasons::SUSPENDED);
        assert_eq!([operator, old, fresh].map(|client| is_suspended(&mut env, client)), [false, true, false]);
        admin.adopt_suspension(&mut env, None);
        assert!(!is_suspended(&mut env, old));
        assert_eq!(env.clients.resuming.len(), 1, "what it has sent meanwhile is read");
    }

    #[test]
    fn a_client_that_has_hung_up_is_left_with_what_it_is_owed() {
        let mut env = env_with_node();
        let client = env.test_client();
        env.test_session(client).details.has_hung_up = true;
        let mut admin = AdminState::default();
        let since_us = env.now.mono_us;
        admin.adopt_suspension(&mut env, Some(Suspension { since_us, by: None }));
        assert!(env.test_session(client).pause.has(PauseReasons::CLOSING), "it would wait for ever");
    }
}
