//! SCRIPT KILL and FUNCTION KILL: past the script that holds up the shared connections.
//!
//! Every node is one that routes may lead the client's user to.
//!
//! On the connection over which a script went the order to stop would wait behind it. So it goes to every node on a private
//! connection, in the plain database, since a busy node refuses to select another. Where no more of those may be lent it goes over
//! the connection that all share: scripts have others ([`crate::scripts::lanes`]), but for those of clients with connections of their own.
//!
//! A client has one such order outstanding at a time, since each takes a connection to every node; its later requests wait.

use crate::env::Env;
use crate::ids::{ClientId, NodeId};
use crate::pool::LaneUse;
use crate::pool::key_id::LaneKey;
use crate::pool::lane_reset::ResetNeeded;
use crate::reply::task::JointReply;
use crate::scripts::script_kill::ScriptKill;
use crate::session::{Flow, PauseReasons};
use respool_command::{Execute, Row};
use respool_route::Gather;
use respool_wire::{Request, encode_request};

impl<E: Execute> Env<E> {
    /// Orders every node to stop the script or function that it runs. It does not wait for earlier requests of the client,
    /// except another such order.
    pub(crate) fn stop_scripts(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let Some(client) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(asker) = self.clients.expect_reply(index) else { return Flow::Stop };
        let Some(this) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        this.pause.add(PauseReasons::ORDER);
        // A user with its own name at the nodes may do there what that name may.
        let (own, protocol) = (this.class, this.protocol);
        let class = LaneKey { database: 0, protocol, node_user: self.lanes.node_user_of(own) };
        let class = self.class_of(class).unwrap_or(own);
        // Scripts of users that routes lead elsewhere are theirs.
        let nodes: Vec<NodeId> = match self.config.routes.are_plain() {
            true => self.config.node_ids().collect(),
            false => self.config.routes.nodes_for(self.clients.user_of(index)).into_iter().map(NodeId::at).collect(),
        };
        let mut gather = Gather::new();
        gather.begin_all(row, request.args, nodes.len(), 0);
        let reply = JointReply { asker, gather };
        let task = self.tasks.begin(ScriptKill { reply, client, lanes: Vec::new() });
        for (part, node) in nodes.into_iter().enumerate() {
            let borrowed = self.lend(index, node, class, LaneUse::Private);
            if let (Ok(lane), Some(stopping)) = (&borrowed, self.tasks.get_mut::<ScriptKill>(task)) {
                stopping.lanes.push(*lane);
            }
            let place = match borrowed {
                Ok(lane) => lane.index,
                // As many as there may be are lent. What runs for long does so on others than the shared connection.
                Err(_) => self.lanes.lane(&self.config, node, class),
            };
            self.send_for_task(task, part as u16, place, |out| encode_request(out, request.args.iter()));
        }
        Flow::Pause
    }

    /// All nodes have answered: their connections go back, and the client is read on.
    pub(crate) fn conclude_stopping(&mut self, stopping: ScriptKill) {
        for lane in stopping.lanes {
            self.give_back(lane, ResetNeeded::default());
        }
        if self.clients.sessions.get(stopping.client).is_some() {
            self.clients.unpause(stopping.client.index, PauseReasons::ORDER);
        }
    }
}
