//! A change on its way to all engines.

use crate::ids::{ClientHandle, Handle, LaneKeyId, NodeId};
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, JointReply, TaskReply};
use crate::session::table::Clients;

/// A request that engines have not all answered.
#[derive(Debug)]
pub(crate) struct EnginesChange {
    pub(crate) reply: JointReply,
    /// The client that has sent it.
    pub(crate) client: ClientHandle,
    /// Which of the connections to each engine it goes over.
    pub(crate) class: LaneKeyId,
    pub(crate) nodes: Vec<NodeId>,
    /// As it is sent, until it has its turn.
    pub(crate) request: Vec<u8>,
}

/// To the worker that has begun it: it is the turn of this change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeTurn(pub(crate) Handle);

impl InternalTask for EnginesChange {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.reply.take(reply, clients)
    }

    fn class(&self) -> Option<LaneKeyId> {
        Some(self.class)
    }
}
