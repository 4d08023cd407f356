//! Clients that are disconnected because of what they leave unread or unsaid: each is counted, and told of in the log.
//!
//! A crowd that is cut off at once must not fill the log: beyond a rate the lines are left out, and the next one says how
//! many were.

use crate::env::Env;
use crate::hooks::Event;
use crate::ids::ClientId;
use crate::session::disconnect_log::{DisconnectReason, PendingDisconnect};
use respool_command::Execute;

impl<E: Execute> Env<E> {
    /// Disconnects a client.
    #[cold]
    pub(crate) fn cut_off(&mut self, index: ClientId, why: DisconnectReason) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        let bytes = self.clients.sessions.get(client).map_or(0, |session| session.held_bytes());
        self.cut_off_doomed(PendingDisconnect { client, why, bytes });
    }

    /// Disconnects a client that was to be.
    #[cold]
    pub(crate) fn cut_off_all_doomed(&mut self) {
        while let Some(doomed) = self.clients.doomed.pop() {
            self.cut_off_doomed(doomed);
        }
    }

    fn cut_off_doomed(&mut self, doomed: PendingDisconnect) {
        let PendingDisconnect { client, why, bytes } = doomed;
        let Some(session) = self.clients.sessions.get(client) else { return };
        if self.clients.departure_of(client.index).is_some() {
            // It goes once its transaction is done.
            return;
        }
        match why {
            DisconnectReason::Output
            | DisconnectReason::SoftLimit
            | DisconnectReason::Unauthenticated
            | DisconnectReason::Monitor => {
                self.counters.clients_cut_off.add(1);
            }
            DisconnectReason::Memory | DisconnectReason::ClientMemory => {
                self.counters.clients_cut_off.add(1);
                self.counters.clients_cut_off_for_memory.add(1);
            }
            DisconnectReason::Subscriber => self.counters.subscribers_cut_off.add(1),
            DisconnectReason::Stalled => self.counters.clients_stalled.add(1),
            DisconnectReason::Broken | DisconnectReason::Unmerged(_) => self.counters.clients_broken_off.add(1),
        }
        if let Some(untold) = self.cut_off_lines.may_tell(self.now.mono_us) {
            self.shared.hooks.tell(&Event::ClientCutOff {
                client: session.id,
                address: session.details.peer.address.clone(),
                user: String::from_utf8_lossy(session.user_name()).into_owned(),
                bytes,
                why: why.words(),
                untold,
            });
        }
        self.close_client(client.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;

    #[test]
    fn a_client_is_cut_off_once_and_counted_by_the_reason() {
        let mut env = env_with_node();
        let [slow, heavy, doomed] = [(), (), ()].map(|()| env.test_client());
        env.cut_off(slow, DisconnectReason::Output);
        env.cut_off(slow, DisconnectReason::Output);
        env.cut_off(heavy, DisconnectReason::Memory);
        assert_eq!(env.counters.clients_cut_off.value(), 2);
        assert_eq!(env.counters.clients_cut_off_for_memory.value(), 1);
        assert_eq!(env.actions.len(), 2, "the loop closes both");
        let client = env.clients.sessions.handle(doomed).expect("it is there");
        env.clients.doomed.push(PendingDisconnect { client, why: DisconnectReason::Subscriber, bytes: 1 });
        env.clients.doomed.push(PendingDisconnect { client, why: DisconnectReason::Subscriber, bytes: 1 });
        env.cut_off_all_doomed();
        assert_eq!(env.counters.subscribers_cut_off.value(), 1);
        assert!(env.clients.sessions.is_empty());
    }
}
