//! How a worker puts a query to the others, and answers one of theirs: the letters, and the place of the reply.
//!
//! What is answered, and what the joint answer leads to, is the features' ([`AnswerQueries`]).

use crate::env::Env;
use crate::ids::{Asker, ClientHandle, ClientId, Handle};
use crate::mail::Mail;
use crate::reply::owner::Owner;
use crate::session::Flow;
use crate::users::process_workers::WorkerAddress;
use crate::workers::query::{Finished, Queries, QueryMessage, QueryOf, WorkerQuery};
use crate::workers::shared::Shared;
use respool_command::Execute;
use respool_connection::{Action, ServiceAction, WorkerId};
use std::any::Any;
use std::sync::Arc;

/// The features that answer queries of workers.
pub(crate) trait AnswerQueries {
    /// The engine in this process.
    type Engine: Execute;
    /// What workers ask each other.
    type Query: WorkerQuery;

    fn env(&mut self) -> &mut Env<Self::Engine>;

    /// The queries that this worker has begun.
    fn queries(&mut self) -> &mut Queries<Self::Query>;

    /// This worker's answer. `client`: the client whose request is being read, if that asks.
    fn answer_query(&mut self, query: &Self::Query, client: Option<ClientHandle>) -> AnswerOf<Self>;

    /// Replies to a query. `missing`: so many workers have not answered in time.
    fn finish_query(&mut self, asker: Option<Asker>, query: &Self::Query, answer: AnswerOf<Self>, missing: usize);
}

/// What workers answer to each other.
pub(crate) type AnswerOf<W> = <<W as AnswerQueries>::Query as WorkerQuery>::Answer;

/// Puts a client's query to every worker, this one included. Its reply keeps its place until the last has answered.
pub(crate) fn ask_workers<W: AnswerQueries>(by: &mut W, index: ClientId, query: W::Query) -> Flow {
    let asker = match by.env().expect_answers(index, query.is_large()) {
        Ok(asker) => asker,
        Err(flow) => return flow,
    };
    let was_leaving = by.env().clients.is_leaving(index);
    let client = by.env().clients.sessions.handle(index);
    ask_workers_for(by, asker, client, query);
    let clients = &mut by.env().clients;
    // A client that has just closed itself is not read on.
    if clients.is_leaving(index) && !was_leaving {
        return Flow::Stop;
    }
    clients.keep_outstanding(index)
}

/// Puts a query to every worker that has anything to answer. `client`: the request that is being read asks.
pub(crate) fn ask_workers_for<W: AnswerQueries>(
    by: &mut W,
    asker: Option<Asker>,
    client: Option<ClientHandle>,
    query: W::Query,
) {
    let env = by.env();
    let (others, now_us) = (env.shared.workers_concerned(env.number, &query), env.now.mono_us);
    let outside = env.shared.workers_outside(&query);
    if others.is_empty() && outside.is_empty() {
        let mut all = query.no_answer();
        query.join(&mut all, by.answer_query(&query, client));
        return by.finish_query(asker, &query, all, 0);
    }
    let query = Arc::new(query);
    let awaited = others.len() + outside.len() + 1;
    let of = match (asker, client) {
        (Some(asker), _) => QueryOf::Asker(asker),
        (None, Some(client)) => {
            // Otherwise nothing would hold back a pipeline of them while a worker stands still.
            by.env().clients.note_sent(Owner::Unanswered { index: client.index, generation: client.generation });
            QueryOf::Unanswered(client)
        }
        (None, None) => QueryOf::Worker,
    };
    let handle = by.queries().begin(of, Arc::clone(&query), awaited, now_us);
    by.env().post_query(&others, handle, &query);
    let env = by.env();
    env.is_busy |= !outside.is_empty();
    for _ in 0..env.shared.post_query_outside(env.number, &outside, handle, &query) {
        handle_answer(by, handle, query.no_answer());
    }
    let answer = by.answer_query(&query, client);
    handle_answer(by, handle, answer);
}

/// Another worker asks, or answers.
pub(crate) fn handle_query_message<W: AnswerQueries>(by: &mut W, message: QueryMessage<W::Query>) {
    match message {
        QueryMessage::Ask { from, handle, query } => {
            let answer = by.answer_query(&query, None);
            let message = QueryMessage::<W::Query>::Answer { handle, answer };
            let env = by.env();
            if from.pool == env.shared.pool {
                env.post(from.worker, message);
            } else {
                // A worker that has ended needs no answer.
                env.shared.process.post(from, Mail::of_feature(message));
            }
        }
        QueryMessage::Answer { handle, answer } => handle_answer(by, handle, answer),
    }
}

