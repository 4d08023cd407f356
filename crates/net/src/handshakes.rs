//! The TLS handshakes of one worker's clients: who is shaking, for whom something came, and until when.

use crate::limits::{HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX};
use crate::tls::Current;
use crate::transport::Socket;
use respool_connection::Peer;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

/// A connection that is not a client yet.
#[derive(Debug)]
pub(crate) struct Shaking {
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
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
    by_address: HashMap<String, usize>,
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
        tls: Arc<Current>,
        due_us: u64,
    ) -> Result<(usize, &mut Socket), Peer> {
        let of_address = self.by_address.entry(host_of(&peer).to_owned()).or_default();
        if self.count >= HANDSHAKES_MAX || *of_address >= HANDSHAKES_PER_ADDRESS_MAX {
            return Err(peer);
        }
        *of_address += 1;
        self.count += 1;
        let serial = self.next_serial;
        self.next_serial += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.due.push(Reverse((due_us, place, serial)));
        let shaking = self.places[place].insert(Shaking { socket, peer, tls, serial, is_ready: false });
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
        if let Some(count) = self.by_address.get_mut(host_of(&shaking.peer)) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(host_of(&shaking.peer));
            }
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

/// The peer's address without its port.
fn host_of(peer: &Peer) -> &str {
    peer.address.rsplit_once(':').map_or(&*peer.address, |(host, _)| host)
}
