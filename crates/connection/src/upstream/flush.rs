//! When queued requests are written: at once, or together with those that are about to come.

use super::write_timing::{Patience, WritePolicy};
use super::{Phase, Upstream};
use crate::limits::{
    FILLING_BATCH_MIN, FILLING_US_MAX, HELD_AGE_US_MAX, HELD_BYTES_MAX, HELD_ROUND_TRIP_US_MAX, PATIENT_OUTSTANDING_MAX,
};
use crate::{Outbox, Ticket};

impl<T: Ticket, O: Outbox> Upstream<T, O> {
    /// Whether bytes are written at the end of this turn.
    #[inline]
    pub fn wants_write(&self, now_us: u64) -> bool {
        match self.phase {
            Phase::Idle | Phase::Dialing => false,
            Phase::Shaking(_) => !self.greeting.is_empty(),
            Phase::Ready => !self.output.is_empty() && !self.is_held(now_us) && !self.is_curbed(),
        }
    }

    /// Whether what waits must go on waiting, because the node was away.
    fn is_curbed(&self) -> bool {
        self.ramp.as_ref().is_some_and(|ramp| ramp.allowed() == 0)
    }

    /// Whether waiting bytes may wait longer at all, for whatever reason there is: the node is near, and they are few.
    #[inline]
    fn may_hold(&self) -> bool {
        self.timing.policy == WritePolicy::ReplyClock
            && self.output.len() < HELD_BYTES_MAX
            && self.round_trip.shortest_us < HELD_ROUND_TRIP_US_MAX
    }

    /// Requests that wait to be written.
    #[inline]
    pub(super) fn batch(&self) -> usize {
        self.tickets.len() - self.tickets.outstanding()
    }

    /// Whether waiting bytes are better written with the next replies.
    fn is_held(&self, now_us: u64) -> bool {
        self.may_hold()
            && self.tickets.outstanding() > self.tickets.expired()
            && !self.timing.has_reply_come
            && now_us.saturating_sub(self.timing.held_since_us) < HELD_AGE_US_MAX
    }

    /// Whether fewer requests wait than are usually written at once.
    #[inline]
    pub fn is_batch_small(&self) -> bool {
        self.timing.usual_batch >= FILLING_BATCH_MIN * 16 && self.batch() * 16 < self.timing.usual_batch
    }

    /// Whether what waits is little and has not waited long: if clients are about to send more, it is better written
    /// together.
    #[inline]
    pub fn is_filling(&self, now_us: u64) -> bool {
        self.is_batch_small()
            && self.may_hold()
            && self.is_ready()
            && now_us.saturating_sub(self.timing.held_since_us) < FILLING_US_MAX.min(self.round_trip.smoothed_us / 2)
    }

    /// Since when what waits has been waiting.
    pub fn held_since_us(&self) -> u64 {
        self.timing.held_since_us
    }

    /// Whether what waits may wait for the requests of others: they are not `enough` yet.
    #[inline]
    pub fn may_gather(&self, enough: usize) -> bool {
        self.may_hold() && self.is_ready() && self.batch() < enough && self.round_trip.shortest_us > 0
    }

    /// Whether waiting for this connection's next bytes alone is worth it.
    pub fn patience(&self, now_us: u64) -> Patience {
        match self.phase {
            Phase::Ready => {}
            Phase::Idle => return Patience::NothingOwed,
            Phase::Dialing | Phase::Shaking(_) => return Patience::None,
        }
        let Some(since_us) = self.tickets.oldest_us() else { return Patience::NothingOwed };
        let until_us = since_us + HELD_AGE_US_MAX;
        let is_prompt = self.timing.policy == WritePolicy::ReplyClock
            && self.round_trip.shortest_us > 0
            && self.round_trip.shortest_us < HELD_ROUND_TRIP_US_MAX
            && self.tickets.outstanding() <= PATIENT_OUTSTANDING_MAX
            && now_us < until_us;
        if is_prompt { Patience::Until(until_us) } else { Patience::None }
    }

    /// When held bytes have to be looked at again, if nothing happens before.
    pub fn held_until_us(&self) -> u64 {
        let held_until_us = self.timing.held_since_us + HELD_AGE_US_MAX;
        self.ramp.as_ref().map_or(held_until_us, |ramp| held_until_us.max(ramp.again_us()))
    }
}
