//! The addresses of a host name, one after the other.
//!
//! One that refuses is followed by the next at once. One at which nothing answers takes the time of the whole dial: when that
//! is given up, the next dial of the name begins with the address behind it. Otherwise a node with a dead address in front of
//! a good one would never be reached.

use crate::limits::RESOLUTIONS_MAX;
use crate::resolver::Name;
use respool_connection::{ConnId, Endpoint};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// A dial that waits for the addresses of its host.
pub(super) struct Resolving {
    pub(super) conn: ConnId,
    /// The endpoint, if TLS is spoken there.
    pub(super) tls: Option<Arc<Endpoint>>,
    pub(super) host: Arc<str>,
    pub(super) port: u16,
}

/// What is left of a dial of a name that has several addresses.
#[derive(Default)]
pub(super) struct Alternatives {
    pub(super) addresses: Vec<SocketAddr>,
    /// The endpoint, if TLS is spoken there.
    pub(super) tls: Option<Arc<Endpoint>>,
    /// The name, if it has several addresses.
    host: Option<Arc<str>>,
    /// The name and port, if the addresses are a name's.
    pub(super) name: Option<Arc<Name>>,
}

impl Alternatives {
    /// There is one address and no other.
    pub(super) fn only(address: SocketAddr, tls: Option<Arc<Endpoint>>) -> Self {
        Self { addresses: vec![address], tls, host: None, name: None }
    }
}

/// How often a dial of each name has been given up, of those that have several addresses.
#[derive(Default)]
pub(super) struct Silences(HashMap<Arc<str>, usize>);

impl Silences {
    /// The addresses of a host in the order in which they are dialled this time.
    pub(super) fn ways(&self, resolving: Resolving, mut addresses: Vec<SocketAddr>) -> Alternatives {
        let Resolving { tls, host, port, .. } = resolving;
        let name = Some(Arc::new((host.to_string(), port)));
        let count = addresses.len().max(1);
        if let Some(silences) = self.0.get(&host) {
            // In one order each time: name servers may give them in another with every answer.
            addresses.sort_unstable();
            addresses.rotate_left(silences % count);
        }
        Alternatives { addresses, tls, host: (count > 1).then_some(host), name }
    }

    /// A dial has been given up because nothing answered.
    pub(super) fn note(&mut self, ways: &Alternatives) {
        let Some(host) = &ways.host else { return };
        if self.0.len() >= RESOLUTIONS_MAX {
            self.0.clear();
        }
        let silences = self.0.entry(Arc::clone(host)).or_default();
        *silences = silences.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox;
    use crate::resolver::Resolver;
    use crate::testing::{Reacts, alone};
    use crate::worker::Worker;
    use respool_connection::{Action, DialFailure, Now, ServiceAction};
    use socket2::{Domain, Socket, Type};
    use std::net::{TcpListener, TcpStream};

    const NODE: ConnId = ConnId::upstream(0);

    /// Dials one name until that succeeds, and gives every dial up after 20 ms.
    struct Dialler {
        now_us: u64,
        given_up_us: u64,
        dials: usize,
        actions: Vec<Action<ServiceAction<()>>>,
    }

    impl Reacts for Dialler {
        fn actions(&mut self) -> &mut Vec<Action<ServiceAction<()>>> {
            &mut self.actions
        }

        fn begin_turn(&mut self, now: Now) {
            self.now_us = now.mono_us;
        }

        fn end_turn(&mut self) {
            if self.now_us < self.given_up_us {
                return;
            }
            self.given_up_us = self.now_us + 20_000;
            self.dials += 1;
            assert!(self.dials < 1_000, "the address that answers is never dialled");
            let endpoint = Arc::new(Endpoint::Tcp { host: "node.example".to_owned(), port: 1 });
            self.actions = vec![Action::Dial { conn: NODE, endpoint }, Action::Close { conn: NODE }];
        }

        fn handle_connected(&mut self, _: ConnId) {
            self.actions.push(Action::Service(ServiceAction::Exit));
            self.given_up_us = u64::MAX;
        }

        fn next_wakeup_us(&self) -> Option<u64> {
            Some(self.given_up_us)
        }

        fn handle_dial_failed(&mut self, _: ConnId, failure: DialFailure) {
            panic!("{failure:?}");
        }
    }

    /// An address at which no dial is answered, for as long as what comes with it is there.
    fn silent() -> (SocketAddr, Socket, TcpStream) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        // There is room for one that is not accepted.
        socket.listen(0).unwrap();
        let address = socket.local_addr().unwrap().as_socket().unwrap();
        let one = TcpStream::connect(address).unwrap();
        (address, socket, one)
    }

