//! What the flush policy is told of a connection, and its decision.

use super::{Phase, Upstream};
use crate::flush::{Arrivals, Flush, Link, Pending, RepliesDue, WakeOn};
use crate::{Outbox, Ticket};

impl<T: Ticket, O: Outbox> Upstream<T, O> {
    /// Whether bytes are written at the end of this turn, or held; `None`: there are none that could be.
    #[inline]
    pub fn decide_flush(&self, now_us: u64, arrivals: &Arrivals) -> Option<Flush> {
        match self.phase {
            Phase::Idle | Phase::Dialing => None,
            Phase::Shaking(_) => (!self.greeting.is_empty()).then_some(Flush::Now),
            Phase::Ready if self.output.is_empty() => None,
            Phase::Ready => Some(match &self.ramp {
                // The node was away, and is not sent more yet.
                Some(ramp) if ramp.allowed() == 0 => {
                    Flush::Hold { until_us: ramp.again_us(), wake_on: WakeOn::Anything }
                }
                // The rest of what leaves at once, or what is answered by no reply.
                _ if self.batch() == 0 => Flush::Now,
                _ => self.timing.policy.decide(now_us, &self.pending(), &self.link(), arrivals),
            }),
        }
    }

    /// Whether bytes are written at the end of this turn, whatever clients are expected to send.
    #[inline]
    pub fn wants_write(&self, now_us: u64) -> bool {
        self.decide_flush(now_us, &Arrivals::NONE) == Some(Flush::Now)
    }

    /// Requests that wait to be written.
    #[inline]
    pub(super) fn batch(&self) -> usize {
        self.tickets.len() - self.tickets.outstanding()
    }

    /// What is queued.
    #[inline]
    pub fn pending(&self) -> Pending {
        Pending {
            requests: self.batch(),
            bytes: self.output.len(),
            since_us: self.timing.held_since_us,
            usual_requests: self.timing.usual_requests,
            usual_senders: self.timing.usual_senders,
        }
    }

    /// What is known of the connection.
    #[inline]
    pub fn link(&self) -> Link {
        Link {
            awaits_reply: self.tickets.outstanding() > self.tickets.expired() && !self.timing.has_reply_come,
            round_trip_us: self.round_trip.smoothed_us,
            shortest_us: self.round_trip.shortest_us,
            queue_us: self.round_trip.queue_us(),
            outstanding: self.tickets.outstanding(),
        }
    }

    /// Whether this connection's next bytes are due.
    pub fn replies_due(&self, now_us: u64) -> RepliesDue {
        match self.phase {
            Phase::Ready => {}
            Phase::Idle => return RepliesDue::None,
            Phase::Dialing | Phase::Shaking(_) => return RepliesDue::Late,
        }
        let Some(oldest_us) = self.tickets.oldest_us() else { return RepliesDue::None };
        self.timing.policy.replies_due(now_us, &self.link(), oldest_us)
    }

    /// Whether waiting for this connection's next bytes alone is worth it where they are due, as long as nothing else is.
    pub fn shares_writes(&self) -> bool {
        self.tickets.outstanding() == 0 || self.pending().shares_writes(&self.link())
    }
}
