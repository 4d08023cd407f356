//! Pool mode `session`: a client has a connection to each node to itself for as long as it stays.
//!
//! ```text
//!              first request that the mode holds for,             first request to a node
//!              once all before it is answered                     a warm connection, or a dial
//!   [shared] --------------------------------------> [owning] ------------------------------> [owning, connected]
//!      ^                                                |   ^                                        |
//!      |   another mode holds, once all is answered     |   '---- lost; RECONNECT, nothing owed -----'
//!      '------------------------------------------------'
//!                                                       '-- client leaves, SELECT, HELLO: UNWATCH where it watched,
//!                                                           acknowledged: warm; anything owed or in doubt: closed
//! ```
//!
//! Such a client is in a class of lanes of its own. Whatever its requests are, they look for their lanes by
//! class, so they find the client's own, in order, and the question costs nothing. What it watches is watched there. A
//! class that owns some nodes alone, because only some routes are in this mode, shares the others; then the
//! move to an own connection waits until all before it is answered, as every move does.

use crate::config::Config;
use crate::env::Env;
use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, LaneHandle, LaneId, LaneKeyId, NodeId};
use crate::interfaces::read_tracker::ReadTracker;
use crate::nodes::moves::Moves;
use crate::pool::key_id::{KeyOwner, LaneKey, Owner};
use crate::pool::lane_reset::ResetNeeded;
use crate::pool::lease::Lease;
use crate::pool::{LaneUse, Lanes};
use crate::session::marks::Watches;
use crate::session::table::Clients;
use crate::session::{Flow, Session, SessionFlags};
use respool_command::Execute;
use respool_connection::{Phase, Pushes};
use respool_route::PoolMode;
use respool_wire::Protocol;

impl Lanes {
    /// The shared class of the same database, dialect and name.
    pub(crate) fn base(&self, class: LaneKeyId) -> LaneKeyId {
        self.without_scripts(self.sharing(class))
    }

    /// The class whose lanes a client in this one shares with others.
    pub(crate) fn sharing(&self, class: LaneKeyId) -> LaneKeyId {
        match &self.owners[class] {
            KeyOwner::Client(owner) => owner.base,
            KeyOwner::Shared | KeyOwner::Scripts { .. } | KeyOwner::Free => class,
        }
    }

    /// Whether a class has lanes of its own to all nodes.
    pub(crate) fn owns_all(&self, class: LaneKeyId) -> bool {
        matches!(&self.owners[class], KeyOwner::Client(owner) if owner.nodes.is_none())
    }

    /// Whether a class has lanes of its own to a node.
    pub(crate) fn owns(&self, class: LaneKeyId, node: NodeId) -> bool {
        matches!(&self.owners[class], KeyOwner::Client(owner) if owner.has(node))
    }

    /// Whether a class is one client's.
    pub(crate) fn is_owned(&self, class: LaneKeyId) -> bool {
        matches!(self.owners[class], KeyOwner::Client(_))
    }

    /// How many own lanes to a node are connected, or will be.
    fn count_own(&self, node: NodeId) -> usize {
        let counts = |lane: &&crate::pool::Lane| {
            let is_up = lane.wants_dial || !matches!(lane.up.phase(), Phase::Idle);
            matches!(lane.purpose, LaneUse::Own | LaneUse::Listen) && !lane.is_retired && lane.node == node && is_up
        };
        self.all.iter().filter(counts).count()
    }

