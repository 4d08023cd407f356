//! Other nodes or pools that channels live in: every node is told anew what it has to send.
//!
//! A subscription is never given up for it; what is published while connections are made anew reaches no client through the
//! nodes that changed, as when a node returns.

use crate::config::Config;
use crate::env::Env;
use crate::error_text;
use crate::ids::PerNode;
use crate::pool::LaneUse;
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use respool_command::Execute;
use respool_connection::push::node_ledger::NodeLedger;

impl<T: TrackedKeys> Subscriptions<T> {
    /// Ends all push lanes, because channels will be elsewhere. A client that waits for an acknowledgement is told to try again.
    pub(crate) fn end_push_lanes(&mut self, env: &mut Env<impl Execute>) {
        for node in self.lanes.ids() {
            self.forget_push_lane(env, node);
        }
        for lane in env.lanes.all.ids() {
            let ended = &env.lanes[lane];
            if ended.purpose == LaneUse::PushSuccessor && !ended.is_retired {
                env.close_lane(lane);
                self.hear_ended(env);
            }
        }
        for node in self.books.ids() {
            let (book, registries) = self.book(node);
            book.lose(registries);
            for pending in self.books[node].take_pending() {
                // At once: channels are about to get other numbers.
                self.fail(pending, &error_text::NODES_CHANGED.into(), &mut env.clients, &env.config);
            }
        }
    }

    /// Other routes to the same pools may hold.
    pub(crate) fn take_channel_routes(&mut self, env: &mut Env<impl Execute>, before: &Config) {
        let Env { config, clients, .. } = env;
        if !self.has_ways() {
            return;
        }
        self.take_routes(before, config, &error_text::NODES_CHANGED.into(), clients);
        for node in self.lanes.ids() {
            if self.lanes[node].is_none() && self.is_push_lane_wanted(env, node) {
                // A node that is down is dialled again when its pause is over.
                let _ = self.prepare_push_lane(env, node);
            }
        }
        self.account_subscriptions(env);
    }

    /// Tells the nodes that there are now what they have to send.
    pub(crate) fn begin_push_lanes(&mut self, env: &mut Env<impl Execute>) {
        let nodes = env.config.nodes_listened_to();
        self.books = PerNode::new((0..nodes).map(|_| NodeLedger::default()));
        self.lanes = PerNode::new((0..nodes).map(|_| None));
        self.begin_all(&env.config, &mut env.clients);
        for node in self.books.ids() {
            if self.is_push_lane_wanted(env, node) {
                // A node that is down is dialled again when its pause is over, by requests for it.
                let _ = self.prepare_push_lane(env, node);
            }
        }
    }
}
