//! How many sockets a process may have at once, and which of them clients leave to nodes.
//!
//! The system bounds the files of a process. If clients took all of them, no node could be dialled and no client could be
//! served, so some are kept for nodes: clients never get these, and nodes may have more as long as clients leave room. Every
//! socket that a loop opens for either carries a [`Permit`], which gives its place back when the socket is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Which end of the proxy a socket belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// It was accepted.
    Client,
    /// It was dialled, or is the other end of such a connection in this process.
    Node,
}

/// The sockets of a process. Unlimited until it is told otherwise.
#[derive(Debug)]
pub struct Sockets {
    most: AtomicUsize,
    kept_for_nodes: AtomicUsize,
    /// Those of clients in the upper half, those of nodes in the lower: both are looked at together.
    open: AtomicU64,
}

impl Default for Sockets {
    fn default() -> Self {
        Self { most: AtomicUsize::new(usize::MAX), kept_for_nodes: AtomicUsize::new(0), open: AtomicU64::new(0) }
    }
}

impl Sockets {
    /// From now on there may be `most`, of which `kept_for_nodes` are not for clients. Those that are open stay.
    pub fn set(&self, most: usize, kept_for_nodes: usize) {
        self.most.store(most, Ordering::Relaxed);
        self.kept_for_nodes.store(kept_for_nodes, Ordering::Relaxed);
    }

    /// Room for one more socket; `None`: there is none.
    pub fn take(self: &Arc<Self>, side: Side) -> Option<Permit> {
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

    /// How many clients have, and how many lead to nodes.
    pub fn open(&self) -> (usize, usize) {
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

/// The place of one socket among those that there may be.
#[derive(Debug)]
pub struct Permit {
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
