//! The tasks of a worker: requests that it makes itself, or whose replies it must read before a client may have them.
//!
//! A task is fed like a gather: whole replies by `handle_reply`, and `handle_loss` where none will come. It may answer clients
//! while it is fed; what needs lanes or the worker is done when it is through. This is only the table of those that are under way:
//! which tasks there are is known to the features that begin them, and to `worker`, which concludes them.

use crate::error_reply::ErrorReply;
use crate::ids::{Asker, ClientHandle, Handle, LaneHandle, LaneKeyId};
use crate::nodes::moves::Moves;
use crate::nodes::multi::Multi;
use crate::reply::owner::Owner;
use crate::reply::progress::{LostReply, Progress};
use crate::session::table::Clients;
use crate::slab::Slab;
use respool_route::Gather;
use respool_wire::ReplyKind;
use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;

/// A whole reply to request number `step` of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskReply<'a> {
    pub(crate) step: u16,
    pub(crate) kind: ReplyKind,
    pub(crate) bytes: &'a [u8],
}

/// Request number `step` of a task will have no reply; `error` says why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskLoss<'a> {
    pub(crate) step: u16,
    pub(crate) loss: LostReply,
    pub(crate) error: &'a ErrorReply,
}

/// The reply to what several nodes are told for one client: it is joined of theirs.
#[derive(Debug)]
pub(crate) struct JointReply {
    /// `None` if no reply is wanted.
    pub(crate) asker: Option<Asker>,
    pub(crate) gather: Gather,
}

impl JointReply {
    /// A node has replied. The client has the whole behind the last of them.
    pub(crate) fn take(&mut self, part: TaskReply<'_>, clients: &mut Clients) -> Progress {
        let Self { asker, gather } = self;
        gather.accept(usize::from(part.step), part.kind, part.bytes);
        if !gather.is_complete() {
            return Progress::Waits;
        }
        match asker {
            Some(asker) => clients.finish(asker.session, asker.seq, |out| gather.finish(out)),
            None => gather.finish(&mut Vec::new()),
        }
        Progress::Through
    }
}

/// What a feature does with the replies to what it asks.
pub(crate) trait InternalTask: Any + Debug + Send {
    /// Takes a reply.
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress;

    /// One reply will not come. The client that waits is told so; without one the error takes its place, unless it makes a difference
    /// which of them it is.
    fn handle_loss(&mut self, TaskLoss { step, error, .. }: TaskLoss<'_>, clients: &mut Clients) -> Progress {
        let Some(asker) = self.asker() else {
            return self.handle_reply(TaskReply { step, kind: ReplyKind::Error, bytes: error.as_bytes() }, clients);
        };
        clients.fail_asker(asker, error);
        Progress::Through
    }

    /// The client that waits for what it answers, if it answers in the place of a node.
    fn asker(&self) -> Option<Asker> {
        None
    }

    /// The class that it keeps, although its client may have disconnected.
    fn class(&self) -> Option<LaneKeyId> {
        None
    }

    /// Other nodes are configured. Where keys are placed or named in another way now (`has_other_ways`), what would be sent once
    /// more is not.
    fn move_to(&mut self, _moves: &Moves, _has_other_ways: bool) {}

    /// Whether what it has left on a lane is not known before it is concluded.
    fn leaves_something_on(&self, _lane: LaneHandle) -> bool {
        false
    }

    /// Whether it is a block that runs on this private connection and has not been answered.
    fn waits_on(&self, _lane: LaneHandle) -> bool {
        false
    }

    /// If it is a block that is to run on this lane, or was sent there and has not been answered: the lane is the block's, as one
    /// that is lent for a transaction. Returns whether it is.
    fn bind_to(&mut self, _lane: LaneHandle) -> bool {
        false
    }

    /// Whether it goes on reading its replies although they come late: the outcome of a transaction must be known, and a late PING
    /// does not count as a late request of a client.
    fn is_late(&self) -> bool {
        false
    }

    /// Whether it may come to do so once it is told that a reply is late.
    fn may_be_late(&self) -> bool {
        false
    }

    /// The bound of a reply that is for no client in particular.
    fn reply_bytes_max(&self) -> Option<usize> {
        None
    }

    /// What it has found out about MULTI on its connection, once it no longer waits.
    fn multi(&self) -> Option<Multi> {
        None
    }
}

/// The tasks of one worker.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: Slab<Box<dyn InternalTask>>,
    /// Tasks whose replies have all come, in the order of their last replies.
    pub(crate) through: VecDeque<Box<dyn InternalTask>>,
    is_out_of_step: bool,
    known: Option<Multi>,
}

impl Tasks {
    /// Makes tables smaller of which most is unused.
    pub(crate) fn shrink(&mut self) {
        self.running.shrink();
    }

    /// Begins a task; its requests are sent with [`Tasks::owner`].
    pub(crate) fn begin(&mut self, task: impl InternalTask) -> Handle {
        self.running.insert(Box::new(task))
    }

