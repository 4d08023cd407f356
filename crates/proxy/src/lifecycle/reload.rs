//! Other settings, while clients are being served: other nodes, pools, routes, limits.

use crate::config::{Config, NodeConfig};
use crate::env::Env;
use crate::ids::{ClientId, NodeId};
use crate::nodes::moves::Moves;
use crate::session::table::Clients;
use crate::session::{Flow, SessionFlags};
use respool_command::Execute;
use respool_connection::WorkerId;
use respool_route::{Pool, Topology};
use std::sync::Arc;

/// What a reload changes of the way of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingsChange {
    /// Channels are on other nodes, or placed on them in another way.
    pub(crate) has_other_channels: bool,
    /// Keys are placed or named in another way.
    pub(crate) has_other_routes: bool,
    /// Requests that are read from now on may go to where earlier ones have not gone.
    pub(crate) has_other_ways: bool,
}

impl<E: Execute> Env<E> {
    /// Requests of a client are under way to where its next ones may not go: they wait until those are answered, or a GET
    /// could overtake the SET before it. The way may lead to the same server under another name.
    pub(crate) fn settle_reload(&mut self, index: ClientId) -> Option<Flow> {
        if self.clients.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        self.clients.sessions.at_mut(index)?.flags.remove(SessionFlags::OVERTAKEN);
        None
    }

    /// What becomes another with these settings.
    pub(crate) fn change_to(&self, config: &Config) -> SettingsChange {
        let has_other_channels = self.engine.is_none() && has_other_places(&self.config, config);
        let are_plain = config.routes.are_plain() && self.config.routes.are_plain();
        let has_other_routes = self.config.topology != config.topology || self.config.routes != config.routes;
        SettingsChange {
            has_other_channels,
            has_other_routes,
            has_other_ways: has_other_channels || has_other_routes || !are_plain,
        }
    }

    /// Other settings hold from now on, for what is no feature's own. Returns those before.
    pub(crate) fn take_settings(&mut self, config: Arc<Config>) -> Arc<Config> {
        let has_other_proofs = self.config.integrity != config.integrity;
        let before = std::mem::replace(&mut self.config, config);
        self.clients.output_hard = self.config.budgets.client_output_hard;
        self.look_at_client_memory_again();
        if has_other_proofs {
            self.lanes.take_integrity(self.config.integrity, &self.shared.ledger);
        }
        if before.flush != self.config.flush {
            self.lanes.set_flush_policy(self.config.flush);
            self.clients.arrivals.watch_anew();
        }
        self.lanes.asks = self.number == WorkerId::FIRST && self.config.dials_ahead;
        if self.number == WorkerId::FIRST {
            self.shared.kinds.keep(|name| {
                let is_it = |node: &&NodeConfig| node.name == name;
                let find = |config: &Config| config.nodes.iter().find(is_it).map(|node| Arc::clone(&node.endpoint));
                find(&self.config).is_some_and(|now| find(&before) == Some(now))
            });
        }
        self.shared.name_nodes(self.config.nodes.iter().map(|node| node.name.clone()));
        self.route_hits.clear();
        self.seen.begin_countdown(self.config.seeing);
        if self.config.seeing.is_anything_seen() {
            self.lanes.all.iter_mut().for_each(|lane| lane.up.keep_records());
        }
        before
    }

    /// Takes over the nodes of the settings, or the one that has left an address.
    pub(crate) fn take_nodes(&mut self, left: Option<NodeId>, is_waited_at: impl Fn(NodeId) -> bool) -> Moves {
        let moves = self.lanes.take_nodes(&self.config, left, is_waited_at);
        moves.entered_anew.iter().for_each(|node| self.lanes.enter_anew(*node, self.now));
        moves
    }

    /// Has sessions whose requests are under way know that their next ones may not go to where those are.
    pub(crate) fn mark_overtaken(&mut self) {
        if self.engine.is_none() {
            let sessions = self.clients.sessions.iter_mut().map(|(_, session)| session);
            let unsettled = sessions.filter(|session| !session.down.is_settled());
            unsettled.for_each(|session| session.flags.add(SessionFlags::OVERTAKEN));
        }
    }
}

impl Clients {
    /// Has sessions know whether there are routes.
    pub(crate) fn mark_routed(&mut self, config: &Config) {
        let is_plain = config.routes.are_plain();
        self.for_each_session(|flags| {
            if is_plain { flags.remove(SessionFlags::ROUTED) } else { flags.add(SessionFlags::ROUTED) }
        });
    }

    /// Changes the rare states of all sessions.
    pub(crate) fn for_each_session(&mut self, change: impl Fn(&mut SessionFlags)) {
        self.sessions.iter_mut().for_each(|(_, session)| change(&mut session.flags));
    }
}

/// Whether channels are on other nodes, elsewhere, or placed on them in another way.
fn has_other_places(old: &Config, new: &Config) -> bool {
    let listened_to = |config: &Config| config.nodes.len().min(config.nodes_listened_to());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{env_with_node, roomy_config};

    #[test]
    fn the_same_settings_change_no_way() {
        let env = env_with_node();
        let change = env.change_to(&env.config);
        assert!(!change.has_other_channels && !change.has_other_routes && !change.has_other_ways);
    }

    #[test]
    fn another_number_of_nodes_changes_the_way_of_keys() {
        let env = env_with_node();
        let nodes = ["n", "m"].map(respool_route::Node::new).to_vec();
        let topology = Arc::new(Topology::new(respool_route::Scheme::default(), nodes).expect("two nodes"));
        let config = Config { topology, ..roomy_config() };
        let change = env.change_to(&config);
        assert!(change.has_other_routes && change.has_other_ways);
    }

    #[test]
    fn only_a_client_that_is_owed_something_waits_after_a_reload() {
        let mut env = env_with_node();
        let [settled, owed] = [(), ()].map(|()| env.test_client());
        let asker = env.test_asker(owed);
        env.mark_overtaken();
        assert!(!env.test_session(settled).flags.has(SessionFlags::OVERTAKEN));
        assert_eq!(env.settle_reload(owed), Some(Flow::Again));
        env.clients.feed(asker.session, asker.seq, b"+OK\r\n", true);
        assert_eq!(env.settle_reload(owed), None);
        assert!(!env.test_session(owed).flags.has(SessionFlags::OVERTAKEN));
    }
}
