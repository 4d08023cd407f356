//! Requests of sessions under routes: which pool, which node of it, and who stands in for a node that is down.
//!
//! Where no route is configured no session comes here; a session under routes pays for the choice with every request.

use crate::nodes::id::NodeId;
use crate::pool::key::LaneKeyId;
use crate::pool::table::LaneId;
use crate::request::gathers::PartOwner;
use crate::session::id::ClientId;
use crate::session::{Asker, Flow, ReplyMode, SessionFlags};
use crate::worker::Worker;
use respool_command::{Execute, RequestPolicy, Row};
use respool_route::{
    DeadNode, Place, Pool, PoolMode, Reads, RouteError, RouteScratch, Routed, Routes, Subject, plan_routed,
};
use respool_wire::{Args, Request};
use std::sync::Arc;

impl<E: Execute> Worker<E> {
    /// Sends a request where its routes lead.
    #[cold]
    pub(crate) fn forward_routed(&mut self, index: ClientId, row: &'static Row, request: &Request<'_>) -> Flow {
        let routes = Arc::clone(&self.config.routes);
        // Borrowed for the time of the call, which may change anything else of the worker.
        let mut scratch = std::mem::take(&mut self.route_scratch);
        let planned = self.plan_routed(&routes, index, row, request.args, &mut scratch);
        let own = planned.as_ref().ok().and_then(|planned| self.own_planned(index, row, &routes, *planned, &scratch));
        let flow = match (own, planned) {
            (Some(flow), _) => flow,
            (None, Ok(Routed::One(place))) => {
                let node = self.stand_in(index, &routes, place, row);
                self.note_route(place.route);
                self.send_to(index, node, |out| {
                    scratch.encode_one(&routes, place.route, request.args, request.raw, out);
                })
            }
            (None, Ok(Routed::Split)) => self.scatter_routed(index, row, &routes, &scratch, request),
            (None, Ok(Routed::All(route))) => {
                self.note_route(route);
                let nodes = nodes_of_all(&routes, route, row);
                self.scatter_to_all(index, row, &nodes, request.args)
            }
            (None, Ok(Routed::Scan(route, step))) => {
                self.note_route(route);
                let node = NodeId::at(routes.pool_of(route).place(step.node));
                self.scan(index, row, request, step, node)
            }
            (None, Err(error)) => {
                self.answer(index, |reply| error.write(&routes, row, request.args, reply));
                Flow::Next
            }
        };
        self.route_scratch = scratch;
        self.take_turns();
        flow
    }

    /// The next request is another replica's. Within one request the turn stays, so that the node that a client gets a
    /// connection to is the one that is asked.
    pub(crate) fn take_turns(&mut self) {
        self.replica_turn = self.replica_turn.wrapping_add(1);
    }

    /// Has a client have its own lanes to the nodes of a request if the routes say so. `Some`: not yet, or never.
    fn own_planned(
        &mut self,
        index: ClientId,
        row: &'static Row,
        routes: &Routes,
        planned: Routed,
        scratch: &RouteScratch,
    ) -> Option<Flow> {
        let wants = |worker: &Self, route: u16| worker.mode_under(index, route) == PoolMode::Session;
        let nodes = match planned {
            Routed::One(place) if wants(self, place.route) => vec![self.choose_node(index, routes, place, row)],
            Routed::All(route) if wants(self, route) => nodes_of_all(routes, route, row),
            Routed::Scan(route, step) if wants(self, route) => vec![NodeId::at(routes.pool_of(route).place(step.node))],
            Routed::Split => {
                let places = scratch.parts().map(|(place, _)| place).filter(|place| wants(self, place.route));
                places.map(|place| self.choose_node(index, routes, place, row)).collect()
            }
            _ => return None,
        };
        if nodes.is_empty() { None } else { self.own_nodes(index, &nodes) }
    }

    /// Decides where a client's request goes; the scratch knows its keys' names there.
    pub(crate) fn plan_routed(
        &self,
        routes: &Routes,
        index: ClientId,
        row: &Row,
        args: Args<'_>,
        scratch: &mut RouteScratch,
    ) -> Result<Routed, RouteError> {
        let database = self.clients.sessions.at(index).map_or(0, |session| session.database);
        plan_routed(routes, Subject { user: self.user_of(index), database, row }, args, scratch)
    }

    /// Which node is asked in the place that a route leads to: that node, a replica of it, or whoever stands in for it.
    pub(crate) fn stand_in(&mut self, index: ClientId, routes: &Routes, place: Place, row: &Row) -> NodeId {
        let node = NodeId::at(usize::from(place.node));
        let chosen = self.choose_node(index, routes, place, row);
        if chosen != node && reads_replicas(routes, place, row) {
            self.counters.replica_reads.add(1);
        } else if chosen != node {
            self.counters.requests_moved.add(1);
        }
        chosen
    }