    #[test]
    fn a_node_is_reached_behind_an_address_that_is_silent() {
        let (silent, _socket, _one) = silent();
        let good = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = vec![silent, good.local_addr().unwrap()];
        let (mail_sender, inbox) = mailbox();
        let dialler = Dialler { now_us: 0, given_up_us: 0, dials: 0, actions: Vec::new() };
        let setup = alone(dialler, (mail_sender.clone(), inbox), Vec::new());
        let mut worker = Worker::new(setup).unwrap();
        worker.resolver = Some(Resolver::with(mail_sender, Arc::new(move |_| Ok(addresses.clone()))));
        worker.run().unwrap();
    }

    #[test]
    fn one_place_is_enough_to_dial_every_address_of_a_name() {
        // Bound and not listening, so that no other test listens there.
        let closed = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        closed.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let refusing = closed.local_addr().unwrap().as_socket().unwrap();
        let good = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = vec![refusing, good.local_addr().unwrap()];
        let (mail_sender, inbox) = mailbox();
        let dialler = Dialler { now_us: 0, given_up_us: 0, dials: 0, actions: Vec::new() };
        let setup = alone(dialler, (mail_sender.clone(), inbox), Vec::new());
        setup.sockets.set(1, 1);
        let mut worker = Worker::new(setup).unwrap();
        worker.resolver = Some(Resolver::with(mail_sender, Arc::new(move |_| Ok(addresses.clone()))));
        worker.run().unwrap();
    }

    #[test]
    fn a_silent_address_is_not_the_first_to_be_dialled_again() {
        let addresses: Vec<SocketAddr> = (1..=3).map(|host| SocketAddr::from(([10, 0, 0, host], 7))).collect();
        let mut silences = Silences::default();
        let dial = |silences: &Silences, host: &str, count: usize| {
            let resolving = Resolving { conn: ConnId::upstream(0), tls: None, host: host.into(), port: 7 };
            silences.ways(resolving, addresses[..count].to_vec())
        };
        for turn in 0..7 {
            let ways = dial(&silences, "a", 3);
            assert_eq!(ways.addresses[0], addresses[turn % 3]);
            assert_eq!(dial(&silences, "b", 3).addresses, addresses, "other names are dialled as they were");
            silences.note(&ways);
        }
        let ways = dial(&silences, "alone", 1);
        silences.note(&ways);
        assert_eq!(silences.0.len(), 1, "of one address nothing is remembered");
    }

    #[test]
    fn every_address_has_its_turn_in_whatever_order_they_are_told() {
        let [silent, good] = [SocketAddr::from(([10, 0, 0, 9], 1)), SocketAddr::from(([10, 0, 0, 1], 1))];
        let mut silences = Silences::default();
        let mut dialled = Vec::new();
        for told in [[silent, good], [good, silent], [silent, good], [good, silent]] {
            let resolving = Resolving { conn: NODE, tls: None, host: "node.example".into(), port: 1 };
            let ways = silences.ways(resolving, told.to_vec());
            dialled.push(ways.addresses[0]);
            silences.note(&ways);
        }
        assert!(dialled[1..3].contains(&good) && dialled[2..].contains(&good), "{dialled:?}");
    }
}
