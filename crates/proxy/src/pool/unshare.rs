//! Taking a connection out of sharing, because a large reply to one client has begun to come over it.
//!
//! ```text
//!     before                                after
//!     table --> L  [A][A big ..][B][A][C]   L   [A big ..][B][A][C]   A's own, read as fast as A reads
//!                                           table --> L' (dialled)    what comes later, of B and C too
//! ```
//!
//! Nothing that was asked moves: every reply still comes over the connection on which its request went, to the ticket that
//! it had. What changes is where later requests go. A's go on over L, so they stay in order. B and C are owed something on
//! L, so their next requests wait until that has been answered, and go over L' then. A client that has nothing outstanding on L
//! takes L' at once.
//!
//! B and C do not wait for A to read: L is read on, into what A may leave unread, until their replies have come. If A's
//! budget does not suffice they get a timeout error at their deadline, and tombstones discard their replies when they come.
//! If A leaves, L answers what others are owed and is closed then. A request that B or C sends after such a timeout goes
//! over L' and may be executed before the one that has timed out: to wait for that one would be to wait for A.

use crate::env::Env;
use crate::error_text;
use crate::ids::{ClientHandle, ClientId, Handle, LaneId, LaneKeyId};
use crate::limits::{CLAIM_LOOKED_AT_MAX, LARGE_REPLY_BYTES};
use crate::pool::lease::Lease;
use crate::pool::{LaneUse, Lanes};
use crate::reply::owner::Owner;
use crate::reply::progress::LostReply;
use crate::reply::refuse;
use crate::reply::task::Tasks;
use crate::request::gathers::Scatters;
use crate::session::{PauseReasons, SessionFlags};
use respool_command::Execute;
use respool_connection::FlushPolicy;

/// Whether a ticket belongs to a client, or is a tombstone.
fn is_for(owner: Owner, client: ClientHandle, scatters: &Scatters, tasks: &Tasks) -> bool {
    match owner {
        Owner::Client { index, generation, .. } | Owner::Unanswered { index, generation } => {
            Handle { index, generation } == client
        }
        Owner::Part { gather, generation, .. } => scatters.asker(Handle { index: gather, generation }) == Some(client),
        Owner::Task { task, generation, .. } => {
            let task = Handle { index: task, generation };
            !tasks.has(task) || tasks.asker(task) == Some(client)
        }
        Owner::Discard => true,
    }
}

impl Lanes {
    /// Takes a shared lane out of the table, for one client.
    fn take_from_table(&mut self, lane: LaneId, lease: Lease) {
        let base = self.base(self.all[lane].class);
        let this = &mut self.all[lane];
        self.table.take_out(this.node, this.class, lane);
        this.purpose = LaneUse::Private;
        this.class = base;
        this.lease = lease;
        this.up.set_policy(FlushPolicy::EachTurn);
        self.shared.retain(|shared| *shared != lane);
    }

    /// A lane that was taken out of sharing is its client's no more: if others are owed something on it, it stays until
    /// they have it. Returns whether it does.
    pub(crate) fn leave_claimed(&mut self, lane: LaneId) -> bool {
        let this = &mut self[lane];
        if !this.lease.has_others() || this.up.tickets().is_empty() {
            this.lease.set_has_others(false);
            return false;
        }
        this.purpose = LaneUse::Leaving;
        this.lease.count_no_more();
        // Lanes that come after it need not wait for it: clients that are owed something on it do.
        this.turn = u64::MAX;
        true
    }
}

impl<E: Execute> Env<E> {
    /// A part of a reply to a client has come over a lane, and there is more.
    #[cold]
    pub(crate) fn note_large(&mut self, lane: LaneId, client: ClientHandle) {
        let this = &self.lanes[lane];
        let (node, bytes, now_us) = (this.node, this.up.announced_bytes(), self.now.mono_us);
        if bytes < LARGE_REPLY_BYTES || self.clients.sessions.get(client).is_none() {
            return;
        }
        if this.purpose == LaneUse::Private && this.lease.reader() == Some(client) {
            self.clients.large_of(client).into_iter().for_each(|large| large.touch(node, now_us));
        } else if this.purpose == LaneUse::Shared && !self.claim_lane(lane, client) {
            self.clients.large_of(client).into_iter().for_each(|large| large.note_shared(node, now_us));
        }
    }

