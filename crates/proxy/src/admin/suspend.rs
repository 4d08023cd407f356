//! `PROXY SUSPEND`: requests for nodes are held back, and connected clients are not read, except the one that gave the
//! order. Clients that connect afterwards are read, so that the console can be reached; their requests to nodes are held
//! back.
//!
//! A large request whose beginning has been sent to a node is read to its end before its client is suspended.

use crate::admin::AdminState;
use crate::env::Env;
use crate::session::id::ClientId;
use crate::session::{Pause, Session};
use respool_command::Execute;

/// A suspension. It is part of the standing orders, since letters of two workers arrive in any order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspension {
    /// Clients that connected until then are not read.
    pub(super) since_us: u64,
    /// The number of the client that gave the order: it is read.
    pub(super) by: u64,
}

impl Suspension {
    fn applies_to(self, session: &Session) -> bool {
        session.details.connected_us <= self.since_us && session.id != self.by
    }
}

impl AdminState {
    /// Replaces the suspension of this worker by the one ordered.
    pub(crate) fn adopt_suspension(&mut self, env: &mut Env<impl Execute>, ordered: Option<Suspension>) {
        let before = std::mem::replace(&mut self.suspension, ordered);
        if before.is_some() && before != ordered {
            let suspended = env.clients.sessions.iter().filter(|(_, session)| session.pause.has(Pause::SUSPENDED));
            let suspended: Vec<ClientId> = suspended.map(|(index, _)| index).collect();
            suspended.into_iter().for_each(|index| env.clients.unpause(index, Pause::SUSPENDED));
        }
        self.suspend_clients(env);
    }

    /// Whether the suspension applies to a client.
    pub(super) fn suspends(&self, session: &Session) -> bool {
        self.suspension.is_some_and(|suspension| suspension.applies_to(session))
    }

    /// Stops reading the clients that the suspension applies to, except in the middle of a large request.
    pub(super) fn suspend_clients(&mut self, env: &mut Env<impl Execute>) {
        let Some(suspension) = self.suspension else { return };
        let mut left = Vec::new();
        for (index, session) in env.clients.sessions.iter_mut() {
            let is_amid_request = session.large.as_ref().is_some_and(|large| large.sending.is_some());
            if suspension.applies_to(session) && !is_amid_request && !session.pause.has(Pause::SUSPENDED) {
                session.pause.add(Pause::SUSPENDED);
                if session.details.has_hung_up {
                    left.push(index);
                }
            }
        }
        left.into_iter().for_each(|index| env.drop_rest(index));
    }
}
