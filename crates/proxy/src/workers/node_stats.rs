//! What workers tell each other of their connections to nodes, so that each of them knows of all.
//!
//! Each worker writes down its own stats when it looks at its timers, and reads those of the others when it is asked.

use crate::ids::PerNode;
use std::sync::{Mutex, PoisonError};

/// One worker's connections to one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeStats {
    pub(crate) connections: usize,
    pub(crate) outstanding: usize,
    pub(crate) queued_bytes: usize,
    pub(crate) round_trip_us: u64,
    /// It failed last, and has not been reached since.
    pub(crate) is_down: bool,
    /// It refuses the proxy's own credentials, and users have node credentials of their own.
    pub(crate) is_there_for_others: bool,
}

impl NodeStats {
    /// Both workers' together.
    pub(crate) fn joined(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            outstanding: self.outstanding + other.outstanding,
            queued_bytes: self.queued_bytes + other.queued_bytes,
            round_trip_us: self.round_trip_us.max(other.round_trip_us),
            is_down: self.is_down || other.is_down,
            is_there_for_others: self.is_there_for_others || other.is_there_for_others,
        }
    }

    /// In one word: some worker reaches it, none has tried, or it failed the worker that tried last.
    pub(crate) fn state(self) -> &'static str {
        match (self.connections > 0, self.is_down) {
            (true, _) => "up",
            (false, false) => "idle",
            (false, true) => "down",
        }
    }
}

/// The stats of one worker, node by node.
pub(crate) type WorkerNodeStats = Mutex<PerNode<NodeStats>>;

/// The stats of all workers, node by node, as each has written them down last.
pub(crate) fn sums(of_workers: &[WorkerNodeStats], nodes: usize) -> Vec<NodeStats> {
    let mut sums = vec![NodeStats::default(); nodes];
    for of_worker in of_workers {
        let of_worker = of_worker.lock().unwrap_or_else(PoisonError::into_inner);
        sums.iter_mut().zip(of_worker.iter()).for_each(|(sum, stats)| *sum = sum.joined(*stats));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_that_reaches_a_node_is_enough() {
        let up = NodeStats { connections: 2, round_trip_us: 50, ..NodeStats::default() };
        let down = NodeStats { is_down: true, round_trip_us: 9, ..NodeStats::default() };
        assert_eq!((up.joined(down).state(), up.joined(down).round_trip_us), ("up", 50));
        assert_eq!(NodeStats::default().joined(down).state(), "down");
        assert_eq!(NodeStats::default().state(), "idle");
    }
}
