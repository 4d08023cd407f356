//! What concerns all engines of a server that has several (`engine_threads`): `SWAPDB`, `FLUSHALL`, `FLUSHDB`, libraries of functions.
//!
//! Each engine executes such a request by itself. They end in the same state all the same: one request at a time is on its way in the
//! whole process ([`crate::workers::turns`]), and an engine with a late script keeps it until the script has ended, instead of refusing it. While any
//! engine is known to have a late script ([`crate::workers::late_scripts`]) the request is refused as a whole, as by a server with one engine.
//!
//! ```text
//!   client --> is any script late? --yes--> BUSY, nothing has changed
//!                     | no
//!              behind other changes --> to all engines --> joint reply --> the next change
//!                                           '-- one has become late: it answers once its script has ended
//! ```

pub(crate) mod change;

use crate::engines::change::{ChangeTurn, EnginesChange};
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientId, Handle, NodeId};
use crate::reply::progress::LostReply;
use crate::reply::task::JointReply;
use crate::session::{Flow, PauseReasons};
use respool_command::{Execute, Row};
use respool_route::Gather;
use respool_wire::{Args, encode_request};

impl<E: Execute> Env<E> {
    /// A request that changes all engines of a server. What its client sends behind it waits.
    pub(crate) fn change_engines(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Flow {
        if let Some(busy) = self.shared.late_scripts.busy() {
            return self.refuse(index, busy);
        }
        let Some(client) = self.clients.sessions.handle(index) else { return Flow::Stop };
        let Some(asker) = self.clients.expect_reply(index) else { return Flow::Stop };
        let Some(session) = self.clients.sessions.at_mut(index) else { return Flow::Stop };
        session.pause.add(PauseReasons::ORDER);
        let class = session.class;
        let nodes: Vec<NodeId> = self.config.node_ids().collect();
        let mut gather = Gather::new();
        gather.begin_all(row, args, nodes.len(), 0);
        let mut request = Vec::new();
        encode_request(&mut request, args.iter());
        self.shared.ledger.account(0, request.len());
        let change = EnginesChange { reply: JointReply { asker, gather }, client, class, nodes, request };
        let task = self.tasks.begin(change);
        self.counters.requests_split.add(1);
        self.is_busy = true;
        if self.shared.turns.queue(self.number, task) {
            self.send_change(task);
        }
        Flow::Pause
    }

    /// It is this change's turn.
    pub(crate) fn send_change(&mut self, task: Handle) {
        let Some(change) = self.tasks.get_mut::<EnginesChange>(task) else { return };
        let (class, request, nodes) = (change.class, std::mem::take(&mut change.request), change.nodes.clone());
        self.shared.ledger.account(request.len(), 0);
        // One may have become late meanwhile.
        let busy = self.shared.late_scripts.busy().map(ErrorReply::new);
        if let Some((busy, asker)) = busy.as_ref().zip(change.reply.asker.take_if(|_| busy.is_some())) {
            self.clients.finish(asker.session, asker.seq, |out| out.extend_from_slice(busy.as_bytes()));
        }
        for (part, node) in nodes.into_iter().enumerate() {
            let part = part as u16;
            if let Some(busy) = &busy {
                self.tasks.fail(task, part, LostReply::Unsent, busy, &mut self.clients);
                continue;
            }
            let lane = self.lanes.lane(&self.config, node, class);
            self.send_for_task(task, part, lane, |out| out.extend_from_slice(&request));
        }
    }

    /// All engines have answered: the next change may go, and the client is read on.
    pub(crate) fn conclude_change(&mut self, change: EnginesChange) {
        if self.clients.sessions.get(change.client).is_some() {
            self.clients.unpause(change.client.index, PauseReasons::ORDER);
        }
        match self.shared.turns.end() {
            Some((worker, task)) if worker == self.number => self.send_change(task),
            Some((worker, task)) => self.post(worker, ChangeTurn(task)),
            None => {}
        }
    }
}
