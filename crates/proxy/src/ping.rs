//! `PING`: whether Respool is there, and whether the only node is.
//!
//! Clients and their pools send PINGs to find out whether what they are about to ask will be answered. Where all that a client can
//! ask goes to one node, PONG without that node would be a lie while the node is down, or stopped, or busy with a script. So the
//! node is asked, unless it was heard of a moment ago on the connection that the client shares: then it would say the same.
//! Like any other request, a PING waits behind what was asked before, and gets the node's error or ours where no PONG comes.
//!
//! With several nodes there is no one to ask, and PONG says that Respool is there.

use crate::limits::PING_FRESH_US;
use crate::session::{Flow, Special};
use crate::worker::Worker;
use respool_command::{Execute, Row, text as texts};
use respool_wire::{Args, Request, replies};

impl<E: Execute> Worker<E> {
    pub(crate) fn ping(&mut self, index: u32, row: &'static Row, args: Args<'_>) -> Flow {
        if args.len() > 2 {
            let mut words = Vec::new();
            texts::wrong_arity(row, &mut words);
            return self.refuse(index, &words);
        }
        if let Some(node) = self.only_node_of(index)
            && !self.is_heard_of(index, node)
        {
            return self.pass_on(index, row, &Request::made(args));
        }
        self.answer(index, |reply| match args.get(1) {
            Some(text) => reply.bulk(text),
            None => reply.raw(replies::PONG),
        });
        Flow::Next
    }

    /// The node that everything goes to that a client may ask for in its database. `None`: there are several, or the
    /// engine in this process, or an operator holds requests to the node back, which is no reason to take a client's
    /// connection for dead.
    fn only_node_of(&self, index: u32) -> Option<usize> {
        let session = self.clients.sessions.at(index)?;
        if self.engine.is_some() || session.dedicated().is_some() || self.is_all_paused {
            return None;
        }
        let node = if session.special.has(Special::ROUTED) {
            match self.config.routes.nodes_in(self.user_of(index), session.database)[..] {
                [only] => only,
                _ => return None,
            }
        } else {
            self.config.topology.is_single().then_some(0)?
        };
        (!self.lanes.nodes[node].is_paused).then_some(node)
    }

    /// Whether a node was heard of a moment ago on a connection that the client's requests take.
    fn is_heard_of(&self, index: u32, node: usize) -> bool {
        let Some(session) = self.clients.sessions.at(index) else { return false };
        let is_fresh = |class: u16| {
            let lane = self.lanes.known(node, class).map(|lane| &self.lanes.all[lane]);
            lane.is_some_and(|lane| {
                lane.up.is_ready() && self.now.mono_us.saturating_sub(lane.up.last_heard_us()) <= PING_FRESH_US
            })
        };
        // What was heard of a node that is busy with a script may have been just that.
        let base = self.lanes.base(session.class);
        let is_busy =
            self.lanes.script_classes_of(base).any(|class| self.lanes.is_held_up(class as u16, self.now.mono_us));
        !is_busy && (is_fresh(session.class) || is_fresh(base))
    }
}
