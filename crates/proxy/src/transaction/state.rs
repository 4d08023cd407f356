//! What a session's transaction is: requests that are queued, or what is left of the reply to EXEC.

use crate::session::marks::SessionTransaction;
use crate::transaction::queue::QueuedCommands;
use crate::transaction::reply_parts::ExecReply;
use std::any::Any;

/// The transaction of a session.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) queued: Option<QueuedCommands>,
    /// Remaining elements of the reply to an EXEC whose node has answered.
    pub(crate) exec_reply: Option<ExecReply>,
}

impl SessionTransaction for Transaction {
    fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + self.queued.as_ref().map_or(0, QueuedCommands::held_bytes)
            + self.exec_reply.as_ref().map_or(0, ExecReply::held_bytes)
    }

    fn queued(&self) -> Option<usize> {
        self.queued.as_ref().map(|queued| queued.entries.len())
    }

    fn is_whole(&self) -> bool {
        self.queued.as_ref().is_some_and(|queued| !queued.is_dirty)
    }

    fn is_replying(&self) -> bool {
        self.exec_reply.is_some()
    }
}

impl Transaction {
    /// The transaction of a session, from the place where that keeps it.
    pub(crate) fn of(transaction: &Option<Box<dyn SessionTransaction>>) -> Option<&Self> {
        let transaction: &dyn Any = &**transaction.as_ref()?;
        transaction.downcast_ref()
    }

    /// The requests that are queued.
    pub(crate) fn queued_of(transaction: &Option<Box<dyn SessionTransaction>>) -> Option<&QueuedCommands> {
        Self::of(transaction)?.queued.as_ref()
    }

    /// The same, made if there is none yet.
    pub(super) fn begun(transaction: &mut Option<Box<dyn SessionTransaction>>) -> Option<&mut Self> {
        transaction.get_or_insert_with(|| Box::new(Self::default()));
        Self::of_mut(transaction)
    }

    pub(super) fn of_mut(transaction: &mut Option<Box<dyn SessionTransaction>>) -> Option<&mut Self> {
        let transaction: &mut dyn Any = &mut **transaction.as_mut()?;
        transaction.downcast_mut()
    }

    /// The requests that are queued, to be changed.
    pub(super) fn queued_in(transaction: &mut Option<Box<dyn SessionTransaction>>) -> Option<&mut QueuedCommands> {
        Self::of_mut(transaction)?.queued.as_mut()
    }

    /// What is left of a reply, to be changed.
    pub(super) fn reply_in(transaction: &mut Option<Box<dyn SessionTransaction>>) -> Option<&mut ExecReply> {
        Self::of_mut(transaction)?.exec_reply.as_mut()
    }
}
