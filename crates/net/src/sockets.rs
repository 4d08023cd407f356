//! The limit on open sockets of a process, and the part of it that is reserved for nodes.
//!
//! The system limits the file descriptors of a process. Clients that took all of them would leave none to dial a node with, so
//! some are reserved: clients never get these, and connections to nodes may exceed them while clients leave room. Every socket
//! that a worker opens carries a [`Permit`], which releases its place when the socket is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Which end of the proxy a socket belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// An accepted socket.
    Client,
    /// A dialled socket, or the engine's end of a connection within the process.
    Node,
}

/// The open sockets of a process and their limit. Unlimited by default.
#[derive(Debug)]
pub struct Sockets {
    most: AtomicUsize,
    kept_for_nodes: AtomicUsize,
    /// Clients' sockets in the upper half, nodes' in the lower: one atomic, so that both are checked together.
    open: AtomicU64,
}

impl Default for Sockets {
    fn default() -> Self {
        Self { most: AtomicUsize::new(usize::MAX), kept_for_nodes: AtomicUsize::new(0), open: AtomicU64::new(0) }
    }
}

impl Sockets {
    /// Sets the limit, and the part of it that is reserved for nodes. Open sockets stay open.
    pub fn set(&self, most: usize, kept_for_nodes: usize) {
        self.most.store(most, Ordering::Relaxed);
        self.kept_for_nodes.store(kept_for_nodes, Ordering::Relaxed);
    }

    /// Takes the place of one more socket; `None` at the limit.
    pub(crate) fn take(self: &Arc<Self>, side: Side) -> Option<Permit> {
        let most = self.most.load(Ordering::Relaxed);
        let kept = self.kept_for_nodes.load(Ordering::Relaxed);
        let take = |open: u64| {
            let (clients, nodes) = halves(open);
            let has_room = match side {
                Side::Client => clients.saturating_add(nodes.max(kept)) < most,
                Side::Node => nodes < kept || clients.saturating_add(nodes) < most,
            };
            has_room.then(|| open + step(side))
        };
        let taken = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok().then(|| Permit { sockets: Arc::clone(self), side })
    }

    /// Open sockets of clients and of nodes.
    #[cfg(test)]
    pub(crate) fn open(&self) -> (usize, usize) {
        halves(self.open.load(Ordering::Relaxed))
    }
}

fn halves(open: u64) -> (usize, usize) {
    ((open >> 32) as usize, open as u32 as usize)
}

fn step(side: Side) -> u64 {
    match side {
        Side::Client => 1 << 32,
        Side::Node => 1,
    }
}

/// The place of one socket within the limit; released on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    sockets: Arc<Sockets>,
    side: Side,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.sockets.open.fetch_sub(step(self.side), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sockets(most: usize, kept_for_nodes: usize) -> Arc<Sockets> {
        let sockets = Arc::new(Sockets::default());
        sockets.set(most, kept_for_nodes);
        sockets
    }

    #[test]
    fn clients_leave_nodes_what_is_kept_for_them() {
        let sockets = sockets(5, 2);
        let clients: Vec<Permit> = std::iter::from_fn(|| sockets.take(Side::Client)).collect();
        assert_eq!(clients.len(), 3);
        let nodes: Vec<Permit> = std::iter::from_fn(|| sockets.take(Side::Node)).collect();
        assert_eq!((nodes.len(), sockets.open()), (2, (3, 2)));
        drop(clients);
        assert_eq!(sockets.open(), (0, 2));
    }

    #[test]
    fn nodes_may_have_more_while_clients_leave_room() {
        let sockets = sockets(5, 2);
        let mut nodes: Vec<Permit> = std::iter::from_fn(|| sockets.take(Side::Node)).collect();
        assert_eq!(nodes.len(), 5);
        assert!(sockets.take(Side::Client).is_none());
        nodes.truncate(4);
        let client = sockets.take(Side::Client).expect("one has been given back");
        assert!(sockets.take(Side::Node).is_none() && sockets.take(Side::Client).is_none());
        drop(client);
        assert!(sockets.take(Side::Node).is_some());
    }

    #[test]
    fn a_lower_limit_closes_nothing_and_admits_nothing() {
        let sockets = sockets(4, 0);
        let clients: Vec<Permit> = std::iter::from_fn(|| sockets.take(Side::Client)).collect();
        sockets.set(2, 1);
        assert_eq!(sockets.open(), (4, 0));
        assert!(sockets.take(Side::Client).is_none());
        let node = sockets.take(Side::Node);
        assert!(node.is_some(), "it is one of those that are kept");
        drop((clients, node));
        sockets.set(usize::MAX, 0);
        assert_eq!(sockets.open(), (0, 0));
    }
}
