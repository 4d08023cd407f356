//! Messages of other workers, and queries to all of them: what each means to the features of this one.

use crate::env::Env;
use crate::mail::{Answer, Content, Mail, Query, QueryMessage};
use crate::session::id::{Asker, ClientHandle, ClientId};
use crate::session::{Flow, Pause};
use crate::slab::Handle;
use crate::worker::Worker;
use crate::workers::query::Finished;
use respool_command::Execute;
use respool_connection::{Action, ServiceAction};
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    pub(crate) fn take_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Query(message) => self.handle_query_message(*message),
            Mail::Redirected(redirected) => self.env.take_redirected(*redirected),
            Mail::RedirectionBroken(broken) => self.env.break_redirection(broken),
            Mail::Drain => self.begin_drain(),
            Mail::Retire => self.retirement.begin_retirement(&mut self.env),
            Mail::Stop => self.env.actions.push_back(Action::Service(ServiceAction::Exit)),
            Mail::Reload(config) => self.adopt(config),
            Mail::Wipe => self.env.wipe_reads(),
            Mail::Orders => self.take_up_orders(),
        }
    }

    /// Puts a client's query to every worker, this one included. Its reply keeps its place until the last has answered.
    pub(crate) fn ask_workers(&mut self, index: ClientId, query: Query) -> Flow {
        if query.is_large() && self.env.settle_before(index).is_none() {
            return Flow::Again;
        }
        let is_large = query.is_large();
        let Some(asker) = self.env.expect_reply(index) else { return Flow::Stop };
        self.env.counters.requests_local.add(1);
        if is_large && asker.is_none() {
            // It only shows something, and its client takes no reply: without one nothing would hold a pipeline of them back.
            return Flow::Next;
        }
        let is_closing =
            |worker: &Self| worker.env.clients.sessions.at(index).is_some_and(|s| s.pause.has(Pause::CLOSING));
        let was_closing = is_closing(self);
        let client = self.env.clients.sessions.handle(index);
        self.ask_workers_for(asker, client, query);
        // A client that has just closed itself is not read on.
        if is_closing(self) && !was_closing {
            return Flow::Stop;
        }
        self.env.keep_outstanding(index)
    }

    /// Puts a query to every worker that has anything to answer. `client`: the request that is being read asks.
    pub(crate) fn ask_workers_for(&mut self, asker: Option<Asker>, client: Option<ClientHandle>, query: Query) {
        let others = self.env.shared.counters.iter().enumerate().filter(|(worker, _)| *worker != self.env.number);
        let others: Vec<usize> =
            others.filter(|(_, counters)| query.concerns(counters)).map(|(worker, _)| worker).collect();
        let query = Arc::new(query);
        let handle = self.queries.begin(asker, Arc::clone(&query), others.len() + 1, self.env.now.mono_us);
        for worker in others {
            let message = QueryMessage(Content::Ask { from: self.env.number, handle, query: Arc::clone(&query) });
            self.env.post(worker, Mail::Query(Box::new(message)));
            self.env.is_busy = true;
        }
        let answer = self.answer_query(&query, client);
        self.handle_answer(handle, answer);
    }

    fn handle_query_message(&mut self, message: QueryMessage) {
        match message.0 {
            Content::Ask { from, handle, query } => {
                let answer = self.answer_query(&query, None);
                let message = QueryMessage(Content::Answer { handle, answer });
                self.env.post(from, Mail::Query(Box::new(message)));
            }
            Content::Answer { handle, answer } => self.handle_answer(handle, answer),
        }
    }

    fn answer_query(&mut self, query: &Query, client: Option<ClientHandle>) -> Answer {
        match query {
            Query::Admin(query) => Answer::Admin(self.answer_admin_query(query)),
            Query::Clients(query) => Answer::Clients(self.answer_client_query(query, client)),
            Query::Pubsub(query) => Answer::Pubsub(self.subscriptions.answer_pubsub_query(&mut self.env, query)),
            Query::Redirect(search) => Answer::Redirect(self.env.find_redirect(search)),
        }
    }

    fn handle_answer(&mut self, handle: Handle, answer: Answer) {
        if let Some(finished) = self.queries.handle_answer(handle, answer) {
            self.finish_query(finished);
        }
    }

    fn finish_query(&mut self, finished: Finished<Query>) {
        let Finished { asker, query, answer, missing } = finished;
        let Some(asker) = asker else { return };
        match (&*query, answer) {
            (Query::Admin(query), Answer::Admin(answer)) => {
                self.admin.reply_to_admin_query(&mut self.env, asker, query, answer, missing)
            }
            (Query::Clients(query), Answer::Clients(answer)) => {
                self.env.clients.reply(asker, |reply| query.reply(answer, reply));
            }
            (Query::Pubsub(query), Answer::Pubsub(answer)) => {
                self.env.clients.reply(asker, |reply| query.reply(&answer, reply));
            }
            (Query::Redirect(search), Answer::Redirect(found)) => self.redirect_tracking(asker, search, found),
            _ => debug_assert!(false, "a query is finished with an answer to it"),
        }
    }

    /// Queries that a worker has not answered in time are finished with what is known. Returns whether any wait.
    pub(crate) fn expire_queries(&mut self) -> bool {
        for overdue in self.queries.take_overdue(self.env.now.mono_us) {
            self.finish_query(overdue);
        }
        self.queries.len() > 0
    }
}

impl<E: Execute> Env<E> {
    fn post(&mut self, worker: usize, mail: Mail) {
        self.actions.push_back(Action::Service(ServiceAction::Post { worker, mail }));
    }
}