    /// An own lane of a class to a node: a warm connection, or one that is to be dialled.
    pub(crate) fn make_own(&mut self, config: &Config, node: NodeId, class: LaneKeyId) -> LaneId {
        let (mut reader, mut lease, mut tracking) = (None, Ok(Lease::default()), None);
        if let KeyOwner::Client(owner) = &self.owners[class] {
            reader = Some(owner.session);
            tracking = owner.tracking.as_ref().map(|by_node| by_node.get(node).cloned().flatten());
            lease = Lease::within(owner.allowance.as_deref());
        }
        let may_connect = self.count_own(node) < config.lanes.session_max && lease.is_ok();
        // What a node is to tell it is told when it is dialled.
        let warm = if may_connect && tracking.is_none() { self.take_warm(node, class) } else { None };
        let lane = warm.unwrap_or_else(|| self.add_unshared(config, node, class, LaneUse::Own));
        let this = &mut self.all[lane];
        this.purpose = LaneUse::Own;
        this.class = class;
        // One that is dialled counts from then on.
        this.lease = lease.ok().filter(|_| warm.is_some()).unwrap_or_default().read_by(reader);
        if let Some(tracking) = tracking {
            this.up.set_tracking(tracking);
            if this.up.identity().protocol == Protocol::Resp3 {
                this.up.set_pushes(Pushes::Delivered);
            }
        }
        self.table.put(node, class, Some(lane));
        self.wait_for_predecessors(lane);
        lane
    }

    /// Whether an own lane may be dialled. `Err` is what its client is told instead.
    pub(crate) fn admit_own(&mut self, lane: LaneId, config: &Config) -> Result<(), ErrorReply> {
        let this = &self.all[lane];
        if self.count_own(this.node) >= config.lanes.session_max {
            return Err(error_text::too_many_own(&self.nodes[this.node].name));
        }
        if let KeyOwner::Client(owner) = &self.owners[this.class] {
            let lease = Lease::within(owner.allowance.as_deref())?;
            let this = &mut self.all[lane];
            this.lease = lease.read_by(this.lease.reader());
        }
        Ok(())
    }

    /// The own lanes of a class.
    pub(crate) fn own_lanes(&self, class: LaneKeyId) -> Vec<LaneId> {
        if !self.is_owned(class) {
            return Vec::new();
        }
        self.table.of_class(class).collect()
    }

    /// Other nodes are configured. What a client has of its own it has to the node of that name, wherever it is now.
    pub(crate) fn move_own(&mut self, moves: &Moves) {
        for owner in self.owners.iter_mut() {
            if let KeyOwner::Client(owner) = owner
                && let Some(nodes) = &mut owner.nodes
            {
                *nodes = nodes.iter().filter_map(|node| moves.namesake_of(*node)).collect();
            }
        }
        for (place, lane) in self.all.entries().filter(|(_, lane)| !lane.is_retired) {
            if lane.purpose == LaneUse::Own {
                self.table.put(lane.node, lane.class, Some(place));
            }
        }
    }

    /// Lanes that clients have to themselves take nothing more: each answers what it owes, as fast as its client reads, and
    /// then ends.
    pub(crate) fn leave_to_its_reader(&mut self, lane: LaneId) {
        let this = &mut self.all[lane];
        this.purpose = LaneUse::Leaving;
        // Its client may have another in its place.
        this.lease.count_no_more();
        self.left.push(lane);
    }

    /// A client's own lanes to nodes that have gone, as far as they still owe something.
    pub(crate) fn left_of(&mut self, client: ClientHandle) -> Vec<LaneId> {
        let all = &self.all;
        let is_left = |lane: &LaneId| all[*lane].purpose == LaneUse::Leaving && !all[*lane].is_retired;
        self.left.retain(is_left);
        let is_its = |lane: &LaneId| all[*lane].lease.reader() == Some(client);
        self.left.iter().copied().filter(is_its).collect()
    }

    /// The own lanes to a node that has gone answer what they owe, and then end.
    pub(crate) fn leave_own_lanes_to(&mut self, node: NodeId) {
        for place in self.all.ids() {
            let this = &self.all[place];
            if this.purpose == LaneUse::Own && !this.is_retired && this.node == node {
                let class = this.class;
                self.leave_to_its_reader(place);
                self.table.put(node, class, None);
            }
        }
    }

    /// Whether a client watches keys on a lane of its own.
    pub(crate) fn is_watched_on(&self, clients: &Clients, lane: LaneId) -> bool {
        let handle = self.handle(lane);
        let reader = self[lane].lease.reader().and_then(|reader| clients.sessions.get(reader));
        let pins = reader.and_then(|session| session.pins.as_ref());
        pins.is_some_and(|pins| pins.watches.lanes.iter().any(|pin| pin.lane == handle))
    }

