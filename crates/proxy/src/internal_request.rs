//! Requests that the worker makes itself, or whose replies it must read before a client may have them: those of all features.
//!
//! What a feature does with its replies is in the feature, by [`InternalTask`]; they are put together here. The table of the tasks
//! that are under way is [`crate::reply::task`]. What needs lanes or the worker is done when a task is through, by
//! `conclude_tasks`.

use crate::blocking::node_queries::NodeQuery;
use crate::blocking::returns::Returning;
use crate::client_pause::listing::Listing;
use crate::commands::redacted_reply::RedactedConfigGet;
use crate::commands::subscriber_ping::SubscriberPing;
use crate::engines::change::EnginesChange;
use crate::nodes::probe::Probe;
use crate::pool::lane_reset::LaneReset;
use crate::pubsub::query::Publishing;
use crate::reply::task::{AnyTask, InternalTask, Tasks};
use crate::scripts::evalsha_retry::EvalshaRetry;
use crate::scripts::script_kill::ScriptKill;
use crate::tracking::noloop_lanes::{ListenerId, ProtocolSwitch};
use crate::transaction::exec_request::Exec;
use crate::transaction::pending_watch::PendingWatch;
use crate::transaction::trial::Trial;
use crate::workers::command_info::CommandInfoQuery;

/// The tasks of one worker.
pub(crate) type InternalRequests = Tasks<InternalRequest>;

/// The internal requests of all features. One variant for each.
#[derive(Debug)]
pub(crate) enum InternalRequest {
    /// A private connection is brought back to its plain state.
    Clean(LaneReset),
    /// Keys are watched for a client.
    Watch(PendingWatch),
    /// A transaction is executed for a client.
    Exec(Box<Exec>),
    /// A node is asked whether it takes MULTI.
    Trial(Box<Trial>),
    /// A script is run by its hash, and brought back if the node has forgotten it.
    Heal(EvalshaRetry),
    /// A node shows settings, some of them not to clients.
    Hide(RedactedConfigGet),
    /// Nodes are told to stop what they run.
    Stop(Box<ScriptKill>),
    /// All engines of a server change.
    Change(Box<EnginesChange>),
    /// A node is asked for a command that the table does not know.
    Learn(Box<CommandInfoQuery>),
    /// A node is asked for its functions.
    List(Listing),
    /// A node passes a message on.
    Publish(Publishing),
    /// Something is asked for a request that waits.
    NodeQuery(Box<NodeQuery>),
    /// What was taken for a client that had left is put back.
    Return(Box<Returning>),
    /// A node is asked whether it is there.
    Probe(Probe),
    /// PING of a RESP2 subscriber.
    SubscriberPing(SubscriberPing),
    /// A node is asked for the number of a connection on which it is to tell a client of changed keys.
    Listen(ListenerId),
    /// A node is to speak another dialect on a connection.
    Speak(ProtocolSwitch),
}

/// The task of a request of whatever kind.
macro_rules! task_of {
    ($request:ident, $($borrow:tt)+) => {
        match $request {
            Self::Clean(task) => $($borrow)+ *task,
            Self::Watch(task) => $($borrow)+ *task,
            Self::Exec(task) => $($borrow)+ **task,
            Self::Trial(task) => $($borrow)+ **task,
            Self::Heal(task) => $($borrow)+ *task,
            Self::Hide(task) => $($borrow)+ *task,
            Self::Stop(task) => $($borrow)+ **task,
            Self::Change(task) => $($borrow)+ **task,
            Self::Learn(task) => $($borrow)+ **task,
            Self::List(task) => $($borrow)+ *task,
            Self::Publish(task) => $($borrow)+ *task,
            Self::NodeQuery(task) => $($borrow)+ **task,
            Self::Return(task) => $($borrow)+ **task,
            Self::Probe(task) => $($borrow)+ *task,
            Self::SubscriberPing(task) => $($borrow)+ *task,
            Self::Listen(task) => $($borrow)+ *task,
            Self::Speak(task) => $($borrow)+ *task,
        }
    };
}

impl AnyTask for InternalRequest {
    fn task(&self) -> &dyn InternalTask {
        task_of!(self, &)
    }

    fn task_mut(&mut self) -> &mut dyn InternalTask {
        task_of!(self, &mut)
    }
}
