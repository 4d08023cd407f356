//! Messages of other workers, and queries to all of them: what each means to the features of this one.

use crate::mail::{Answer, Content, Mail, Query, QueryMessage};
use crate::session::Flow;
use crate::session::id::{Asker, ClientHandle, ClientId};
use crate::slab::Handle;
use crate::worker::Worker;
use crate::workers::query::{Finished, WorkerQuery};
use respool_command::Execute;
use respool_connection::{Action, ServiceAction};
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    pub(crate) fn take_mail(&mut self, mail: Mail) {
        match mail {
            Mail::Query(message) => self.handle_query_message(*message),
            Mail::Redirected(redirected) => self.env.take_redirected(*redirected),
            Mail::RedirectionBroken(broken) => self.env.clients.break_redirection(broken),
            Mail::Drain => self.begin_drain(),
            Mail::Retire => self.retirement.begin_retirement(&mut self.env),
            Mail::Stop => self.env.actions.push_back(Action::Service(ServiceAction::Exit)),
            Mail::Reload(config) => self.adopt(config),
            Mail::Wipe => self.env.wipe_reads(),
            Mail::Inquiry(inquiry) => self.answer_inquiry(&inquiry),
            Mail::Orders => self.take_up_orders(),
        }
    }

    /// Puts a client's query to every worker, this one included. Its reply keeps its place until the last has answered.
    pub(crate) fn ask_workers(&mut self, index: ClientId, query: Query) -> Flow {
        let asker = match self.env.expect_answers(index, query.is_large()) {
            Ok(asker) => asker,
            Err(flow) => return flow,
        };
        let was_leaving = self.env.clients.is_leaving(index);
        let client = self.env.clients.sessions.handle(index);
        self.ask_workers_for(asker, client, query);
        // A client that has just closed itself is not read on.
        if self.env.clients.is_leaving(index) && !was_leaving {
            return Flow::Stop;
        }
        self.env.clients.keep_outstanding(index)
    }

    /// Puts a query to every worker that has anything to answer. `client`: the request that is being read asks.
    pub(crate) fn ask_workers_for(&mut self, asker: Option<Asker>, client: Option<ClientHandle>, query: Query) {
        let others = self.env.shared.workers_concerned(self.env.number, &query);
        if others.is_empty() {
            let mut all = query.no_answer();
            query.join(&mut all, self.answer_query(&query, client));
            return self.finish_query(asker, &query, all, 0);
        }
        let query = Arc::new(query);
        let handle = self.queries.begin(asker, Arc::clone(&query), others.len() + 1, self.env.now.mono_us);
        self.env.post_query(&others, handle, &query);
        let answer = self.answer_query(&query, client);
        self.handle_answer(handle, answer);
    }

    fn handle_query_message(&mut self, message: QueryMessage) {
        match message.0 {
            Content::Ask { from, handle, query } => {
                let answer = self.answer_query(&query, None);
                self.env.post_answer(from, handle, answer);
            }
            Content::Answer { handle, answer } => self.handle_answer(handle, answer),
            Content::Turn { task } => self.env.send_change(task),
        }
    }

    fn answer_query(&mut self, query: &Query, client: Option<ClientHandle>) -> Answer {
        match query {
            Query::Admin(query) => Answer::Admin(self.answer_admin_query(query)),
            Query::Clients(query) => Answer::Clients(self.answer_client_query(query, client)),
            Query::Pubsub(query) => Answer::Pubsub(self.subscriptions.answer_pubsub_query(&mut self.env, query)),
            Query::Redirect(search) => Answer::Redirect(self.env.clients.find_redirect(self.env.number, search)),
        }
    }

    fn handle_answer(&mut self, handle: Handle, answer: Answer) {
        if let Some(Finished { asker, query, answer, missing }) = self.queries.handle_answer(handle, answer) {
            self.finish_query(asker, &query, answer, missing);
        }
    }

    /// Replies to a query. `missing`: so many workers have not answered in time.
    fn finish_query(&mut self, asker: Option<Asker>, query: &Query, answer: Answer, missing: usize) {
        let Some(asker) = asker else { return };
        match (query, answer) {
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
        for Finished { asker, query, answer, missing } in self.queries.take_overdue(self.env.now.mono_us) {
            self.finish_query(asker, &query, answer, missing);
        }
        self.queries.len() > 0
    }
}
