//! The TLS handshakes of one worker's clients: which are under way, which have input, and until when.

use super::server::Current;
use crate::limits::{CONNECTIONS_KEPT, HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX};
use crate::sockets::Permit;
use crate::transport::Socket;
use respool_connection::Peer;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// A connection that is not a client yet.
#[derive(Debug)]
pub(crate) struct Shaking {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    pub(crate) permit: Permit,
    /// What it is met with, even if the listener's settings change meanwhile.
    pub(crate) tls: Arc<Current>,
    serial: u64,
    is_ready: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    places: Vec<Option<Shaking>>,
    free: Vec<usize>,
    /// Places that something came for, each once.
    ready: VecDeque<usize>,
    /// When each is over, with its place and serial. Entries of finished ones stay until their time.
    due: BinaryHeap<Reverse<(u64, usize, u64)>>,
    by_address: HashMap<u64, usize>,
    count: usize,
    next_serial: u64,
}

impl Handshakes {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn is_any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes in a connection; `Err` gives its peer back: there are too many. Returns its place and its socket, which is to
    /// be registered.
    pub(crate) fn begin(
        &mut self,
        socket: Socket,
        peer: Peer,
        permit: Permit,
        tls: Arc<Current>,
        due_us: u64,
    ) -> Result<(usize, &mut Socket), Peer> {
        let of_address = self.by_address.get(&network_of(&peer)).copied().unwrap_or(0);
        if self.count >= HANDSHAKES_MAX || of_address >= HANDSHAKES_PER_ADDRESS_MAX {
            return Err(peer);
        }
        self.by_address.insert(network_of(&peer), of_address + 1);
        self.count += 1;
        let serial = self.next_serial;
        self.next_serial += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.due.push(Reverse((due_us, place, serial)));
        let shaking = self.places[place].insert(Shaking { socket, peer, permit, tls, serial, is_ready: false });
        Ok((place, &mut shaking.socket))
    }

    /// Something came for it.
    pub(crate) fn list(&mut self, place: usize) {
        if let Some(Some(shaking)) = self.places.get_mut(place)
            && !std::mem::replace(&mut shaking.is_ready, true)
        {
            self.ready.push_back(place);
        }
    }

    /// The next place that something came for.
    pub(crate) fn next_ready(&mut self) -> Option<usize> {
        loop {
            let place = self.ready.pop_front()?;
            // Its connection may have been given up meanwhile, and the place be another's.
            if let Some(Some(shaking)) = self.places.get_mut(place)
                && std::mem::take(&mut shaking.is_ready)
            {
                return Some(place);
            }
        }
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Shaking> {
        self.places.get_mut(place)?.as_mut()
    }

    /// Takes a connection out.
    pub(crate) fn take(&mut self, place: usize) -> Option<Shaking> {
        let shaking = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        self.count -= 1;
        let network = network_of(&shaking.peer);
        if let Some(count) = self.by_address.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&network);
            }
        }
        if self.count == 0 {
            // Some may still be listed: with nothing left to go on with, they would keep the loop from waiting.
            self.ready.clear();
        }
        if self.count == 0 && self.places.len() > CONNECTIONS_KEPT {
            (self.places, self.free, self.by_address) = Default::default();
        }
        Some(shaking)
    }

    /// When the next one is over. May be that of one that is finished, which only costs a look.
    pub(crate) fn next_due_us(&self) -> Option<u64> {
        if self.is_empty() { None } else { self.due.peek().map(|Reverse((due_us, ..))| *due_us) }
    }

    /// The next place whose time is over.
    pub(crate) fn next_overdue(&mut self, now_us: u64) -> Option<usize> {
        while let Some(&Reverse((due_us, place, serial))) = self.due.peek() {
            if due_us > now_us {
                return None;
            }
            self.due.pop();
            if self.get_mut(place).is_some_and(|shaking| shaking.serial == serial) {
                return Some(place);
            }
        }
        None
    }
}

/// What a connection is counted under: its peer's address, or of a long one the half that one site has to itself. What has
/// no address is counted together.
fn network_of(peer: &Peer) -> u64 {
    match peer.address.parse::<SocketAddr>().map(|address| address.ip().to_canonical()) {
        Ok(IpAddr::V4(address)) => u64::from(address.to_bits()),
        Ok(IpAddr::V6(address)) => (address.to_bits() >> 64) as u64,
        Err(_) => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sockets::{Side, Sockets};
    use std::net::{TcpListener, TcpStream};

    fn peer(address: &str) -> Peer {
        Peer { address: address.to_owned(), ..Peer::default() }
    }

    #[test]
    fn a_site_is_one_address_however_many_it_has() {
        let network = |address| network_of(&peer(address));
        assert_eq!(network("127.0.0.1:1"), network("[::ffff:127.0.0.1]:2"));
        assert_ne!(network("127.0.0.1:1"), network("127.0.0.2:1"));
        assert_eq!(network("[2001:db8::1]:1"), network("[2001:db8::ffff:1]:1"));
        assert_ne!(network("[2001:db8::1]:1"), network("[2001:db8:0:1::1]:1"));
    }

    #[test]
    fn who_is_turned_away_leaves_nothing_behind() {
        let tls = crate::testing::tls_server().current();
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let socket = || {
            let stream = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
            Socket::Tls(Box::new(tls.accept(mio::net::TcpStream::from_std(stream)).expect("the settings are good")))
        };
        let sockets = Arc::<Sockets>::default();
        let permit = || sockets.take(Side::Client).expect("there is no limit");
        let mut all = Handshakes { count: HANDSHAKES_MAX, ..Handshakes::default() };
        for number in 0..50 {
            let refused = all.begin(socket(), peer(&format!("10.0.0.{number}:1")), permit(), Arc::clone(&tls), 1);
            assert!(refused.is_err());
        }
        assert_eq!(sockets.open(), (0, 0));
        assert!(all.by_address.is_empty(), "addresses are remembered while they are shaking hands");
        all.count = 0;
        let (place, _) = all.begin(socket(), peer("10.0.0.1:1"), permit(), Arc::clone(&tls), 1).expect("there is room");
        assert_eq!(all.by_address.len(), 1);
        all.list(place);
        all.take(place);
        assert!(all.by_address.is_empty() && all.is_empty());
        assert!(!all.is_any_ready(), "the loop does not wait while something is ready");
    }
}
