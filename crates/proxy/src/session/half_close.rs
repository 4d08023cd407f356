//! Clients that leave while a request of theirs waits.
//!
//! ```text
//!   [ answered ] [ BLPOP q 0 ] [ DEL state ] [ ... unread ]        and then the client closes its side
//!     is written    waits        is not done, whether it has been read or not
//! ```
//!
//! Redis reads the end of a client's bytes while the client is blocked, or postponed by CLIENT PAUSE, and drops it there: what
//! stands before has been answered, the request itself is not, and nothing behind it runs. So it is here. What the node had
//! given before it was asked to let go is the client's if the request had only just come, since Redis would have served it
//! before it read the end. If the request was waiting by then, the element is put back.
//!
//! To see the end, what a client sends behind a request that waits is read and kept, as Redis does it, up to a bound.
//!
//! A peer that has closed both directions (a reset, or a unix socket that is closed) can be told nothing any more: it is
//! dropped as soon as something of it waits.

use crate::env::Env;
use crate::ids::ClientId;
use crate::limits::READ_AHEAD_BYTES_MAX;
use crate::session::held_time::IdleTime;
use crate::session::table::Clients;
use crate::session::{PauseReasons, Session, SessionFlags};
use respool_command::Execute;

impl Session {
    /// Whether a request waits that ends with its client: one that may wait, or one that is held back.
    pub(crate) fn is_waiting(&self) -> bool {
        self.pause.has(PauseReasons::HELD) || self.pins.as_ref().is_some_and(|pins| !pins.blocked.is_empty())
    }

    /// Room for what comes behind a request that waits. `None`: the client is not read.
    pub(crate) fn room_ahead(&mut self) -> Option<&mut [u8]> {
        let mut others = self.pause;
        others.remove(PauseReasons::HELD);
        others.remove(PauseReasons::BARRIER);
        let has_room = self.input.as_ref().is_none_or(|input| input.len() < READ_AHEAD_BYTES_MAX);
        (others.is_none() && has_room && self.is_waiting()).then(|| self.input.get_or_insert_default().room())
    }
}

impl Session {
    /// Whether a client has been idle for more than `idle_us`. As in Redis, a client that subscribes, monitors, replicates or is blocked is
    /// never idle.
    pub(crate) fn is_idle(&mut self, now_us: u64, idle_us: u64) -> bool {
        let listens = self.subscriber.as_ref().is_some_and(|subscriber| subscriber.is_subscribed());
        if listens || self.flags.has(SessionFlags::DEDICATED) {
            return false;
        }
        let written_bytes = self.credit.written_bytes();
        let has_taken = written_bytes != self.details.idle.written_bytes;
        if has_taken || !self.down.is_settled() || self.is_kept_waiting() {
            self.details.idle = IdleTime { busy_us: now_us, written_bytes };
        }
        now_us.saturating_sub(self.last_active_us.max(self.details.idle.busy_us)) > idle_us
    }

    /// Whether it is not read for a reason that is not its own. Whether it takes its replies is its own matter.
    fn is_kept_waiting(&self) -> bool {
        let mut reasons = self.pause;
        reasons.remove(PauseReasons::OUTPUT);
        reasons.remove(PauseReasons::CLOSING);
        !reasons.is_none() || self.is_waiting()
    }
}

impl<E: Execute> Env<E> {
    /// Nothing reaches a client any more. What it has sent is read to its end, unless that would have to wait.
    #[cold]
    pub(crate) fn note_gone(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.details.has_gone = true;
        if session.is_waiting() {
            self.close_client(index);
        }
    }

    /// A request of a client is about to wait. `false`: nothing reaches the client any more, and it has been dropped.
    pub(crate) fn may_wait(&mut self, index: ClientId) -> bool {
        let has_gone = self.clients.sessions.at(index).is_none_or(|session| session.details.has_gone);
        if has_gone {
            self.close_client(index);
        }
        !has_gone
    }

    /// Nothing more is read of a client, not even the rest of a request that has come in part. `false`: it is not there.
    pub(crate) fn end_input(&mut self, index: ClientId) -> bool {
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        session.pause.add(PauseReasons::CLOSING);
        session.input = None;
        self.clients.list(index);
        self.abandon_pieces(index);
        true
    }
}

impl Clients {
    /// What a client has sent behind a request that was not answered is not done: the client is closed once it has been
    /// written what it is owed.
    pub(crate) fn drop_rest(&mut self, index: ClientId) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        session.pause.add(PauseReasons::CLOSING);
        if let Some(mut input) = session.input.take() {
            input.wipe();
        }
        self.list(index);
    }

    /// Whether nothing more is read of a client.
    pub(crate) fn is_leaving(&self, index: ClientId) -> bool {
        self.sessions.at(index).is_none_or(|session| session.pause.has(PauseReasons::CLOSING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;

    #[test]
    fn room_is_there_only_behind_a_request_that_waits() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert!(env.test_session(client).room_ahead().is_none(), "it is read as any other");
        env.test_session(client).pause.add(PauseReasons::HELD);
        assert!(env.test_session(client).room_ahead().is_some());
        env.test_session(client).pause.add(PauseReasons::OUTPUT);
        assert!(env.test_session(client).room_ahead().is_none());
    }

    #[test]
    fn a_client_that_nothing_reaches_is_closed_instead_of_waiting() {
        let mut env = env_with_node();
        let [waits, reads] = [(), ()].map(|()| env.test_client());
        env.test_session(waits).pause.add(PauseReasons::HELD);
        [waits, reads].into_iter().for_each(|client| env.note_gone(client));
        assert!(env.clients.sessions.at(waits).is_none());
        assert!(env.test_session(reads).details.has_gone, "what it has sent is read to its end");
        assert!(!env.may_wait(reads));
        assert!(env.clients.sessions.is_empty());
    }

    #[test]
    fn the_rest_of_a_client_is_dropped_once_and_it_leaves() {
        let mut env = env_with_node();
        let client = env.test_client();
        assert!(!env.clients.is_leaving(client));
        assert!(env.end_input(client));
        assert!(env.clients.is_leaving(client));
        env.drop_client(client);
        assert!(!env.end_input(client) && env.clients.is_leaving(client));
    }

    #[test]
    fn only_who_neither_sends_nor_takes_nor_waits_is_idle() {
        let mut env = env_with_node();
        let client = env.test_client();
        let session = env.test_session(client);
        let sent_us = session.last_active_us;
        assert!(!session.is_idle(sent_us + 100, 100) && session.is_idle(sent_us + 101, 100));
        session.credit.note_written(1);
        assert!(!session.is_idle(sent_us + 150, 100), "it has taken something since it was looked at");
        assert!(!session.is_idle(sent_us + 250, 100) && session.is_idle(sent_us + 251, 100));
        for reason in PauseReasons::ALL.map(|(reason, _)| reason) {
            let is_its_own = [PauseReasons::OUTPUT, PauseReasons::CLOSING].contains(&reason);
            session.pause.add(reason);
            assert_eq!(session.is_idle(sent_us + 300, 100), is_its_own, "{reason:?}");
            session.pause.remove(reason);
            session.details.idle.busy_us = 0;
        }
        session.pause.add(PauseReasons::HELD);
        assert!(!session.is_idle(sent_us + 900, 100));
        session.pause.remove(PauseReasons::HELD);
        assert!(!session.is_idle(sent_us + 1_000, 100), "its time begins with the end of the pause");
        assert!(session.is_idle(sent_us + 1_001, 100));
        session.flags.add(SessionFlags::DEDICATED);
        assert!(!session.is_idle(sent_us + 9_000, 100), "it listens");
    }
}
