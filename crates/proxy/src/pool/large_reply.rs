//! Clients that fetch large replies: for a while they have connections of their own, so that others do not wait behind theirs.
//!
//! A reply cannot be cut in two, so while a large one crosses a shared connection all other replies from that node
//! stand behind it, and its bytes have to be held for as long as its client takes to read them. The size is known only once
//! the reply begins to come. Then the connection itself is taken out of sharing, see [`crate::pool::unshare`]; where that cannot be, the
//! client has another one for its next request, since a client that has fetched one large reply is likely to fetch the next.
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
use crate::ids::{ClientHandle, ClientId, LaneHandle, LaneId, NodeId};
use crate::limits::LARGE_US;
use crate::nodes::moves::Moves;
use crate::pool::LaneUse;
use crate::pool::lane_reset::ResetNeeded;
use crate::reply::large::{Large, Way};
use crate::session::table::Clients;
use crate::session::{Flow, Session, SessionFlags};
use respool_command::{Execute, Lane as Kind, RequestPolicy, Row};
use std::sync::Arc;

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

    fn large(&mut self, index: ClientId) -> Option<&mut Large> {
        self.sessions.at_mut(index)?.large.as_deref_mut()
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
        let large = self.clients.large(index)?;
        // What goes to one node is ordered when that is known, see `large_lane`.
        let goes_to_one = lane == Kind::Shared && row.request_policy == RequestPolicy::OneShard;
        if goes_to_one || lane == Kind::Local {
            return None;
        }
        if large.ways.iter().any(|way| way.uses_own) {
            return self.clients.settle_before(index).is_none().then_some(Flow::Again);
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
            return match self.clients.settle_before(index) {
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
            self.give_back(other, ResetNeeded::default());
        }
        let Ok(lane) = self.private_for(index, node) else {
            // None is free: it goes on a shared one.
            self.clients
                .large(index)
                .and_then(|large| large.way_to(node))
                .iter_mut()
                .for_each(|way| way.uses_shared = true);
            return Ok(None);
        };
        let place = self.lanes.find(lane);
        if let Some(place) = place {
            self.lanes[place].lease.set_reader(self.clients.sessions.handle(index));
        }
        if let Some(way) = self.clients.large(index).and_then(|large| large.way_to(node)) {
            way.lane = Some(lane);
            way.uses_own = true;
        }
        Ok(place)
    }

    /// Gives back the client's own connections to nodes from which nothing large has come for long.
    fn leave_ways(&mut self, index: ClientId, now_us: u64) {
        let Some(large) = self.clients.large(index) else { return };
        let is_over = |way: &mut Way| now_us.saturating_sub(way.at_us) > LARGE_US;
        let over: Vec<Way> = large.ways.extract_if(.., is_over).collect();
        let has_none = large.ways.is_empty();
        over.into_iter().filter_map(|way| way.lane).for_each(|lane| self.give_back(lane, ResetNeeded::default()));
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
        large.lanes().for_each(|lane| self.give_back(lane, ResetNeeded::default()));
    }

    /// A client's own connection to a node, on which nothing of it is outstanding, is left to clients that are owed something on
    /// it, if any are. The client's next request to that node has another.
    pub(crate) fn leave_to_others(&mut self, client: ClientHandle, node: NodeId) {
        let Some(session) = self.clients.sessions.get_mut(client) else { return };
        let Some(way) = session.large.as_deref_mut().and_then(|large| large.way_to(node)) else { return };
        let Some(place) = way.lane.and_then(|lane| self.lanes.find(lane)) else { return };
        let has_others = self.lanes[place].lease.has_others() && self.has_others_on(place, client);
        self.lanes[place].lease.set_has_others(has_others);
        if has_others
            && let Some(lane) = self.clients.large(client.index).and_then(|large| large.way_to(node)?.lane.take())
        {
            self.give_back(lane, ResetNeeded::default());
        }
    }

    /// Other nodes are configured. A client's own connection to a node that has gone takes nothing more. A request of which it
    /// has the beginning may have no business there any more.
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
        self.review_streamed(true);
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
}
