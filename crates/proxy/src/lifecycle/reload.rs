//! Other settings, while clients are being served: other nodes, pools, routes, limits.

use crate::config::{Config, NodeConfig};
use crate::env::Env;
use crate::pubsub::nodes_listened_to;
use crate::session::id::ClientId;
use crate::session::{Flow, SessionFlags};
use respool_command::Execute;
use respool_route::{Pool, Topology};
use std::sync::Arc;

impl<E: Execute> Env<E> {
    /// Requests of a client are under way to where its next ones may not go: they wait until those are answered, or a GET
    /// could overtake the SET before it. The way may lead to the same server under another name.
    pub(crate) fn settle_reload(&mut self, index: ClientId) -> Option<Flow> {
        if self.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        self.clients.sessions.at_mut(index)?.flags.remove(SessionFlags::OVERTAKEN);
        None
    }

    /// Changes the rare states of all sessions.
    pub(crate) fn for_each_session(&mut self, change: impl Fn(&mut SessionFlags)) {
        let indexes: Vec<ClientId> = self.clients.sessions.iter().map(|(index, _)| index).collect();
        for index in indexes {
            if let Some(session) = self.clients.sessions.at_mut(index) {
                change(&mut session.flags);
            }
        }
    }
}

/// Whether channels are on other nodes, elsewhere, or placed on them in another way.
pub(crate) fn has_other_places(old: &Config, new: &Config) -> bool {
    let listened_to = |config: &Config| config.nodes.len().min(nodes_listened_to(config));
    let [old_nodes, new_nodes] = [old, new].map(|config| config.nodes.iter().take(listened_to(config)));
    let place = |node: &NodeConfig| (node.name.clone(), Arc::clone(&node.endpoint));
    let weights = |topology: &Topology| topology.nodes().iter().map(|node| node.weight).collect::<Vec<_>>();
    let is_alike = |old: &Topology, new: &Topology| weights(old) == weights(new) && old.scheme() == new.scheme();
    let are_alike = |old: &[Pool], new: &[Pool]| {
        let mut both = old.iter().zip(new);
        old.len() == new.len()
            && both.all(|(old, new)| old.first == new.first && is_alike(&old.topology, &new.topology))
    };
    let is_routed = [old, new].map(|config| !config.routes.keep_channels());
    !old_nodes.map(place).eq(new_nodes.map(place))
        || is_routed[0] != is_routed[1]
        || !is_alike(&old.topology, &new.topology)
        || is_routed[1] && !are_alike(old.routes.pools(), new.routes.pools())
}
