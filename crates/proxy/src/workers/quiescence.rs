//! What workers have left to do, published for the orders whose replies wait for that ([`crate::admin`]).

use crate::error_text;
use respool_connection::WorkerId;
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
    pub(crate) fn publish(&self, worker: WorkerId, left: WorkerOutstanding) {
        if let Some(own) = self.of_workers.get(worker.get()) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    fn outstanding(nodes: &[(&str, usize, usize)], clients: usize) -> WorkerOutstanding {
        let node = |(name, requests, closing): &(&str, usize, usize)| {
            ((*name).to_owned(), NodeOutstanding { requests: *requests, closing: *closing })
        };
        WorkerOutstanding { nodes: nodes.iter().map(node).collect(), clients }
    }

    #[test]
    fn what_workers_have_left_is_summed_by_node_and_condition() {
        let all = Quiescence::new(2);
        all.publish(WorkerId::new(0), outstanding(&[("a", 2, 0), ("b", 0, 1)], 3));
        all.publish(WorkerId::new(1), outstanding(&[("a", 5, 0)], 1));
        assert_eq!(all.left(Until::Answered, &[]), "a has not answered 7 requests");
        assert_eq!(all.left(Until::Closed, &[]), "1 connections to b are open");
        let clients = "4 clients have not been given all that they are owed";
        assert_eq!(all.left(Until::Flushed, &[]), format!("a has not answered 7 requests, {clients}"));
        let b = "b".to_owned();
        assert_eq!(all.left(Until::Answered, slice::from_ref(&b)), "", "the other node is not asked about");
    }

    #[test]
    fn a_worker_that_publishes_again_replaces_what_it_said() {
        let all = Quiescence::new(1);
        all.publish(WorkerId::new(0), outstanding(&[("a", 2, 0)], 1));
        all.publish(WorkerId::new(7), outstanding(&[("c", 9, 0)], 1));
        all.publish(WorkerId::new(0), outstanding(&[("a", 0, 0)], 0));
        assert_eq!(all.left(Until::Flushed, &[]), "");
    }

    #[test]
    fn of_many_nodes_the_first_are_named_and_the_rest_counted() {
        let names: Vec<String> = (0..error_text::LEFT_NODES_MAX + 3).map(|n| format!("n{n:04}")).collect();
        let nodes: Vec<(&str, usize, usize)> = names.iter().map(|name| (&**name, 1, 0)).collect();
        let all = Quiescence::new(1);
        all.publish(WorkerId::new(0), outstanding(&nodes, 0));
        let text = all.left(Until::Answered, &[]);
        assert!(text.ends_with(", and 3 more nodes"), "{text}");
        assert_eq!(text.matches("has not answered").count(), error_text::LEFT_NODES_MAX);
    }
}
