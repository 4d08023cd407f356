//! Clients that fetch large replies: for a while they have connections of their own, so that others do not wait behind theirs.
//!
//! A reply cannot be cut in two, so while a large one crosses a shared connection all other replies from that node
//! stand behind it, and its bytes have to be held for as long as its client takes to read them. The size is known only once
//! the reply begins to come. Then the connection itself is taken out of sharing, see [`crate::pool::unshare`]; where that cannot be, the
//! client has another one for its next request, since who has fetched one large reply is likely to fetch the next.
//!
//! ```text
//!             a reply of LARGE_REPLY_BYTES begins on a shared connection
//!   [shared] ------------------------------------------------------------> [own connection to that node]
//!      ^                                                                      |  read only as fast as the client reads
//!      '------- nothing large for LARGE_US, all answered: given back ---------'  cannot be had: shared as before
//! ```
//!
//! Order is kept by settling: whatever could overtake what the client has asked before on another connection waits until
//! that has been answered. How fast an own connection is read is decided in [`crate::pool::read_pacing`].

use crate::env::Env;
use crate::limits::LARGE_US;
use crate::nodes::id::NodeId;
use crate::pool::lease::ResetNeeded;
use crate::pool::replace::Moves;
use crate::pool::table::{LaneHandle, LaneId};
use crate::pool::{LaneUse, Lanes};
use crate::session::id::{ClientHandle, ClientId};
use crate::session::table::Clients;
use crate::session::{Flow, Session, SessionFlags};
use respool_command::{Execute, Lane as Kind, RequestPolicy, Row};
use respool_connection::Action;
use respool_wire::RequestTail;
use std::sync::Arc;

/// The connections that a client has of its own, one to a node at most.
#[derive(Debug, Default)]
pub(crate) struct Large {
    ways: Vec<Way>,
    /// The way to the end of a request that is being passed on in pieces, see [`crate::session::large_request`], and the node that it goes to.
    pub(crate) sending: Option<RequestTail>,
    pub(crate) sending_to: Option<NodeId>,
}

/// How a client's requests go to one node.
#[derive(Debug)]
struct Way {
    node: NodeId,
    /// `None` until it is first needed.
    lane: Option<LaneHandle>,
    /// When something large last came or went there.
    at_us: u64,
    /// What has been asked since all was last answered has gone over shared connections.
    uses_shared: bool,
    /// The same of its own.
    uses_own: bool,
}

impl Large {
    fn way_to(&mut self, node: NodeId) -> Option<&mut Way> {
        self.ways.iter_mut().find(|way| way.node == node)
    }

    fn way_or_new(&mut self, node: NodeId, now_us: u64) -> &mut Way {
        let place = self.ways.iter().position(|way| way.node == node).unwrap_or_else(|| {
            self.ways.push(Way { node, lane: None, at_us: now_us, uses_shared: false, uses_own: false });
            self.ways.len() - 1
        });
        &mut self.ways[place]
    }

    /// The connection over which a request is being passed on.
    pub(crate) fn sending_lane(&self) -> Option<LaneHandle> {
        self.ways.iter().find(|way| Some(way.node) == self.sending_to)?.lane
    }

    /// Its connections, as far as it has them.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = LaneHandle> + '_ {
        self.ways.iter().filter_map(|way| way.lane)
    }

    /// How many nodes it is about.
    pub(crate) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Whether a node's large replies come over a connection of the client's own already.
    pub(crate) fn has_lane_to(&self, node: NodeId, lanes: &Lanes) -> bool {
        let is_there = |lane: LaneHandle| lanes.find(lane).is_some();
        self.ways.iter().any(|way| way.node == node && way.lane.is_some_and(is_there))
    }

    /// The client's requests to a node have all gone over this connection, and it is the client's own from now on.
    pub(crate) fn claim(&mut self, node: NodeId, lane: LaneHandle, now_us: u64) {
        let way = self.way_or_new(node, now_us);
        *way = Way { node, lane: Some(lane), at_us: now_us, uses_shared: false, uses_own: true };
    }

    /// A node's large reply comes over a shared connection.
    pub(crate) fn note_shared(&mut self, node: NodeId, now_us: u64) {
        let way = self.way_or_new(node, now_us);
        way.at_us = now_us;
        way.uses_shared = true;
    }

    /// Nothing is outstanding, and something large is about to go to a node in pieces.
    pub(crate) fn begin_sending_to(&mut self, node: NodeId, now_us: u64) {
        self.settle();
        self.sending_to = Some(node);
        self.way_or_new(node, now_us).at_us = now_us;
    }

    /// A request to a node goes over a shared connection, whatever the client has of its own: what comes behind it waits.
    pub(crate) fn note_detour(&mut self, node: NodeId) {
        self.way_to(node).iter_mut().for_each(|way| way.uses_shared = true);
    }

    /// Something large has come from a node or gone to it.
    pub(crate) fn touch(&mut self, node: NodeId, now_us: u64) {
        self.way_to(node).iter_mut().for_each(|way| way.at_us = now_us);
    }

    fn settle(&mut self) {
        for way in &mut self.ways {
            (way.uses_shared, way.uses_own) = (false, false);
        }
    }

    /// A client's own lanes of pool mode `session` are given back: those of them that are among these.
    pub(crate) fn leave_own(&mut self, lanes: &Lanes) {
        let is_own = |lane: &LaneHandle| lanes.find(*lane).is_some_and(|place| lanes[place].purpose == LaneUse::Own);
        for way in &mut self.ways {
            way.lane = way.lane.filter(|lane| !is_own(lane));
        }
    }
}

