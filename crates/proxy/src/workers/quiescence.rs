//! What workers have left to do, published for the orders whose replies wait for that ([`crate::admin`]).

use crate::error_text;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, PoisonError};

/// The condition that the reply waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Nodes have answered every request that they were sent.
    Answered,
    /// The same, and the replies have been written to the clients.
    Flushed,
    /// Connections marked for closing are closed.
    Closed,
}

/// What one worker has left with one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeOutstanding {
    /// Requests sent to the node without a reply, and requests queued for it.
    pub(crate) requests: usize,
    /// Connections marked for closing, or whose successors are being dialled.
    pub(crate) closing: usize,
}

/// What one worker has left, by the names of nodes, and clients with replies that have not been written.
#[derive(Debug, Default)]
pub(crate) struct WorkerOutstanding {
    pub(crate) nodes: BTreeMap<String, NodeOutstanding>,
    pub(crate) clients: usize,
}

/// What all workers have left.
#[derive(Debug)]
pub(crate) struct Quiescence {
    /// How many operators wait.
    pub(crate) waits: AtomicUsize,
    of_workers: Vec<Mutex<WorkerOutstanding>>,
}

impl Quiescence {
    pub(crate) fn new(workers: usize) -> Self {
        Self { waits: AtomicUsize::new(0), of_workers: (0..workers).map(|_| Mutex::default()).collect() }
    }

    /// A worker publishes what it has left.
    pub(crate) fn publish(&self, worker: usize, left: WorkerOutstanding) {
        if let Some(own) = self.of_workers.get(worker) {
            *own.lock().unwrap_or_else(PoisonError::into_inner) = left;
        }
    }

    /// The text that names what is left with all nodes, or with those of these names; empty if nothing is.
    pub(crate) fn left(&self, until: Until, names: &[String]) -> String {
        let (mut nodes, mut clients): (BTreeMap<String, usize>, usize) = Default::default();
        for of_worker in &self.of_workers {
            let of_worker = of_worker.lock().unwrap_or_else(PoisonError::into_inner);
            clients += of_worker.clients;
            for (name, left) in of_worker.nodes.iter().filter(|(name, _)| names.is_empty() || names.contains(name)) {
                let count = if until == Until::Closed { left.closing } else { left.requests };
                if count > 0 {
                    *nodes.entry(name.clone()).or_default() += count;
                }
            }
        }
        let mut text = String::new();
        for (name, count) in nodes.iter().take(error_text::LEFT_NODES_MAX) {
            let _ = match until {
                Until::Closed => write!(text, ", {count} connections to {name} are open"),
                Until::Answered | Until::Flushed => write!(text, ", {name} has not answered {count} requests"),
            };
        }
        if nodes.len() > error_text::LEFT_NODES_MAX {
            let _ = write!(text, ", and {} more nodes", nodes.len() - error_text::LEFT_NODES_MAX);
        }
        if until == Until::Flushed && clients > 0 {
            let _ = write!(text, ", {clients} clients have not been given all that they are owed");
        }
        text.split_off(text.len().min(2))
    }
}
