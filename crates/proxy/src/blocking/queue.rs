//! The queue and the connections of each node's blocking lane, and the deadlines of blocked requests.
//!
//! Work for blocked requests is done in bounded steps, since all other clients of the worker wait meanwhile: of ten thousand
//! requests that time out together, some are answered in this turn and some in later ones.

use crate::blocking::fairness::Takers;
use crate::blocking::parking::Parking;
use crate::blocking::request::{BlockedRequest, State, begins_at_arrival};
use crate::blocking::returns::Returns;
use crate::env::{Env, waiting_due_us};
use crate::ids::{Handle, LaneHandle, LaneKeyId, NodeId, PerNode};
use crate::limits::{TIMEOUTS_PER_TURN_MAX, TRIES_AT_ONCE, TRY_US};
use crate::slab::Slab;
use respool_connection::Now;
use std::collections::{BTreeMap, BTreeSet};

/// A connection of the blocking lane.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) lane: LaneHandle,
    /// A client waits on it.
    pub(crate) is_taken: bool,
    /// It is that client's own whatever waits there, and none of those that are made for waiting.
    pub(crate) is_own: bool,
    /// It is being dialled: the first in the queue once it is ready gets it.
    pub(crate) is_coming: bool,
    /// How often the node has been asked to unblock the client that waits on it, and has not answered. It may do so only now, and
    /// would let the next one go.
    pub(crate) unblocks: u16,
    /// The node's number for it, by which it can be unblocked.
    pub(crate) id: Option<i64>,
}

impl Connection {
    pub(crate) fn is_free(&self) -> bool {
        !self.is_taken && !self.is_coming && self.unblocks == 0
    }
}

/// The blocking lane to one node.
#[derive(Debug, Default)]
pub(crate) struct NodeQueue {
    /// By their turns.
    pub(crate) queue: BTreeMap<u64, Handle>,
    /// The turns of those that begin at their arrival, see [`begins_at_arrival`].
    about_now: BTreeSet<u64>,
    /// The order of these requests by keys.
    takers: Takers,
    pub(crate) connections: Vec<Connection>,
    /// Connections on which queued requests are tried.
    pub(crate) looks: Vec<Look>,
    /// Sequence number of the next request to try; if it has left the queue, the request behind it is tried.
    next_try: u64,
    /// The request that was tried last: before the node has answered that, no other is.
    tried: Option<Handle>,
}

impl NodeQueue {
    /// How many connections there are that were made for waiting.
    pub(crate) fn made(&self) -> usize {
        self.connections.iter().filter(|c| !c.is_own).count()
    }

    /// How many connections are being dialled.
    pub(crate) fn coming(&self) -> usize {
        self.connections.iter().filter(|c| c.is_coming).count()
    }

    /// The first request that begins at its arrival and for which no connection is free or being dialled: as many came before it.
    pub(crate) fn late_arrival(&self) -> Option<Handle> {
        let last = self.about_now.last()?;
        let at_hand = self.connections.iter().filter(|c| c.is_coming || c.is_free()).count();
        // Those of clients with connections of their own wait here during a pause alone.
        let first = self.queue.keys().nth(at_hand).filter(|first| *first <= last)?;
        self.queue.get(self.about_now.range(first..).next()?).copied()
    }

    /// The next few of the requests that are first for a key, round robin.
    fn choose(&mut self, requests: &Slab<BlockedRequest>) -> Vec<Handle> {
        let is_tried = |w: &Handle| requests.get(*w).is_some_and(|w| w.state == State::Tried);
        if self.tried.as_ref().is_some_and(is_tried) {
            return Vec::new();
        }
        let circle = self.takers.circle(self.next_try).filter_map(|turn| Some((turn, *self.queue.get(&turn)?)));
        let mut chosen: Vec<(u64, Handle)> = circle.take(TRIES_AT_ONCE).collect();
        self.next_try = chosen.last().map_or(0, |(turn, _)| turn + 1);
        // What is there is for the request that came first.
        chosen.sort_unstable();
        let queued = chosen.into_iter().map(|(_, blocked)| blocked);
        let queued: Vec<_> = queued.filter(|w| requests.get(*w).is_some_and(|w| w.state == State::Queued)).collect();
        self.tried = queued.last().copied();
        queued
    }
}