impl Clients {
    /// A client fetches large replies: from now on it is asked which connections it has.
    pub(crate) fn large_of(&mut self, client: ClientHandle) -> Option<&mut Large> {
        let session = self.sessions.get_mut(client)?;
        if session.large.is_none() {
            session.flags.add(SessionFlags::LARGE);
            self.counters.clients_large.add(1);
        }
        Some(session.large.get_or_insert_default())
    }
}

impl<E: Execute> Env<E> {
    /// A request of a client with connections of its own: whether it may be sent yet. `None`: it may.
    pub(crate) fn order_large(&mut self, index: ClientId, row: &'static Row, lane: Kind) -> Option<Flow> {
        let now_us = self.now.mono_us;
        let session = self.clients.sessions.at_mut(index)?;
        let is_settled = session.down.is_settled();
        let large = session.large.as_mut()?;
        if is_settled {
            large.settle();
            if large.ways.iter().any(|way| now_us.saturating_sub(way.at_us) > LARGE_US) {
                self.leave_ways(index, now_us);
            }
        }
        let large = self.large(index)?;
        // What goes to one node is ordered when that is known, see `large_lane`.
        let goes_to_one = lane == Kind::Shared && row.request_policy == RequestPolicy::OneShard;
        if goes_to_one || lane == Kind::Local {
            return None;
        }
        if large.ways.iter().any(|way| way.uses_own) {
            return self.settle_before(index).is_none().then_some(Flow::Again);
        }
        large.ways.iter_mut().for_each(|way| way.uses_shared = true);
        None
    }

