//! What the address of a client leads to, and the way of a request through it.
//!
//! A client holds one [`Topology`]. What differs between kinds of deployment is decided here and in the module of the kind; calls,
//! lanes and subscriptions see a node.

use crate::cluster::{Cluster, Shared};
use crate::core::Core;
use crate::lanes::{Side, Watched};
use crate::pubsub::{Home, Kind};
use crate::shards::Shards;
use crate::stats::Stats;
use crate::{Config, ServerError};
use respool_route::cluster::{Address, Redirect};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// What a client leads to. Copies share its connections.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    /// One server.
    Single(Arc<Node>),
    /// Redis Cluster.
    Cluster(Arc<Cluster>),
    /// Servers among which a rule spreads keys.
    Shards(Arc<Shards>),
}

/// One server: its shared connection, and those beside it.
#[derive(Debug)]
pub(crate) struct Node {
    /// Where it is, if it is one of a cluster.
    pub(crate) address: Option<Address>,
    pub(crate) core: Arc<Core>,
    pub(crate) side: Arc<Side>,
    /// A connection that a replica of a cluster answers on.
    reader: OnceLock<Arc<Core>>,
}

/// Where a request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via<'c> {
    /// On this connection, and beside it what needs one of its own.
    Node(&'c Arc<Core>, &'c Arc<Side>),
    /// By its keys, to nodes of this cluster.
    Cluster(&'c Arc<Cluster>),
    /// By its keys, to some of these.
    Shards(&'c Arc<Shards>),
    /// On the connection that watches, if it is for that server.
    Watched(&'c Watched),
}

impl<'c> Via<'c> {
    /// The settings of the client.
    #[inline]
    pub(crate) fn config(self) -> &'c Config {
        match self {
            Self::Node(core, _) => &core.config,
            Self::Cluster(cluster) => cluster.config(),
            Self::Shards(shards) => &shards.config,
            Self::Watched(watched) => watched.config(),
        }
    }
}

impl Topology {
    /// What these settings lead to. Nothing is dialled yet.
    pub(crate) fn new(config: Config) -> Self {
        match (config.shards.clone(), Cluster::of(&config)) {
            (Some(layout), _) => Self::Shards(Shards::new(config, &layout)),
            (None, Some(cluster)) => Self::Cluster(cluster),
            (None, None) => Self::Single(Arc::new(Node::new(config))),
        }
    }

    /// The way of a request.
    #[inline]
    pub(crate) fn via(&self) -> Via<'_> {
        match self {
            Self::Single(node) => Via::Node(&node.core, &node.side),
            Self::Cluster(cluster) => Via::Cluster(cluster),
            Self::Shards(shards) => Via::Shards(shards),
        }
    }

    /// Where subscriptions of a kind are.
    pub(crate) fn home(&self, kind: Kind) -> Home {
        match self {
            Self::Single(node) => Home::Hub(Arc::clone(&node.side.hub)),
            Self::Cluster(cluster) if kind == Kind::Shard => Home::Slots(Arc::clone(cluster.shared())),
            Self::Cluster(cluster) => Home::Hub(Arc::clone(cluster.hub())),
            Self::Shards(shards) => Home::Shards(Arc::clone(shards)),
        }
    }

    /// How long a call may take unless it says otherwise.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.via().config().deadline
    }

    /// The node at `asked` has answered on a connection of its own: whether what it asks for leads to another node. One that leaves out
    /// the host means its own.
    pub(crate) fn follow_moved(&self, error: &ServerError, asked: Option<&Address>) -> bool {
        let (Self::Cluster(cluster), Some(asked)) = (self, asked) else { return false };
        let Some(Redirect::Moved { slot, to }) = Redirect::parse(error.bytes(), asked) else { return false };
        cluster.note_moved(slot, &to);
        true
    }

    /// Ends all connections, for good.
    pub(crate) fn close(&self) {
        match self {
            Self::Single(node) => node.close(),
            Self::Cluster(cluster) => cluster.close(),
            Self::Shards(shards) => shards.nodes().iter().for_each(|node| node.close()),
        }
    }

    /// What all nodes have done.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        match self {
            Self::Single(node) => node.add_stats(&mut stats),
            Self::Cluster(cluster) => cluster.add_stats(&mut stats),
            Self::Shards(shards) => shards.nodes().iter().for_each(|node| node.add_stats(&mut stats)),
        }
        stats
    }
}

impl Node {
    pub(crate) fn new(config: Config) -> Self {
        let core = Core::shared(config.clone());
        Self { address: None, side: Side::new(&core, &config, None), core, reader: OnceLock::new() }
    }

    /// A member of a cluster.
    pub(crate) fn member(config: Config, address: Address, cluster: Weak<Shared>) -> Self {
        let core = Core::shared(config.clone());
        let side = Side::new(&core, &config, Some(cluster));
        Self { address: Some(address), side, core, reader: OnceLock::new() }
    }

    /// Where it is: a node of a cluster is known by that.
    pub(crate) fn address(&self) -> Address {
        let none = || Address::new("localhost", 1).unwrap_or_else(|| unreachable!("it is an address"));
        self.address.clone().unwrap_or_else(none)
    }

    /// The connection that it answers on as a replica.
    pub(crate) fn reader(&self) -> &Arc<Core> {
        self.reader.get_or_init(|| {
            let mut config = self.core.config.clone();
            config.identity.is_readonly = true;
            let core = Core::shared(config);
            if self.core.is_closed() {
                core.close();
            }
            core
        })
    }

    /// Whether the last attempt to connect has failed. Another one is under way then.
    pub(crate) fn is_down(&self) -> bool {
        self.core.is_down() || self.reader.get().is_some_and(|core| core.is_down())
    }

    pub(crate) fn close(&self) {
        self.core.close();
        if let Some(reader) = self.reader.get() {
            reader.close();
        }
        self.side.close();
    }

    /// Adds what it has done.
    pub(crate) fn add_stats(&self, stats: &mut Stats) {
        let shared = || std::iter::once(&self.core).chain(self.reader.get());
        let second = || shared().filter_map(|core| core.second_made());
        stats.large += second().map(|core| core.counts().requests).sum::<u64>();
        for core in shared().chain(second()) {
            let (in_flight, callers) = core.in_flight();
            let counts = core.counts();
            stats.in_flight += in_flight;
            stats.callers += callers;
            stats.requests += counts.requests;
            stats.writes += counts.writes;
            stats.reads += counts.reads;
            stats.connections += counts.connections;
            stats.reconnects += counts.connections.saturating_sub(1);
        }
        let (lanes, lanes_free) = self.side.shelf.counts();
        stats.lanes += lanes;
        stats.lanes_free += lanes_free;
        stats.orphans += self.side.orphans.load(Ordering::Relaxed);
    }
}
