//! Whether what is written waits a moment for more: what the policy ([`respool_connection::flush`]) decides for this worker's
//! connections, and what the loop waits for meanwhile.

pub(crate) mod client;
pub(crate) mod connections;
mod lane;

use crate::env::Env;
use crate::ids::{ClientId, LaneId};
use respool_command::Execute;
use respool_connection::flush::{FLUSH_LIMITS, Flush, RepliesDue, WakeOn};
use respool_connection::{FlushPolicy, Wait};

impl<E: Execute> Env<E> {
    /// The next lane to write in this turn.
    #[inline(always)]
    fn next_lane_to_write(&mut self) -> Option<LaneId> {
        while let Some(lane) = self.lanes.listed.pop() {
            let this = &mut self.lanes[lane];
            this.is_listed = false;
            if this.up.is_slow() {
                this.up.go_on_slowly(self.now.mono_us);
            }
            match this.up.decide_flush(self.now.mono_us, &self.clients.arrivals) {
                Some(Flush::Now) => {
                    let has_waited_in_vain = std::mem::take(&mut this.is_for_clients) && this.up.pending().is_small();
                    let may_write = !(this.is_blocked || this.is_behind && this.up.is_ready());
                    if has_waited_in_vain {
                        self.give_up_clients();
                    }
                    if may_write {
                        if self.lanes[lane].beside.is_some() {
                            self.lanes.end_batch(lane, self.now, &mut self.clients.pool);
                        }
                        return Some(lane);
                    }
                }
                Some(Flush::Hold { until_us, wake_on }) => {
                    this.is_for_clients |= wake_on == WakeOn::Clients;
                    self.lanes.held.note(until_us, wake_on);
                    self.lanes.unflushed.push(lane);
                }
                None => {}
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

    /// Until when the nodes' replies are due.
    pub(crate) fn patient_until_us(&self) -> Option<u64> {
        let shared = &self.lanes.shared;
        let may_wait = self.is_busy && !self.lanes.held.is_for_clients() && shared.len() <= FLUSH_LIMITS.links_max;
        if !may_wait || self.drain_until_us.is_some() {
            return None;
        }
        let mut until_us: Option<u64> = None;
        for lane in shared {
            match self.lanes[*lane].up.replies_due(self.now.mono_us) {
                RepliesDue::None => {}
                RepliesDue::Until(lane_us) => until_us = Some(until_us.map_or(lane_us, |other| other.min(lane_us))),
                // One node that may take its time is reason enough to look at clients: theirs may be other nodes.
                RepliesDue::Late => return None,
            }
        }
        until_us
    }

    /// Replies that wait for the rest of their pipeline are looked at again, unless that is due and the first of them may wait still.
    #[inline]
    pub(crate) fn end_patience(&mut self) {
        let Some(first) = self.clients.unflushed.first() else { return };
        let since_us = self.clients.sessions.at(*first).map_or(0, |session| session.held_since_us);
        if self.now.mono_us >= since_us + FLUSH_LIMITS.replies_us_max || self.patient_until_us().is_none() {
            self.clients.release_unflushed();
        }
    }

    /// Clients that were expected have not come in time.
    fn give_up_clients(&mut self) {
        self.clients.arrivals.give_up_clients();
        self.lanes.held.forget_clients();
        self.lanes.list_unflushed();
    }

    /// A pipeline over several nodes is answered piece by piece. While the other pieces are due, the first ones wait for
    /// them and leave in the same write. Returns whether this client's replies do.
    pub(crate) fn holds_back(&mut self, index: ClientId) -> bool {
        let now_us = self.now.mono_us;
        let Some(session) = self.clients.sessions.at_mut(index) else { return false };
        let since_us = if session.held_since_us > 0 { session.held_since_us } else { now_us };
        let down = &session.down;
        let flush = FlushPolicy::Immediate.decide_replies(now_us, since_us, down.waiting_bytes(), down.outstanding());
        let is_held = flush != Flush::Now;
        session.held_since_us = if is_held { since_us } else { 0 };
        if is_held && !session.is_unflushed {
            session.is_unflushed = true;
            self.clients.unflushed.push(index);
        }
        is_held
    }

    /// What the loop waits for before the next turn.
    pub(crate) fn wait(&self) -> Wait {
        // What goes on in the next turn is due now, and does not wait for replies of near nodes.
        if !self.slices.is_empty() {
            return Wait::Anything;
        }
        if self.clients.gathered.is_holding() {
            return self.clients.gathered.policy.wait();
        }
        let shares_writes = || self.lanes.shared.iter().all(|lane| self.lanes[*lane].up.shares_writes());
        self.lanes.held.wait(|| if shares_writes() { self.patient_until_us() } else { None })
    }

    /// How often connections have been read.
    #[inline]
    pub(crate) fn reads(&self) -> u64 {
        self.counters.client_reads.value() + self.counters.upstream_reads.value()
    }

    /// Everything else of the turn has been written. Lists the clients whose messages are written now; `false`: there are none, or
    /// they are held back.
    pub(crate) fn flush_messages(&mut self) -> bool {
        if !self.clients.gathered.is_holding() {
            return false;
        }
        let mut policy = self.clients.gathered.policy;
        let replies_due_us = || self.lanes.held.replies_until_us(|| self.patient_until_us());
        let is_held = policy.holds(self.now.mono_us, self.reads(), replies_due_us);
        self.clients.gathered.policy = policy;
        !is_held && self.clients.list_gathered()
    }

    /// The loop has let others run, or cannot: what is held for requests is written in the next turn.
    pub(crate) fn flush_held(&mut self) {
        if self.lanes.held.is_for_clients() {
            return self.give_up_clients();
        }
        if self.lanes.held.is_for_arrivals() {
            self.clients.arrivals.end_delay();
            self.lanes.list_unflushed();
        }
    }

    /// The loop has waited for so long.
    pub(crate) fn note_waited(&mut self, waited_us: u64) {
        self.clients.gathered.policy.note_waited(waited_us);
    }

    /// When what is held back is written at the latest, if that is before `due_us`.
    pub(crate) fn flush_due_us(&self, due_us: u64) -> u64 {
        if self.clients.gathered.is_holding() {
            return self.now.mono_us;
        }
        let mut due_us = due_us.min(self.lanes.held.until_us());
        if !self.clients.unflushed.is_empty() {
            due_us = due_us.min(self.now.mono_us + FLUSH_LIMITS.replies_us_max);
        }
        due_us
    }
}
