//! Requests that several nodes answer: split by key, sent to all, or walking from one node to the next.

use crate::env::Env;
use crate::ids::{ClientId, LaneId, LaneKeyId, NodeId};
use crate::interfaces::call::Call;
use crate::observe::counters::Counters;
use crate::pool::Lanes;
use crate::request::gathers::PartOwner;
use crate::session::Flow;
use respool_command::Execute;
use respool_connection::Now;
use respool_route::{RouteScratch, Routes, ScanStep};
use respool_wire::Request;
use std::sync::Arc;

impl<E: Execute> Env<E> {
    /// Several nodes answer, each its part, under the names that its keys have there.
    pub(super) fn fan_out(&mut self, call: Call<'_>, routes: &Routes, scratch: &RouteScratch) -> Flow {
        let Call { index, row, request } = call;
        for (place, _) in scratch.parts() {
            let node = self.choose_node(index, routes, place, row);
            if let Some(flow) = self.wait_for_room_at(index, node) {
                return flow;
            }
        }
        let Some((class, due)) = self.begin_parts(index, |gather| gather.begin_split(row, scratch.as_scratch())) else {
            return Flow::Stop;
        };
        let mut fullest = None;
        for (number, (place, part)) in scratch.parts().enumerate() {
            let node = self.choose_node(index, routes, place, row);
            self.note_place(place, node, row);
            let write = |out: &mut Vec<u8>| scratch.encode_part(routes, place, part, request, out);
            let lane = self.send_part(node, class, due, number, write);
            fullest = Some(self.lanes.fuller(fullest, lane));
        }
        self.keep_pace_of_all(index, fullest, request.args)
    }

    /// All of these nodes answer the same request.
    pub(crate) fn fan_out_to_all(&mut self, call: Call<'_>, nodes: &[NodeId]) -> Flow {
        let Call { index, row, request: &Request { args, .. } } = call;
        let chance = self.lanes.chance(&self.counters, self.now);
        let joins = self.shared.joins_of_scripts(row, args);
        let config = Arc::clone(&self.config);
        let begin = |gather: &mut respool_route::Gather| {
            gather.begin_all(row, args, nodes.len(), chance);
            gather.name_parts(|part| &config.nodes[nodes[part].index()].name);
            gather.join_each_by(joins);
        };
        let Some((class, due)) = self.begin_parts(index, begin) else { return Flow::Stop };
        let mut fullest = None;
        for (number, node) in nodes.iter().enumerate() {
            let write = |out: &mut Vec<u8>| respool_wire::encode_request(out, args.iter());
            let lane = self.send_part(*node, class, due, number, write);
            fullest = Some(self.lanes.fuller(fullest, lane));
        }
        self.keep_pace_of_all(index, fullest, args)
    }

    /// One node, which stands at `node` in the list of all, answers with its keys and its cursor, which becomes the walk's.
    pub(super) fn scan(&mut self, call: Call<'_>, step: ScanStep, node: NodeId) -> Flow {
        let Call { index, row, request } = call;
        let Some((class, due)) = self.begin_parts(index, |gather| gather.begin_scan(row, step)) else {
            return Flow::Stop;
        };
        let lane = self.send_part(node, class, due, 0, |out| step.encode(request.args, out));
        self.keep_pace_of_all(index, Some(lane), request.args)
    }

    /// Takes a place for the joint reply, unless none is wanted. Gives the session's class as well.
    fn begin_parts(
        &mut self,
        index: ClientId,
        begin: impl FnOnce(&mut respool_route::Gather),
    ) -> Option<(LaneKeyId, PartOwner)> {
        self.counters.requests_split.add(1);
        self.is_busy = true;
        let handle = self.clients.sessions.handle(index)?;
        let class = self.clients.sessions.at(index)?.class;
        let due = match self.clients.expect_reply(index)? {
            Some(asker) => PartOwner::Joint(self.scatters.begin(asker, begin)),
            None => PartOwner::Unanswered(handle),
        };
        Some((class, due))
    }

    /// Returns the lane that the part went to.
    fn send_part(
        &mut self,
        node: NodeId,
        class: LaneKeyId,
        due: PartOwner,
        number: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> LaneId {
        let owner = due.owner(number);
        let lane = self.lanes.lane(&self.config, node, class);
        let sent = self.lanes.send(lane, owner, &self.config, self.now, &mut self.clients.pool, write);
        match sent {
            Ok(()) => self.clients.note_sent(owner),
            Err(error) => {
                self.counters.node_errors.add(1);
                if let Some(gather) = due.joint() {
                    self.scatters.fail(gather, number as u16, &error, &mut self.clients);
                }
            }
        }
        lane
    }
}

impl Lanes {
    /// A random number for picking one of several. Not for secrets.
    pub(crate) fn chance(&self, counters: &Counters, now: Now) -> u64 {
        let mixed = (now.mono_us ^ self.entropy_of_all().rotate_left(32)).wrapping_add(counters.requests.value());
        mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    }
}