    fn all(&self) -> impl Iterator<Item = &Box<dyn InternalTask>> {
        self.running.iter().map(|(_, task)| task).chain(&self.through)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn InternalTask>> {
        self.running.iter_mut().map(|(_, task)| task).chain(&mut self.through)
    }

    /// Other nodes are configured, see [`InternalTask::move_to`].
    pub(crate) fn move_nodes(&mut self, moves: &Moves, has_other_ways: bool) {
        self.all_mut().for_each(|task| task.move_to(moves, has_other_ways));
    }

    /// The classes of elements being put back and of transactions not yet sent: their clients may have disconnected.
    pub(crate) fn classes(&self) -> impl Iterator<Item = LaneKeyId> {
        self.all().filter_map(|task| task.class())
    }

    /// How many are under way or not concluded.
    pub(crate) fn len(&self) -> usize {
        self.running.len() + self.through.len()
    }

    /// Whether what a task has left on a lane is not known before it is concluded, although nothing is owed there any more.
    pub(crate) fn leaves_something_on(&self, lane: LaneHandle) -> bool {
        self.through.iter().any(|task| task.leaves_something_on(lane))
    }

    /// Whether a block is to run on a lane, or has not been answered there: a node drops what it has not read of a connection that is
    /// closed. If so the lane is the block's, as one that is lent for a transaction, and is given back with its reply.
    pub(crate) fn bind_blocks_to(&mut self, lane: LaneHandle) -> bool {
        self.all_mut().fold(false, |is_any, task| is_any | task.bind_to(lane))
    }

    /// Whether a block that has not been answered runs on a private connection.
    pub(crate) fn has_block_on(&self, lane: LaneHandle) -> bool {
        self.all().any(|task| task.waits_on(lane))
    }

    /// The owner of the reply to a task's request number `step`.
    pub(crate) fn owner(task: Handle, step: u16) -> Owner {
        Owner::Task { task: task.index, generation: task.generation, step }
    }

    /// A task that is under way, for the feature that began it.
    pub(crate) fn get_mut<T: InternalTask>(&mut self, of: Handle) -> Option<&mut T> {
        let task: &mut dyn Any = &mut **self.running.get_mut(of)?;
        task.downcast_mut()
    }

    /// The client that waits for what a task answers, if it answers in the place of a node.
    pub(crate) fn asker(&self, of: Handle) -> Option<ClientHandle> {
        Some(self.running.get(of)?.asker()?.session)
    }

    /// The client in whose place a task answers for a node, and that place, if the ticket is one of such a task.
    pub(crate) fn place_of(&self, owner: Owner) -> Option<Asker> {
        self.owned(owner)?.asker()
    }

    /// The bound of a reply that is for no client in particular.
    pub(crate) fn reply_bytes_max(&self, of: Handle) -> Option<usize> {
        self.running.get(of)?.reply_bytes_max()
    }

    /// The whole reply to one request of a task.
    pub(crate) fn feed(&mut self, to: Handle, step: u16, kind: ReplyKind, reply: &[u8], clients: &mut Clients) {
        let Some(task) = self.running.get_mut(to) else {
            clients.counters.replies_swallowed.add(1);
            return;
        };
        let progress = task.handle_reply(TaskReply { step, kind, bytes: reply }, clients);
        self.is_out_of_step |= progress == Progress::OutOfStep;
        if progress != Progress::Waits {
            if let Some(multi) = task.multi() {
                self.known = Some(multi);
            }
            self.end(to);
        }
    }

    fn owned(&self, by: Owner) -> Option<&dyn InternalTask> {
        let Owner::Task { task, generation, .. } = by else { return None };
        self.running.get(Handle { index: task, generation }).map(|task| &**task)
    }

    /// Whether a task goes on reading its replies although they come late.
    pub(crate) fn follows(&self, owner: Owner) -> bool {
        self.owned(owner).is_some_and(InternalTask::is_late)
    }

    /// Whether a task may come to do so once it is told that a reply is late.
    pub(crate) fn may_follow(&self, owner: Owner) -> bool {
        self.owned(owner).is_some_and(InternalTask::may_be_late)
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
    pub(crate) fn fail(&mut self, to: Handle, step: u16, loss: LostReply, error: &ErrorReply, clients: &mut Clients) {
        let Some(task) = self.running.get_mut(to) else { return };
        if task.handle_loss(TaskLoss { step, loss, error }, clients) != Progress::Waits {
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
    use crate::ids::LaneTable;
    use crate::observe::counters::Counters;
    use std::sync::Arc;

    /// A task that takes replies until `last`, and is told of a late one as a transaction is.
    #[derive(Debug, Default)]
    struct Steps {
        last: u16,
        fed: Vec<u16>,
        lost: Vec<u16>,
        is_late: bool,
        lane: Option<LaneHandle>,
    }

    impl InternalTask for Steps {
        fn handle_reply(&mut self, reply: TaskReply<'_>, _: &mut Clients) -> Progress {
            self.fed.push(reply.step);
            match reply.kind {
                ReplyKind::Error => Progress::OutOfStep,
                _ if reply.step == self.last => Progress::Through,
                _ => Progress::Waits,
            }
        }

        fn handle_loss(&mut self, lost: TaskLoss<'_>, _: &mut Clients) -> Progress {
            self.lost.push(lost.step);
            self.is_late = lost.loss == LostReply::Late;
            if self.is_late { Progress::Waits } else { Progress::Through }
        }

        fn leaves_something_on(&self, lane: LaneHandle) -> bool {
            self.lane == Some(lane)
        }

        fn waits_on(&self, lane: LaneHandle) -> bool {
            self.lane == Some(lane)
        }

        fn bind_to(&mut self, lane: LaneHandle) -> bool {
            self.lane.replace(lane).is_none()
        }

        fn is_late(&self) -> bool {
            self.is_late
        }

        fn may_be_late(&self) -> bool {
            true
        }
    }

    fn bench() -> (Tasks, Clients) {
        (Tasks::default(), Clients::new(Arc::new(Counters::default())))
    }

    fn lane() -> LaneHandle {
        Handle { index: LaneTable::<()>::default().next_id(), generation: 0 }
    }

    #[test]
    fn a_reply_for_a_task_that_has_gone_is_swallowed() {
        let (mut tasks, mut clients) = bench();
        let first = tasks.begin(Steps::default());
        tasks.fail(first, 0, LostReply::Unknown, &ErrorReply::new("ERR gone"), &mut clients);
        assert_eq!(tasks.through.len(), 1);
        let second = tasks.begin(Steps::default());
        assert_eq!(first.index, second.index);
        tasks.feed(first, 0, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        assert!(tasks.get_mut::<Steps>(second).is_some_and(|task| task.fed.is_empty()), "it was not meant");
        assert_eq!(clients.counters.replies_swallowed.value(), 1);
        tasks.feed(second, 0, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        assert!(!tasks.has(second));
    }

    #[test]
    fn tasks_are_through_in_the_order_of_their_last_replies() {
        let (mut tasks, mut clients) = bench();
        let [long, short] = [1, 0].map(|last| tasks.begin(Steps { last, ..Steps::default() }));
        tasks.feed(long, 0, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        assert!(tasks.through.is_empty() && tasks.has(long));
        tasks.feed(short, 0, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        tasks.feed(long, 1, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        let through: Vec<&dyn Any> = tasks.through.iter().map(|task| &**task as &dyn Any).collect();
        let last = through.iter().filter_map(|task| Some(task.downcast_ref::<Steps>()?.last));
        assert_eq!(last.collect::<Vec<_>>(), [0, 1]);
        assert_eq!(tasks.len(), 2, "what is not concluded counts");
    }

    #[test]
    fn a_reply_that_cannot_be_the_tasks_own_is_reported_once() {
        let (mut tasks, mut clients) = bench();
        let task = tasks.begin(Steps { last: 9, ..Steps::default() });
        tasks.feed(task, 0, ReplyKind::Error, b"-ERR\r\n", &mut clients);
        assert!(!tasks.has(task), "it gets no more replies");
        assert!(tasks.take_out_of_step());
        assert!(!tasks.take_out_of_step());
    }

    #[test]
    fn a_late_task_goes_on_reading_until_its_lane_is_lost() {
        let (mut tasks, mut clients) = bench();
        let task = tasks.begin(Steps::default());
        let owner = Tasks::owner(task, 0);
        assert!(tasks.may_follow(owner) && !tasks.follows(owner));
        tasks.fail(task, 0, LostReply::Late, &ErrorReply::new("ERR late"), &mut clients);
        assert!(tasks.follows(owner) && tasks.has(task));
        tasks.fail(task, 0, LostReply::Unknown, &ErrorReply::new("ERR lost"), &mut clients);
        assert!(!tasks.may_follow(owner) && !tasks.follows(owner));
        assert!(!tasks.follows(Owner::Discard));
    }

    #[test]
    fn a_lane_is_bound_to_every_block_and_in_doubt_only_behind_it() {
        let (mut tasks, mut clients) = bench();
        let [first, _] = [0, 0].map(|last| tasks.begin(Steps { last, ..Steps::default() }));
        assert!(!tasks.has_block_on(lane()));
        assert!(tasks.bind_blocks_to(lane()));
        assert!(!tasks.bind_blocks_to(lane()), "both are bound by then");
        assert!(tasks.has_block_on(lane()));
        assert!(!tasks.leaves_something_on(lane()), "what is under way is owed there still");
        tasks.feed(first, 0, ReplyKind::Simple, b"+OK\r\n", &mut clients);
        assert!(tasks.leaves_something_on(lane()));
        tasks.through.clear();
        assert!(!tasks.leaves_something_on(lane()));
    }
}
