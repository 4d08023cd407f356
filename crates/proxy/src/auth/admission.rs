//! How a client is accepted, or turned away before anything of it is read.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::hooks::Event;
use crate::interfaces::read_tracker::ReadTracker;
use crate::observe::counters::Counters;
use crate::session::{Session, SessionFlags};
use crate::workers::shared::Shared;
use respool_command::Execute;
use respool_connection::{ConnId, Peer};

impl<E: Execute> Env<E> {
    /// A client has connected. An error is the last that it is written.
    pub(crate) fn accept(&mut self, reads: &mut impl ReadTracker, peer: Peer) -> Result<ConnId, ErrorReply> {
        if let Some(refusal) = self.refusal_of(&peer) {
            return Err(self.shared.turn_away(&self.counters, peer, refusal));
        }
        let mut session = Session::new(
            self.shared.ledger.next_client_number(),
            peer,
            self.now.mono_us,
            self.config.budgets.client_output_soft,
        );
        if !self.welcome(&mut session) {
            self.shared.ledger.leave();
            self.counters.clients_refused.add(1);
            self.counters.refused_by_user_limit.add(1);
            return Err(error_text::TOO_MANY_OF_USER.into());
        }
        if !self.config.routes.are_plain() {
            session.flags.add(SessionFlags::ROUTED);
        }
        if self.shared.hooks.wants_requests() {
            session.flags.add(SessionFlags::HOOKED);
        }
        if self.client_pause.is_some() || self.is_holding() {
            session.flags.add(SessionFlags::HELD);
        }
        let allowance = session.details.allowance.clone();
        let handle = self.clients.sessions.insert(session);
        if self.has_node_users && !self.speak_as(reads, handle.index, allowance.as_deref()) {
            // To nodes it would be another user.
            self.drop_client(handle.index);
            self.counters.clients_refused.add(1);
            return Err(error_text::TOO_MANY_NODE_USERS.into());
        }
        self.review_mode(handle.index);
        self.counters.clients_accepted.add(1);
        self.counters.clients.set(self.clients.sessions.len() as u64);
        Ok(handle.index.conn())
    }

    /// Why a client is not accepted. `None`: it is, and counts as one.
    fn refusal_of(&self, peer: &Peer) -> Option<&'static str> {
        if self.drain_until_us.is_some() {
            Some(error_text::DRAINING)
        } else if self.shared.ledger.held_bytes() > self.config.budgets.process {
            Some(error_text::OUT_OF_MEMORY)
        } else if self.is_turned_away(peer) {
            Some(error_text::PROTECTED)
        } else if !self.shared.hooks.admits(peer) {
            Some(error_text::NOT_ADMITTED)
        } else if !self.shared.ledger.admit(self.config.clients_max) {
            Some(error_text::TOO_MANY_CLIENTS)
        } else {
            None
        }
    }
}

impl Shared {
    pub(crate) fn turn_away(&self, counters: &Counters, peer: Peer, why: &'static str) -> ErrorReply {
        counters.clients_refused.add(1);
        self.hooks.tell(&Event::ClientRefused { address: peer.address, why });
        why.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::ids::ClientId;
    use crate::testing::{Untracked, env_of, env_with_node, roomy_config};

    #[test]
    fn a_client_is_turned_away_with_the_reason() {
        let mut env = env_of(Config { clients_max: 1, ..roomy_config() }, None);
        let accepted = env.accept(&mut Untracked, Peer::default()).expect("there is room for one");
        assert!(!accepted.is_upstream());
        assert_eq!(env.accept(&mut Untracked, Peer::default()), Err(error_text::TOO_MANY_CLIENTS.into()));
        env.close_client(ClientId::of(accepted));
        env.clients.sessions.release(ClientId::of(accepted));
        assert!(env.accept(&mut Untracked, Peer::default()).is_ok(), "its place is free again");
        env.drain_until_us = Some(u64::MAX);
        assert_eq!(env.accept(&mut Untracked, Peer::default()), Err(error_text::DRAINING.into()));
        assert_eq!((env.counters.clients_accepted.value(), env.counters.clients_refused.value()), (2, 2));
    }

    #[test]
    fn a_client_that_comes_during_a_pause_is_held_back() {
        let mut env = env_with_node();
        env.is_all_paused = true;
        let conn = env.accept(&mut Untracked, Peer::default()).expect("it may come");
        assert!(env.test_session(ClientId::of(conn)).flags.has(SessionFlags::HELD));
    }
}
