//! A worker that answers no query with anything, and counts.

use super::{EchoEngine, env_with_node};
use crate::env::Env;
use crate::ids::{Asker, ClientHandle};
use crate::mail::Mail;
use crate::users::process_workers::{PostMail, ProcessWorkers};
use crate::worker::query::{Answer, Query};
use crate::workers::ask::AnswerQueries;
use crate::workers::query::{Queries, WorkerQuery};
use crate::workers::shared::{ProcessFacts, Shared};
use respool_connection::{Action, ServiceAction, WorkerId};
use std::sync::{Arc, Mutex};

/// A worker whose clients and subscriptions answer nothing.
pub(crate) struct SilentWorker {
    pub(crate) env: Env<EchoEngine>,
    queries: Queries<Query>,
    /// How often it was asked.
    pub(crate) asked: usize,
    /// How many answers were missing of each query that is finished.
    pub(crate) finished: Vec<usize>,
}

impl AnswerQueries for SilentWorker {
    type Engine = EchoEngine;
    type Query = Query;

    fn env(&mut self) -> &mut Env<EchoEngine> {
        &mut self.env
    }

    fn queries(&mut self) -> &mut Queries<Query> {
        &mut self.queries
    }

    fn answer_query(&mut self, query: &Query, _: Option<ClientHandle>) -> Answer {
        self.asked += 1;
        query.no_answer()
    }

    fn finish_query(&mut self, _: Option<Asker>, _: &Query, _: Answer, missing: usize) {
        self.finished.push(missing);
    }
}

/// One of so many workers.
pub(crate) fn silent_worker(workers: usize) -> SilentWorker {
    let mut env = env_with_node();
    env.shared = Arc::new(Shared::new(workers, 0, ProcessFacts::default(), Arc::default()));
    SilentWorker { env, queries: Queries::default(), asked: 0, finished: Vec::new() }
}

/// What it has posted to workers since this was last asked.
pub(crate) fn posted(worker: &mut SilentWorker) -> Vec<(WorkerId, Mail)> {
    let actions = std::mem::take(&mut worker.env.actions);
    let mail = |action| match action {
        Action::Service(ServiceAction::Post { worker, mail }) => Some((worker, mail)),
        _ => None,
    };
    actions.into_iter().filter_map(mail).collect()
}

/// Whether a worker takes mail.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mailbox {
    Open,
    Ended,
}

/// The mail that others have put into the box of a worker.
#[derive(Clone, Default)]
pub(crate) struct Received(Arc<Mutex<Vec<Mail>>>);

impl Received {
    /// What has come since this was last asked.
    pub(crate) fn take(&self) -> Vec<Mail> {
        std::mem::take(&mut self.0.lock().expect("no test fails holding it"))
    }
}

/// The workers of proxies of one process, each with one.
pub(crate) fn of_process<const N: usize>(mailboxes: [Mailbox; N]) -> [(SilentWorker, Received); N] {
    let process = Arc::new(ProcessWorkers::default());
    mailboxes.map(|mailbox| {
        let (mut worker, received) = (silent_worker(1), Received::default());
        let into = received.clone();
        let post: PostMail = Box::new(move |mail| {
            if mailbox == Mailbox::Open {
                into.0.lock().expect("no test fails holding it").push(mail);
            }
            mailbox == Mailbox::Open
        });
        let shared = Shared::new(1, 0, ProcessFacts::default(), Arc::default());
        worker.env.shared = Arc::new(shared.in_process(Arc::clone(&process), std::iter::once(post)));
        (worker, received)
    })
}
