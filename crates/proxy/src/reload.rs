//! Other settings, while clients are being served: other nodes, pools, routes, limits.

use crate::config::Config;
use crate::session::Special;
use crate::subscriptions::nodes_listened_to;
use crate::worker::Worker;
use respool_command::Execute;
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    /// Other settings hold from now on. No client notices: what was queued for a node is answered by it, whatever is
    /// configured now.
    pub(crate) fn adopt(&mut self, config: Arc<Config>) {
        let is_plain = config.routes.are_plain();
        let has_other_channels = self.engine.is_none() && has_other_own_nodes(&self.config, &config);
        if has_other_channels {
            self.end_push_lanes();
        }
        let has_other_proofs = self.config.integrity != config.integrity;
        self.config = config;
        if has_other_proofs {
            self.lanes.take_integrity(self.config.integrity, &self.shared.ledger);
        }
        self.shared.name_nodes(self.config.nodes.iter().map(|node| node.name.clone()));
        self.route_hits.clear();
        self.seen.begin_countdown(self.config.seeing);
        if self.config.seeing.is_anything_seen() {
            self.lanes.all.iter_mut().for_each(|lane| lane.up.keep_records());
        }
        let moved = self.lanes.take_nodes(&self.config);
        self.move_pins(&moved);
        self.move_waiters(&moved);
        self.move_dedicated(&moved);
        self.clients.move_large(&moved);
        self.tasks.move_nodes(&moved);
        if has_other_channels {
            self.begin_push_lanes();
        }
        self.forget_names();
        self.for_each_session(
            |special| {
                if is_plain { special.remove(Special::ROUTED) } else { special.add(Special::ROUTED) }
            },
        );
        self.restart_all_apart();
        self.adopt_users(None);
        self.review_modes();
        self.settle_holding();
        self.is_busy = true;
    }

    /// Changes the rare states of all sessions.
    pub(crate) fn for_each_session(&mut self, change: impl Fn(&mut Special)) {
        let indexes: Vec<u32> = self.clients.sessions.iter().map(|(index, _)| index).collect();
        for index in indexes {
            if let Some(session) = self.clients.sessions.at_mut(index) {
                change(&mut session.special);
            }
        }
    }
}

/// Whether the pool without a name, or any under routes, has other nodes, elsewhere, or places keys on them in another way.
fn has_other_own_nodes(old: &Config, new: &Config) -> bool {
    let nodes = |config: &Config| {
        let own = config.nodes.iter().take(nodes_listened_to(config));
        own.map(|node| (node.name.clone(), Arc::clone(&node.endpoint))).collect::<Vec<_>>()
    };
    let weights = |config: &Config| config.topology.nodes().iter().map(|node| node.weight).collect::<Vec<_>>();
    nodes(old) != nodes(new) || weights(old) != weights(new) || old.topology.scheme() != new.topology.scheme()
}
