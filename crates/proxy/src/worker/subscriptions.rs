//! Subscriptions and tracking: what of them concerns all workers, and what an engine in this process is told of them.

use crate::mail::Query;
use crate::pubsub::PubsubStep;
use crate::pubsub::query::Publishing;
use crate::session::Flow;
use crate::session::id::{Asker, ClientId};
use crate::tracking::TrackingStep;
use crate::tracking::state::{Redirect, RedirectSearch, TrackingOptions};
use crate::worker::Worker;
use respool_command::{Execute, PubsubCommand, Row};
use respool_connection::Seq;
use respool_wire::{Args, Request};

impl<E: Execute> Worker<E> {
    /// Deals with a request of the push lane, or one about it.
    pub(crate) fn handle_pubsub(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let step = self.subscriptions.handle_request(&mut self.env, index, row, request);
        self.take_pubsub_step(index, step)
    }

    /// PUBSUB.
    pub(crate) fn handle_pubsub_query(
        &mut self,
        index: ClientId,
        command: PubsubCommand,
        row: &'static Row,
        args: Args<'_>,
    ) -> Flow {
        let step = self.env.ask_about_channels(index, command, row, args);
        self.take_pubsub_step(index, step)
    }

    fn take_pubsub_step(&mut self, index: ClientId, step: PubsubStep) -> Flow {
        match step {
            PubsubStep::Done(flow) => flow,
            PubsubStep::Ask(query) => self.ask_workers(index, Query::Pubsub(query)),
        }
    }

    /// The node has passed a message on; the clients behind the proxy's own connections are counted.
    pub(crate) fn conclude_publish(&mut self, publishing: Publishing) {
        if let Some((asker, query)) = publishing.question(&self.env.config) {
            self.ask_workers_for(Some(asker), None, Query::Pubsub(query));
        }
    }

    /// CLIENT TRACKING.
    pub(crate) fn handle_tracking(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        match self.subscriptions.client_tracking(&mut self.env, index, args) {
            TrackingStep::Done(flow) => return flow,
            TrackingStep::Begin { seq, wanted } => self.start_tracking(index, seq, wanted),
            TrackingStep::Search { asker, search } => self.ask_workers_for(asker, None, Query::Redirect(search)),
        }
        Flow::Pause
    }

    /// The client to redirect to has been found, or not.
    pub(super) fn redirect_tracking(&mut self, asker: Asker, search: &RedirectSearch, found: Option<Redirect>) {
        if let Some(wanted) = self.env.clients.redirected(asker, search, found) {
            self.start_tracking(asker.session.index, asker.seq, wanted);
        }
    }

    fn start_tracking(&mut self, index: ClientId, seq: Seq, wanted: TrackingOptions) {
        self.blocking.want_changes(&mut self.env, &mut self.subscriptions, true);
        self.subscriptions.begin_tracking(&mut self.env, index, seq, wanted);
    }

    /// The end of a turn: nodes are told what has changed.
    #[inline(always)]
    pub(super) fn tell_what_is_new(&mut self) {
        if self.subscriptions.has_anything_to_tell() {
            self.tell_nodes_news();
        }
    }

    #[cold]
    fn tell_nodes_news(&mut self) {
        self.subscriptions.strike_out_some(&mut self.env);
        if let Some(is_tracking) = self.subscriptions.take_news() {
            self.blocking.want_changes(&mut self.env, &mut self.subscriptions, is_tracking);
            self.subscriptions.tell_news(&mut self.env);
        }
        self.subscriptions.tell_clients(&mut self.env);
    }
}
