//! Other nodes or pools that channels live in: every node is told anew what it has to send.
//!
//! A subscription is never given up for it; what is published while connections are made anew reaches no client through the
//! nodes that changed, as when a node returns.

use super::NodeLedger;
use crate::config::Config;
use crate::env::Env;
use crate::error_text;
use crate::nodes::id::PerNode;
use crate::pool::LaneUse;
use crate::worker::Worker;
use respool_command::Execute;

impl<E: Execute> Worker<E> {
    /// Ends all push lanes, because channels will be elsewhere. A client that waits for an acknowledgement is told to try again.
    pub(crate) fn end_push_lanes(&mut self) {
        for node in self.subscriptions.lanes.ids() {
            self.forget_push_lane(node);
        }
        for lane in self.env.lanes.all.ids() {
            let this = &self.env.lanes[lane];
            if this.purpose == LaneUse::PushSuccessor && !this.is_retired {
                self.env.close_lane(lane);
                self.tell_ended();
            }
        }
        for node in self.subscriptions.books.ids() {
            let this = &mut self.subscriptions;
            let (book, registries) = this.book(node);
            book.lose(registries);
            for pending in this.books[node].take_pending() {
                // At once: channels are about to get other numbers.
                this.fail(pending, &error_text::nodes_changed(), &mut self.env.clients, &self.env.config);
            }
        }
    }

    /// Other routes to the same pools may hold.
    pub(crate) fn take_channel_routes(&mut self, before: &Config) {
        let Self { env: Env { config, clients, .. }, subscriptions, .. } = self;
        if !subscriptions.has_ways() {
            return;
        }
        subscriptions.take_routes(before, config, &error_text::nodes_changed(), clients);
        for node in self.subscriptions.lanes.ids() {
            if self.subscriptions.lanes[node].is_none() && self.is_push_lane_wanted(node) {
                // A node that is down is dialled again when its pause is over.
                let _ = self.prepare_push_lane(node);
            }
        }
        self.account_subscriptions();
    }

    /// Tells the nodes that there are now what they have to send.
    pub(crate) fn begin_push_lanes(&mut self) {
        let nodes = super::nodes_listened_to(&self.env.config);
        let this = &mut self.subscriptions;
        this.books = PerNode::new((0..nodes).map(|_| NodeLedger::default()));
        this.lanes = PerNode::new((0..nodes).map(|_| None));
        this.begin_all(&self.env.config, &mut self.env.clients);
        for node in self.subscriptions.books.ids() {
            if self.is_push_lane_wanted(node) {
                // A node that is down is dialled again when its pause is over, by those who ask.
                let _ = self.prepare_push_lane(node);
            }
        }
    }
}
