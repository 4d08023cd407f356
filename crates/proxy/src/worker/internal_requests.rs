//! Requests that the worker made itself, and that are through: what is left to do of each.

use crate::internal_request::InternalRequest;
use crate::transaction::exec_reply::continue_exec_reply;
use crate::worker::Worker;
use crate::workers::ask::ask_workers_for;
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
                    self.env.conclude_exec(*exec).into_iter().for_each(|index| _ = continue_exec_reply(self, index));
                }
                InternalRequest::Trial(trial) => {
                    self.env.conclude_trial(*trial).into_iter().for_each(|index| _ = continue_exec_reply(self, index));
                }
                InternalRequest::Heal(healing) => self.env.conclude_healing(healing),
                InternalRequest::Stop(stopping) => self.env.conclude_stopping(*stopping),
                InternalRequest::Change(change) => self.env.conclude_change(*change),
                InternalRequest::Learn(learning) => self.learnings.conclude_learning(&mut self.env, *learning),
                InternalRequest::List(listing) => {
                    self.functions.handle_reply(&mut self.env, &mut self.blocking, listing);
                }
                // The node has passed a message on; the clients behind the proxy's own connections are counted.
                InternalRequest::Publish(publishing) => {
                    if let Some((asker, query)) = publishing.question(&self.env.config) {
                        ask_workers_for(self, Some(asker), None, query.into());
                    }
                }
                InternalRequest::NodeQuery(query) => self.blocking.conclude_node_query(&mut self.env, *query),
                InternalRequest::Return(returning) => self.blocking.conclude_return(&mut self.env, *returning),
                InternalRequest::Probe(probe) => self.env.conclude_probe(probe),
                InternalRequest::Listen(listening) => self.subscriptions.conclude_listening(&mut self.env, listening),
            }
        }
    }
}
