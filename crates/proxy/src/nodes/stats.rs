//! What this worker tells the others of its connections to nodes, and what it does so that their state is known.

use crate::config::Config;
use crate::env::Env;
use crate::ids::{LaneKeyId, PerNode};
use crate::pool::Lanes;
use crate::workers::node_stats::{NodeStats, sums};
use crate::workers::shared::Shared;
use respool_command::Execute;
use respool_connection::{Phase, WorkerId};
use std::sync::PoisonError;

impl Lanes {
    /// What there is of each node that is configured: the first so many.
    fn stats(&self, configured: usize) -> PerNode<NodeStats> {
        let mut stats = PerNode::new(self.nodes.iter().take(configured).map(|node| NodeStats {
            is_down: node.health.is_down(),
            is_there_for_others: !node.health.is_down() && node.health.is_key_on_trial(self.state_of(LaneKeyId::PLAIN)),
            ..NodeStats::default()
        }));
        for lane in self.all.iter().filter(|lane| !lane.is_retired) {
            let Some(stats) = self.namesake_of(lane.node).and_then(|node| stats.get_mut(node)) else { continue };
            // Of a former address is what is still to be done there.
            let is_former = self.nodes[lane.node].is_removed;
            *stats = stats.joined(NodeStats {
                connections: usize::from(lane.up.is_ready() && !is_former),
                outstanding: lane.unanswered(),
                queued_bytes: lane.up.queued_bytes(),
                round_trip_us: if is_former { 0 } else { lane.up.round_trip_us() },
                ..NodeStats::default()
            });
        }
        stats
    }
}

/// Writes the stats of the worker with this number down.
pub(crate) fn note_stats(config: &Config, lanes: &Lanes, shared: &Shared, number: WorkerId) {
    if let Some(own) = shared.stats.get(number.get()) {
        *own.lock().unwrap_or_else(PoisonError::into_inner) = lanes.stats(config.nodes.len());
    }
}

/// The stats of all workers, node by node: this one's of now, the others' of their last look.
pub(crate) fn stats_of_all(config: &Config, lanes: &Lanes, shared: &Shared, number: WorkerId) -> Vec<NodeStats> {
    note_stats(config, lanes, shared, number);
    sums(&shared.stats, config.nodes.len())
}

impl<E: Execute> Env<E> {
    /// Dials the nodes that have no connection yet, so that their state is known. A node that refuses the proxy's own
    /// credentials, and may accept those of users, is left alone.
    pub(crate) fn dial_ahead(&mut self) {
        if !self.config.dials_ahead || self.number != WorkerId::FIRST || self.drain_until_us.is_some() {
            return;
        }
        for node in self.config.node_ids() {
            if self.lanes.nodes[node].health.is_key_on_trial(self.lanes.state_of(LaneKeyId::PLAIN)) {
                continue;
            }
            let lane = self.lanes.lane(&self.config, node, LaneKeyId::PLAIN);
            if matches!(self.lanes[lane].up.phase(), Phase::Idle) {
                // A node that failed a moment ago is not dialled, and tried again at the next check.
                let _ = self.lanes.prepare(lane, &self.config, self.now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{env_of, env_with_node, roomy_config};

    #[test]
    fn only_the_first_worker_dials_nodes_ahead() {
        for (dials_ahead, drains, is_dialled) in [(true, false, true), (false, false, false), (true, true, false)] {
            let mut env = env_of(Config { dials_ahead, ..roomy_config() }, None);
            env.drain_until_us = drains.then_some(u64::MAX);
            env.dial_ahead();
            assert_eq!(env.lanes.all.iter().any(|lane| lane.wants_dial), is_dialled, "{dials_ahead} {drains}");
        }
    }

    #[test]
    fn stats_are_written_down_for_the_other_workers() {
        let env = env_with_node();
        assert_eq!(stats_of_all(&env.config, &env.lanes, &env.shared, WorkerId::FIRST).len(), 1);
    }
}
