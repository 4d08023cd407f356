//! The part of the seam that only a server needs: clients are accepted, and workers of one process send each other mail.

use crate::{ConnId, Machine};
use std::fmt::{Display, Formatter};

/// The peer of an accepted connection, as text for `CLIENT LIST` and logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// `ip:port`, `[ip]:port`, or the socket's path and `:0` as Redis shows unix sockets.
    pub address: String,
    /// The same for our end.
    pub local_address: String,
    /// Whether the connection came over a unix socket.
    pub is_unix: bool,
    /// The file descriptor's number, which `CLIENT LIST` shows.
    pub fd: i32,
    /// The user that the client's certificate names, by the listener's rule. The certificate was verified and the name has
    /// no control characters; whether there is such a user, only the machine knows, and it compares byte for byte. `None`:
    /// no TLS, no certificate (where it is optional), no rule, or a name that the rule has no user for. A user that is
    /// meant for certificates alone must not be entered by any other way.
    pub identity: Option<String>,
}

impl Peer {
    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        let loopback = ["127.", "[::1]:", "[::ffff:127."];
        self.is_unix || loopback.iter().any(|beginning| self.address.starts_with(beginning))
    }
}

/// A worker: one machine with its loop. Those of one process are counted from 0, in the order of their mailboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(u16);

impl WorkerId {
    /// The worker that does what one of them has to do.
    pub const FIRST: Self = Self(0);

    /// The worker at a place of lists that run parallel to the workers. Panics beyond 65,535.
    pub const fn new(place: usize) -> Self {
        assert!(place <= u16::MAX as usize, "a worker is a thread");
        Self(place as u16)
    }

    /// The place in such lists.
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

impl Display for WorkerId {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        Display::fmt(&self.0, f)
    }
}

/// What a service asks of the process that it runs in, as [`crate::Action::Service`].
#[derive(Debug)]
pub enum ServiceAction<Mail> {
    /// Give `mail` to the machine of another worker.
    Post {
        /// Which one.
        worker: WorkerId,
        /// What it gets.
        mail: Mail,
    },
    /// Stop accepting; the sockets that listen are closed. A client in the middle of a TLS handshake may still be accepted.
    StopAccepting,
    /// Leave the loop after this turn's writes, and after those connections have heard that were to be finished.
    Exit,
}

/// A machine that accepts connections and has workers beside it. In a turn of the loop, mail comes behind what nodes have sent and
/// before clients are read.
pub trait Service: Machine<ServiceAction = ServiceAction<<Self as Service>::Mail>> {
    /// What machines of the same process send each other.
    type Mail: Send + 'static;

    /// Whether new connections are accepted. `false` as soon as the machine has queued [`ServiceAction::StopAccepting`]: clients that
    /// connect later belong to the successor, and the listener may be ready in the same turn.
    fn is_accepting(&self) -> bool {
        true
    }

    /// A client has connected. `Err` refuses: the loop writes what it holds and closes.
    fn handle_accept(&mut self, peer: Peer) -> Result<ConnId, Vec<u8>>;

    /// A client connected while the process is at its limit of open sockets. The loop writes the returned refusal and closes the
    /// connection.
    fn handle_no_room(&mut self, _peer: Peer) -> Vec<u8> {
        Vec::new()
    }

    /// A TLS connection did not get in: the handshake failed, took too long, or there were too
    /// many. The machine has not heard of it before.
    fn handle_handshake_failed(&mut self) {}

    /// Another worker's mail.
    fn handle_mail(&mut self, mail: Self::Mail);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_unix_sockets_are_local() {
        let peer = |address: &str, is_unix: bool| Peer { address: address.to_owned(), is_unix, ..Peer::default() };
        for local in ["127.0.0.1:5", "127.9.9.9:5", "[::1]:5", "[::ffff:127.0.0.1]:5"] {
            assert!(peer(local, false).is_local(), "{local}");
        }
        assert!(peer("/tmp/x:0", true).is_local());
        for far in ["10.0.0.1:5", "[2001:db8::1]:5", "1270.0.0.1:5", "", "[::ffff:10.0.0.1]:5"] {
            assert!(!peer(far, false).is_local(), "{far}");
        }
    }
}
