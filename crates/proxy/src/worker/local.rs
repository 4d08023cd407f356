//! Requests that are answered here, of the session's own commands: which feature does so.

use crate::admin::Console;
use crate::commands::LocalStep;
use crate::ids::ClientId;
use crate::interfaces::call::Call;
use crate::interfaces::client_query::ClientStep;
use crate::session::Flow;
use crate::tracking::TrackingStep;
use crate::tracking::state::TrackingOptions;
use crate::worker::Worker;
use crate::worker::query::Query;
use crate::workers::ask::ask_workers_for;
use respool_command::{Execute, Row};
use respool_connection::Seq;
use respool_wire::{Args, Request};

impl<E: Execute> Worker<E> {
    /// Answers a request of the local lane. The arity has been checked.
    pub(crate) fn answer_locally(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        match self.env.answer_locally(&mut self.subscriptions, index, row, args) {
            LocalStep::Done(flow) => flow,
            LocalStep::PassOn => self.pass_on(Call { index, row, request: &Request::made(args) }),
            LocalStep::Clients(step) => self.take_step(index, step),
            LocalStep::Console(command) => match self.env.console(index, command, row, args) {
                Console::Step(step) => self.take_step(index, step),
                Console::Kill(ids) => self.take_step(index, ClientStep::kill(ids)),
            },
            LocalStep::Channels(command) => {
                let step = self.env.ask_about_channels(index, command, row, args);
                self.take_step(index, step)
            }
            LocalStep::Tracking => self.handle_tracking(index, args),
            LocalStep::Reset => self.reset(index),
        }
    }

    fn handle_tracking(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        match self.subscriptions.client_tracking(&mut self.env, index, args) {
            TrackingStep::Done(flow) => return flow,
            TrackingStep::Begin { seq, wanted } => self.start_tracking(index, seq, wanted),
            TrackingStep::Search { asker, search } => ask_workers_for(self, asker, None, Query::Redirect(search)),
        }
        Flow::Pause
    }

    pub(super) fn start_tracking(&mut self, index: ClientId, seq: Seq, wanted: TrackingOptions) {
        self.engine_side().want_changes(true);
        self.subscriptions.begin_tracking(&mut self.env, index, seq, wanted);
    }

    /// RESET: the session is as it was when it came. A client's own lanes are left as its mode says, with its next request.
    fn reset(&mut self, index: ClientId) -> Flow {
        if let Some(flow) = self.subscriptions.hear_out(&mut self.env, index) {
            return flow;
        }
        let Some(()) = self.env.clients.settle_before(index) else { return Flow::Again };
        self.env.leave_transaction(index);
        self.dedicated.leave(&mut self.env, index);
        self.subscriptions.reset_subscriptions(&mut self.env, index);
        self.env.reset_session(&mut self.subscriptions, index)
    }
}