/// All blocking lanes of one worker.
#[derive(Debug, Default)]
pub(crate) struct Blocking {
    /// What was taken for clients that have left, and is not back yet.
    pub(crate) returns: Returns,
    pub(crate) requests: Slab<BlockedRequest>,
    /// Those of them that an engine in this process has parked.
    pub(crate) parking: Parking,
    pub(crate) nodes: PerNode<NodeQueue>,
    /// Requests that are blocked at a node, by their connections.
    pub(crate) sent: BTreeMap<LaneHandle, Handle>,
    /// Nodes in whose place requests wait at others, each once.
    pub(crate) stood_for: Vec<NodeId>,
    /// The deadlines of requests without a connection, by [`crate::env::waiting_us`].
    deadlines: BTreeSet<(u64, Handle)>,
    /// When some of those in the queue are tried again; `None`: the queue is empty.
    try_at_us: Option<u64>,
    turns: u64,
}

impl Blocking {
    /// What is waited for or held.
    pub(crate) fn remains(&self) -> [(&'static str, usize); 4] {
        let taken = |list: &NodeQueue| list.connections.iter().filter(|connection| connection.is_taken).count();
        [
            ("requests that may wait", self.requests.len()),
            ("elements to put back", self.returns.len()),
            ("places in queues", self.nodes.iter().map(|list| list.queue.len()).sum()),
            ("connections on which a client waits", self.nodes.iter().map(taken).sum()),
        ]
    }

    pub(crate) fn at(&mut self, node: NodeId) -> &mut NodeQueue {
        self.nodes.get_or_default(node)
    }

    pub(crate) fn connection(&mut self, node: NodeId, lane: LaneHandle) -> Option<&mut Connection> {
        self.at(node).connections.iter_mut().find(|c| c.lane == lane)
    }

    /// A connection whose node may have another place by now than when something was asked of it.
    pub(crate) fn find_connection(&mut self, lane: LaneHandle) -> Option<(NodeId, &mut Connection)> {
        let all = self.nodes.entries_mut();
        let mut each = all.flat_map(|(node, list)| list.connections.iter_mut().map(move |c| (node, c)));
        each.find(|(_, connection)| connection.lane == lane)
    }

    /// A node has answered whether it has unblocked the client that waited on a connection. Returns the node, if the connection is
    /// still there.
    pub(crate) fn end_unblock(&mut self, lane: LaneHandle) -> Option<NodeId> {
        let (node, connection) = self.find_connection(lane)?;
        connection.unblocks = connection.unblocks.saturating_sub(1);
        Some(node)
    }

    /// Puts a request at the end of its node's queue; one that has had a turn keeps it.
    pub(crate) fn enter(&mut self, mut blocked: BlockedRequest) -> Handle {
        if blocked.turn == 0 {
            self.turns += 1;
            blocked.turn = self.turns;
        }
        blocked.due_us = blocked.deadline_us;
        if let Some(home) = blocked.stands_for
            && !self.stood_for.contains(&home)
        {
            self.stood_for.push(home);
        }
        let (node, turn, due_us) = (blocked.node, blocked.turn, blocked.due_us);
        let list = self.at(node);
        list.takers.enter(&blocked);
        if begins_at_arrival(blocked.row, blocked.args.as_args()) {
            list.about_now.insert(turn);
        }
        let handle = self.requests.insert(blocked);
        self.at(node).queue.insert(turn, handle);
        self.deadlines.extend(due_us.map(|at| (at, handle)));
        handle
    }

    /// A request that queues for a node waits no longer than that.
    pub(crate) fn hasten(&mut self, blocked: Handle, now: Now, left_us: u64) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        let at_us = now.mono_us + left_us;
        if this.deadline_us.is_some_and(|deadline_us| deadline_us <= at_us) {
            return;
        }
        this.deadline_us = Some(at_us);
        this.client_deadline_us = Some(now.client_us + left_us);
        self.put_off(blocked, at_us);
    }

