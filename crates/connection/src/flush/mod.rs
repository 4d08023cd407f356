//! When bytes are written: at once, or a moment later together with others.
//!
//! A write, a read at the other end and a wake-up cost several times what a small request does, so requests that share them are
//! cheaper. [`FlushPolicy::decide`] says for one connection whether what is queued is written now. It is a function of what is
//! queued ([`Pending`]), of the connection ([`Link`]) and of what clients are expected to send ([`Arrivals`]); it knows no clock
//! and keeps nothing. Its rules, in their order:
//!
//! | held for | while | at most | of |
//! |---|---|---|---|
//! | replies | replies are outstanding, none has come since the last write, and senders are many: sixteen whose requests are outstanding, or eight that usually share a write | 1 ms | [`FlushPolicy::Immediate`] |
//! | arrivals | two more requests are expected within the delay | the delay that is set, half of the time that requests wait at the node, a sixteenth of the client's gap | [`FlushPolicy::Adaptive`] |
//! | clients | four clients or more are about to send again, and fewer requests are queued than usual | 200 us, half a round trip | [`FlushPolicy::Immediate`] |
//!
//! Replies wait for the rest of their client's pipeline as requests do for replies, however few they are ([`FlushPolicy::decide_replies`]). Messages
//! for subscribers have a rule of their own ([`MessageGathering`]), and so have callers that share a connection without a loop, where no
//! turn ends ([`CallerGathering`]). Nothing
//! is held on a link of 300 us or more, or if 16 KB are queued. All bounds are in [`FlushLimits`].
//!
//! A delay for arrivals has to cost nothing that is not lost already. So a request is delayed only where it would have waited anyway:
//! by half of the time that requests wait at the node. At half load they hardly wait there. What each rule gains is in
//! docs/performance.md, and how to measure it.

mod arrival_rate;
mod arrivals;
mod caller_gathering;
mod event_rate;
mod held;
mod limits;
mod message_gathering;
mod returning_clients;
mod round_trip;
mod usual;
mod wake_on;

pub use arrivals::Arrivals;
pub use caller_gathering::{CallerGathering, CallerQueue};
pub use held::Held;
pub use limits::{FLUSH_LIMITS, FlushLimits};
pub use message_gathering::MessageGathering;
pub use returning_clients::ClientPace;
pub(crate) use round_trip::RoundTrip;
pub use usual::Usual;
pub use wake_on::WakeOn;

/// When bytes are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushPolicy {
    /// At the end of every turn, whatever is outstanding. For a connection that serves one client, and for programs that wait for
    /// each reply.
    EachTurn,
    /// At the end of the turn, or with the next replies where those are due, and with what clients that were just answered send.
    /// Nothing waits for requests of which it is not known that they come.
    #[default]
    Immediate,
    /// As [`Self::Immediate`], and for requests that are likely to arrive, as long as the node is busy.
    Adaptive {
        /// How long at most, in microseconds.
        delay_us_max: u64,
    },
}

/// What is queued on one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    /// Requests.
    pub requests: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Since when the first of them has been queued, on the monotonic clock.
    pub since_us: u64,
    /// Requests that were written at once of late.
    pub usual_requests: Usual,
    /// The senders of those requests. Requests of one pipeline have one sender.
    pub usual_senders: Usual,
}

/// What is known of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Replies are outstanding, and none has come since the last write.
    pub awaits_reply: bool,
    /// The smoothed round trip, in microseconds; 0 before the first sample.
    pub round_trip_us: u64,
    /// The shortest round trip of late, in microseconds; 0 before the first sample.
    pub shortest_us: u64,
    /// How much longer requests take than the link does: what they wait at the node, in microseconds.
    pub queue_us: u64,
    /// Requests that have been written and not been answered.
    pub outstanding: usize,
}

/// What is done with what is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// It is written in this turn.
    Now,
    /// It is not written before something happens or the time has come.
    Hold {
        /// It is written then at the latest, on the monotonic clock. Always later than the time of the decision.
        until_us: u64,
        /// What it waits for. Each turn decides anew.
        wake_on: WakeOn,
    },
}

/// Whether replies of a connection are waited for before clients are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepliesDue {
    /// No reply is outstanding.
    None,
    /// Replies are due before then, on the monotonic clock.
    Until(u64),
    /// Replies are outstanding and may take their time.
    Late,
}

