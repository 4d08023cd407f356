//! Requests that the worker made itself, and that are through: what is left to do of each.

use crate::internal_request::InternalRequest;
use crate::session::Flow;
use crate::session::id::ClientId;
use crate::worker::Worker;
use respool_command::Execute;

impl<E: Execute> Worker<E> {
    /// Does what is left to do of tasks that are through.
    pub(crate) fn conclude_tasks(&mut self) {
        while let Some(task) = self.env.tasks.through.pop_front() {
            match task {
                InternalRequest::Clean(cleaning) => self.env.conclude_cleaning(cleaning),
                InternalRequest::Watch(_)
                | InternalRequest::Hide(_)
                | InternalRequest::Speak(_)
                | InternalRequest::SubscriberPing(_) => {}
                InternalRequest::Exec(exec) => {
                    let client = self.env.conclude_exec(*exec);
                    self.begin_reply_of(client);
                }
                InternalRequest::Trial(trial) => {
                    let client = self.env.conclude_trial(*trial);
                    self.begin_reply_of(client);
                }
                InternalRequest::Heal(healing) => self.env.conclude_healing(healing),
                InternalRequest::Stop(stopping) => self.env.conclude_stopping(*stopping),
                InternalRequest::Change(change) => self.env.conclude_change(*change),
                InternalRequest::Learn(learning) => self.learnings.conclude_learning(&mut self.env, *learning),
                InternalRequest::List(listing) => {
                    if self.functions.handle_reply(listing) {
                        self.settle_holding();
                    }
                }
                InternalRequest::Publish(publishing) => self.conclude_publish(publishing),
                InternalRequest::NodeQuery(query) => self.blocking.conclude_node_query(&mut self.env, *query),
                InternalRequest::Return(returning) => self.blocking.conclude_return(&mut self.env, *returning),
                InternalRequest::Probe(probe) => self.env.conclude_probe(probe),
                InternalRequest::Listen(listening) => self.subscriptions.conclude_listening(&mut self.env, listening),
            }
        }
    }

    fn begin_reply_of(&mut self, client: Option<ClientId>) {
        if let Some(index) = client {
            let _: Flow = self.continue_exec_reply(index);
        }
    }
}
