//! Nodes, links and time, and the faults that happen to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use respool_command::WaitId;
use respool_route::SLOTS;
use respool_route::cluster::{Address, slot_of};
use respool_testkit::Rng;
use respool_wire::{ArgsBuf, Value};

use crate::data::{Effects, request};
use crate::links::Connection;
use crate::node::{Belief, Node, NodeIndex, place};

/// The time after which what could not be delivered is sent again, once it can be.
const RESEND_US: u64 = 1_000;

/// What requests that wait get when their node becomes a replica, or has other data.
const UNBLOCKED: &[u8] =
    b"-UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)\r\n";

/// How large, how fast.
#[derive(Clone, Copy, Debug)]
pub struct WorldTerms {
    /// The nodes are a cluster. Otherwise they are servers that know of no slots, whose replicas refuse writes; slots say then which of the
    /// primaries their clients mean for which keys, and do not move. A failover is made as Sentinels make it.
    pub is_cluster: bool,
    /// Shards.
    pub primaries: usize,
    /// Replicas of each.
    pub replicas: usize,
    /// The longest time that a message takes on a link without fault.
    pub link_us: u64,
    /// The longest time until a replica has a write.
    pub lag_us: u64,
    /// The longest time until a node has heard of a change.
    pub gossip_us: u64,
    /// The time after which a node that cannot be reached is replaced, and stops serving itself.
    pub node_timeout_us: u64,
    /// The time for one key to move.
    pub key_us: u64,
    /// The time from the last key of a slot that moves until the slot itself does.
    pub hold_us: u64,
}

impl Default for WorldTerms {
    fn default() -> Self {
        Self {
            is_cluster: true,
            primaries: 3,
            replicas: 1,
            link_us: 500,
            lag_us: 2_000,
            gossip_us: 300_000,
            node_timeout_us: 2_000_000,
            key_us: 700,
            hold_us: 300_000,
        }
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The node ends, and comes back after this time.
    Crash(NodeIndex, u64),
    /// Neither clients nor nodes reach it for this time.
    Unreachable(NodeIndex, u64),
    /// Nodes do not reach it for this time, and clients do: it acknowledges writes that are lost.
    Isolated(NodeIndex, u64),
    /// Its connections end, and with them replies that are on their way. It goes on.
    Disconnect(NodeIndex),
    /// Its connections are silent from now on. New ones are not.
    HalfOpen(NodeIndex),
    /// Messages to and from it take this much longer, for this time.
    Slow(NodeIndex, u64, u64),
    /// What clients send over the connections that they have arrives when this time is over: the network was cut, and their kernels have sent
    /// it again. New connections go another way.
    Stalled(NodeIndex, u64),
    /// It hears of no change for this time.
    Stale(NodeIndex, u64),
    /// It comes back without data.
    RestartEmpty(NodeIndex),
    /// The slot moves to this primary, key by key.
    Migrate(u16, NodeIndex),
    /// The node leaves the cluster for good: a replica takes over all that it has, the others forget it, and it ends.
    Leave(NodeIndex),
}

/// A connection of a client to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) usize);

/// What the world has for its client.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery {
    /// The replies to requests that were sent together.
    Reply {
        /// On which connection.
        connection: ConnectionId,
        /// As they were sent.
        tag: u64,
        /// In the order of the requests, as the node has written them.
        replies: Vec<Vec<u8>>,
        /// Whether the node had the slots of the requests when it executed them. What another one acknowledges is lost.
        is_owner: bool,
        /// Which came first: grows with each execution in the whole cluster.
        order: u64,
    },
    /// A connection that was dialled is open.
    Connected {
        /// Which one.
        connection: ConnectionId,
    },
    /// There is no node at the address: nothing was executed.
    Refused {
        /// On which connection, which has ended.
        connection: ConnectionId,
        /// As the requests were sent; 0 of a connection that was dialled.
        tag: u64,
    },
    /// The connection has ended. What was sent and not answered may have been executed.
    Ended {
        /// Which one.
        connection: ConnectionId,
    },
    /// Writes to these slots that were acknowledged may be lost.
    Lost {
        /// The slots.
        slots: Vec<u16>,
    },
}

