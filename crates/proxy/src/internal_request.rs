//! Requests that the worker makes itself, or whose replies it must read before a client may have them.
//!
//! A task is fed like a gather: whole replies by `feed`, and `fail` where none will come. It may answer clients while it is
//! fed; what needs lanes or the worker is done when it is through, by `conclude_tasks`.

use crate::blocking::node_queries::NodeQuery;
use crate::blocking::returns::Returning;
use crate::commands::redaction::RedactedConfigGet;
use crate::commands::subscriber_ping::SubscriberPing;
use crate::limits::FUNCTIONS_READ_BYTES_MAX;
use crate::nodes::moves::Moves;
use crate::nodes::probe::Probe;
use crate::pool::key_id::LaneKeyId;
use crate::pool::lane_reset::LaneReset;
use crate::pool::table::LaneHandle;
use crate::pubsub::query::Publishing;
use crate::reply::owner::Owner;
use crate::reply::progress::{LostReply, Progress};
use crate::scripts::evalsha_retry::EvalshaRetry;
use crate::scripts::listing::Listing;
use crate::scripts::script_kill::ScriptKill;
use crate::session::id::ClientHandle;
use crate::session::table::Clients;
use crate::slab::{Handle, Slab};
use crate::tracking::noloop_lanes::{ListenerId, ProtocolSwitch};
use crate::transaction::exec_request::Exec;
use crate::transaction::multi::Multi;
use crate::transaction::pending_watch::PendingWatch;
use crate::transaction::trial::Trial;
use crate::workers::command_info::CommandInfoQuery;
use respool_wire::ReplyKind;
use std::collections::VecDeque;

/// What the worker is about. One variant for each purpose.
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

impl InternalRequest {
    fn feed(&mut self, step: u16, kind: ReplyKind, reply: &[u8], clients: &mut Clients) -> Progress {
        match self {
            Self::Publish(publishing) => publishing.feed(kind, reply, clients),
            Self::Probe(probe) => probe.feed(reply),
            Self::SubscriberPing(pong) => pong.feed(kind, reply, clients),
            Self::Clean(cleaning) => cleaning.feed(step, reply),
            Self::Watch(watching) => watching.feed(reply, clients),
            Self::Exec(exec) => exec.feed(step, reply, clients),
            Self::Trial(trial) => trial.feed(step, reply),
            Self::Heal(healing) => healing.feed(reply, clients),
            Self::Hide(hiding) => hiding.feed(reply, clients),
            Self::Stop(stopping) => stopping.feed(step, kind, reply, clients),
            Self::NodeQuery(query) => query.feed(step, kind, reply),
            Self::Return(returning) => returning.feed(kind, reply),
            Self::Learn(learning) => learning.feed(reply),
            Self::List(listing) => listing.feed(reply),
            Self::Listen(listening) => listening.feed(kind, reply),
            Self::Speak(speaking) => speaking.feed(kind),
        }
    }

    fn fail(&mut self, step: u16, loss: LostReply, error: &[u8], clients: &mut Clients) -> Progress {
        match self {
            Self::Publish(publishing) => publishing.fail(error, clients),
            Self::Probe(probe) => probe.fail(loss),
            Self::SubscriberPing(pong) => pong.fail(error, clients),
            Self::List(_) => Progress::Through,
            Self::Clean(cleaning) => cleaning.fail(),
            Self::Watch(watching) => watching.feed(error, clients),
            Self::Exec(exec) => exec.fail(loss, error, clients),
            Self::Trial(trial) => trial.fail(loss, error, clients),
            Self::Heal(healing) => healing.fail(error, clients),
            Self::Hide(hiding) => hiding.fail(error, clients),
            Self::Stop(stopping) => stopping.feed(step, ReplyKind::Error, error, clients),
            Self::NodeQuery(query) => query.fail(error),
            Self::Return(returning) => returning.fail(loss, error),
            Self::Learn(learning) => learning.fail(error),
            Self::Listen(_) | Self::Speak(_) => Progress::Through,
        }
    }
}

/// The tasks of one worker.
#[derive(Debug, Default)]
pub(crate) struct InternalRequests {
    running: Slab<InternalRequest>,
    /// Tasks whose replies have all come, in the order of their last replies.
    pub(crate) through: VecDeque<InternalRequest>,
    is_out_of_step: bool,
    known: Option<Multi>,
}

impl InternalRequests {
    /// Makes tables smaller of which most is unused.
    pub(crate) fn shrink(&mut self) {
        self.running.shrink();
    }

