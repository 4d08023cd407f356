//! How a worker puts a query to the others, and answers one of theirs: the letters, and the place of the reply.

use crate::env::Env;
use crate::mail::{Answer, Content, Mail, Query, QueryMessage};
use crate::session::Flow;
use crate::session::id::{Asker, ClientId};
use crate::slab::Handle;
use crate::workers::shared::Shared;
use respool_command::Execute;
use respool_connection::{Action, ServiceAction, WorkerId};
use std::sync::Arc;

impl<E: Execute> Env<E> {
    /// A client's request is answered by several workers: its reply gets a place, if one is wanted. `Err`: nothing is asked.
    pub(crate) fn expect_answers(&mut self, index: ClientId, is_large: bool) -> Result<Option<Asker>, Flow> {
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
    pub(crate) fn post_query(&mut self, to: &[WorkerId], handle: Handle, query: &Arc<Query>) {
        for worker in to {
            self.post(*worker, Content::Ask { from: self.number, handle, query: Arc::clone(query) });
            self.is_busy = true;
        }
    }

    /// Answers a query of another worker.
    pub(crate) fn post_answer(&mut self, to: WorkerId, handle: Handle, answer: Answer) {
        self.post(to, Content::Answer { handle, answer });
    }

    pub(crate) fn post(&mut self, worker: WorkerId, content: Content) {
        let mail = Mail::Query(Box::new(QueryMessage(content)));
        self.actions.push_back(Action::Service(ServiceAction::Post { worker, mail }));
    }
}

impl Shared {
    /// The other workers that have anything to answer.
    pub(crate) fn workers_concerned(&self, number: WorkerId, query: &Query) -> Vec<WorkerId> {
        let others = self.workers().filter(|(worker, _)| *worker != number);
        others.filter(|(_, counters)| query.concerns(counters)).map(|(worker, _)| worker).collect()
    }
}
