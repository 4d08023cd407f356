//! Clients that fetch large replies: for a while they have connections of their own, so that nobody waits behind theirs.
//!
//! A reply cannot be cut in two, so while a large one crosses a shared connection everybody else's replies from that node
//! stand behind it, and its bytes have to be held for as long as its client takes to read them. The size is known only once
//! the reply comes; but who has fetched one is likely to fetch the next.
//!
//! ```text
//!             a reply of LARGE_REPLY_BYTES on a shared connection
//!   [shared] ----------------------------------------------------> [own connection for that node]
//!      ^                                                              |  read only as fast as the client reads
//!      '--- nothing large for LARGE_US, all answered: given back -----'  cannot be had: shared as before
//! ```
//!
//! Order is kept by settling: whatever could overtake what the client has asked before on the other connection waits until
//! that has been answered.

use crate::clients::Clients;
use crate::lanes::{Lanes, Purpose};
use crate::limits::{LARGE_REPLY_BYTES, LARGE_US};
use crate::private::Dirt;
use crate::renewal::Moves;
use crate::session::{Flow, Session, Special};
use crate::slab::Handle;
use crate::worker::Worker;
use respool_command::{Execute, Lane as Kind, RequestPolicy, Row};
use respool_connection::{Action, ConnId, Downstream, Owner, Upstream};
use respool_wire::RequestTail;

/// The connection that a client has of its own.
#[derive(Debug)]
pub(crate) struct Large {
    node: usize,
    /// `None` until it is first needed.
    lane: Option<Handle>,
    /// When it last got a large reply.
    at_us: u64,
    /// What has been asked since all was last answered has gone over shared connections.
    uses_shared: bool,
    /// The same of its own.
    uses_own: bool,
    /// The node is not read because the client does not read.
    is_paused: bool,
    /// The way to the end of a request that is being passed on in pieces, see `pieces`.
    pub(crate) sending: Option<RequestTail>,
}

impl Large {
    /// For a client of which nothing is outstanding.
    pub(crate) fn begin(node: usize, now_us: u64) -> Self {
        Self { node, lane: None, at_us: now_us, uses_shared: false, uses_own: false, is_paused: false, sending: None }
    }

    pub(crate) fn node(&self) -> usize {
        self.node
    }

    pub(crate) fn lane(&self) -> Option<Handle> {
        self.lane
    }

    /// Nothing is outstanding, and something large is about to come or go.
    pub(crate) fn settle(&mut self, now_us: u64) {
        (self.uses_shared, self.uses_own) = (false, false);
        self.touch(now_us);
    }

    /// Something large has come or gone.
    pub(crate) fn touch(&mut self, now_us: u64) {
        self.at_us = now_us;
    }
}

impl Large {
    /// A client's own lanes of pool mode `session` are given back: this one among them, if it is one.
    pub(crate) fn leave_own(&mut self, lanes: &Lanes) {
        let is_own = |lane: &Handle| lanes.find(*lane).is_some_and(|place| lanes.all[place].purpose == Purpose::Own);
        if self.lane.as_ref().is_some_and(is_own) {
            self.lane = None;
            self.is_paused = false;
        }
    }
}

impl Clients {
    /// `bytes` of a reply have come to a client over a shared connection to a node, and there is more.
    #[cold]
    pub(crate) fn note_large(&mut self, to: Handle, node: usize, bytes: usize, now_us: u64) {
        if bytes < LARGE_REPLY_BYTES {
            return;
        }
        let Some(session) = self.sessions.get_mut(to) else { return };
        match &mut session.large {
            Some(large) if large.node == node => large.at_us = now_us,
            // One node at a time: the others' replies are as large as they are.
            Some(_) => {}
            None => {
                session.special.add(Special::LARGE);
                session.large = Some(Box::new(Large { uses_shared: true, ..Large::begin(node, now_us) }));
                self.counters.clients_large.add(1);
            }
        }
    }
}

impl<E: Execute> Worker<E> {
    /// A request of a client with a connection of its own: whether it may be sent yet. `None`: it may.
    pub(crate) fn order_large(&mut self, index: u32, row: &'static Row, lane: Kind) -> Option<Flow> {
        let now_us = self.now.mono_us;
        let session = self.clients.sessions.at_mut(index)?;
        let is_settled = session.down.is_settled();
        let large = session.large.as_mut()?;
        if is_settled {
            (large.uses_shared, large.uses_own) = (false, false);
            if now_us.saturating_sub(large.at_us) > LARGE_US {
                self.leave_large(index);
                return None;
            }
        }
        // What goes to one node is ordered when that is known, see `large_lane`.
        let goes_to_one = lane == Kind::Shared && row.request_policy == RequestPolicy::OneShard;
        if goes_to_one || lane == Kind::Local {
            return None;
        }
        if large.uses_own {
            return self.settle_before(index).is_none().then_some(Flow::Again);
        }
        large.uses_shared = true;
        None
    }