fn handle_answer<W: AnswerQueries>(by: &mut W, handle: Handle, answer: AnswerOf<W>) {
    if let Some(finished) = by.queries().handle_answer(handle, answer) {
        finish(by, finished);
    }
}

fn finish<W: AnswerQueries>(by: &mut W, finished: Finished<W::Query>) {
    let Finished { of, query, answer, missing } = finished;
    let asker = if let QueryOf::Asker(asker) = of { Some(asker) } else { None };
    by.finish_query(asker, &query, answer, missing);
    if let QueryOf::Unanswered(client) = of {
        by.env().clients.end_unanswered(client, 0);
    }
}

/// Queries that a worker has not answered in time are finished with what is known. Returns whether any wait.
pub(crate) fn expire_queries(by: &mut impl AnswerQueries) -> bool {
    let (now_us, is_ending) = (by.env().now.mono_us, by.env().drain_until_us.is_some());
    for finished in by.queries().take_overdue(now_us, is_ending) {
        finish(by, finished);
    }
    by.queries().len() > 0
}

impl<E: Execute> Env<E> {
    /// A client's request is answered by several workers: its reply gets a place, if one is wanted. `Err`: nothing is asked.
    fn expect_answers(&mut self, index: ClientId, is_large: bool) -> Result<Option<Asker>, Flow> {
        if is_large && self.clients.settle_before(index).is_none() {
            return Err(Flow::Again);
        }
        let asker = self.clients.expect_reply(index).ok_or(Flow::Stop)?;
        self.counters.requests_local.add(1);
        if is_large && asker.is_none() {
            // It only shows something, and its client takes no reply: without one nothing would hold a pipeline of them back.
            return Err(Flow::Next);
        }
        Ok(asker)
    }

    /// Puts a query to other workers.
    fn post_query(&mut self, to: &[WorkerId], handle: Handle, query: &Arc<impl WorkerQuery>) {
        let from = self.shared.address(self.number);
        for worker in to {
            self.post(*worker, QueryMessage::Ask { from, handle, query: Arc::clone(query) });
            self.is_busy = true;
        }
    }

    /// Posts a message of a feature to a worker.
    pub(crate) fn post(&mut self, worker: WorkerId, message: impl Any + Send + Sync) {
        let mail = Mail::of_feature(message);
        self.actions.push_back(Action::Service(ServiceAction::Post { worker, mail }));
    }
}

impl Shared {
    /// The other workers that have anything to answer.
    fn workers_concerned(&self, number: WorkerId, query: &impl WorkerQuery) -> Vec<WorkerId> {
        let others = self.workers().filter(|(worker, _)| *worker != number);
        others.filter(|(_, counters)| query.concerns(counters)).map(|(worker, _)| worker).collect()
    }

    /// The workers of other proxies that the query is put to.
    fn workers_outside(&self, query: &impl WorkerQuery) -> Vec<WorkerAddress> {
        if query.is_of_process() { self.process.outside(self.pool) } else { Vec::new() }
    }

    /// Where a worker of this proxy is found in the process.
    fn address(&self, worker: WorkerId) -> WorkerAddress {
        WorkerAddress { pool: self.pool, worker }
    }

