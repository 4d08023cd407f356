//! Redis Cluster: the nodes of a client, and the table by which callers find theirs.
//!
//! ```text
//!   caller --slot--> table (immutable) --> node --> its connection: the caller writes and reads there itself
//!      |                ^
//!      |  MOVED         | a new table
//!      '--------> refresh state <-- keeper: a thread that asks nodes what the cluster looks like, and ends pauses
//! ```
//!
//! No request passes through a task or a queue of the cluster: what is slow or dead at one node holds up nothing at another. The
//! refresh state is locked by redirects and by the keeper, and never while anything is waited for.

#[cfg(feature = "cache")]
mod cached;
mod direct;
mod environment;
mod keeper;
mod plan;
mod reads;
mod roams;
mod routed;
mod shards;
#[cfg(test)]
mod simulated;
mod table;
mod unit;
mod walk;

#[cfg(feature = "cache")]
pub(crate) use cached::Caches;
pub(crate) use direct::Direct;
use environment::{Environment, Process, connection_of};
pub(crate) use plan::{refuse_for_all, slot_of_keys};
pub use reads::Reads;
pub(crate) use roams::Roams;
pub(crate) use routed::Routed;
use table::Table;
pub(crate) use walk::Walk;

use crate::Config;
use crate::core::Waiter;
use crate::events::Event;
use crate::limits::CLUSTER_NODES_MAX;
use crate::pubsub::Hub;
use crate::stats::Stats;
use crate::topology::Node;
use reads::Policy;
use respool_route::cluster::{Address, Attempt, Refresh, SlotMap, Trigger};
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use table::Snapshot;

/// The cluster that a client leads to. The keeper ends with it.
#[derive(Debug)]
pub(crate) struct Cluster(Arc<Shared>);

/// What callers and the keeper share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) policy: Policy,
    /// Subscriptions to channels and patterns.
    pub(crate) hub: Arc<Hub>,
    table: Snapshot,
    is_closed: AtomicBool,
    /// Redirects that were followed.
    redirects: AtomicU64,
    /// Held while sharded channels are put into hubs and taken out.
    moves: Mutex<()>,
    me: Weak<Shared>,
    state: Mutex<State>,
    /// Tells the keeper that something has changed.
    changed: Condvar,
    environment: Box<dyn Environment>,
}

#[derive(Debug)]
struct State {
    refresh: Refresh,
    /// Those of the table, and those that a redirect or a seed has named since.
    nodes: HashMap<Address, Arc<Node>>,
    /// Those that are in no table any longer, and that calls may still use.
    retired: Vec<Weak<Node>>,
    /// Calls that wait, by when they go on.
    pauses: BTreeMap<(u64, u64), Waiter>,
    numbers: u64,
    has_keeper: bool,
    is_closed: bool,
}

/// What a new table has come to, to be told without the lock.
#[derive(Default)]
#[must_use = "calls wait for it"]
struct News {
    woken: Vec<Waiter>,
    /// No member any longer. Calls that use one keep it.
    old: Vec<Arc<Node>>,
    is_table: bool,
}

impl State {
    /// Nodes are no members any longer. Those that no call uses are forgotten.
    fn retire(&mut self, old: &[Arc<Node>]) {
        self.retired.retain(|node| node.strong_count() > 0);
        self.retired.extend(old.iter().map(Arc::downgrade));
    }
}

impl News {
    fn is_empty(&self) -> bool {
        self.woken.is_empty() && !self.is_table
    }

    fn tell(self, shared: &Shared) {
        if self.is_table {
            shared.move_channels(&self.old);
        }
        self.woken.into_iter().for_each(Waiter::wake);
        if self.is_table && shared.config.has_listener() {
            let table = shared.table();
            let primaries = table.shards().len();
            shared.config.tell(&Event::SlotsChanged { primaries });
        }
        drop(self.old);
    }
}

/// A call's place among those that wait.
pub(crate) type Pause = (u64, u64);

impl Deref for Cluster {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Cluster {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    /// The cluster that the settings name seeds of, if they do. Nothing is dialled yet.
    pub(crate) fn of(config: &Config) -> Option<Arc<Self>> {
        config.is_member().then(|| Self::within(Box::new(Process::new()), config.clone()))
    }

    /// The settings of the client.
    #[inline]
    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    /// Where subscriptions to channels and patterns are.
    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// From which nodes is read from now on.
    pub(crate) fn set_reads(&self, reads: Reads) {
        self.0.policy.set(reads);
    }