    /// The connection on which such a client's request to one node goes; `Err`: not before all is answered.
    #[cold]
    pub(crate) fn large_lane(&mut self, index: ClientId, node: NodeId) -> Result<Option<LaneId>, Flow> {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Ok(None) };
        let class = session.class;
        let Some(way) = session.large.as_mut().and_then(|large| large.way_to(node)) else { return Ok(None) };
        if way.uses_shared {
            return match self.settle_before(index) {
                Some(()) => Ok(None),
                None => Err(Flow::Again),
            };
        }
        let is_alike = |lane: &LaneId| [class, self.lanes.base(class)].contains(&self.lanes[*lane].class);
        let known = way.lane.and_then(|lane| self.lanes.find(lane));
        if let Some(lane) = known.filter(is_alike) {
            way.uses_own = true;
            return Ok(Some(lane));
        }
        if let Some(other) = way.lane.take() {
            // Of another database or dialect. Changing either settles before.
            self.end_own(other);
        }
        let Ok(lane) = self.private_for(index, node) else {
            // None is free: it goes on a shared one.
            self.large(index).and_then(|large| large.way_to(node)).iter_mut().for_each(|way| way.uses_shared = true);
            return Ok(None);
        };
        let place = self.lanes.find(lane);
        if let Some(place) = place {
            self.lanes[place].reader = self.clients.sessions.handle(index);
        }
        if let Some(way) = self.large(index).and_then(|large| large.way_to(node)) {
            way.lane = Some(lane);
            way.uses_own = true;
        }
        Ok(place)
    }

    /// Gives back the client's own connections to nodes from which nothing large has come for long.
    fn leave_ways(&mut self, index: ClientId, now_us: u64) {
        let Some(large) = self.large(index) else { return };
        let is_over = |way: &mut Way| now_us.saturating_sub(way.at_us) > LARGE_US;
        let over: Vec<Way> = large.ways.extract_if(.., is_over).collect();
        let has_none = large.ways.is_empty();
        over.into_iter().filter_map(|way| way.lane).for_each(|lane| self.end_own(lane));
        if has_none {
            self.leave_large(index);
        }
    }

    /// Gives the client's own connections back.
    pub(crate) fn leave_large(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.flags.remove(SessionFlags::LARGE);
        if let Some(large) = session.large.take() {
            self.end_large(*large);
        }
    }

    /// A client has gone: so do its own connections, unless nothing is owed on them.
    pub(crate) fn forget_large(&mut self, session: &mut Session) {
        if let Some(large) = session.large.take() {
            self.end_large(*large);
        }
    }

    fn end_large(&mut self, large: Large) {
        large.lanes().for_each(|lane| self.end_own(lane));
    }

    /// A client's own connection to a node, on which nothing of it is outstanding, is left to those who are owed something on
    /// it, if any are. The client's next request to that node has another.
    pub(crate) fn leave_to_others(&mut self, client: ClientHandle, node: NodeId) {
        let Some(session) = self.clients.sessions.get_mut(client) else { return };
        let Some(way) = session.large.as_deref_mut().and_then(|large| large.way_to(node)) else { return };
        let Some(place) = way.lane.and_then(|lane| self.lanes.find(lane)) else { return };
        let has_others = self.lanes[place].has_others && self.has_others_on(place, client);
        self.lanes[place].has_others = has_others;
        if has_others && let Some(lane) = self.large(client.index).and_then(|large| large.way_to(node)?.lane.take()) {
            self.end_own(lane);
        }
    }

    fn end_own(&mut self, lane: LaneHandle) {
        let Some(place) = self.lanes.find(lane) else { return };
        let this = &mut self.lanes[place];
        // In pool mode `session` it is what the client has anyway.
        if this.purpose == LaneUse::Own {
            return;
        }
        this.reader = None;
        if std::mem::take(&mut this.is_unread) {
            this.up.note_heard(self.now.mono_us);
            self.actions.push_back(Action::Resume { conn: place.conn() });
        }
        if !self.leave_claimed(place) {
            self.give_back(lane, ResetNeeded::default());
        }
    }
}

impl<E: Execute> Env<E> {
    /// Other nodes are configured. A client's own connection to a node that has gone takes nothing more; a request that is being
    /// passed on over it is passed on to its end.
    pub(crate) fn move_large(&mut self, moves: &Moves) {
        for large in self.clients.sessions.iter_mut().filter_map(|(_, session)| session.large.as_mut()) {
            let place = |node: NodeId, lane: Option<LaneHandle>| match lane {
                Some(lane) => moves.place_on(node, lane),
                None => moves.place_of(node),
            };
            large.sending_to = large.sending_to.map(|node| place(node, large.sending_lane()));
            large.ways.iter_mut().for_each(|way| way.node = place(way.node, way.lane));
        }
        let config = Arc::clone(&self.config);
        self.leave_large_where(|node| !config.has_node(node));
    }

    /// Clients' own connections to some nodes take nothing more. What comes behind that may go to the same nodes again, as when
    /// an operator takes a drain back: it waits until all before it has been answered.
    pub(crate) fn leave_large_where(&mut self, is_left: impl Fn(NodeId) -> bool) {
        let mut left = Vec::new();
        for (_, session) in self.clients.sessions.iter_mut() {
            let Some(large) = session.large.as_deref_mut() else { continue };
            let sending_to = large.sending.as_ref().and(large.sending_to);
            let is_over = |way: &mut Way| is_left(way.node) && sending_to != Some(way.node);
            let before = left.len();
            left.extend(large.ways.extract_if(.., is_over).filter_map(|way| way.lane));
            if left.len() > before && !session.down.is_settled() {
                session.flags.add(SessionFlags::OVERTAKEN);
            }
            if large.ways.is_empty() {
                session.large = None;
                session.flags.remove(SessionFlags::LARGE);
            }
        }
        for lane in left.into_iter().filter_map(|lane| self.lanes.find(lane)).collect::<Vec<_>>() {
            if self.lanes[lane].purpose == LaneUse::Private {
                self.lanes.leave_to_its_reader(lane);
            }
        }
    }

    fn large(&mut self, index: ClientId) -> Option<&mut Large> {
        self.clients.sessions.at_mut(index)?.large.as_deref_mut()
    }
}