    /// Puts a query of a worker to those of other proxies. Result: how many of them have ended.
    fn post_query_outside(
        &self,
        worker: WorkerId,
        to: &[WorkerAddress],
        handle: Handle,
        query: &Arc<impl WorkerQuery>,
    ) -> usize {
        let from = self.address(worker);
        let has_ended = |worker: &&WorkerAddress| {
            let message = QueryMessage::Ask { from, handle, query: Arc::clone(query) };
            !self.process.post(**worker, Mail::of_feature(message))
        };
        to.iter().filter(has_ended).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::query::{AdminQuery, Show};
    use crate::interfaces::client_query::{ClientFilter, ClientQuery, ClientQuestion};
    use crate::limits::QUERY_US_MAX;
    use crate::testing::silent_worker::{Mailbox, of_process, posted, silent_worker};
    use crate::worker::query::Query;

    fn show() -> Query {
        AdminQuery::Show(Show::Nodes, 9).into()
    }

    fn query_message(mail: &Mail) -> QueryMessage<Query> {
        let Mail::Feature(message) = mail else { panic!("{mail:?}") };
        Arc::unwrap_or_clone(message.clone().open().expect("it is a query or an answer"))
    }

    #[test]
    fn a_worker_that_is_alone_answers_itself() {
        let mut alone = silent_worker(1);
        ask_workers_for(&mut alone, None, None, show());
        assert_eq!((posted(&mut alone).len(), alone.asked, &alone.finished[..]), (0, 1, &[0][..]));
    }

    #[test]
    fn another_worker_is_asked_by_mail_and_its_answer_finishes_it() {
        let [mut first, mut second] = [(), ()].map(|()| silent_worker(2));
        ask_workers_for(&mut first, None, None, show());
        assert_eq!((first.asked, first.finished.len()), (1, 0));
        let letters = posted(&mut first);
        let [(to, question)] = &letters[..] else { panic!("{letters:?}") };
        assert_ne!(*to, WorkerId::FIRST);
        handle_query_message(&mut second, query_message(question));
        let answers = posted(&mut second);
        let [(WorkerId::FIRST, answer)] = &answers[..] else { panic!("{answers:?}") };
        handle_query_message(&mut first, query_message(answer));
        assert_eq!((second.asked, &first.finished[..]), (1, &[0][..]));
    }

    fn of_clients(question: ClientQuestion, user: Option<&[u8]>) -> Query {
        let filter = ClientFilter { user: user.map(<[u8]>::to_vec), ..ClientFilter::default() };
        ClientQuery { question, filter: Box::new(filter) }.into()
    }

    #[test]
    fn what_is_about_users_reaches_the_workers_of_all_pools() {
        let users = ClientQuestion::Users { removed: None };
        for (query, is_of_process) in [
            (of_clients(users, None), true),
            (of_clients(ClientQuestion::KillSome, Some(b"bob")), true),
            (of_clients(ClientQuestion::KillSome, None), false),
            (of_clients(ClientQuestion::List { request_bytes: 0 }, Some(b"bob")), false),
            (of_clients(ClientQuestion::ClientPause, None), false),
            (show(), false),
        ] {
            let [(mut first, to_first), (mut second, to_second)] = of_process([Mailbox::Open, Mailbox::Open]);
            ask_workers_for(&mut first, None, None, query.clone());
            let questions = to_second.take();
            assert_eq!(
                (first.finished.is_empty(), questions.len()),
                (is_of_process, usize::from(is_of_process)),
                "{query:?}"
            );
            for question in questions {
                handle_query_message(&mut second, query_message(&question));
                assert_eq!(second.asked, 1);
                assert!(posted(&mut second).is_empty(), "the answer is for no worker of its own pool");
                to_first.take().iter().for_each(|answer| handle_query_message(&mut first, query_message(answer)));
            }
            assert_eq!((first.asked, &first.finished[..]), (1, &[0][..]), "{query:?}");
        }
    }

    #[test]
    fn a_pool_whose_workers_have_ended_is_not_waited_for() {
        let [(mut first, _), (_, to_second)] = of_process([Mailbox::Open, Mailbox::Ended]);
        ask_workers_for(&mut first, None, None, of_clients(ClientQuestion::Users { removed: None }, None));
        assert_eq!((to_second.take().len(), &first.finished[..]), (0, &[0][..]));
    }

    /// A worker that stands still goes on under the rules that it knows: no client is told before that others hold.
    #[test]
    fn a_change_is_acknowledged_once_the_last_worker_goes_by_it() {
        let [(mut first, to_first), (mut second, to_second)] = of_process([Mailbox::Open, Mailbox::Open]);
        ask_workers_for(&mut first, None, None, of_clients(ClientQuestion::Users { removed: None }, None));
        let mut alone = silent_worker(2);
        ask_workers_for(&mut alone, None, None, of_clients(ClientQuestion::ClientPause, None));
        for worker in [&mut first, &mut alone] {
            worker.env.now.mono_us += 100 * QUERY_US_MAX;
            assert!(expire_queries(worker) && worker.finished.is_empty(), "it waits however long that takes");
        }
        // Workers that end answer nothing.
        alone.env.drain_until_us = Some(u64::MAX);
        assert!(!expire_queries(&mut alone) && alone.finished == [1]);
        to_second.take().iter().for_each(|question| handle_query_message(&mut second, query_message(question)));
        to_first.take().iter().for_each(|answer| handle_query_message(&mut first, query_message(answer)));
        assert_eq!((second.asked, &first.finished[..]), (1, &[0][..]));
    }

    #[test]
    fn a_worker_that_does_not_answer_is_missing() {
        let mut first = silent_worker(2);
        ask_workers_for(&mut first, None, None, show());
        assert!(expire_queries(&mut first), "there is time");
        first.env.now.mono_us += QUERY_US_MAX + 1;
        assert!(!expire_queries(&mut first));
        assert_eq!(first.finished, [1]);
    }
}
