//! Which node answers a request: one question with one answer, whether or not routes are configured.
//!
//! ```text
//!   user, database, row, keys --- Routes::plan ---> One | Split | All | Scan
//!                                                    |
//!        the node that has the keys, one of its replicas, or the node that stands in for it while it is down
//! ```
//!
//! Where nothing is configured but nodes, there is one route, to all of them, and no other node is asked than the one that
//! has the keys.

use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientId, NodeId};
use crate::pool::Lanes;
use crate::request::Target;
use crate::session::SessionFlags;
use crate::session::table::Clients;
use respool_command::{Execute, RequestPolicy, Row};
use respool_route::{DeadNode, Place, PlanError, Pool, Reads, Routed, Routes, Subject};
use respool_wire::Args;
use std::sync::Arc;

impl<E: Execute> Env<E> {
    /// Where a request goes that one node answers. Nothing is counted.
    pub(crate) fn target(&mut self, index: ClientId, row: &Row, args: Args<'_>) -> Result<Target, ErrorReply> {
        self.target_by(index, row, args, |this, routes, place| this.choose_node(index, routes, place, row))
    }

    /// The same for a request that waits at its node until others have sent something there: where their requests go.
    pub(crate) fn waiting_target(&mut self, index: ClientId, row: &Row, args: Args<'_>) -> Result<Target, ErrorReply> {
        self.target_by(index, row, args, |this, routes, place| this.choose_waiting_node(index, routes, place))
    }

    fn target_by(
        &mut self,
        index: ClientId,
        row: &Row,
        args: Args<'_>,
        choose: impl FnOnce(&Self, &Routes, Place) -> NodeId,
    ) -> Result<Target, ErrorReply> {
        let routes = Arc::clone(&self.config.routes);
        let mut scratch = self.scratch.take().unwrap_or_default();
        let target = match routes.plan(self.clients.subject(index, row), args, &mut scratch) {
            Ok(Routed::One(place)) => {
                let renamed = scratch.renamed(&routes, place.route, args);
                Ok(Target { node: choose(self, &routes, place), renamed, place })
            }
            Ok(Routed::Split | Routed::All(_) | Routed::Scan(..)) => {
                Err(ErrorReply::written(|reply| PlanError::Unsupported.write(row, args, reply)))
            }
            Err(error) => Err(ErrorReply::written(|reply| error.write(&routes, row, args, reply))),
        };
        self.scratch = Some(scratch);
        target
    }

    /// A request goes to its target: its route has one request more.
    pub(crate) fn note_target(&mut self, target: &Target, row: &Row) {
        self.note_place(target.place, target.node, row);
        self.take_turns();
    }

    /// A request, or a part of one, goes to this node for the one in this place.
    pub(super) fn note_place(&mut self, place: Place, node: NodeId, row: &Row) {
        if NodeId::at(place.node) != node {
            let is_read = reads_replicas(&self.config.routes, place, row);
            let counter = if is_read { &self.counters.replica_reads } else { &self.counters.requests_moved };
            counter.add(1);
        }
        self.note_route(place.route);
    }

    /// Counts a request under its route, where there are any to choose from.
    pub(crate) fn note_route(&mut self, route: u16) {
        if self.config.routes.are_plain() {
            return;
        }
        let route = usize::from(route);
        if self.route_hits.len() <= route {
            self.route_hits.resize(route + 1, 0);
        }
        self.route_hits[route] += 1;
    }

    /// The next request is another replica's. Within one request the turn stays, so that the node that a client gets a
    /// connection to is the one that is asked.
    pub(super) fn take_turns(&mut self) {
        self.replica_turn = self.replica_turn.wrapping_add(1);
    }

    /// Which node is asked in a place: the one that is there, a replica of it, or the one that stands in for it. A client that
    /// watches keys is answered by the nodes that have them and by no other: what a
    /// replica or a stand-in says may be older than the watching, and EXEC would not notice.
    #[inline]
    pub(crate) fn choose_node(&self, index: ClientId, routes: &Routes, place: Place, row: &Row) -> NodeId {
        match routes.are_plain() {
            true => NodeId::at(place.node),
            false => self.choose_under(index, routes, place, row),
        }
    }

    /// The same under routes, or where nodes have replicas or stand-ins.
    fn choose_under(&self, index: ClientId, routes: &Routes, place: Place, row: &Row) -> NodeId {
        let node = NodeId::at(place.node);
        if self.clients.sessions.at(index).is_some_and(|session| session.flags.has(SessionFlags::PINNED)) {
            return node;
        }
        let pool = routes.pool_of(place.route);
        if reads_replicas(routes, place, row)
            && let Some(replica) = self.live_replica(pool, node)
        {
            return replica;
        }
        if !self.lanes.nodes[node].is_unhealthy() {
            return node;
        }
        let other = match routes.dead_node(place.route) {
            DeadNode::Error => None,
            DeadNode::Next => self.lanes.live_next(pool, node),
            DeadNode::Replica if row.is_replica_readable => self.live_replica(pool, node),
            DeadNode::Replica => None,
        };
        other.unwrap_or(node)
    }

    /// The same for a request that waits. It waits where others write, so no replica is asked.
    pub(crate) fn choose_waiting_node(&self, index: ClientId, routes: &Routes, place: Place) -> NodeId {
        let node = NodeId::at(place.node);
        let watches = self.clients.sessions.at(index).is_some_and(|session| session.flags.has(SessionFlags::PINNED));
        if watches || !self.lanes.nodes[node].is_unhealthy() || routes.dead_node(place.route) != DeadNode::Next {
            return node;
        }
        self.lanes.live_next(routes.pool_of(place.route), node).unwrap_or(node)
    }

    /// One of a node's replicas that are up, another each time.
    fn live_replica(&self, pool: &Pool, node: NodeId) -> Option<NodeId> {
        let replicas = pool.replicas_of(node.place());
        let start = self.replica_turn as usize % replicas.len().max(1);
        let (behind, before) = replicas.split_at(start.min(replicas.len()));
        let mut in_turn = before.iter().chain(behind).map(|replica| NodeId::at(*replica));
        in_turn.find(|replica| !self.lanes.nodes[*replica].is_unhealthy() && !self.lanes.is_shut(*replica))
    }
}

impl Clients {
    /// User, database and command of a request, for routes.
    pub(crate) fn subject<'a>(&'a self, index: ClientId, row: &'a Row) -> Subject<'a> {
        let database = self.sessions.at(index).map_or(0, |session| session.database);
        Subject { user: self.user_of(index), database, row }
    }
}

impl Lanes {
    /// The next node of the pool that is up.
    fn live_next(&self, pool: &Pool, node: NodeId) -> Option<NodeId> {
        let behind = NodeId::of_pool(pool).filter(|other| *other > node);
        let mut in_turn = behind.chain(NodeId::of_pool(pool).filter(|other| *other < node));
        in_turn.find(|other| !self.nodes[*other].is_unhealthy())
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
        nodes.extend(pool.replicas.iter().flatten().map(|replica| NodeId::at(*replica)));
    }
    nodes
}