    /// A cluster of these settings, with what is around it.
    fn within(environment: Box<dyn Environment>, config: Config) -> Arc<Self> {
        let seeds = config.cluster.clone();
        let state = State {
            refresh: Refresh::new(config.refresh, seeds),
            nodes: HashMap::new(),
            retired: Vec::new(),
            pauses: BTreeMap::new(),
            numbers: 0,
            has_keeper: false,
            is_closed: false,
        };
        let shared = Arc::new_cyclic(|shared| Shared {
            policy: Policy::new(config.reads),
            hub: Hub::anywhere(config.clone(), Weak::clone(shared)),
            config,
            table: Snapshot::default(),
            moves: Mutex::new(()),
            me: Weak::clone(shared),
            is_closed: AtomicBool::new(false),
            redirects: AtomicU64::new(0),
            state: Mutex::new(state),
            changed: Condvar::new(),
            environment,
        });
        Arc::new(Self(shared))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Microseconds since the client was made.
    pub(crate) fn now_us(&self) -> u64 {
        self.environment.now_us()
    }

    /// A random number.
    pub(crate) fn chance(&self) -> u64 {
        self.environment.chance()
    }

    /// The table that holds; without shards before the first report.
    #[inline]
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load()
    }

    /// The table may be wrong. Begins the keeper if there is none.
    pub(crate) fn trigger(self: &Arc<Self>, trigger: Trigger) {
        let now_us = self.now_us();
        let mut state = self.lock();
        state.refresh.on_trigger(trigger, now_us, self.chance());
        self.wake_keeper(state);
    }

    /// Values are given from memory for as long as the table says that their node has them: nodes are asked again at the latest so long after
    /// they were asked last.
    #[cfg(feature = "cache")]
    pub(crate) fn rely_on_table(self: &Arc<Self>, age: Duration) {
        let (now_us, age_us) = (self.now_us(), u64::try_from(age.as_micros()).unwrap_or(u64::MAX));
        let mut state = self.lock();
        if state.refresh.on_reliance(age_us, now_us, self.chance()) {
            self.wake_keeper(state);
        }
    }

    /// A node has said that a slot is elsewhere.
    pub(crate) fn note_moved(self: &Arc<Self>, slot: u16, to: &Address) {
        let now_us = self.now_us();
        let mut state = self.lock();
        let moved = state.refresh.on_moved(slot, to, now_us, self.chance());
        let news = moved.map(|map| self.install(&mut state, map)).unwrap_or_default();
        self.wake_keeper(state);
        news.tell(self);
    }

    /// What a request goes through that was never redirected.
    fn attempt(&self) -> Attempt {
        Attempt::following(self.config.redirects_max)
    }

    /// A redirect is followed.
    fn note_redirect(&self, to: &Address, is_asking: bool) {
        self.redirects.fetch_add(1, Ordering::Relaxed);
        if self.config.has_listener() {
            self.config.tell(&Event::Redirected { to: &to.to_string(), is_asking });
        }
    }

    /// Where any node is: a primary, or a seed while none is known.
    pub(crate) fn any_node(self: &Arc<Self>) -> Config {
        let chance = self.chance();
        let table = self.table();
        let seed = || &self.config.cluster[chance as usize % self.config.cluster.len()];
        let address = table.any(chance).map_or_else(|| seed().clone(), |node| node.address());
        if !table.is_known() {
            self.trigger(Trigger::Stuck);
        }
        self.config.at(address.host(), address.port())
    }

    /// The node at `address`, which may be none of the table's.
    pub(crate) fn node_at(&self, address: &Address) -> Arc<Node> {
        let mut state = self.lock();
        let mut old = Vec::new();
        if state.nodes.len() >= CLUSTER_NODES_MAX && !state.nodes.contains_key(address) {
            // Redirects may name any address.
            let table = self.table();
            old.extend(state.nodes.extract_if(|address, _| !table.has(address)).map(|(_, node)| node));
            state.retire(&old);
        }
        let node = self.node_in(&mut state, address);
        drop(state);
        drop(old);
        node
    }

    fn node_in(&self, state: &mut State, address: &Address) -> Arc<Node> {
        if let Some(node) = state.nodes.get(address) {
            return Arc::clone(node);
        }
        let node = Arc::new(Node::member(
            self.config.at(address.host(), address.port()),
            address.clone(),
            Weak::clone(&self.me),
        ));
        if state.is_closed {
            node.close();
        }
        state.nodes.insert(address.clone(), Arc::clone(&node));
        node
    }