    /// A client leaves much unread and is owed more: what comes next for it over shared connections is not read for it.
    #[cold]
    pub(crate) fn claim_lanes_of(&mut self, index: ClientId) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        let Some(session) = self.clients.sessions.at(index).filter(|s| !s.down.is_settled()) else { return };
        let class = self.lanes.sharing(session.class);
        for node in self.lanes.nodes.ids() {
            let Some(lane) = self.lanes.known(node, class) else { continue };
            let tasks = &self.tasks;
            let is_its = |owner: &Owner| match *owner {
                Owner::Client { index, generation, .. } => Handle { index, generation } == client,
                owner => tasks.place_of(owner).is_some_and(|asker| asker.session == client),
            };
            let is_owed_soon = self.lanes[lane].up.tickets().iter().take(CLAIM_LOOKED_AT_MAX).any(is_its);
            if is_owed_soon {
                self.claim_lane(lane, client);
            }
        }
    }

    /// Makes a shared lane one client's own, if that can be.
    fn claim_lane(&mut self, lane: LaneId, client: ClientHandle) -> bool {
        let this = &self.lanes[lane];
        let (node, class) = (this.node, self.lanes.base(this.class));
        // Replies that are converted or proved are kept whole anyway.
        let is_fit = this.purpose == LaneUse::Shared && this.up.is_ready() && this.beside.is_none() && !this.is_behind;
        let Some(session) = self.clients.sessions.get(client) else { return false };
        let has_one = session.large.as_ref().is_some_and(|large| large.has_lane_to(node, &self.lanes));
        if !is_fit || has_one || self.lanes.base(session.class) != class || !self.lanes.may_lend(&self.config, node) {
            return false;
        }
        let Ok(lease) = Lease::within(session.details.allowance.as_deref()) else { return false };
        self.lanes.take_from_table(lane, lease.read_by(Some(client)));
        let has_others = self.has_others_on(lane, client);
        let this = &mut self.lanes[lane];
        this.lease.set_has_others(has_others);
        let throttled = std::mem::take(&mut this.throttled);
        throttled.into_iter().for_each(|index| self.clients.unpause(index, PauseReasons::LANE));
        if has_others {
            self.have_others_wait(class, client);
        }
        let handle = self.lanes.handle(lane);
        let now_us = self.now.mono_us;
        self.clients.large_of(client).into_iter().for_each(|large| large.claim(node, handle, now_us));
        self.counters.lanes_claimed.add(1);
        self.is_busy = true;
        true
    }

    /// Clients that share a class of lanes, one of which has been taken out: a client that may be owed something there waits for it with
    /// its next request. That they are owed something elsewhere alone is not looked at.
    fn have_others_wait(&mut self, class: LaneKeyId, client: ClientHandle) {
        let lanes = &self.lanes;
        for (index, session) in self.clients.sessions.iter_mut() {
            if !session.down.is_settled() && index != client.index && lanes.base(session.class) == class {
                session.flags.add(SessionFlags::OVERTAKEN);
            }
        }
    }

    /// Clients that wait on a lane behind the replies of its own client are told at their deadline that no reply
    /// will come.
    pub(crate) fn expire_others(&mut self, lane: LaneId) {
        let Self { lanes, clients, scatters, tasks, config, counters, now, lag, .. } = self;
        let this = &mut lanes.all[lane];
        let Some(client) = this.lease.reader() else { return };
        let mut late = Vec::new();
        if let Some(due_us) = this.due_us(lag, now.mono_us, config.timeouts.response_us) {
            let is_due = |owner: &Owner| !is_for(*owner, client, scatters, tasks) && !tasks.follows(*owner);
            this.up.expire_where(due_us, is_due, |owner| {
                late.push(owner);
                if tasks.may_follow(owner) { owner } else { Owner::Discard }
            });
        }
        if !late.is_empty() {
            let error = error_text::timed_out(&lanes.nodes[this.node].name, config.timeouts.response_us);
            for owner in late {
                counters.timeouts.add(1);
                refuse(owner, LostReply::Late, &error, clients, scatters, tasks);
            }
        }
        let has_others = self.has_others_on(lane, client);
        self.lanes[lane].lease.set_has_others(has_others);
        self.pace_lane(lane);
    }

    /// Whether something on a lane is owed to others than this client.
    pub(crate) fn has_others_on(&self, lane: LaneId, client: ClientHandle) -> bool {
        let mut tickets = self.lanes[lane].up.tickets().iter();
        tickets.any(|owner| !is_for(*owner, client, &self.scatters, &self.tasks))
    }
}
