//! A change on its way to all engines.

use crate::nodes::id::NodeId;
use crate::pool::key_id::LaneKeyId;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::id::{Asker, ClientHandle};
use crate::session::table::Clients;
use respool_route::Gather;
use respool_wire::ReplyKind;

/// A request that engines have not all answered.
#[derive(Debug)]
pub(crate) struct EnginesChange {
    /// `None` if no reply is wanted.
    pub(crate) asker: Option<Asker>,
    /// The client that has sent it.
    pub(crate) client: ClientHandle,
    /// Which of the connections to each engine it goes over.
    pub(crate) class: LaneKeyId,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) gather: Gather,
    /// As it is sent, until it has its turn.
    pub(crate) request: Vec<u8>,
}

impl InternalTask for EnginesChange {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.gather.accept(usize::from(reply.step), reply.kind, reply.bytes);
        if !self.gather.is_complete() {
            return Progress::Waits;
        }
        let gather = &mut self.gather;
        match self.asker {
            Some(asker) => clients.finish(asker.session, asker.seq, |out| gather.finish(out)),
            None => gather.finish(&mut Vec::new()),
        }
        Progress::Through
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, clients: &mut Clients) -> Progress {
        self.handle_reply(TaskReply { step: lost.step, kind: ReplyKind::Error, bytes: lost.error }, clients)
    }

    fn class(&self) -> Option<LaneKeyId> {
        Some(self.class)
    }
}
