//! Requests that the worker made itself, and that are through: what is left to do of each.

use crate::blocking::node_queries::NodeQuery;
use crate::blocking::returns::Returning;
use crate::client_pause::listing::Listing;
use crate::commands::redacted_reply::RedactedConfigGet;
use crate::commands::subscriber_ping::SubscriberPing;
use crate::engines::change::EnginesChange;
use crate::nodes::probe::Probe;
use crate::pool::lane_reset::LaneReset;
use crate::pubsub::query::Publishing;
use crate::reply::task::InternalTask;
use crate::reply::tracked_keys_bound::{TrackedKeysBound, conclude_tracked_keys_max};
use crate::scripts::evalsha_retry::EvalshaRetry;
use crate::scripts::script_kill::ScriptKill;
use crate::tracking::noloop_lanes::{ListenerId, ProtocolSwitch};
use crate::transaction::exec_reply::continue_exec_reply;
use crate::transaction::exec_request::Exec;
use crate::transaction::pending_watch::PendingWatch;
use crate::transaction::trial::Trial;
use crate::worker::Worker;
use crate::workers::ask::ask_workers_for;
use crate::workers::command_info::CommandInfoQuery;
use respool_command::Execute;
use std::any::Any;

/// Runs the arm of the type that a boxed or shared value is of. What features hand out has an arm each; those that are frequent come first.
macro_rules! by_type {
    ($value:ident { $($known:pat => $kind:ty: $arm:expr,)+ }) => {{
        $(let $value = match $value.downcast::<$kind>() {
            Ok($known) => return $arm,
            Err(other) => other,
        };)+
        debug_assert!(false, "a value is of no feature's type: {:?}", (*$value).type_id());
    }};
}

pub(crate) use by_type;

impl<E: Execute> Worker<E> {
    /// Does what is left to do of tasks that are through.
    pub(crate) fn conclude_tasks(&mut self) {
        while let Some(task) = self.env.tasks.through.pop_front() {
            self.conclude_task(task);
        }
    }

    fn conclude_task(&mut self, task: Box<dyn InternalTask>) {
        let task: Box<dyn Any> = task;
        by_type!(task {
            healing => EvalshaRetry: self.env.conclude_healing(*healing),
            // The node has passed a message on; the clients behind the proxy's own connections are counted.
            publishing => Publishing: if let Some((asker, query)) = publishing.question(&self.env.config) {
                ask_workers_for(self, Some(asker), None, query.into());
            },
            exec => Exec: self.env.conclude_exec(*exec).into_iter().for_each(|index| _ = continue_exec_reply(self, index)),
            trial => Trial: self.env.conclude_trial(*trial).into_iter().for_each(|index| _ = continue_exec_reply(self, index)),
            cleaning => LaneReset: self.env.conclude_cleaning(*cleaning),
            query => NodeQuery: self.blocking.conclude_node_query(&mut self.env, *query),
            returning => Returning: self.blocking.conclude_return(&mut self.env, *returning),
            stopping => ScriptKill: self.env.conclude_stopping(*stopping),
            change => EnginesChange: self.env.conclude_change(*change),
            learning => CommandInfoQuery: self.learnings.conclude_learning(&mut self.env, *learning),
            listing => Listing: self.functions.handle_reply(&mut self.env, &mut self.blocking, *listing),
            bound => TrackedKeysBound: conclude_tracked_keys_max(&mut self.env, &bound),
            probe => Probe: self.env.conclude_probe(*probe),
            listening => ListenerId: self.subscriptions.conclude_listening(&mut self.env, *listening),
            task => PendingWatch: drop(task),
            task => RedactedConfigGet: drop(task),
            task => SubscriberPing: drop(task),
            task => ProtocolSwitch: drop(task),
        });
    }
}