    /// Begins a task; its requests are sent with [`InternalRequests::owner`].
    pub(crate) fn begin(&mut self, task: InternalRequest) -> Handle {
        self.running.insert(task)
    }

    /// Other nodes are configured. Where keys are placed or named in another way now (`has_other_ways`), what would be sent once
    /// more is not.
    pub(crate) fn move_nodes(&mut self, moves: &Moves, has_other_ways: bool) {
        let running = self.running.iter_mut().map(|(_, task)| task);
        for task in running.chain(&mut self.through) {
            match task {
                InternalRequest::Exec(exec) => exec.move_to(moves),
                InternalRequest::Trial(trial) => trial.move_to(moves, has_other_ways),
                InternalRequest::Heal(healing) => healing.move_to(moves, has_other_ways),
                InternalRequest::Publish(publishing) => publishing.move_to(moves),
                InternalRequest::Return(returning) => returning.move_to(moves),
                // Their questions are under way, and what they do then is not about a place.
                InternalRequest::Clean(_)
                | InternalRequest::Watch(_)
                | InternalRequest::Stop(_)
                | InternalRequest::Hide(_)
                | InternalRequest::SubscriberPing(_) => {}
                InternalRequest::Learn(_)
                | InternalRequest::List(_)
                | InternalRequest::NodeQuery(_)
                | InternalRequest::Probe(_)
                | InternalRequest::Listen(_)
                | InternalRequest::Speak(_) => {}
            }
        }
    }

    /// The classes of elements being put back and of transactions not yet sent: their clients may have disconnected.
    pub(crate) fn classes(&self) -> impl Iterator<Item = LaneKeyId> {
        self.running.iter().map(|(_, task)| task).chain(&self.through).filter_map(|task| match task {
            InternalRequest::Return(returning) => Some(returning.class()),
            InternalRequest::Exec(exec) => Some(exec.class()),
            InternalRequest::Trial(trial) => trial.class(),
            _ => None,
        })
    }

    /// How many are under way or not concluded.
    pub(crate) fn len(&self) -> usize {
        self.running.len() + self.through.len()
    }

    /// Whether what a task has left on a lane is not known before it is concluded, although nothing is owed there any more.
    pub(crate) fn leaves_something_on(&self, lane: LaneHandle) -> bool {
        self.through.iter().any(|task| match task {
            InternalRequest::Exec(exec) => exec.runs_on(lane),
            InternalRequest::Clean(cleaning) => cleaning.leaves_something_on(lane),
            _ => false,
        })
    }

    /// Whether a block is to run on a lane, or has not been answered there: a node drops what it has not read of a connection that is
    /// closed. If so the lane is the block's, as one that is lent for a transaction, and is given back with its reply.
    pub(crate) fn bind_blocks_to(&mut self, lane: LaneHandle) -> bool {
        let tasks = self.running.iter_mut().map(|(_, task)| task).chain(&mut self.through);
        let bound = tasks.map(|task| match task {
            InternalRequest::Trial(trial) => trial.bind_to(lane),
            InternalRequest::Exec(exec) => exec.bind_to(lane),
            _ => false,
        });
        bound.fold(false, |is_any, is_bound| is_any | is_bound)
    }

    /// Whether a block that has not been answered runs on a private connection.
    pub(crate) fn has_block_on(&self, lane: LaneHandle) -> bool {
        let tasks = self.running.iter().map(|(_, task)| task).chain(&self.through);
        tasks.into_iter().any(|task| matches!(task, InternalRequest::Exec(exec) if exec.waits_on(lane)))
    }

    /// Who is owed the reply to a task's request number `step`.
    pub(crate) fn owner(task: Handle, step: u16) -> Owner {
        Owner::Task { task: task.index, generation: task.generation, step }
    }

    /// A task that is under way.
    pub(crate) fn get_mut(&mut self, of: Handle) -> Option<&mut InternalRequest> {
        self.running.get_mut(of)
    }

    /// The client that waits for what a task answers, if it answers in the place of a node.
    pub(crate) fn asker(&self, of: Handle) -> Option<ClientHandle> {
        match self.running.get(of)? {
            InternalRequest::Exec(exec) => Some(exec.asker.session),
            InternalRequest::Heal(healing) => Some(healing.asker.session),
            InternalRequest::Hide(hiding) => Some(hiding.asker.session),
            InternalRequest::SubscriberPing(pong) => Some(pong.asker.session),
            InternalRequest::Publish(publishing) => Some(publishing.asker.session),
            InternalRequest::Trial(trial) => trial.asker(),
            InternalRequest::Clean(_)
            | InternalRequest::Watch(_)
            | InternalRequest::Stop(_)
            | InternalRequest::Learn(_)
            | InternalRequest::NodeQuery(_) => None,
            // Several clients may wait for it.
            InternalRequest::List(_) => None,
            InternalRequest::Probe(_)
            | InternalRequest::Listen(_)
            | InternalRequest::Speak(_)
            | InternalRequest::Return(_) => None,
        }
    }

