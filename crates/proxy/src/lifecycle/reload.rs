//! Other settings, while clients are being served: other nodes, pools, routes, limits.

use crate::config::{Config, NodeConfig};
use crate::env::Env;
use crate::nodes::id::NodeId;
use crate::pubsub::nodes_listened_to;
use crate::session::id::ClientId;
use crate::session::{Flow, SessionFlags};
use crate::worker::Worker;
use respool_command::Execute;
use respool_route::{Pool, Topology};
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    /// Other settings hold from now on. What was queued for a node is answered by it, whatever is configured now; nothing
    /// that is read afterwards reaches a place that the settings do not name any more. Every feature that holds something
    /// there is told by its own walk: watched keys count as changed, who waits is asked back and asks again, and so on.
    pub(crate) fn adopt(&mut self, config: Arc<Config>) {
        let is_plain = config.routes.are_plain();
        let has_other_channels = self.env.engine.is_none() && has_other_places(&self.env.config, &config);
        if has_other_channels {
            self.subscriptions.end_push_lanes(&mut self.env);
        }
        let are_plain = is_plain && self.env.config.routes.are_plain();
        // Keys are placed or named in another way.
        let has_other_routes = self.env.config.topology != config.topology || self.env.config.routes != config.routes;
        let has_other_proofs = self.env.config.integrity != config.integrity;
        let before = std::mem::replace(&mut self.env.config, config);
        self.env.clients.output_hard = self.env.config.budgets.client_output_hard;
        self.review_events();
        if has_other_proofs {
            self.env.lanes.take_integrity(self.env.config.integrity, &self.env.shared.ledger);
        }
        self.env.lanes.asks = self.env.number == 0 && self.env.config.dials_ahead;
        let is_known = |name: &str| {
            let is_it = |node: &&NodeConfig| node.name == name;
            let find = |config: &Config| config.nodes.iter().find(is_it).map(|node| Arc::clone(&node.endpoint));
            find(&self.env.config).is_some_and(|now| find(&before) == Some(now))
        };
        if self.env.number == 0 {
            self.env.shared.keep_kinds(is_known);
        }
        self.env.shared.name_nodes(self.env.config.nodes.iter().map(|node| node.name.clone()));
        self.env.route_hits.clear();
        self.env.seen.begin_countdown(self.env.config.seeing);
        if self.env.config.seeing.is_anything_seen() {
            self.env.lanes.all.iter_mut().for_each(|lane| lane.up.keep_records());
        }
        let has_other_ways = has_other_channels || has_other_routes || !are_plain;
        self.move_nodes(None, has_other_routes, has_other_ways);
        if has_other_channels {
            self.subscriptions.begin_push_lanes(&mut self.env);
        } else {
            self.subscriptions.take_channel_routes(&mut self.env, &before);
        }
        self.subscriptions.forget_names(&mut self.env);
        self.env.for_each_session(|flags| {
            if is_plain { flags.remove(SessionFlags::ROUTED) } else { flags.add(SessionFlags::ROUTED) }
        });
        self.subscriptions.restart_all_noloop(&mut self.env);
        self.env.adopt_users(&mut self.subscriptions, None);
        self.tell_ended();
        self.env.review_modes();
        self.blocking.recall_blocked(&mut self.env, has_other_routes);
        self.settle_holding();
        self.env.try_entries();
        self.env.is_busy = true;
    }

    /// Takes over other nodes: those that are configured now, or the one whose name resolves to another address (`left`). Every
    /// feature that holds something at a node has a walk of its own.
    pub(crate) fn move_nodes(&mut self, left: Option<NodeId>, has_other_routes: bool, has_other_ways: bool) {
        // Nodes are about to get other numbers.
        self.tell_ended();
        let requests = &self.blocking.requests;
        let is_waited_at = |node: NodeId| requests.iter().any(|(_, blocked)| blocked.node == node);
        let moves = self.env.lanes.take_nodes(&self.env.config, left, is_waited_at);
        let now = self.env.now;
        moves.entered_anew.iter().for_each(|node| self.env.lanes.enter_anew(*node, now));
        self.blocking.move_blocked(&mut self.env, &moves);
        if left.is_none() {
            self.keep_orders();
        }
        self.functions.forget();
        if (has_other_ways || !moves.is_none()) && self.env.engine.is_none() {
            self.env.clients.sessions.iter_mut().filter(|(_, session)| !session.down.is_settled()).for_each(
                |(_, session)| {
                    session.flags.add(SessionFlags::OVERTAKEN);
                },
            );
        }
        self.env.move_pins(&moves, has_other_routes);
        self.dedicated.handle_nodes_changed(&mut self.env, &moves);
        self.env.move_large(&moves);
        self.blocking.returns.move_to(&moves);
        self.env.tasks.move_nodes(&moves, has_other_routes);
    }
}

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
fn has_other_places(old: &Config, new: &Config) -> bool {
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
