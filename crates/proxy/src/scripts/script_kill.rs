//! SCRIPT KILL on its way to all nodes.

use crate::ids::{ClientHandle, LaneHandle};
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, JointReply, TaskReply};
use crate::session::table::Clients;

/// An order to stop that nodes have not all answered.
#[derive(Debug)]
pub(crate) struct ScriptKill {
    pub(crate) reply: JointReply,
    /// The client whose order it is.
    pub(crate) client: ClientHandle,
    pub(crate) lanes: Vec<LaneHandle>,
}

impl InternalTask for ScriptKill {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.reply.take(reply, clients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::progress::LostReply;
    use crate::reply::task::TaskLoss;
    use crate::testing::{env_with_node, request};
    use respool_route::Gather;
    use respool_wire::ReplyKind;

    #[test]
    fn an_order_is_answered_when_the_last_node_has_answered() {
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = env.test_asker(client);
        let mut gather = Gather::new();
        request("SCRIPT KILL", |row, args| gather.begin_all(row, args, 2, 0));
        let reply = JointReply { asker: Some(asker), gather };
        let mut kill = ScriptKill { reply, client: asker.session, lanes: Vec::new() };
        let lost = TaskLoss { step: 1, loss: LostReply::Unsent, error: &"NOTBUSY none".into() };
        assert_eq!(kill.handle_loss(lost, &mut env.clients), Progress::Waits);
        assert_eq!(env.take_output(client), "");
        let reply = TaskReply { step: 0, kind: ReplyKind::Simple, bytes: b"+OK\r\n" };
        assert_eq!(kill.handle_reply(reply, &mut env.clients), Progress::Through);
        assert_eq!(env.take_output(client), "+OK\r\n", "one of them was stopped");
    }
}
