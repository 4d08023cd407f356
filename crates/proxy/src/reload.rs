//! Other settings, while clients are being served: other nodes, pools, routes, limits.

use crate::config::Config;
use crate::session::{Flow, Special};
use crate::subscriptions::nodes_listened_to;
use crate::worker::Worker;
use respool_command::Execute;
use respool_route::{Pool, Topology};
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    /// Other settings hold from now on. No client notices: what was queued for a node is answered by it, whatever is
    /// configured now.
    pub(crate) fn adopt(&mut self, config: Arc<Config>) {
        let is_plain = config.routes.are_plain();
        let has_other_channels = self.engine.is_none() && has_other_places(&self.config, &config);
        if has_other_channels {
            self.end_push_lanes();
        }
        let are_plain = is_plain && self.config.routes.are_plain();
        let has_other_ways = has_other_channels || self.engine.is_none() && !are_plain;
        let has_other_proofs = self.config.integrity != config.integrity;
        let before = std::mem::replace(&mut self.config, config);
        if has_other_proofs {
            self.lanes.take_integrity(self.config.integrity, &self.shared.ledger);
        }
        self.shared.name_nodes(self.config.nodes.iter().map(|node| node.name.clone()));
        self.route_hits.clear();
        self.seen.begin_countdown(self.config.seeing);
        if self.config.seeing.is_anything_seen() {
            self.lanes.all.iter_mut().for_each(|lane| lane.up.keep_records());
        }
        if has_other_ways {
            self.clients.sessions.iter_mut().filter(|(_, session)| !session.down.is_settled()).for_each(
                |(_, session)| {
                    session.special.add(Special::OVERTAKEN);
                },
            );
        }
        let moved = self.lanes.take_nodes(&self.config);
        self.move_pins(&moved);
        self.move_waiters(&moved);
        self.move_dedicated(&moved);
        self.clients.move_large(&moved);
        self.tasks.move_nodes(&moved);
        if has_other_channels {
            self.begin_push_lanes();
        } else {
            self.take_channel_routes(&before);
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

    /// Requests of a client are under way to where its next ones may not go: they wait until those are answered, or a GET
    /// could overtake the SET before it. The way may lead to the same server under another name.
    pub(crate) fn settle_reload(&mut self, index: u32) -> Option<Flow> {
        if self.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        self.clients.sessions.at_mut(index)?.special.remove(Special::OVERTAKEN);
        None
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

/// Whether channels are on other nodes, elsewhere, or placed on them in another way.
fn has_other_places(old: &Config, new: &Config) -> bool {
    let nodes = |config: &Config| {
        let own = config.nodes.iter().take(nodes_listened_to(config));
        own.map(|node| (node.name.clone(), Arc::clone(&node.endpoint))).collect::<Vec<_>>()
    };
    let weights = |topology: &Topology| topology.nodes().iter().map(|node| node.weight).collect::<Vec<_>>();
    let is_alike = |old: &Topology, new: &Topology| weights(old) == weights(new) && old.scheme() == new.scheme();
    let are_alike = |old: &[Pool], new: &[Pool]| {
        let mut both = old.iter().zip(new);
        old.len() == new.len()
            && both.all(|(old, new)| old.first == new.first && is_alike(&old.topology, &new.topology))
    };
    let is_routed = [old, new].map(|config| !config.routes.keep_channels());
    nodes(old) != nodes(new)
        || is_routed[0] != is_routed[1]
        || !is_alike(&old.topology, &new.topology)
        || is_routed[1] && !are_alike(old.routes.pools(), new.routes.pools())
}
