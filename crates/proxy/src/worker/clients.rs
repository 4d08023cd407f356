//! What concerns clients of all workers, and clients that close their side: what it means to each feature.

use crate::commands::client_query::{ClientAnswer, ClientQuery, ClientQuestion, ClientStep};
use crate::mail::Query;
use crate::request::client_pause::ClientPause;
use crate::scripts::functions::PausedCall;
use crate::session::id::{ClientHandle, ClientId};
use crate::session::{Flow, SessionFlags};
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
                let matched = self.env.clients.sessions.iter().filter(|(_, s)| filter.matches(s));
                let describe = |index| {
                    let is_asking = asker.is_some_and(|asker| asker.index == index);
                    self.env.describe_client(index, is_asking.then_some(request_bytes))
                };
                answer.lines = matched.map(|(index, s)| (s.id, describe(index))).collect();
            }
            ClientQuestion::KillOne | ClientQuestion::KillSome => {
                answer.count = self.env.kill_clients(filter, asker);
                self.tell_ended();
            }
        }
        answer
    }

    /// Replaces the pause of this worker by the one in the standing orders. These may have changed since the letter was
    /// sent, and letters of two workers arrive in any order: after the last of them all workers hold back the same
    /// requests.
    pub(crate) fn adopt_client_pause(&mut self) {
        let ordered = self.env.shared.standing().client_pause.map(ClientPause::from);
        let Some(hold) = ordered.filter(|hold| hold.until_us > self.env.now.mono_us) else { return self.release() };
        let before = self.env.client_pause.replace(hold);
        self.env.clients.sessions.iter_mut().for_each(|(_, session)| session.flags.add(SessionFlags::HELD));
        if before.is_some_and(|before| before.is_for_all && !hold.is_for_all) {
            self.settle_holding();
        }
        self.env.schedule_client_pause();
    }

    /// Ends a pause.
    pub(crate) fn release(&mut self) {
        if self.env.client_pause.take().is_some() {
            self.functions.forget();
            self.settle_holding();
        }
    }

    /// Ends a pause whose time has come.
    pub(crate) fn check_client_pause(&mut self) {
        if self.env.client_pause.is_some_and(|hold| self.env.now.mono_us >= hold.until_us) {
            self.release();
        }
    }

    /// A request during a pause. A request that ends the pause is always read, and so is the console.
    pub(crate) fn hold_for_client_pause(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        match self.functions.hold(&mut self.env, index, row, args)? {
            PausedCall::Runs(call) => Some(self.run(index, row, &Request::made(call.as_args()))),
            PausedCall::Held(flow) => Some(flow),
            PausedCall::Waits => {
                self.env.mark_held(index);
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
