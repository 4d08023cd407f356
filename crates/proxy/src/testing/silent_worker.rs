//! A worker that answers no query with anything, and counts.

use super::{EchoEngine, env_with_node};
use crate::env::Env;
use crate::ids::{Asker, ClientHandle};
use crate::mail::Mail;
use crate::worker::query::{Answer, Query};
use crate::workers::ask::AnswerQueries;
use crate::workers::query::{Queries, WorkerQuery};
use crate::workers::shared::{ProcessFacts, Shared};
use respool_connection::{Action, ServiceAction, WorkerId};
use std::sync::Arc;

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