    /// The nodes to which a client has its own lanes, and since when it is connected: for the console.
    pub(crate) fn owned_nodes(&self, class: LaneKeyId) -> impl Iterator<Item = NodeId> + '_ {
        let lanes = self.own_lanes(class).into_iter();
        lanes.filter(|lane| !matches!(self[*lane].up.phase(), Phase::Idle)).map(|lane| self[lane].node)
    }
}

impl<E: Execute> Env<E> {
    /// Another mode may hold for a client than before. `None`: it is as it should be, or cannot be changed before what the
    /// client holds has ended.
    #[cold]
    pub(crate) fn settle_mode(&mut self, index: ClientId) -> Option<Flow> {
        let session = self.clients.sessions.at(index)?;
        let (class, holds_something, allowance) =
            (session.class, session.pins.is_some(), session.details.allowance.clone());
        let owns_all = self.lanes.owns_all(class);
        let is_to_own = self.is_to_own_all(index);
        // Under routes what it has of its own may still be right.
        let is_right = is_to_own == owns_all && (is_to_own || !self.lanes.is_owned(class) || self.has_session_routes());
        if !is_right {
            if holds_something {
                return None;
            }
            if self.clients.settle_before(index).is_none() {
                return Some(Flow::Again);
            }
            self.leave_large(index);
            self.leave_own(index);
            if is_to_own && !self.begin_owning(index, None) {
                return Some(self.refuse(index, error_text::TOO_MANY_OWNERS));
            }
        }
        if let KeyOwner::Client(owner) = &mut self.lanes.owners[class] {
            owner.allowance = allowance;
        }
        self.clients.sessions.at_mut(index)?.flags.remove(SessionFlags::UNSETTLED);
        None
    }

    /// Sees to it that a client has its own lanes to some nodes, because its request goes by a route that says so.
    /// `Some`: not yet, or never.
    #[cold]
    pub(crate) fn own_nodes(&mut self, index: ClientId, nodes: &[NodeId]) -> Option<Flow> {
        let class = self.clients.sessions.at(index)?.class;
        if nodes.iter().all(|node| self.lanes.owns(class, *node)) {
            return None;
        }
        if self.clients.settle_before(index).is_none() {
            return Some(Flow::Again);
        }
        self.leave_large(index);
        let more: Vec<NodeId> = nodes.iter().copied().filter(|node| !self.lanes.owns(class, *node)).collect();
        if let KeyOwner::Client(owner) = &mut self.lanes.owners[class] {
            owner.nodes.get_or_insert_default().extend(more);
        } else if !self.begin_owning(index, Some(more)) {
            return Some(self.refuse(index, error_text::TOO_MANY_OWNERS));
        }
        None
    }

    /// A client shares connections from now on, unless its mode says otherwise. Nothing of it is outstanding.
    pub(crate) fn stop_owning(&mut self, index: ClientId) {
        if self.is_to_own_all(index) {
            self.give_up_own(index, Self::give_back_own);
        } else {
            self.leave_own(index);
        }
    }

