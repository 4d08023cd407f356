//! `PING`: whether Respool is there, and whether the only node is.
//!
//! Clients and their pools send PINGs to find out whether what they are about to ask will be answered. Where all that a client can
//! ask goes to one node, PONG without that node would be a lie while the node is down, or stopped, or busy with a script. So the
//! node is asked, unless it was heard of a moment ago on the connection that the client shares: then it would say the same.
//! Like any other request, a PING waits behind what was asked before, and gets the node's error or ours where no PONG comes.
//!
//! With several nodes there is no one to ask, and PONG says that Respool is there.

use crate::commands::subscriber_ping::{SubscriberPing, write_pong};
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientId, LaneKeyId, NodeId};
use crate::limits::{PING_FRESH_US, PING_TEXT_BYTES_MAX};
use crate::pool::Lanes;
use crate::session::table::Clients;
use crate::session::{Flow, SessionFlags};
use respool_command::{Execute, Row, text as texts};
use respool_connection::Now;
use respool_wire::{Args, encode_request, replies};

impl<E: Execute> Env<E> {
    /// PING of a RESP2 subscriber, forwarded to the only node like any other. One with a long text is answered here, since
    /// the text would have to be kept until the node replies: PONG then says that Respool is up.
    pub(crate) fn ping_of_subscriber(&mut self, index: ClientId, args: Args<'_>) -> Flow {
        let text = args.get(1).unwrap_or_default();
        let is_short = text.len() <= PING_TEXT_BYTES_MAX;
        let node = self
            .only_node_of(index)
            .filter(|node| is_short && !self.clients.is_heard_of(&self.lanes, self.now, index, *node));
        let Some(node) = node else {
            return self.answer(index, |reply| write_pong(reply, text));
        };
        let Some(asker) = self.clients.expect_reply(index) else { return Flow::Stop };
        let (Some(asker), Some(session)) = (asker, self.clients.sessions.at(index)) else { return Flow::Next };
        let class = session.class;
        let task = self.tasks.begin(SubscriberPing { asker, text: text.into() });
        let lane = self.lanes.lane(&self.config, node, class);
        self.send_for_task(task, 0, lane, |out| encode_request(out, [b"PING".as_slice()].into_iter()));
        self.clients.keep_outstanding(index)
    }

    /// The node that everything goes to that a client may ask for in its database. `None`: there are several, or the
    /// engine in this process, or an operator holds requests to the node back, which is no reason to take a client's
    /// connection for dead.
    fn only_node_of(&self, index: ClientId) -> Option<NodeId> {
        let session = self.clients.sessions.at(index)?;
        if self.engine.is_some() || session.dedicated().is_some() || self.is_all_paused {
            return None;
        }
        let node = if session.flags.has(SessionFlags::ROUTED) {
            match self.config.routes.nodes_in(self.clients.user_of(index), session.database)[..] {
                [only] => NodeId::at(only),
                _ => return None,
            }
        } else {
            self.config.topology.is_single().then_some(self.config.default_node())?
        };
        (!self.lanes.nodes[node].is_paused).then_some(node)
    }

    /// PING. `None`: the only node answers it.
    pub(crate) fn ping(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        if args.len() > 2 {
            return Some(self.refuse(index, ErrorReply::of(|words| texts::wrong_arity(row, words))));
        }
        if let Some(node) = self.only_node_of(index)
            && !self.clients.is_heard_of(&self.lanes, self.now, index, node)
        {
            return None;
        }
        Some(self.answer(index, |reply| match args.get(1) {
            Some(text) => reply.bulk(text),
            None => reply.raw(replies::PONG),
        }))
    }
}

impl Clients {
    /// Whether a node was heard of a moment ago on a connection that the client's requests take.
    fn is_heard_of(&self, lanes: &Lanes, now: Now, index: ClientId, node: NodeId) -> bool {
        let Some(session) = self.sessions.at(index) else { return false };
        let is_fresh = |class: LaneKeyId| {
            let lane = lanes.known(node, class).map(|lane| &lanes[lane]);
            lane.is_some_and(|lane| {
                let is_recent = |at_us: u64| now.mono_us.saturating_sub(at_us) <= PING_FRESH_US;
                // It would answer BUSY to a PING as well, whichever client runs the script.
                let has_been_busy = lane.busy_us > 0 && is_recent(lane.busy_us);
                lane.up.is_ready() && is_recent(lane.up.last_heard_us()) && !has_been_busy
            })
        };
        // What was heard of a node that is busy with a script may have been just that.
        let base = lanes.base(session.class);
        let is_busy = lanes.script_classes_of(base).any(|class| lanes.is_busy_for_long(class, now.mono_us));
        !is_busy && (is_fresh(session.class) || is_fresh(base))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EchoEngine, env_with_engine, env_with_node, request};

    #[test]
    fn an_engine_is_there_and_a_node_is_asked() {
        let mut env = env_with_engine();
        let client = env.test_client();
        let ping = |env: &mut Env<EchoEngine>, said: &str| request(said, |row, args| env.ping(client, row, args));
        assert_eq!(ping(&mut env, "PING"), Some(Flow::Next));
        assert_eq!(ping(&mut env, "PING hi"), Some(Flow::Next));
        assert_eq!(env.take_output(client), "+PONG\r\n$2\r\nhi\r\n");
        let mut env = env_with_node();
        assert_eq!(env.test_client(), client);
        assert_eq!(ping(&mut env, "PING"), None, "nothing was heard of the node yet");
        env.lanes.nodes[NodeId::nth(0)].is_paused = true;
        assert_eq!(ping(&mut env, "PING"), Some(Flow::Next), "a pause is no reason to take us for dead");
    }
}
