//! Whether what is written waits a moment for more: nodes' replies that are on their way, requests that clients are about to send.

pub(crate) mod arrival_rate;
pub(crate) mod client;
pub(crate) mod closed_loop;
mod lane;

use crate::env::Env;
use crate::limits::{GATHERED_ENOUGH, PATIENT_LANES_MAX};
use crate::pool::table::LaneId;
use crate::session::id::ClientId;
use respool_command::Execute;
use respool_connection::limits::{HELD_AGE_US_MAX, HELD_BYTES_MAX};
use respool_connection::{Awaits, Patience};

impl<E: Execute> Env<E> {
    /// The next lane to write in this turn.
    #[inline(always)]
    pub(crate) fn next_lane_to_write(&mut self) -> Option<LaneId> {
        while let Some(lane) = self.lanes.listed.pop() {
            let this = &mut self.lanes[lane];
            this.is_listed = false;
            if this.up.is_slow() {
                this.up.go_on_slowly(self.now.mono_us);
            }
            if this.up.wants_write(self.now.mono_us) {
                if self.clients.crowd.may_wait(
                    this.up.held_since_us(),
                    self.now.mono_us,
                    self.config.gather_us,
                    self.counters.client_reads.value(),
                ) && this.up.may_gather(GATHERED_ENOUGH)
                {
                    self.lanes.is_gathering = true;
                    self.lanes.unflushed.push(lane);
                    continue;
                }
                if self.clients.are_awaited() && this.up.is_filling(self.now.mono_us) {
                    this.is_filling = true;
                    self.lanes.is_filling = true;
                    self.lanes.unflushed.push(lane);
                    continue;
                }
                let has_failed_to_fill = std::mem::take(&mut this.is_filling) && this.up.is_batch_small();
                let may_write = !(this.is_blocked || this.is_behind && this.up.is_ready());
                if has_failed_to_fill {
                    self.stop_filling();
                }
                if may_write {
                    if self.lanes[lane].beside.is_some() {
                        self.lanes.end_batch(lane, self.now, &mut self.clients.pool);
                    }
                    return Some(lane);
                }
            } else if this.up.is_ready() && this.up.queued_bytes() > 0 {
                self.lanes.unflushed.push(lane);
            }
            if self.lanes[lane].is_queue_of_note() {
                self.lanes.account_queue(&self.shared, lane);
            }
        }
        None
    }

    /// Whether replies that are outstanding may be waited for, as far as is known in this turn.
    pub(crate) fn is_patient(&mut self) -> bool {
        if self.is_patient.is_none() {
            self.is_patient = Some(self.patient_until_us().is_some());
        }
        self.is_patient == Some(true)
    }

    /// Until when the nodes' replies are worth waiting for, and clients need not be looked at.
    pub(crate) fn patient_until_us(&self) -> Option<u64> {
        let shared = &self.lanes.shared;
        if !self.is_busy || self.is_filling() || shared.len() > PATIENT_LANES_MAX || self.drain_until_us.is_some() {
            return None;
        }
        let mut until_us: Option<u64> = None;
        for lane in shared {
            match self.lanes[*lane].up.patience(self.now.mono_us) {
                Patience::NothingOwed => {}
                Patience::Until(lane_us) => until_us = Some(until_us.map_or(lane_us, |other| other.min(lane_us))),
                // One node that may take its time is reason enough to look at clients: theirs may be other nodes.
                Patience::None => return None,
            }
        }
        until_us
    }

    pub(crate) fn is_filling(&self) -> bool {
        self.lanes.is_filling && self.clients.are_awaited()
    }

    fn stop_filling(&mut self) {
        self.clients.awaited.give_up();
        self.lanes.is_filling = false;
        self.lanes.list_unflushed();
    }

    /// A pipeline over several nodes is answered piece by piece. While the other pieces are due, the first ones wait for
    /// them and leave in the same write. Returns whether this client's replies do.
    pub(crate) fn holds_back(&mut self, index: ClientId) -> bool {
        let now_us = self.now.mono_us;
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let since_us = if session.held_since_us > 0 { session.held_since_us } else { now_us };
        let is_held = session.down.outstanding() > 0
            && session.down.waiting_bytes() < HELD_BYTES_MAX
            && now_us - since_us < HELD_AGE_US_MAX;
        session.held_since_us = if is_held { since_us } else { 0 };
        if is_held && !session.is_unflushed {
            session.is_unflushed = true;
            self.clients.unflushed.push(index);
        }
        is_held
    }

    /// What the loop is to wait for before it writes.
    pub(crate) fn awaits(&self) -> Awaits {
        if self.is_filling() {
            Awaits::Clients
        } else if self.lanes.is_gathering {
            Awaits::Crowd { until_us: self.clients.crowd.until_us() }
        } else {
            self.patient_until_us().map_or(Awaits::Anything, |until_us| Awaits::Nodes { until_us })
        }
    }

    /// The loop has waited long enough.
    pub(crate) fn stop_expecting(&mut self) {
        if self.is_filling() {
            return self.stop_filling();
        }
        self.lanes.is_gathering = false;
        self.clients.crowd.stop();
        self.lanes.list_unflushed();
    }

    /// When what is held back is written at the latest, if that is before `due_us`.
    pub(crate) fn flush_due_us(&self, mut due_us: u64) -> u64 {
        for lane in &self.lanes.unflushed {
            due_us = due_us.min(self.lanes[*lane].up.held_until_us());
        }
        if !self.clients.unflushed.is_empty() {
            due_us = due_us.min(self.now.mono_us + HELD_AGE_US_MAX);
        }
        due_us
    }
}