    /// A client shares connections from now on.
    fn leave_own(&mut self, index: ClientId) {
        let Some(base) = self.clients.sessions.at(index).map(|session| self.lanes.base(session.class)) else { return };
        self.give_up_own(index, Self::end_owning);
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.class = base;
        }
    }

    /// A client's own lanes are given back in such a way. Of what it has, nothing is bound to them afterwards.
    fn give_up_own(&mut self, index: ClientId, give_up: impl FnOnce(&mut Self, LaneKeyId, Option<&mut Watches>)) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let (class, mut pins) = (session.class, session.pins.take());
        session.large.iter_mut().for_each(|large| large.leave_own(&self.lanes));
        give_up(self, class, pins.as_deref_mut().map(|pins| &mut pins.watches));
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.pins = pins;
            session.settle_pins();
        }
    }

    /// A client has left: what it had to itself is given back.
    pub(crate) fn forget_own(&mut self, session: &mut Session) {
        session.large.iter_mut().for_each(|large| large.leave_own(&self.lanes));
        self.end_owning(session.class, session.pins.as_deref_mut().map(|pins| &mut pins.watches));
    }

    fn end_owning(&mut self, class: LaneKeyId, watches: Option<&mut Watches>) {
        if !self.lanes.is_owned(class) {
            return;
        }
        self.give_back_own(class, watches);
        if let KeyOwner::Client(owner) = &self.lanes.owners[class] {
            let client = owner.session;
            self.lanes.left_of(client).into_iter().for_each(|lane| self.read_on(lane));
        }
        self.lanes.owners[class] = KeyOwner::Free;
        self.counters.owners.set(self.counters.owners.value().saturating_sub(1));
    }

    /// Gives a client's own lanes back, clean or closed.
    fn give_back_own(&mut self, class: LaneKeyId, watches: Option<&mut Watches>) {
        let base = self.lanes.base(class);
        let lanes = &self.lanes;
        let is_own = |lane: LaneHandle| lanes.find(lane).is_some_and(|place| lanes[place].purpose == LaneUse::Own);
        let lost = watches.map_or_else(Vec::new, |watches| watches.forfeit(is_own));
        lost.iter().for_each(|_| self.clients.unpin());
        for place in self.lanes.own_lanes(class) {
            let (handle, node) = (self.lanes.handle(place), self.lanes[place].node);
            self.lanes.table.put(node, class, None);
            self.stop_pacing(place);
            let this = &mut self.lanes[place];
            (this.purpose, this.class) = (LaneUse::Private, base);
            if std::mem::take(&mut this.is_waiting) {
                // The node is asked to let the request go, and says what it has taken. No client has it afterwards.
                this.purpose = LaneUse::Blocking;
                this.is_stale = true;
                continue;
            }
            let is_told = this.up.identity().tracking.is_some();
            // What is told of changes is never another client's.
            this.is_stale |= is_told;
            if self.keeps_block(place) {
                continue;
            }
            if is_told {
                self.close_lane(place);
                continue;
            }
            let is_watching = lost.iter().any(|watched| watched.lane == handle);
            self.give_back(handle, ResetNeeded { is_watching, ..ResetNeeded::default() });
        }
    }

    /// The mode that holds for a client's requests under a route.
    pub(crate) fn mode_under(&self, index: ClientId, route: u16) -> PoolMode {
        self.config.routes.route(route).pool_mode.unwrap_or_else(|| self.clients.mode_of(&self.config, index))
    }

    /// Whether a client is to have its own lanes to all nodes. Under routes that is known with each request.
    fn is_to_own_all(&self, index: ClientId) -> bool {
        let is_routed = self.clients.sessions.at(index).is_some_and(|session| session.flags.has(SessionFlags::ROUTED));
        let is_in_mode = !is_routed && self.clients.mode_of(&self.config, index) == PoolMode::Session;
        self.engine.is_none() && (is_in_mode || self.clients.has_noloop_lanes(index))
    }

    /// Looks whether a client's mode has to be settled before its next request.
    pub(crate) fn review_mode(&mut self, index: ClientId) {
        let is_session = self.engine.is_none() && self.clients.mode_of(&self.config, index) == PoolMode::Session;
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        if is_session || self.lanes.is_owned(session.class) {
            session.flags.add(SessionFlags::UNSETTLED);
        }
    }

    /// Other modes, routes or users hold: the same for all clients.
    pub(crate) fn review_modes(&mut self) {
        self.clients.sessions.places(|_| true).into_iter().for_each(|index| self.review_mode(index));
    }

    fn has_session_routes(&self) -> bool {
        let is_session = |mode: PoolMode| mode == PoolMode::Session;
        let routes = &self.config.routes;
        !routes.are_plain()
            && (is_session(self.config.lanes.mode)
                || routes.routes().iter().any(|route| route.pool_mode.is_some_and(is_session))
                || self.allowances.values().any(|allowance| allowance.limits.pool_mode.is_some_and(is_session)))
    }

    /// Has a client have its own lanes to all nodes from now on. Nothing of it is outstanding. `false`: there are too many.
    pub(crate) fn own_all(&mut self, index: ClientId) -> bool {
        let Some(class) = self.clients.sessions.at(index).map(|session| session.class) else { return false };
        if let KeyOwner::Client(owner) = &mut self.lanes.owners[class] {
            owner.nodes = None;
            return true;
        }
        self.begin_owning(index, None)
    }

    /// Puts a client into a class of its own. `false`: there are too many.
    fn begin_owning(&mut self, index: ClientId, nodes: Option<Vec<NodeId>>) -> bool {
        let Some(handle) = self.clients.sessions.handle(index) else { return false };
        let Some(session) = self.clients.sessions.at(index) else { return false };
        let owner = Owner {
            session: handle,
            base: self.lanes.base(session.class),
            nodes,
            allowance: session.details.allowance.clone(),
            tracking: None,
        };
        let state = self.lanes.state_of(session.class);
        let Some(class) = self.lanes.put_class(state, KeyOwner::Client(Box::new(owner))) else { return false };
        if let Some(session) = self.clients.sessions.at_mut(index) {
            session.class = class;
        }
        self.counters.owners.set(self.counters.owners.value() + 1);
        true
    }

    /// A client's own lanes take nothing more, although replies are owed on some: those answer them and then end. One on which
    /// keys are watched, or a request waits, is left as it is.
    pub(crate) fn leave_busy_own(&mut self, class: LaneKeyId) {
        for place in self.lanes.own_lanes(class) {
            let this = &self.lanes[place];
            if !this.is_settled() && !this.is_waiting && !self.lanes.is_watched_on(&self.clients, place) {
                let node = this.node;
                self.lanes.leave_to_its_reader(place);
                self.lanes.table.put(node, class, None);
            }
        }
    }

    /// A client has left whose transaction is to run on a connection of its own: a server that has read EXEC executes it, and so it
    /// is here. The connection counts among those that are lent for transactions; if there are too many, it ends.
    fn keeps_block(&mut self, lane: LaneId) -> bool {
        let (handle, this) = (self.lanes.handle(lane), &self.lanes[lane]);
        let is_owed = this.is_owed() || !self.tasks.through.is_empty();
        // The lane itself is among those that are counted.
        let has_room = self.lanes.count_lent(this.node) <= self.config.lanes.private_max;
        is_owed && has_room && self.tasks.bind_blocks_to(handle)
    }

    /// A client has another database, dialect or name at the nodes: its lanes of its own are given back.
    pub(crate) fn put_into_class(&mut self, reads: &mut impl ReadTracker, index: ClientId, base: LaneKeyId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let class = session.class;
        if !self.lanes.is_owned(class) {
            session.class = base;
            return;
        }
        let state: LaneKey = self.lanes.state_of(base);
        if reads.speak_otherwise(self, index, class, state) {
            if let KeyOwner::Client(owner) = &mut self.lanes.owners[class] {
                owner.base = base;
            }
            return;
        }
        self.give_up_own(index, Self::give_back_own);
        self.lanes.set_state_of(class, state);
        let allowance = self.clients.sessions.at(index).and_then(|session| session.details.allowance.clone());
        if let KeyOwner::Client(owner) = &mut self.lanes.owners[class] {
            owner.base = base;
            owner.allowance = allowance;
        }
        reads.restart_noloop(self, index);
    }
}

impl Clients {
    /// The mode that holds for a client where no route says anything.
    pub(crate) fn mode_of(&self, config: &Config, index: ClientId) -> PoolMode {
        let allowance = self.sessions.at(index).and_then(|session| session.details.allowance.as_ref());
        allowance.and_then(|allowance| allowance.limits.pool_mode).unwrap_or(config.lanes.mode)
    }
}