    /// The connection on which such a client's request to one node goes; `Err`: not before all is answered.
    #[cold]
    pub(crate) fn large_lane(&mut self, index: u32, node: usize) -> Result<Option<usize>, Flow> {
        let Some(session) = self.clients.sessions.at_mut(index) else { return Ok(None) };
        let class = session.class;
        let Some(large) = session.large.as_mut().filter(|l| l.node == node) else { return Ok(None) };
        if large.uses_shared {
            return match self.settle_before(index) {
                Some(()) => Ok(None),
                None => Err(Flow::Again),
            };
        }
        let known = large.lane.and_then(|lane| self.lanes.find(lane));
        if let Some(lane) = known.filter(|lane| self.lanes.all[*lane].class == class) {
            large.uses_own = true;
            return Ok(Some(lane));
        }
        if let Some(other) = large.lane.take() {
            // Of another database or dialect. Changing either settles before.
            large.is_paused = false;
            self.end_own(other);
        }
        let Ok(lane) = self.private_for(index, node) else {
            // None is to be had: it goes as everybody's do.
            if let Some(large) = self.large(index) {
                large.uses_shared = true;
            }
            return Ok(None);
        };
        let place = self.lanes.find(lane);
        if let Some(place) = place {
            self.lanes.all[place].reader = self.clients.sessions.handle(index);
        }
        if let Some(large) = self.large(index) {
            large.lane = Some(lane);
            large.uses_own = true;
        }
        Ok(place)
    }

    /// Other nodes are configured. A client's own connection to a node that has gone takes nothing more; a request that is being
    /// passed on over it is passed on to its end.
    pub(crate) fn move_large(&mut self, moves: &Moves) {
        for large in self.clients.sessions.iter_mut().filter_map(|(_, session)| session.large.as_mut()) {
            large.node = moves.place_of(large.node);
        }
        let gone = self.config.nodes.len();
        self.leave_large_where(|node| node >= gone);
    }

    /// Clients' own connections to some nodes take nothing more.
    pub(crate) fn leave_large_where(&mut self, is_left: impl Fn(usize) -> bool) {
        let mut left = Vec::new();
        for (_, session) in self.clients.sessions.iter_mut() {
            if let Some(large) = session.large.take_if(|large| is_left(large.node) && large.sending.is_none()) {
                left.extend(large.lane);
                session.special.remove(Special::LARGE);
            }
        }
        for lane in left.into_iter().filter_map(|lane| self.lanes.find(lane)).collect::<Vec<_>>() {
            if self.lanes.all[lane].purpose == Purpose::Private {
                self.lanes.leave_to_its_reader(lane);
            }
        }
    }

    fn large(&mut self, index: u32) -> Option<&mut Large> {
        self.clients.sessions.at_mut(index)?.large.as_deref_mut()
    }

    /// Gives the client's own connection back.
    pub(crate) fn leave_large(&mut self, index: u32) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        session.special.remove(Special::LARGE);
        if let Some(large) = session.large.take() {
            self.end_large(*large);
        }
    }

    /// A client has gone: so does its own connection, unless nothing is owed on it.
    pub(crate) fn forget_large(&mut self, session: &mut Session) {
        if let Some(large) = session.large.take() {
            self.end_large(*large);
        }
    }

    fn end_large(&mut self, large: Large) {
        if let Some(lane) = large.lane {
            self.end_own(lane);
        }
    }

    fn end_own(&mut self, lane: Handle) {
        let Some(place) = self.lanes.find(lane) else { return };
        let this = &mut self.lanes.all[place];
        // In pool mode `session` it is what the client has anyway.
        if this.purpose == Purpose::Own {
            return;
        }
        this.reader = None;
        if std::mem::take(&mut this.is_unread) {
            this.up.note_heard(self.now.mono_us);
            self.actions.push_back(Action::Resume { conn: ConnId::upstream(place as u32) });
        }
        self.give_back(lane, Dirt::default());
    }

    /// A client's own connection brought bytes: it is left alone while the client has enough to read.
    pub(crate) fn pace_lane(&mut self, lane: usize) {
        if matches!(self.lanes.all[lane].purpose, Purpose::Own | Purpose::Leaving) {
            return self.pace_own(lane);
        }
        let Some(reader) = self.lanes.all[lane].reader.filter(|_| self.lanes.all[lane].purpose != Purpose::Listen)
        else {
            return;
        };
        let soft = self.config.budgets.client_output_soft;
        let Some(session) = self.clients.sessions.get_mut(reader) else { return };
        if is_hungry(&session.down, &self.lanes.all[lane].up, soft) {
            return;
        }
        if let Some(large) = &mut session.large
            && !large.is_paused
        {
            large.is_paused = true;
            self.lanes.all[lane].is_unread = true;
            self.counters.pauses.add(1);
        }
    }

    /// A client has taken most of what waited for it: its own connection is read on.
    pub(crate) fn resume_lane_of(&mut self, index: u32) {
        let (now_us, light) = (self.now.mono_us, self.config.budgets.client_output_soft / 2);
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let Some(large) = session.large.as_deref_mut().filter(|large| large.is_paused) else { return };
        let lane = large.lane.and_then(|lane| self.lanes.find(lane));
        if lane.is_some_and(|lane| !is_hungry(&session.down, &self.lanes.all[lane].up, light)) {
            return;
        }
        large.is_paused = false;
        large.at_us = now_us;
        let Some(lane) = lane else { return };
        let this = &mut self.lanes.all[lane];
        this.is_unread = false;
        // It was silent because nobody listened.
        this.up.note_heard(now_us);
        self.actions.push_back(Action::Resume { conn: ConnId::upstream(lane as u32) });
    }
}

/// Whether a client has less than `enough` to take before it can take more of its own connection's replies. What waits for
/// those very replies does not count: reading on is what lets it leave.
fn is_hungry(down: &Downstream, up: &Upstream, enough: usize) -> bool {
    let is_next = match up.tickets().front().map(|ticket| ticket.owner) {
        Some(Owner::Client { seq, .. }) => down.is_next(seq),
        _ => false,
    };
    let waiting = if is_next { down.output().len() } else { down.waiting_bytes() };
    waiting <= enough
}
