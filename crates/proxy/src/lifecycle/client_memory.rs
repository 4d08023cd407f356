//! What the clients of a server with an engine may hold together (`maxmemory-clients`): beyond it those that hold most are disconnected, until
//! the others hold no more than that. As in Redis, CLIENT NO-EVICT keeps a client connected, and replicas are none of them.

use crate::env::Env;
use crate::ids::ClientId;
use crate::limits::CLIENT_MEMORY_INTERVAL_US;
use crate::session::disconnect_log::DisconnectReason;
use respool_command::Execute;

impl<E: Execute> Env<E> {
    /// Disconnects the largest clients if all hold too much.
    #[cold]
    pub(crate) fn check_client_memory(&mut self) {
        let limit = self.config.budgets.clients;
        if self.shared.ledger.held_bytes() > limit && self.now.mono_us >= self.client_limits.summed_again_us {
            self.evict_clients(limit);
        }
    }

    /// A client has sent much of a request: as in Redis, clients that hold too much go before it is executed. `false`: the client has gone.
    #[cold]
    #[inline(never)]
    pub(crate) fn check_received(&mut self, index: ClientId) -> bool {
        let limit = self.config.budgets.clients;
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        session.account(&self.shared.ledger);
        let held = self.shared.ledger.held_bytes();
        let (sum, held_then) = self.client_limits.summed;
        if held <= limit || sum + held.saturating_sub(held_then) <= limit {
            return true;
        }
        self.evict_clients(limit);
        self.clients.sessions.at(index).is_some()
    }

    /// The limit may be another: clients are looked at in the next turn.
    pub(crate) fn look_at_client_memory_again(&mut self) {
        self.client_limits.summed_again_us = 0;
    }

    fn evict_clients(&mut self, limit: usize) {
        self.client_limits.summed_again_us = self.now.mono_us + CLIENT_MEMORY_INTERVAL_US;
        // One that has left in the midst of its transaction goes by itself, with all that it holds.
        let sessions = || self.clients.sessions.iter().filter(|(_, session)| session.departure().is_none());
        let mut sum: usize = sessions().map(|(_, session)| session.eviction_bytes()).sum();
        self.client_limits.summed = (sum, self.shared.ledger.held_bytes());
        if sum <= limit {
            return;
        }
        let evictable = sessions().filter(|(_, session)| !session.details.is_no_evict && !session.is_replica());
        let mut held: Vec<(usize, ClientId)> =
            evictable.map(|(index, session)| (session.eviction_bytes(), index)).collect();
        held.sort_unstable_by_key(|(bytes, index)| (std::cmp::Reverse(*bytes), *index));
        for (bytes, index) in held {
            if sum <= limit || bytes == 0 {
                break;
            }
            self.cut_off(index, DisconnectReason::ClientMemory);
            sum -= bytes;
        }
        self.client_limits.summed = (sum, self.shared.ledger.held_bytes());
    }
}

#[cfg(test)]
mod tests {
    use crate::push::subscriber::Subscriber;
    use crate::testing::{Layers, env_of, env_with_node, roomy_config};

    #[test]
    fn the_largest_client_goes_first_and_one_that_may_not_stays() {
        let mut env = env_with_node();
        let [small, large, spared] = [(), (), ()].map(|()| env.test_client());
        for (client, bytes) in [(small, 100), (large, 100_000), (spared, 200_000)] {
            env.answer(client, |reply| reply.bulk(&vec![b'x'; bytes]));
        }
        env.test_session(spared).details.is_no_evict = true;
        let sum: usize = env.clients.sessions.iter().map(|(_, session)| session.held_bytes()).sum();
        env.evict_clients(sum);
        assert_eq!(env.clients.sessions.len(), 3, "all is within the limit");
        env.evict_clients(sum - 1);
        let is_there = |client| env.clients.sessions.at(client).is_some();
        assert_eq!([small, large, spared].map(is_there), [true, false, true]);
        assert_eq!(env.counters.clients_cut_off_for_memory.value(), 1);
    }

    #[test]
    fn messages_count_for_each_subscriber_that_they_wait_for() {
        let mut env = env_with_node();
        let [first, second, other] = [(), (), ()].map(|()| env.test_client());
        env.answer(other, |reply| reply.bulk(&[b'x'; 50_000]));
        for client in [first, second] {
            let subscriber = Subscriber::waited_for(&[b'm'; 60_000], &env.shared.ledger);
            env.test_session(client).subscriber = Some(Box::new(subscriber));
        }
        let sum: usize = env.clients.sessions.iter().map(|(_, session)| session.eviction_bytes()).sum();
        assert!(sum > 50_000 + 2 * 60_000, "{sum}");
        env.evict_clients(sum);
        assert_eq!(env.clients.sessions.len(), 3, "all is within the limit");
        env.evict_clients(100_000);
        let is_there = |client| env.clients.sessions.at(client).is_some();
        assert_eq!([first, second, other].map(is_there), [false, false, true]);
    }

    #[test]
    fn a_request_that_is_too_large_is_not_executed() {
        let mut config = roomy_config();
        config.budgets.clients = 300_000;
        let mut layers = Layers::new(env_of(config, None));
        let client = layers.env.test_client();
        let request = |bytes: usize| format!("*2\r\n$4\r\nECHO\r\n${bytes}\r\n{}\r\n", "v".repeat(bytes)).into_bytes();
        let send = |layers: &mut Layers, mut request: &[u8]| {
            while !request.is_empty()
                && let Some(room) = layers.env.room_of(client.conn())
            {
                let bytes = room.len().min(request.len()).min(20_000);
                layers.receive(client, &request[..bytes]);
                request = &request[bytes..];
            }
        };
        send(&mut layers, &request(200_000));
        assert_eq!(layers.env.counters.requests.value(), 1);
        send(&mut layers, &request(310_000));
        assert!(layers.env.clients.sessions.at(client).is_none());
        assert_eq!(layers.env.counters.requests.value(), 1, "it was not executed");
    }

    #[test]
    fn clients_are_summed_up_only_so_often() {
        let mut config = roomy_config();
        config.budgets.clients = 1;
        let mut env = env_of(config, None);
        let client = env.test_client();
        env.shared.ledger.account(0, 1_000);
        env.client_limits.summed_again_us = env.now.mono_us + 1;
        env.answer(client, |reply| reply.bulk(&[b'x'; 1_000]));
        env.check_client_memory();
        assert!(env.clients.sessions.at(client).is_some());
        env.now.mono_us += 1;
        env.check_client_memory();
        assert!(env.clients.sessions.at(client).is_none());
    }
}