    /// A request that queues is looked after then.
    pub(crate) fn put_off(&mut self, blocked: Handle, at_us: u64) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        if let Some(due_us) = this.due_us.replace(at_us) {
            self.deadlines.remove(&(due_us, blocked));
        }
        self.deadlines.insert((at_us, blocked));
    }

    /// Removes a request from its node's queue. Returns the requests that have become the first for a key.
    pub(crate) fn leave_queue(&mut self, node: NodeId, blocked: Handle) -> Vec<Handle> {
        let Self { requests, nodes, .. } = self;
        let (Some(blocked), Some(list)) = (requests.get(blocked), nodes.get_mut(node)) else { return Vec::new() };
        list.queue.remove(&blocked.turn);
        list.about_now.remove(&blocked.turn);
        let next = list.takers.leave(blocked);
        next.into_iter().filter_map(|turn| list.queue.get(&turn).copied()).collect()
    }

    /// Whether a queued request is the first for one of its keys.
    pub(crate) fn is_first(&self, blocked: Handle) -> bool {
        let Some(blocked) = self.requests.get(blocked) else { return false };
        self.nodes.get(blocked.node).is_some_and(|list| list.takers.is_first(blocked))
    }

    /// The requests that are first for a key of this one in its place, and are not being tried.
    pub(crate) fn before(&self, blocked: Handle) -> Vec<Handle> {
        let Some((blocked, list)) = self.requests.get(blocked).and_then(|w| Some((w, self.nodes.get(w.node)?))) else {
            return Vec::new();
        };
        let before = list.takers.before(blocked).into_iter().filter_map(|turn| list.queue.get(&turn).copied());
        before.filter(|before| self.requests.get(*before).is_some_and(|w| w.state == State::Queued)).collect()
    }

    /// A request waits at the node from now on, which minds its time.
    pub(crate) fn note_sent(&mut self, blocked: Handle, lane: LaneHandle) {
        let Some(this) = self.requests.get_mut(blocked) else { return };
        this.state = State::Sent(lane);
        self.sent.insert(lane, blocked);
        if let Some(at) = this.due_us {
            self.deadlines.remove(&(at, blocked));
        }
    }

    /// The next deadline of a blocked request, on the monotonic clock.
    pub(crate) fn next_due_us<E>(&self, env: &Env<E>) -> Option<u64> {
        let deadline_us = self.deadlines.first().and_then(|(at, _)| waiting_due_us(env, *at));
        deadline_us.into_iter().chain(self.try_at_us).min()
    }

    /// Some of the requests without a connection whose time has run out, in the order of their arrival. If that is not all, the
    /// next are due at once.
    pub(crate) fn take_overdue(&mut self, now_us: u64) -> Vec<Handle> {
        let overdue = self.deadlines.iter().take_while(|(at, _)| *at <= now_us).take(TIMEOUTS_PER_TURN_MAX);
        let overdue: Vec<(u64, Handle)> = overdue.copied().collect();
        overdue.iter().for_each(|one| {
            self.deadlines.remove(one);
        });
        overdue.into_iter().map(|(_, blocked)| blocked).collect()
    }

    /// A queue is not empty: now and then some of it are tried.
    pub(crate) fn begin_trying(&mut self, now_us: u64) {
        self.try_at_us.get_or_insert(now_us + TRY_US);
    }

    /// Whether some are to be tried now. Those that are then, node by node.
    pub(crate) fn take_tries(&mut self, now_us: u64) -> Option<PerNode<Vec<Handle>>> {
        self.try_at_us.filter(|at| *at <= now_us)?;
        let has_waiting = self.nodes.iter().any(|list| !list.queue.is_empty());
        self.try_at_us = has_waiting.then_some(now_us + TRY_US);
        let requests = &self.requests;
        Some(PerNode::new(self.nodes.iter_mut().map(|list| list.choose(requests))))
    }

    /// Forgets a request.
    pub(crate) fn remove(&mut self, blocked: Handle) -> Option<BlockedRequest> {
        self.requests.get(blocked)?;
        let gone = self.requests.remove(blocked.index)?;
        if let State::Sent(lane) = gone.state
            && self.sent.get(&lane) == Some(&blocked)
        {
            self.sent.remove(&lane);
        }
        if let Some(at) = gone.due_us {
            self.deadlines.remove(&(at, blocked));
        }
        Some(gone)
    }
}

/// One of these connections.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) class: LaneKeyId,
    pub(crate) lane: LaneHandle,
    /// If the node refused MULTI on it, it is not tried again before then; 0: that is not said yet.
    pub(crate) again_us: u64,
}