    /// The map holds from now on.
    fn install(&self, state: &mut State, map: Arc<SlotMap>) -> News {
        let table = Table::new(map, |address| self.node_in(state, address));
        let old: Vec<Arc<Node>> =
            state.nodes.extract_if(|address, _| !table.has(address)).map(|(_, node)| node).collect();
        state.retire(&old);
        self.table.store(Arc::new(table));
        News { woken: std::mem::take(&mut state.pauses).into_values().collect(), old, is_table: true }
    }

    /// Waits until this time, or until a table is news. `None`: it is.
    fn pause(
        self: &Arc<Self>,
        pause: &mut Option<Pause>,
        until_us: u64,
        is_news: impl FnOnce(&Table) -> bool,
        waiter: Waiter,
    ) -> Option<()> {
        let mut state = self.lock();
        let old = pause.take().and_then(|pause| state.pauses.remove(&pause));
        let goes_on = state.is_closed || is_news(&self.table());
        if !goes_on {
            state.numbers += 1;
            let place = (until_us, state.numbers);
            state.pauses.insert(place, waiter);
            *pause = Some(place);
            self.wake_keeper(state);
        } else {
            drop(state);
        }
        drop(old);
        (!goes_on).then_some(())
    }

    /// The call does not wait any longer.
    pub(crate) fn end_pause(&self, pause: &mut Option<Pause>) {
        let old = pause.take().and_then(|pause| self.lock().pauses.remove(&pause));
        drop(old);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// All nodes that there are connections to, or may be.
    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.lock().nodes.values().cloned().collect()
    }

    /// Ends all connections, for good.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        self.is_closed.store(true, Ordering::Release);
        let pauses = std::mem::take(&mut state.pauses);
        let mut nodes: Vec<Arc<Node>> = state.nodes.values().cloned().collect();
        nodes.extend(std::mem::take(&mut state.retired).iter().filter_map(Weak::upgrade));
        drop(state);
        self.changed.notify_one();
        self.hub.close();
        nodes.iter().for_each(|node| node.close());
        pauses.into_values().for_each(Waiter::wake);
    }

    pub(crate) fn add_stats(&self, stats: &mut Stats) {
        self.nodes().iter().for_each(|node| node.add_stats(stats));
        stats.redirects += self.redirects.load(Ordering::Relaxed);
    }
}

/// How much of a call's time is left, in microseconds from `now_us` on.
pub(crate) fn left_us(until_us: Option<u64>, now_us: u64) -> Option<Duration> {
    until_us.map(|until_us| Duration::from_micros(until_us.saturating_sub(now_us)))
}

#[cfg(test)]
impl Cluster {
    /// The cluster looks like this from now on: the nodes at these ports have the slots up to these.
    pub(crate) fn show(&self, shards: &[(u16, u16)]) {
        let mut text = format!("*{}\r\n", shards.len());
        let mut first = 0;
        for (port, last) in shards {
            text += &format!("*3\r\n:{first}\r\n:{last}\r\n*3\r\n$9\r\n127.0.0.1\r\n:{port}\r\n$40\r\n{port:040}\r\n");
            first = last + 1;
        }
        let asked = Address::new("127.0.0.1", 1).expect("an address");
        let value = respool_wire::Value::parse(text.as_bytes()).expect("it can be read");
        let report = respool_route::cluster::Report::from_slots(&value, &asked).expect("all slots are there");
        let mut refresh = Refresh::new(respool_route::cluster::RefreshTerms::default(), vec![asked]);
        refresh.on_trigger(Trigger::Stuck, 0, 0);
        let respool_route::cluster::RefreshStep::Ask { number, .. } = refresh.poll(0, 0).step else {
            panic!("nothing is asked")
        };
        let map = refresh.on_answer(number, Some(report)).expect("one report is enough at first");
        let mut state = self.lock();
        let news = self.install(&mut state, map);
        drop(state);
        news.tell(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_client_ends_what_is_at_nodes_of_no_table() {
        let cluster = Cluster::of(&Config::from_url("redis+cluster://127.0.0.1:1").unwrap()).unwrap();
        let address = |port| Address::new("127.0.0.1", port).unwrap();
        // Redirects may name any address: then those that are in no table are forgotten.
        let node = cluster.node_at(&address(1));
        (2..=CLUSTER_NODES_MAX as u16 + 1).for_each(|port| drop(cluster.node_at(&address(port))));
        assert!(!cluster.nodes().iter().any(|other| Arc::ptr_eq(other, &node)));
        cluster.close();
        assert!(node.core.is_closed());
    }
}
