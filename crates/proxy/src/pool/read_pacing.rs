//! Connections that are read as fast as their client reads: those it has to itself.
//!
//! What such a connection brings next is left in the kernel, and in the end at the node, while the client has enough to
//! take before it can take that. So the memory for a reply does not depend on its size or on the client's speed.
//!
//! ```text
//!   next on the connection is the reply      it is read on while there is at most
//!   - that the client is to get next         the budget in the outbox
//!   - that comes after others                the budget of replies that wait for those others
//!   - of another client, or part of a join   always: other clients wait for it, or the other parts do
//! ```
//!
//! The connection that brings the reply that is to leave next is thus only ever left alone while the outbox is full, so
//! a client that reads gets on, however its replies are spread. The budget is `client_output_soft_bytes`; on a connection on
//! which others still wait behind the client's replies it is `client_output_hard_bytes`, so that they need not.
//!
//! A reply that cannot come yet is not late: deadlines of what the client has asked count from when the connection was last
//! left alone, brought a part of a large reply, or took a part of what did not go in one write. Those of others count as ever.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientId, Handle, LaneId};
use crate::limits::CUT_OFF_SLACK_BYTES;
use crate::pool::{Lane, LaneUse};
use crate::reply::owner::Owner;
use crate::reply::task::Tasks;
use crate::session::Session;
use respool_command::Execute;
use respool_connection::{Copied, Downstream, Seq, Upstream};

impl Lane {
    /// Whether its reader's reading decides how fast it is read.
    pub(crate) fn is_paced(&self) -> bool {
        self.lease.reader().is_some() && matches!(self.purpose, LaneUse::Private | LaneUse::Own | LaneUse::Leaving)
    }
}

impl Session {
    /// Bytes that may be unread before the client is disconnected: each of its own connections may bring a little after it
    /// was to be left alone.
    pub(crate) fn output_hard(&self, hard: usize) -> usize {
        let lanes = self.large.as_ref().map_or(0, |large| large.len());
        hard.saturating_add(lanes * CUT_OFF_SLACK_BYTES)
    }
}

impl<E: Execute> Env<E> {
    /// Stops reading a client's own lane while the client's output exceeds the soft limit.
    pub(crate) fn pace_lane(&mut self, lane: LaneId) {
        let this = &mut self.lanes[lane];
        let Some(reader) = this.lease.reader().filter(|_| this.is_paced()) else { return };
        let Some(session) = self.clients.sessions.get(reader) else { return };
        let enough = this.lease.enough(&self.config.budgets);
        let next = next_place(&this.up, reader, &self.tasks);
        if !may_read(&session.down, next, enough) && this.lease.leave_unread() {
            self.counters.pauses.add(1);
        }
    }

    /// Reads a client's own lanes again once its output is below the limit.
    pub(crate) fn resume_lanes_of(&mut self, index: ClientId) {
        let Some(reader) = self.clients.sessions.handle(index) else { return };
        let Some(session) = self.clients.sessions.at(index) else { return };
        let large = session.large.iter().flat_map(|large| large.lanes());
        let mut lanes: Vec<LaneId> = large.filter_map(|lane| self.lanes.find(lane)).collect();
        if self.lanes.is_owned(session.class) {
            lanes.extend(self.lanes.own_lanes(session.class));
        }
        if !self.lanes.left.is_empty() {
            lanes.extend(self.lanes.left_of(reader));
        }
        lanes.retain(|lane| {
            let this = &self.lanes[*lane];
            let enough = this.lease.enough(&self.config.budgets);
            this.lease.is_unread() && may_read(&session.down, next_place(&this.up, reader, &self.tasks), enough / 2)
        });
        lanes.into_iter().for_each(|lane| self.read_on(lane));
    }

    /// Looks after the deadlines of a connection that is read as fast as its client reads.
    pub(crate) fn mind_paced(&mut self, lane: LaneId) {
        let this = &mut self.lanes[lane];
        if this.is_left || this.lease.is_unread() || this.up.streamed_bytes() > 0 {
            this.lease.note_flow(self.now.mono_us);
        }
        // What was begun before the lane was taken out of sharing may have gone on over it.
        if !this.is_left && (this.lease.has_others() || this.purpose == LaneUse::Private) {
            self.expire_others(lane);
        }
    }
}

/// The place of the reply to its reader that a connection brings next. `None`: that is for others, or takes nothing of what the
/// reader may leave unread.
fn next_place(up: &Upstream<Owner, Copied>, reader: ClientHandle, tasks: &Tasks) -> Option<Seq> {
    match up.tickets().front().copied()? {
        Owner::Client { index, generation, seq } => (Handle { index, generation } == reader).then_some(seq),
        // What a task reads first is given to the reader as a whole, as the reply to a transaction is.
        owner => {
            tasks.place_of(owner).filter(|asker| asker.session == reader && asker.is_wanted).map(|asker| asker.seq)
        }
    }
}

/// Whether a client's unread output before the reply in place `next`, which its own lane brings, is at most `enough`: then the lane may be
/// read.
fn may_read(down: &Downstream, next: Option<Seq>, enough: usize) -> bool {
    let Some(seq) = next else { return true };
    let waiting = if down.is_next(seq) { down.output().len() } else { down.waiting_bytes() - down.output().len() };
    waiting <= enough
}