/// A request that a node has been asked by a client, whether or not its client was told.
#[derive(Clone)]
pub struct Execution {
    /// Where.
    pub node: NodeIndex,
    /// Over which connection.
    pub connection: ConnectionId,
    /// When.
    pub at_us: u64,
    /// In which database.
    pub database: u32,
    /// What was asked.
    pub args: ArgsBuf,
    /// What was replied.
    pub reply: Vec<u8>,
    /// The node has done nothing: it replied an error.
    pub is_refused: bool,
    /// Whether the node had the slot of its first key. What another one does is lost.
    pub is_owner: bool,
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, at_us, database, connection, .. } = self;
        let words: Vec<_> = self.args.as_args().iter().map(String::from_utf8_lossy).collect();
        let reply = String::from_utf8_lossy(&self.reply);
        let whose = if self.is_owner { "its own" } else { "not its" };
        write!(f, "{words:?} at {node} over {} in {database} at {at_us}, {whose} slot: {reply:?}", connection.0)
    }
}

pub(crate) enum Event {
    Dial(ConnectionId),
    Request(ConnectionId, u64, Vec<ArgsBuf>),
    /// The client has closed, and all that it had sent has come.
    Gone(ConnectionId),
    /// The time of the request that waits there is over.
    WaitOver(ConnectionId, WaitId),
    Deliver(Delivery),
    /// What was sent while a node could not be reached is sent again.
    Resend(NodeIndex),
    Apply {
        from: NodeIndex,
        to: NodeIndex,
        database: u32,
        args: ArgsBuf,
    },
    Learn(NodeIndex),
    Promote(NodeIndex),
    Heal(NodeIndex),
    Loaded(NodeIndex),
    Step(u16, NodeIndex, NodeIndex),
}

/// A cluster and its clients' links.
pub struct World {
    pub(crate) terms: WorldTerms,
    pub(crate) now_us: u64,
    pub(crate) rng: Rng,
    pub(crate) nodes: Vec<Node>,
    /// Who has each slot.
    pub(crate) owners: Vec<Belief>,
    pub(crate) replicas: BTreeMap<NodeIndex, Vec<NodeIndex>>,
    pub(crate) epoch: u64,
    pub(crate) events: BTreeMap<(u64, u64), Event>,
    pub(crate) numbers: u64,
    pub(crate) executions: u64,
    pub(crate) connections: Vec<Connection>,
    pub(crate) down: BTreeSet<NodeIndex>,
    pub(crate) cut_from_clients: BTreeSet<NodeIndex>,
    pub(crate) cut_from_nodes: BTreeSet<NodeIndex>,
    pub(crate) slow: BTreeMap<NodeIndex, (u64, u64)>,
    pub(crate) stale_us: BTreeMap<NodeIndex, u64>,
    pub(crate) applied_us: BTreeMap<NodeIndex, u64>,
    pub(crate) moving: BTreeSet<u16>,
    /// Of those that move, the ones whose keys have all moved.
    pub(crate) held: BTreeSet<u16>,
    pub(crate) ready: VecDeque<Delivery>,
    /// What nodes were asked, if that is kept.
    pub(crate) journal: Option<Vec<Execution>>,
}

impl World {
    /// Primaries first, then their replicas; the slots in equal parts.
    pub fn new(terms: WorldTerms, seed: u64) -> Self {
        let count = terms.primaries * (1 + terms.replicas);
        let mut nodes: Vec<Node> = (0..count).map(|index| Node::new(index, terms.is_cluster, seed)).collect();
        let replicas: BTreeMap<NodeIndex, Vec<NodeIndex>> = (0..terms.primaries)
            .map(|primary| (primary, (1..=terms.replicas).map(|turn| primary + turn * terms.primaries).collect()))
            .collect();
        // Each begins at the nearest whole slot, as `redis-cli --cluster create` has it.
        let belief = |slot: usize| {
            let owner = ((2 * slot + 1) * terms.primaries - 1) / (2 * usize::from(SLOTS));
            Belief { owner, epoch: owner as u64 + 1 }
        };
        let owners: Vec<Belief> = (0..usize::from(SLOTS)).map(belief).collect();
        for node in &mut nodes {
            node.beliefs.clone_from(&owners);
            node.replicas.clone_from(&replicas);
            let own = replicas.iter().find(|(_, replicas)| replicas.contains(&node.index));
            node.primary = own.map(|(primary, _)| *primary);
        }
        Self {
            terms,
            now_us: 1_000_000,
            rng: Rng::new(seed),
            nodes,
            owners,
            replicas,
            epoch: terms.primaries as u64,
            events: BTreeMap::new(),
            numbers: 0,
            executions: 0,
            connections: Vec::new(),
            down: BTreeSet::new(),
            cut_from_clients: BTreeSet::new(),
            cut_from_nodes: BTreeSet::new(),
            slow: BTreeMap::new(),
            stale_us: BTreeMap::new(),
            applied_us: BTreeMap::new(),
            moving: BTreeSet::new(),
            held: BTreeSet::new(),
            ready: VecDeque::new(),
            journal: None,
        }
    }

