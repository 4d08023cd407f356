//! Sharded channels: each at the node that has its slot, and moved when the slot moves.
//!
//! A channel is in the hub of one node at a time. What takes it out of one puts it into another, under one lock, so that none is missed by
//! what looks through all of them.

use super::Shared;
use crate::core::Waiter;
use crate::pubsub::{Bounds, Kind, Mailbox, Moving};
use crate::topology::Node;
use bytes::Bytes;
use respool_route::cluster::slot_of;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

impl Shared {
    /// The node whose hub has a channel: the node of its slot, or any while the slot's node is not known.
    fn node_of_channel(&self, name: &[u8]) -> Arc<Node> {
        let table = self.table();
        let node = table.shard_of(slot_of(name)).map(|shard| &shard.primary);
        match node.or_else(|| table.any(0)) {
            Some(node) => Arc::clone(node),
            None => self.node_at(&self.config.cluster[0]),
        }
    }

    /// Subscribes. The caller is woken by its mailbox.
    pub(crate) fn add_channels(&self, names: &[Bytes], bounds: Bounds, until: Instant) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::new(bounds));
        let mut names: Vec<&Bytes> = names.iter().collect();
        names.sort_unstable();
        names.dedup();
        mailbox.expect(names.len());
        let mut woken = Vec::new();
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            let pending = vec![(Arc::clone(&mailbox), until)];
            let listeners = vec![Arc::clone(&mailbox)];
            let moving = Moving { kind: Kind::Shard, name: name.clone(), listeners, pending };
            woken.extend(self.node_of_channel(name).side.hub.adopt(moving));
        }
        drop(moves);
        woken.into_iter().for_each(Waiter::wake);
        mailbox
    }

    /// A subscription to these is dropped.
    pub(crate) fn remove_channels(&self, names: &[Bytes], mailbox: &Arc<Mailbox>) {
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        // A node that is no member any longer is not among them, and its channels have not moved yet: they move without this one.
        let waiter = mailbox.end(None);
        self.nodes().iter().for_each(|node| node.side.hub.remove(Kind::Shard, names, mailbox));
        drop(moves);
        drop(waiter);
    }

    /// The table has changed: channels go to the nodes that have their slots, also those of nodes that are no members any longer.
    pub(super) fn move_channels(&self, old: &[Arc<Node>]) {
        let mut woken = Vec::new();
        let moves = self.moves.lock().unwrap_or_else(PoisonError::into_inner);
        for node in self.nodes().iter().chain(old) {
            let is_foreign = |name: &[u8]| !Arc::ptr_eq(&self.node_of_channel(name), node);
            for moving in node.side.hub.take_foreign(is_foreign) {
                woken.extend(self.node_of_channel(&moving.name).side.hub.adopt(moving));
            }
        }
        drop(moves);
        woken.into_iter().for_each(Waiter::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::cluster::Cluster;
    use crate::pubsub::Overflow;
    use std::sync::Weak;
    use std::task::{Wake, Waker};
    use std::time::Duration;

    /// A task that drops a subscription when it is woken.
    struct Drops {
        cluster: Weak<Shared>,
        mailbox: Arc<Mailbox>,
    }

    impl Wake for Drops {
        fn wake(self: Arc<Self>) {
            let cluster = self.cluster.upgrade().expect("it is there");
            cluster.remove_channels(&[Bytes::from_static(b"other")], &self.mailbox);
        }
    }

    #[test]
    fn what_a_move_wakes_may_drop_a_subscription() {
        let cluster = Cluster::of(&Config::from_url("redis+cluster://127.0.0.1:1").unwrap()).unwrap();
        cluster.show(&[(1, 16_383)]);
        let until = Instant::now() + Duration::from_secs(60);
        let bounds = Bounds { messages: 1, bytes: 1, overflow: Overflow::End };
        let add = |name| cluster.add_channels(&[Bytes::from_static(name)], bounds, until);
        let (mailbox, other) = (add(b"c"), add(b"other"));
        let drops = Drops { cluster: Arc::downgrade(cluster.shared()), mailbox: other };
        let waker = Waker::from(Arc::new(drops));
        assert!(mailbox.confirmed_or_wait(|| Waiter::Task(waker)).is_none());
        // The node that has the channel from now on takes no subscriptions.
        let [old, new] =
            [1, 2].map(|port| cluster.node_at(&respool_route::cluster::Address::new("127.0.0.1", port).unwrap()));
        new.side.hub.close();
        let (tells, told) = std::sync::mpsc::channel();
        let moving = Arc::clone(&cluster);
        std::thread::spawn(move || {
            moving.show(&[(2, 16_383)]);
            let _ = tells.send(());
        });
        told.recv_timeout(Duration::from_secs(60)).expect("it ends");
        assert!(matches!(mailbox.confirmed_or_wait(|| Waiter::None), Some(Err(_))));
        drop(old);
    }
}
