//! Other settings and other nodes: every feature that holds something at a node takes them over.

use crate::config::{Config, NodeConfig};
use crate::env::Env;
use crate::hooks::Event;
use crate::lifecycle::reload::has_other_places;
use crate::nodes::address_change::proves;
use crate::nodes::id::NodeId;
use crate::pool::table::LaneId;
use crate::pool::{Lane, LaneUse};
use crate::session::SessionFlags;
use crate::session::id::ClientHandle;
use crate::worker::Worker;
use respool_command::Execute;
use respool_connection::Phase;
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

    /// Leaves the former addresses of nodes that are up at another one, and dials the others.
    pub(crate) fn follow_names(&mut self) {
        for node in self.env.config.node_ids() {
            if self.env.lanes.nodes[node].leads_away_us.is_none() || self.env.drain_until_us.is_some() {
                continue;
            }
            if self.env.lanes.all.iter().any(|lane| proves(lane, node)) {
                self.leave_address(node);
            } else {
                self.env.try_address(node);
            }
        }
    }

    /// A lane is ready. This ends the trial of another address, if one is under way.
    pub(crate) fn note_address(&mut self, lane: LaneId) {
        let this = &self.env.lanes[lane];
        let is_gone = !self.env.config.has_node(this.node);
        if is_gone || self.env.lanes.nodes[this.node].leads_away_us.is_none() || this.is_elsewhere {
            return;
        }
        let (node, at, began_us) = (this.node, this.at.clone(), this.dial_began_us);
        let is_former = |other: &Lane| other.node == node && other.is_elsewhere && at.is_some() && other.at == at;
        if self.env.lanes.all.iter().any(is_former) {
            if began_us < self.env.lanes.nodes[node].renamed_us {
                // Its name was resolved before.
                self.env.lanes[lane].is_elsewhere = true;
                return;
            }
            // The name resolves to the former address again.
            let is_back = |other: &&mut Lane| is_former(other);
            self.env.lanes.all.iter_mut().filter(is_back).for_each(|other| other.is_elsewhere = false);
        }
        self.leave_address(node);
    }

    /// A node is up at another address: lanes to the former one are left, as by a reload.
    fn leave_address(&mut self, node: NodeId) {
        let known = &mut self.env.lanes.nodes[node];
        (known.leads_away_us, known.renamed_us) = (None, self.env.now.mono_us);
        for lane in self.env.lanes.all.ids() {
            let this = &self.env.lanes[lane];
            if this.node == node
                && !this.is_retired
                && this.is_elsewhere
                && matches!(this.up.phase(), Phase::Shaking(_))
            {
                self.env.dial_anew(lane);
            }
        }
        let is_left = |lane: &Lane| lane.node == node && !lane.is_retired && lane.is_elsewhere;
        if self.env.engine.is_some() || !self.env.lanes.all.iter().any(is_left) {
            return;
        }
        // Clients that the node sends invalidations on connections of their own.
        let is_told = |lane: &&Lane| lane.purpose == LaneUse::Listen || lane.up.identity().tracking.is_some();
        let told =
            self.env.lanes.all.iter().filter(|lane| is_left(lane)).filter(is_told).filter_map(|lane| lane.reader);
        let mut told: Vec<ClientHandle> = told.collect();
        told.sort_unstable();
        told.dedup();
        let connections = self.env.lanes.all.iter().filter(|lane| is_left(lane)).count();
        let name = self.env.lanes.nodes[node].name.clone();
        self.env.shared.hooks.tell(&Event::AddressLeft { node: name, worker: self.env.number, connections });
        self.env.lanes.nodes[node].health.forget_refusals();
        self.move_nodes(Some(node), false, false);
        let is_push = |lane: &Lane| lane.purpose == LaneUse::Push && is_left(lane);
        if let Some(lane) = self.env.lanes.all.position(is_push) {
            // It is dialled again at once, and the node is told everything.
            self.env.close_lane(lane);
            self.tell_ended();
            self.env.dial_again(lane);
        }
        // What was read where the name led may be other values now, wherever the node tells of changes from.
        let Self { env: Env { config, clients, .. }, subscriptions, .. } = self;
        subscriptions.invalidate_node(config, node, clients);
        for client in told {
            if self.env.clients.sessions.get(client).is_some() && self.env.has_noloop_lanes(client.index) {
                self.subscriptions.restart_noloop(&mut self.env, client.index);
            }
        }
        self.blocking.recall_blocked(&mut self.env, false);
        self.env.is_busy = true;
    }
}