    /// The time in microseconds.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Where a node is reached.
    pub fn address(&self, node: NodeIndex) -> Address {
        let (host, port) = place(node);
        Address::new(&host, port).expect("a host")
    }

    /// The node that has a slot.
    pub fn owner(&self, slot: u16) -> NodeIndex {
        self.owners[usize::from(slot)].owner
    }

    /// What the node that has a key's slot has there. A key that is on its way is looked for at its destination as well.
    pub fn value(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let (slot, now_us) = (slot_of(key), self.now_us);
        let owner = self.owner(slot);
        let destination = self.nodes[owner].migrating.get(&slot).copied();
        let found = self.nodes[owner].data.value(key, now_us);
        found.or_else(|| self.nodes[destination?].data.value(key, now_us))
    }

    /// Keeps what nodes are asked from now on, for [`Self::take_journal`].
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
        self.nodes.iter_mut().for_each(|node| node.journal = Some(Vec::new()));
    }

    /// What nodes were asked since this was last taken, in order.
    pub fn take_journal(&mut self) -> Vec<Execution> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What a node has for a request at this moment, apart from all clients: for looking at its data.
    pub fn look(&mut self, node: NodeIndex, database: u32, words: &[&[u8]]) -> Value {
        let now_us = self.now_us;
        Value::parse(&self.nodes[node].data.apply(database, request(words).as_args(), now_us)).expect("a reply")
    }

    /// Lets time pass until there is something, or until this time.
    pub fn poll(&mut self, until_us: u64) -> Option<Delivery> {
        loop {
            if let Some(delivery) = self.ready.pop_front() {
                return Some(delivery);
            }
            let next = self.events.first_key_value().map(|(key, _)| *key).filter(|(at_us, _)| *at_us <= until_us);
            let Some(key) = next else {
                self.now_us = self.now_us.max(until_us);
                return None;
            };
            self.now_us = self.now_us.max(key.0);
            if let Some(event) = self.events.remove(&key) {
                self.happen(event);
            }
        }
    }

    /// Something goes wrong now.
    pub fn inject(&mut self, fault: Fault) {
        let (now_us, timeout_us) = (self.now_us, self.terms.node_timeout_us);
        match fault {
            Fault::Crash(node, for_us) => {
                self.down.insert(node);
                self.cut_from_nodes.insert(node);
                self.end_connections(node);
                self.lose_replication(node);
                self.push(now_us + timeout_us, Event::Promote(node));
                self.push(now_us + for_us, Event::Heal(node));
            }
            Fault::Unreachable(node, for_us) | Fault::Isolated(node, for_us) => {
                if matches!(fault, Fault::Unreachable(..)) {
                    self.cut_from_clients.insert(node);
                }
                self.cut_from_nodes.insert(node);
                self.lose_replication(node);
                self.push(now_us + timeout_us, Event::Promote(node));
                self.push(now_us + for_us, Event::Heal(node));
            }
            Fault::Leave(node) => self.leave(node),
            Fault::Disconnect(node) => self.end_connections(node),
            Fault::HalfOpen(node) => {
                let own = self.connections.iter_mut().filter(|connection| connection.node == node);
                own.for_each(|connection| connection.is_silent = true);
            }
            Fault::Stalled(node, for_us) => {
                let own = self.connections.iter_mut().filter(|connection| connection.node == node);
                own.for_each(|connection| connection.to_node_us = connection.to_node_us.max(now_us + for_us));
            }
            Fault::Slow(node, by_us, for_us) => drop(self.slow.insert(node, (by_us, now_us + for_us))),
            Fault::Stale(node, for_us) => drop(self.stale_us.insert(node, now_us + for_us)),
            Fault::RestartEmpty(node) => {
                self.end_connections(node);
                self.lose_replication(node);
                for wiped in std::iter::once(node).chain(self.replicas.get(&node).cloned().unwrap_or_default()) {
                    self.wipe(wiped);
                }
                self.nodes[node].is_loading = true;
                self.push(now_us + 200_000, Event::Loaded(node));
                self.tell_lost(node);
            }
            Fault::Migrate(slot, to) => {
                let from = self.owner(slot);
                let is_fit = self.terms.is_cluster && self.is_primary(from) && self.is_primary(to) && from != to;
                if is_fit && self.moving.insert(slot) {
                    self.nodes[to].importing.insert(slot, from);
                    self.nodes[from].migrating.insert(slot, to);
                    self.push(now_us + self.terms.key_us, Event::Step(slot, from, to));
                }
            }
        }
    }

    /// Whether a slot is at a node, or on its way from or to it.
    pub fn is_at(&self, slot: u16, node: NodeIndex) -> bool {
        self.has(node, slot)
    }

    /// Whether the node has slots and can be reached by the others.
    pub fn is_primary(&self, node: NodeIndex) -> bool {
        !self.cut_from_nodes.contains(&node) && self.nodes[node].primary.is_none() && self.replicas.contains_key(&node)
    }

    /// The node whose data it has a copy of; itself, if it is no replica.
    pub fn primary_of(&self, node: NodeIndex) -> NodeIndex {
        self.nodes[node].primary.unwrap_or(node)
    }

    /// One of the nodes that have a copy of a primary's data.
    pub fn replica_of(&self, primary: NodeIndex) -> Option<NodeIndex> {
        self.replicas.get(&primary)?.first().copied()
    }

    pub(crate) fn push(&mut self, at_us: u64, event: Event) {
        self.numbers += 1;
        self.events.insert((at_us, self.numbers), event);
    }

    pub(crate) fn delay(&mut self, node: NodeIndex) -> u64 {
        let slow_us =
            self.slow.get(&node).filter(|(_, until_us)| self.now_us < *until_us).map_or(0, |(by_us, _)| *by_us);
        20 + self.rng.below(self.terms.link_us as usize) as u64 + slow_us
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Dial(_) | Event::Request(..) | Event::Gone(_) | Event::Deliver(_) => self.arrive(event),
            Event::WaitOver(connection, wait) => self.on_wait_over(connection, wait),
            Event::Resend(node) => self.resend(node),
            Event::Apply { to, database, args, .. } => {
                drop(self.nodes[to].data.apply(database, args.as_args(), self.now_us));
            }
            Event::Learn(node) => self.learn(node),
            Event::Promote(node) => self.promote(node),
            Event::Heal(node) => self.heal(node),
            Event::Loaded(node) => self.nodes[node].is_loading = false,
            Event::Step(slot, from, to) => self.step(slot, from, to),
        }
    }

    /// Whether what a node does to a slot stays.
    pub(crate) fn has(&self, node: NodeIndex, slot: u16) -> bool {
        let owner = self.owner(slot);
        owner == node || self.nodes[owner].migrating.get(&slot) == Some(&node)
    }

    pub(crate) fn replicate(&mut self, from: NodeIndex, effects: Effects) {
        if effects.is_empty() || self.cut_from_nodes.contains(&from) {
            return;
        }
        for to in self.replicas.get(&from).cloned().unwrap_or_default() {
            if self.cut_from_nodes.contains(&to) {
                continue;
            }
            for (database, args) in &effects {
                let lag_us = self.rng.below(self.terms.lag_us as usize) as u64;
                let applied_us = self.applied_us.entry(to).or_default();
                *applied_us = (*applied_us + 1).max(self.now_us + lag_us);
                let at_us = *applied_us;
                self.push(at_us, Event::Apply { from, to, database: *database, args: args.clone() });
            }
        }
    }

    /// What has not reached a replica does not reach it any more, and the other way round.
    fn lose_replication(&mut self, node: NodeIndex) {
        self.events.retain(|_, event| !matches!(event, Event::Apply { from, to, .. } if *from == node || *to == node));
    }

    fn tell_lost(&mut self, owner: NodeIndex) {
        // With those of which keys have come there already.
        let slots = (0..SLOTS).filter(|slot| self.has(owner, *slot)).collect();
        self.ready.push_back(Delivery::Lost { slots });
    }

    /// All nodes hear of a change, each at its time.
    fn spread(&mut self) {
        for node in 0..self.nodes.len() {
            let heard_us = self.now_us + self.rng.below(self.terms.gossip_us as usize) as u64;
            let at_us = heard_us.max(self.stale_us.get(&node).copied().unwrap_or(0));
            self.push(at_us, Event::Learn(node));
        }
    }

    fn learn(&mut self, node: NodeIndex) {
        if self.cut_from_nodes.contains(&node) {
            return;
        }
        let known = &mut self.nodes[node];
        known.beliefs.clone_from(&self.owners);
        known.replicas.clone_from(&self.replicas);
        let owners = &self.owners;
        known.migrating.retain(|slot, _| owners[usize::from(*slot)].owner == node);
        known.importing.retain(|slot, _| owners[usize::from(*slot)].owner != node);
    }

    /// A replica takes over from a node that cannot be reached, and the node stops serving.
    fn promote(&mut self, node: NodeIndex) {
        if !self.cut_from_nodes.contains(&node) {
            return;
        }
        self.nodes[node].is_minority = true;
        let Some(replicas) = self.replicas.get(&node).cloned() else { return };
        let Some(next) = replicas.iter().copied().find(|replica| !self.cut_from_nodes.contains(replica)) else {
            return;
        };
        self.stop_moves(node);
        self.lose_replication(node);
        self.take_over(node, next, replicas);
        self.tell_lost(next);
    }

    /// The slots of a node go to one of its replicas, and the others follow that one.
    fn take_over(&mut self, node: NodeIndex, next: NodeIndex, replicas: Vec<NodeIndex>) {
        self.epoch += 1;
        for belief in self.owners.iter_mut().filter(|belief| belief.owner == node) {
            *belief = Belief { owner: next, epoch: self.epoch };
        }
        self.replicas.remove(&node);
        let others: Vec<NodeIndex> = replicas.into_iter().filter(|replica| *replica != next).collect();
        for replica in &others {
            self.copy(next, *replica);
        }
        self.replicas.insert(next, others);
        self.nodes[next].primary = None;
        self.learn(next);
        self.spread();
    }

    /// A primary without a replica that can be reached does not leave.
    fn leave(&mut self, node: NodeIndex) {
        let own = self.replicas.get(&node).cloned();
        if let Some(replicas) = own {
            let next = replicas.iter().copied().find(|replica| !self.cut_from_nodes.contains(replica));
            let Some(next) = next.filter(|_| self.is_primary(node)) else { return };
            self.stop_moves(node);
            self.lose_replication(node);
            self.copy(node, next);
            self.take_over(node, next, replicas);
        } else {
            self.replicas.values_mut().for_each(|replicas| replicas.retain(|replica| *replica != node));
            self.spread();
        }
        self.down.insert(node);
        self.cut_from_nodes.insert(node);
        self.end_connections(node);
    }

    fn heal(&mut self, node: NodeIndex) {
        self.down.remove(&node);
        if self.cut_from_clients.remove(&node) {
            let at_us = self.now_us + RESEND_US;
            self.push(at_us, Event::Resend(node));
        }
        self.cut_from_nodes.remove(&node);
        self.nodes[node].is_minority = false;
        if !self.replicas.contains_key(&node) {
            // It follows the node that has most slots of those that it had, or the first primary.
            let former = self.nodes[node].beliefs.iter().position(|belief| belief.owner == node);
            let of_replica = self.replicas.iter().find(|(_, replicas)| replicas.contains(&node)).map(|(of, _)| *of);
            let primary = of_replica.unwrap_or_else(|| self.owner(former.unwrap_or(0) as u16));
            if of_replica.is_none() {
                self.replicas.entry(primary).or_default().push(node);
                // Who makes it a replica ends its connections, but not in a cluster, where redirects do.
                if !self.terms.is_cluster {
                    self.end_connections(node);
                }
            }
            self.copy(primary, node);
        } else {
            for replica in self.replicas[&node].clone() {
                self.copy(node, replica);
            }
        }
        self.learn(node);
        self.spread();
    }

    /// A replica gets all that its primary has.
    fn copy(&mut self, from: NodeIndex, to: NodeIndex) {
        self.events.retain(|_, event| !matches!(event, Event::Apply { to: of, .. } if *of == to));
        self.wipe(to);
        self.nodes[to].primary = Some(from);
        for database in self.nodes[from].data.used_databases() {
            for key in self.nodes[from].data.keys(database, self.now_us) {
                self.put(from, to, database, &key);
            }
        }
    }

    fn put(&mut self, from: NodeIndex, to: NodeIndex, database: u32, key: &[u8]) -> Option<ArgsBuf> {
        let args = self.nodes[from].data.copy_of(database, key, self.now_us)?;
        self.nodes[to].data.apply(database, args.as_args(), self.now_us);
        Some(args)
    }

    /// A node loses its data. Requests that wait there are let go first.
    fn wipe(&mut self, node: NodeIndex) {
        self.let_go(node, |_| Some(UNBLOCKED.to_vec()));
        let seed = self.rng.next_u64();
        self.nodes[node].wipe(seed);
    }

    /// One key of a slot moves, or the slot itself behind the last one.
    fn step(&mut self, slot: u16, from: NodeIndex, to: NodeIndex) {
        if !self.moving.contains(&slot) {
            return;
        }
        if !self.is_primary(from) || !self.is_primary(to) || self.owner(slot) != from {
            return self.push(self.now_us + self.terms.key_us, Event::Step(slot, from, to));
        }
        let keys = self.nodes[from].data.keys(0, self.now_us);
        if let Some(key) = keys.iter().find(|key| slot_of(key) == slot) {
            let moved = self.put(from, to, 0, key);
            self.replicate(to, moved.into_iter().map(|moved| (0, moved)).collect());
            let gone = request(&[b"DEL", key]);
            self.nodes[from].data.apply(0, gone.as_args(), self.now_us);
            self.replicate(from, vec![(0, gone)]);
            return self.push(self.now_us + self.terms.key_us, Event::Step(slot, from, to));
        }
        if self.held.insert(slot) {
            return self.push(self.now_us + self.terms.hold_us, Event::Step(slot, from, to));
        }
        self.held.remove(&slot);
        self.moving.remove(&slot);
        self.epoch += 1;
        self.owners[usize::from(slot)] = Belief { owner: to, epoch: self.epoch };
        // Both are told at once, the destination first.
        for node in [to, from] {
            self.nodes[node].beliefs[usize::from(slot)] = self.owners[usize::from(slot)];
            self.nodes[node].importing.remove(&slot);
            self.nodes[node].migrating.remove(&slot);
        }
        let (host, port) = place(to);
        let moved = format!("-MOVED {slot} {host}:{port}\r\n").into_bytes();
        self.let_go(from, |key| (slot_of(key) == slot).then(|| moved.clone()));
        self.spread();
    }

    /// Slots on their way from or to a node that has failed stay where they are. Keys that have moved are lost with it, as in a cluster that is
    /// not repaired by hand.
    fn stop_moves(&mut self, node: NodeIndex) {
        let stopped: Vec<u16> = self
            .moving
            .iter()
            .copied()
            .filter(|slot| {
                let owner = self.owner(*slot);
                owner == node || self.nodes[owner].migrating.get(slot) == Some(&node)
            })
            .collect();
        for slot in &stopped {
            self.moving.remove(slot);
            self.held.remove(slot);
            for node in &mut self.nodes {
                node.migrating.remove(slot);
                node.importing.remove(slot);
            }
        }
        if !stopped.is_empty() {
            self.ready.push_back(Delivery::Lost { slots: stopped });
        }
    }
}
