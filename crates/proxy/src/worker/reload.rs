//! Other settings and other nodes: every feature that holds something at a node takes them over.

use crate::config::Config;
use crate::ids::NodeId;
use crate::worker::Worker;
use respool_command::Execute;
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    /// Other settings hold from now on. What was queued for a node is answered by it, whatever is configured now; nothing
    /// that is read afterwards reaches a place that the settings do not name any more. Every feature that holds something
    /// there is told by its own walk: watched keys count as changed, blocked requests are taken back and sent again, and so on.
    pub(crate) fn adopt(&mut self, config: Arc<Config>) {
        let change = self.env.change_to(&config);
        if change.has_other_channels {
            self.subscriptions.end_push_lanes(&mut self.env);
        }
        let before = self.env.take_settings(config);
        self.engine_side().review_events();
        self.move_nodes(None, change.has_other_routes, change.has_other_ways);
        if change.has_other_channels {
            self.subscriptions.begin_push_lanes(&mut self.env);
        } else {
            self.subscriptions.take_channel_routes(&mut self.env, &before);
        }
        self.subscriptions.forget_names(&mut self.env);
        self.env.clients.mark_routed(&self.env.config);
        self.subscriptions.restart_all_noloop(&mut self.env);
        self.env.adopt_users(&mut self.subscriptions, None);
        self.tell_ended();
        self.env.review_modes();
        self.blocking.recall_blocked(&mut self.env, change.has_other_routes);
        self.env.settle_holding(&mut self.blocking);
        self.env.lanes.try_entries(&self.env.config, self.env.now);
        self.env.is_busy = true;
    }

    /// Takes over other nodes: those that are configured now, or the one whose name resolves to another address (`left`). Every
    /// feature that holds something at a node has a walk of its own.
    pub(crate) fn move_nodes(&mut self, left: Option<NodeId>, has_other_routes: bool, has_other_ways: bool) {
        // Nodes are about to get other numbers.
        self.tell_ended();
        let requests = &self.blocking.requests;
        let is_waited_at = |node: NodeId| requests.iter().any(|(_, blocked)| blocked.node == node);
        let moves = self.env.take_nodes(left, is_waited_at);
        self.blocking.move_blocked(&mut self.env, &moves);
        if left.is_none() {
            self.env.forget_orders_for_others();
            self.admin.adopt_orders(&mut self.env, &mut self.blocking);
        }
        self.functions.forget();
        if has_other_ways || !moves.is_none() {
            self.env.mark_overtaken();
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
            if self.env.has_followed(node) {
                self.leave_address(node);
            }
        }
    }

    /// A node is up at another address: lanes to the former one are left, as by a reload.
    pub(super) fn leave_address(&mut self, node: NodeId) {
        let Some(told) = self.env.begin_leaving_address(node) else { return };
        self.move_nodes(Some(node), false, false);
        if let Some(lane) = self.env.lanes.former_push_lane(node) {
            // It is dialled again at once, and the node is told everything.
            self.env.close_lane(lane);
            self.tell_ended();
            self.env.dial_again(lane);
        }
        self.subscriptions.leave_address(&mut self.env, node, told);
        self.blocking.recall_blocked(&mut self.env, false);
        self.env.is_busy = true;
    }
}