    /// The same without counting. A client that watches keys is answered by the nodes that have them and by no other: what a
    /// replica or a stand-in says may be older than the watching, and EXEC would not notice.
    pub(crate) fn choose_node(&self, index: ClientId, routes: &Routes, place: Place, row: &Row) -> NodeId {
        let node = NodeId::at(usize::from(place.node));
        if self.clients.sessions.at(index).is_some_and(|session| session.flags.has(SessionFlags::PINNED)) {
            return node;
        }
        let pool = routes.pool_of(place.route);
        if reads_replicas(routes, place, row)
            && let Some(replica) = self.live_replica(pool, node)
        {
            return replica;
        }
        if !self.lanes.nodes[node].is_out() {
            return node;
        }
        let other = match routes.dead_node(place.route) {
            DeadNode::Error => None,
            DeadNode::Next => self.live_next(pool, node),
            DeadNode::Replica if row.is_replica_readable => self.live_replica(pool, node),
            DeadNode::Replica => None,
        };
        other.unwrap_or(node)
    }

    /// One of a node's replicas that are up, another each time.
    fn live_replica(&self, pool: &Pool, node: NodeId) -> Option<NodeId> {
        let replicas = pool.replicas_of(node.place());
        let start = self.replica_turn as usize % replicas.len().max(1);
        let (behind, before) = replicas.split_at(start.min(replicas.len()));
        let mut in_turn = before.iter().chain(behind).map(|replica| NodeId::at(usize::from(*replica)));
        in_turn.find(|replica| !self.lanes.nodes[*replica].is_out() && !self.lanes.is_shut(*replica))
    }

    /// The next node of the pool that is up.
    fn live_next(&self, pool: &Pool, node: NodeId) -> Option<NodeId> {
        let behind = NodeId::of_pool(pool).filter(|other| *other > node);
        let mut in_turn = behind.chain(NodeId::of_pool(pool).filter(|other| *other < node));
        in_turn.find(|other| !self.lanes.nodes[*other].is_out())
    }

    /// Counts a request under its route.
    pub(crate) fn note_route(&mut self, route: u16) {
        let route = usize::from(route);
        if self.route_hits.len() <= route {
            self.route_hits.resize(route + 1, 0);
        }
        self.route_hits[route] += 1;
    }

    /// Several nodes answer, each its part, under the names that its keys have there.
    fn scatter_routed(
        &mut self,
        index: ClientId,
        row: &'static Row,
        routes: &Routes,
        scratch: &RouteScratch,
        request: &Request<'_>,
    ) -> Flow {
        let Some((class, due)) = self.begin_scatter(index, |gather| gather.begin_split(row, scratch.as_scratch()))
        else {
            return Flow::Stop;
        };
        let mut fullest = None;
        for (number, (place, part)) in scratch.parts().enumerate() {
            let node = self.stand_in(index, routes, place, row);
            self.note_route(place.route);
            let write = |out: &mut Vec<u8>| scratch.encode_part(routes, place, part, request, out);
            let lane = self.send_part(node, class, due, number, write);
            fullest = Some(self.lanes.fuller(fullest, lane));
        }
        self.keep_pace_of_all(index, fullest)
    }

    /// All of these nodes answer the same request.
    pub(crate) fn scatter_to_all(
        &mut self,
        index: ClientId,
        row: &'static Row,
        nodes: &[NodeId],
        args: Args<'_>,
    ) -> Flow {
        let chance = self.chance();
        let joins = self.joins_of_scripts(row, args);
        let config = Arc::clone(&self.config);
        let begin = |gather: &mut respool_route::Gather| {
            gather.begin_all(row, args, nodes.len(), chance);
            gather.name_parts(|part| &config.nodes[nodes[part].place()].name);
            gather.join_each_by(joins);
        };
        let Some((class, due)) = self.begin_scatter(index, begin) else { return Flow::Stop };
        let mut fullest = None;
        for (number, node) in nodes.iter().enumerate() {
            let write = |out: &mut Vec<u8>| respool_wire::encode_request(out, args.iter());
            let lane = self.send_part(*node, class, due, number, write);
            fullest = Some(self.lanes.fuller(fullest, lane));
        }
        self.keep_pace_of_all(index, fullest)
    }

    /// Takes a place for the joint reply, unless none is wanted. Gives the session's class as well.
    fn begin_scatter(
        &mut self,
        index: ClientId,
        begin: impl FnOnce(&mut respool_route::Gather),
    ) -> Option<(LaneKeyId, PartOwner)> {
        self.counters.requests_split.add(1);
        self.is_busy = true;
        let handle = self.clients.sessions.handle(index)?;
        let session = self.clients.sessions.at_mut(index)?;
        let class = session.class;
        if session.reply_mode != ReplyMode::On {
            session.reply_mode.pass();
            return Some((class, PartOwner::Unanswered(handle)));
        }
        let asker = Asker { session: handle, seq: session.down.expect() };
        Some((class, PartOwner::Joint(self.scatters.begin(asker, begin))))
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

/// Whether a replica is asked for a request even while the node itself is up.
fn reads_replicas(routes: &Routes, place: Place, row: &Row) -> bool {
    routes.route(place.route).reads == Reads::Replica && row.is_replica_readable
}

/// The nodes that answer a request for all of them. Replicas are asked where a route reads from them and the command is
/// about each node's own state.
pub(crate) fn nodes_of_all(routes: &Routes, route: u16, row: &Row) -> Vec<NodeId> {
    let pool = routes.pool_of(route);
    let mut nodes: Vec<NodeId> = NodeId::of_pool(pool).collect();
    if row.request_policy == RequestPolicy::AllNodes && routes.route(route).reads == Reads::Replica {
        nodes.extend(pool.replicas.iter().flatten().map(|replica| NodeId::at(usize::from(*replica))));
    }
    nodes
}
