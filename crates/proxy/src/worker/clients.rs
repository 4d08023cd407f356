//! What concerns clients of all workers, and clients that close their side: what it means to each feature.

use crate::commands::client_query::{ClientAnswer, ClientQuery, ClientQuestion, ClientStep};
use crate::mail::Query;
use crate::scripts::functions::PausedCall;
use crate::session::Flow;
use crate::session::id::{ClientHandle, ClientId};
use crate::worker::Worker;
use respool_command::{Execute, Row};
use respool_wire::{Args, Request};

impl<E: Execute> Worker<E> {
    /// Does what is left to do of a request about clients.
    pub(crate) fn take_client_step(&mut self, index: ClientId, step: ClientStep) -> Flow {
        match step {
            ClientStep::Done(flow) => flow,
            ClientStep::Ask(query) => self.ask_workers(index, Query::Clients(query)),
        }
    }

    /// Answers for the clients of this worker. `asker`: the client that asks, if it is one of them.
    pub(crate) fn answer_client_query(&mut self, query: &ClientQuery, asker: Option<ClientHandle>) -> ClientAnswer {
        let ClientQuery { question, filter } = query;
        let mut answer = ClientAnswer::default();
        match *question {
            ClientQuestion::Users { .. } => {
                self.env.adopt_users(&mut self.subscriptions, asker.map(|asker| asker.index));
                self.tell_ended();
            }
            ClientQuestion::ClientPause => self.adopt_client_pause(),
            ClientQuestion::Unblock(release) => {
                answer.count =
                    filter.ids.as_ref().map_or(0, |ids| self.blocking.unblock_clients(&mut self.env, ids, release));
            }
            ClientQuestion::List { request_bytes } => {
                answer.lines = self.env.clients.list_clients(self.env.now, filter, asker, request_bytes);
            }
            ClientQuestion::KillOne | ClientQuestion::KillSome => {
                answer.count = self.env.kill_clients(filter, asker);
                self.tell_ended();
            }
        }
        answer
    }

    /// Takes over the pause in the standing orders.
    pub(crate) fn adopt_client_pause(&mut self) {
        if self.functions.adopt_client_pause(&mut self.env) {
            self.settle_holding();
        }
    }

    /// Ends a pause whose time has come.
    pub(crate) fn check_client_pause(&mut self) {
        if self.functions.end_client_pause_if(&mut self.env, |hold, now_us| now_us >= hold.until_us) {
            self.settle_holding();
        }
    }

    /// A request during a pause. A request that ends the pause is always read, and so is the console.
    pub(crate) fn hold_for_client_pause(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        match self.functions.hold(&mut self.env, index, row, args)? {
            PausedCall::Runs(call) => Some(self.run(index, row, &Request::made(call.as_args()))),
            PausedCall::Held(flow) => Some(flow),
            PausedCall::Waits => {
                self.env.clients.mark_held(index);
                Some(Flow::Again)
            }
        }
    }

    /// All that a client has sent has been read. What it has asked before it closed its side is still answered.
    pub(crate) fn note_ended(&mut self, index: ClientId) {
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return };
        session.details.has_ended = true;
        if !session.is_waiting() {
            self.end_input(index);
        }
        self.blocking.handle_hung_up(&mut self.env, index);
        self.dedicated.handle_half_closed(&mut self.env, index);
    }
}