impl FlushPolicy {
    /// Whether what is queued on a connection that is ready is written now. Requests are queued.
    #[inline]
    pub fn decide(self, now_us: u64, pending: &Pending, link: &Link, arrivals: &Arrivals) -> Flush {
        if self == Self::EachTurn || !can_hold(pending, link) {
            return Flush::Now;
        }
        if link.awaits_reply
            && pending.shares_writes(link)
            && let Some(until_us) = replies_until_us(now_us, pending.since_us)
        {
            return Flush::Hold { until_us, wake_on: WakeOn::Replies };
        }
        if let Self::Adaptive { delay_us_max } = self
            && let Some(until_us) = delayed_until(delay_us_max, now_us, pending, link, arrivals)
        {
            return Flush::Hold { until_us, wake_on: WakeOn::Deadline };
        }
        if arrivals.returning() >= FLUSH_LIMITS.returning_min && pending.is_small() {
            let most_us = FLUSH_LIMITS.returning_us_max.min(link.round_trip_us / 2);
            if now_us.saturating_sub(pending.since_us) < most_us {
                return Flush::Hold { until_us: pending.since_us + most_us, wake_on: WakeOn::Clients };
            }
        }
        Flush::Now
    }

    /// Whether `bytes` of replies to one client are written now, which wait since `since_us`: others of the same pipeline are
    /// `outstanding` at nodes that answer promptly.
    pub fn decide_replies(self, now_us: u64, since_us: u64, bytes: usize, outstanding: usize) -> Flush {
        match replies_until_us(now_us, since_us) {
            Some(until_us) if self != Self::EachTurn && outstanding > 0 && bytes < FLUSH_LIMITS.bytes_max => {
                Flush::Hold { until_us, wake_on: WakeOn::Replies }
            }
            _ => Flush::Now,
        }
    }

    /// Whether the next bytes of a connection are due: the oldest of its outstanding requests was written at `oldest_us`.
    #[inline]
    pub fn replies_due(self, now_us: u64, link: &Link, oldest_us: u64) -> RepliesDue {
        let until_us = oldest_us + FLUSH_LIMITS.replies_us_max;
        let is_prompt = self != Self::EachTurn
            && link.shortest_us > 0
            && link.shortest_us < FLUSH_LIMITS.link_us_max
            && link.outstanding <= FLUSH_LIMITS.replies_outstanding_max
            && now_us < until_us;
        if is_prompt { RepliesDue::Until(until_us) } else { RepliesDue::Late }
    }

    /// Whether requests may be delayed for others that are likely to arrive.
    #[inline]
    pub fn is_adaptive(self) -> bool {
        matches!(self, Self::Adaptive { .. })
    }
}

impl Pending {
    /// Whether fewer requests are queued than are usually written at once.
    #[inline]
    pub fn is_small(&self) -> bool {
        self.is_usually_shared() && self.usual_requests.exceeds(self.requests)
    }

    /// Whether a write with the next replies is shared by so many senders that it is worth waiting for, and clients need not be read
    /// meanwhile: what they send would be held for those replies.
    #[inline]
    pub fn shares_writes(&self, link: &Link) -> bool {
        let least = FLUSH_LIMITS.senders_min;
        // Outstanding requests have as many senders as is usual.
        let has_many = || self.usual_senders.share_makes(self.usual_requests, link.outstanding, least);
        self.is_usually_shared() || link.outstanding >= least && has_many()
    }

    /// Whether so many senders usually share a write of the connection that others are worth waiting for.
    #[inline]
    fn is_usually_shared(&self) -> bool {
        self.usual_senders.is_at_least(FLUSH_LIMITS.usual_senders_min)
    }
}

/// Whether queued bytes may wait at all: the peer is near, and they are few.
#[inline]
fn can_hold(pending: &Pending, link: &Link) -> bool {
    pending.bytes < FLUSH_LIMITS.bytes_max && link.shortest_us < FLUSH_LIMITS.link_us_max
}

/// Until when what has been queued since then may wait for replies. `None`: not any longer.
#[inline]
fn replies_until_us(now_us: u64, since_us: u64) -> Option<u64> {
    let until_us = since_us + FLUSH_LIMITS.replies_us_max;
    (now_us < until_us).then_some(until_us)
}

/// Until when what is queued waits for requests that are likely to arrive.
fn delayed_until(delay_us_max: u64, now_us: u64, pending: &Pending, link: &Link, arrivals: &Arrivals) -> Option<u64> {
    let queue_us = link.queue_us / FLUSH_LIMITS.queue_divisor;
    let delay_us = arrivals.delay_us(delay_us_max.min(FLUSH_LIMITS.delay_us_max).min(queue_us));
    let until_us = pending.since_us + delay_us;
    let is_delayed = now_us < until_us
        && link.shortest_us > 0
        && pending.requests < FLUSH_LIMITS.batch_enough
        && !pending.usual_requests.is_at_least(FLUSH_LIMITS.batch_enough);
    is_delayed.then_some(until_us)
}

#[cfg(test)]
mod tests;