    /// The bound of a reply that is for no client in particular.
    pub(crate) fn reply_bytes_max(&self, of: Handle) -> Option<usize> {
        matches!(self.running.get(of)?, InternalRequest::List(_)).then_some(FUNCTIONS_READ_BYTES_MAX)
    }

    /// The whole reply to one request of a task.
    pub(crate) fn feed(&mut self, to: Handle, step: u16, kind: ReplyKind, reply: &[u8], clients: &mut Clients) {
        let Some(task) = self.running.get_mut(to) else {
            clients.counters.replies_swallowed.add(1);
            return;
        };
        let progress = task.feed(step, kind, reply, clients);
        self.is_out_of_step |= progress == Progress::OutOfStep;
        if let InternalRequest::Trial(trial) = task
            && progress != Progress::Waits
        {
            self.known = Some(trial.verdict());
        }
        if progress != Progress::Waits {
            self.end(to);
        }
    }

    /// Whether a task goes on reading its replies although they come late: the outcome of its transaction must be known,
    /// and a late PING does not count as a late request of a client.
    pub(crate) fn follows(&self, owner: Owner) -> bool {
        let Owner::Task { task, generation, .. } = owner else { return false };
        match self.running.get(Handle { index: task, generation }) {
            Some(InternalRequest::Exec(exec)) => exec.is_late(),
            Some(InternalRequest::Trial(trial)) => trial.is_late(),
            Some(InternalRequest::Probe(probe)) => probe.is_late(),
            _ => false,
        }
    }

    /// Whether a task may come to do so once it is told that a reply is late.
    pub(crate) fn may_follow(&self, owner: Owner) -> bool {
        let Owner::Task { task, generation, .. } = owner else { return false };
        matches!(
            self.running.get(Handle { index: task, generation }),
            Some(InternalRequest::Exec(_) | InternalRequest::Trial(_) | InternalRequest::Probe(_))
        )
    }

    /// Whether a task is under way.
    pub(crate) fn has(&self, of: Handle) -> bool {
        self.running.get(of).is_some()
    }

    /// What the last reply fed says of MULTI on its connection, if it says anything.
    pub(crate) fn take_known(&mut self) -> Option<Multi> {
        self.known.take()
    }

    /// Whether the last reply fed cannot have been for its task: replies of its connection belong to others by now.
    pub(crate) fn take_out_of_step(&mut self) -> bool {
        std::mem::take(&mut self.is_out_of_step)
    }

    /// A task was begun in vain: nothing was sent.
    pub(crate) fn forget(&mut self, of: Handle) {
        self.running.remove(of.index);
    }

    /// One request of a task will have no reply; `error` says why.
    pub(crate) fn fail(&mut self, to: Handle, step: u16, loss: LostReply, error: &[u8], clients: &mut Clients) {
        let Some(task) = self.running.get_mut(to) else { return };
        if task.fail(step, loss, error, clients) != Progress::Waits {
            self.end(to);
        }
    }

    fn end(&mut self, of: Handle) {
        self.through.extend(self.running.remove(of.index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::counters::Counters;
    use crate::pool::table::LaneTable;
    use std::sync::Arc;

    #[test]
    fn a_reply_for_a_task_that_has_gone_is_swallowed() {
        let mut clients = Clients::new(Arc::new(Counters::default()));
        let mut tasks = InternalRequests::default();
        let lane = Handle { index: LaneTable::<()>::default().next_id(), generation: 0 };
        let first = tasks.begin(InternalRequest::Clean(LaneReset::new(lane, 1)));
        tasks.fail(first, 0, LostReply::Unknown, b"-ERR gone\r\n", &mut clients);
        assert_eq!(tasks.through.len(), 1);
        let second = tasks.begin(InternalRequest::Clean(LaneReset::new(lane, 1)));
        assert_eq!(first.index, second.index);
        tasks.feed(first, 0, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        assert!(tasks.get_mut(second).is_some(), "it was not meant");
        assert_eq!(clients.counters.replies_swallowed.value(), 1);
        tasks.feed(second, 0, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        assert!(tasks.get_mut(second).is_none());
    }
}
