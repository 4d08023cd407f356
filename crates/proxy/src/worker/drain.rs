//! The end of a worker: what each feature still has to do.

use crate::ids::ClientId;
use crate::request::dispatch::read_input;
use crate::session::Flow;
use crate::transaction::exec_reply::continue_exec_reply;
use crate::worker::Worker;
use respool_command::Execute;

impl<E: Execute> Worker<E> {
    /// From now on no client is accepted, what has been asked is still answered, and then the worker ends.
    pub(crate) fn begin_drain(&mut self) {
        if !self.env.begin_drain() {
            return;
        }
        // A client that waits for what may never come would hold the end up until its limit.
        self.blocking.unblock_all(&mut self.env);
        self.dedicated.end_all(&mut self.env);
        self.admin.end_waits(&mut self.env);
        // A client that is read on is never owed nothing. What it has sent and what was not begun is not done at all.
        for index in self.env.clients.sessions.places(|_| true) {
            // What stands behind a transaction comes behind all of its reply.
            if self.env.clients.asks_for_what_was_read(index) && continue_exec_reply(self, index) == Flow::Next {
                read_input(self, index);
            }
            self.end_input(index);
        }
        self.go_on_draining();
    }

    /// Nothing more is read of a client. Requests that have been received or executed in part are not finished either.
    pub(super) fn end_input(&mut self, index: ClientId) {
        if self.env.end_input(index) {
            self.subscriptions.abandon_names(&mut self.env, index);
        }
    }

    /// Looks at the time, and at the clients that are still connected.
    pub(crate) fn check_drain(&mut self) {
        if self.env.drain_until_us.is_some() {
            self.go_on_draining();
        } else if self.retirement.is_over(&mut self.env) {
            self.begin_drain();
        }
    }

    fn go_on_draining(&mut self) {
        let Some(is_over) = self.env.close_drained() else { return };
        self.tell_ended();
        if !self.env.clients.sessions.is_empty() {
            return;
        }
        let requests = self.env.lanes.unanswered_requests();
        let is_settled = requests == 0 && self.env.tasks.through.is_empty() && self.blocking.returns.len() == 0;
        if is_over {
            self.blocking.give_up_returns(&mut self.env);
        }
        if is_over || is_settled {
            self.env.end_drain(requests, is_settled);
        }
    }

    /// Everything that is still waited for or held, by kind, with how much of it there is.
    pub fn remains(&self) -> Vec<(&'static str, usize)> {
        let of_features = [
            ("queries that workers have not answered", self.queries.len()),
            ("orders whose reply waits", self.admin.waits()),
            ("subscribers", self.subscriptions.remains()),
            ("clients with connections for good", self.dedicated.len()),
        ];
        let of_features = of_features.into_iter().chain(self.blocking.remains()).chain(self.learnings.remains());
        self.env.remains().into_iter().chain(of_features).filter(|(_, count)| *count > 0).collect()
    }
}
