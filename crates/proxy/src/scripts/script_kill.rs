//! SCRIPT KILL on its way to all nodes.

use crate::pool::table::LaneHandle;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::id::{Asker, ClientHandle};
use crate::session::table::Clients;
use respool_route::Gather;
use respool_wire::ReplyKind;

/// An order to stop that nodes have not all answered.
#[derive(Debug)]
pub(crate) struct ScriptKill {
    /// `None` if no reply is wanted.
    pub(crate) asker: Option<Asker>,
    /// The client whose order it is.
    pub(crate) client: ClientHandle,
    pub(crate) gather: Gather,
    pub(crate) lanes: Vec<LaneHandle>,
}

impl InternalTask for ScriptKill {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::progress::LostReply;
    use crate::testing::{env_with_node, request};

    #[test]
    fn an_order_is_answered_when_the_last_node_has_answered() {
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = env.test_asker(client);
        let mut gather = Gather::new();
        request("SCRIPT KILL", |row, args| gather.begin_all(row, args, 2, 0));
        let mut kill = ScriptKill { asker: Some(asker), client: asker.session, gather, lanes: Vec::new() };
        let lost = TaskLoss { step: 1, loss: LostReply::Unsent, error: b"-NOTBUSY none\r\n" };
        assert_eq!(kill.handle_loss(lost, &mut env.clients), Progress::Waits);
        assert_eq!(env.take_output(client), "");
        let reply = TaskReply { step: 0, kind: ReplyKind::Simple, bytes: b"+OK\r\n" };
        assert_eq!(kill.handle_reply(reply, &mut env.clients), Progress::Through);
        assert_eq!(env.take_output(client), "+OK\r\n", "one of them was stopped");
    }
}
