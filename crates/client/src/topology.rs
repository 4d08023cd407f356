//! What the address of a client leads to, and the way of a request through it.
//!
//! A client holds one [`Topology`]. What differs between kinds of deployment is decided here and in the module of the kind; calls,
//! lanes and subscriptions see a node.

use crate::Config;
use crate::client::Stats;
use crate::core::Core;
use crate::lanes::Side;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a client leads to. Copies share its connections.
#[derive(Clone, Debug)]
pub(crate) enum Topology {
    /// One server.
    Single(Arc<Node>),
}

/// One server: its shared connection, and those beside it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) core: Arc<Core>,
    pub(crate) side: Arc<Side>,
}

/// Where a request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via<'c> {
    /// On this connection, and beside it what needs one of its own.
    Node(&'c Arc<Core>, &'c Arc<Side>),
}

impl Topology {
    /// What these settings lead to. Nothing is dialled yet.
    pub(crate) fn new(config: Config) -> Self {
        Self::Single(Arc::new(Node::new(config)))
    }

    /// The way of a request.
    #[inline]
    pub(crate) fn via(&self) -> Via<'_> {
        match self {
            Self::Single(node) => Via::Node(&node.core, &node.side),
        }
    }

    /// The node that is asked for what concerns a connection and no key.
    pub(crate) fn side(&self) -> &Arc<Side> {
        match self {
            Self::Single(node) => &node.side,
        }
    }

    /// How long a call may take unless it says otherwise.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        match self {
            Self::Single(node) => node.core.config.deadline,
        }
    }

    /// Ends all connections, for good.
    pub(crate) fn close(&self) {
        match self {
            Self::Single(node) => node.close(),
        }
    }

    /// What all nodes have done.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        match self {
            Self::Single(node) => node.add_stats(&mut stats),
        }
        stats
    }
}

impl Node {
    pub(crate) fn new(config: Config) -> Self {
        let core = Core::new(config.clone());
        Self { side: Side::new(&core, &config), core }
    }

    pub(crate) fn close(&self) {
        self.core.close();
        self.side.close();
    }

    /// Adds what it has done.
    pub(crate) fn add_stats(&self, stats: &mut Stats) {
        let (in_flight, callers) = self.core.in_flight();
        let counts = self.core.counts();
        let (lanes, lanes_free) = self.side.shelf.counts();
        stats.in_flight += in_flight;
        stats.callers += callers;
        stats.requests += counts.requests;
        stats.writes += counts.writes;
        stats.reads += counts.reads;
        stats.connections += counts.connections;
        stats.lanes += lanes;
        stats.lanes_free += lanes_free;
        stats.orphans += self.side.orphans.load(Ordering::Relaxed);
    }
}
