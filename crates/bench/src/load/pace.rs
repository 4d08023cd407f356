//! When a thread asks, and when it stops. The time is an argument.

use crate::arrivals::Arrivals;
use crate::limits::SPIN_US;
use crate::plan::{Pace, Plan};

use super::shared::Shared;

/// The pace of one thread.
#[derive(Debug)]
pub(super) struct Pacer {
    /// Of an open loop: when requests are due, from the beginning of the run, and the next of them.
    arrivals: Option<Arrivals>,
    next_ns: u64,
    spins: bool,
    pipeline: u64,
    began_ns: u64,
    /// From the beginning of the run; `u64::MAX` without one.
    end_ns: u64,
    ramp_ns: u64,
    /// Requests that this thread may send without asking the others.
    lease: u64,
    lease_max: u64,
    next_place: usize,
}

impl Pacer {
    pub(super) fn new(plan: &Plan, number: usize) -> Self {
        let nanoseconds = |duration: std::time::Duration| duration.as_nanos() as u64;
        let threads = plan.threads as u64;
        let seed = plan.seed.wrapping_add((number as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let arrivals = match plan.pace {
            Pace::Closed => None,
            Pace::Open { rate, spacing } => {
                Some(Arrivals::new(spacing, rate / threads as f64, nanoseconds(plan.ramp), seed))
            }
        };
        let pipeline = plan.pipeline as u64;
        let lease_max = match plan.requests {
            Some(requests) => (requests / threads / 8).clamp(1, 1024).next_multiple_of(pipeline),
            None => u64::MAX / (threads + 1),
        };
        Self {
            arrivals,
            next_ns: u64::MAX,
            spins: plan.spins,
            pipeline,
            began_ns: 0,
            end_ns: plan.duration.map_or(u64::MAX, |duration| nanoseconds(duration + plan.warm_up)),
            ramp_ns: nanoseconds(plan.ramp),
            lease: 0,
            lease_max,
            next_place: 0,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.arrivals.is_some()
    }

    /// The run begins.
    pub(super) fn begin(&mut self, began_ns: u64) {
        self.began_ns = began_ns;
        self.next_arrival();
    }

    fn next_arrival(&mut self) {
        if let Some(arrivals) = &mut self.arrivals {
            let at_ns = arrivals.next_ns();
            self.next_ns = if at_ns < self.end_ns { self.began_ns + at_ns } else { u64::MAX };
        }
    }

    fn is_time_up(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.began_ns) >= self.end_ns
    }

    /// Requests of the next batch of a closed loop; 0 when none is left.
    #[inline]
    pub(super) fn take_batch(&mut self, shared: &Shared, now_ns: u64) -> u64 {
        if self.is_time_up(now_ns) || shared.is_stopped() {
            return 0;
        }
        if self.lease == 0 {
            self.lease = shared.lease(self.lease_max);
        }
        let batch = self.lease.min(self.pipeline);
        self.lease -= batch;
        batch
    }

    /// When the next request was due, if it was by now.
    #[inline]
    pub(super) fn take_due(&mut self, shared: &Shared, now_ns: u64) -> Option<u64> {
        if self.next_ns > now_ns || shared.is_stopped() {
            return None;
        }
        if self.lease == 0 {
            self.lease = shared.lease(self.lease_max);
            if self.lease == 0 {
                self.next_ns = u64::MAX;
                return None;
            }
        }
        self.lease -= 1;
        let due_ns = self.next_ns;
        self.next_arrival();
        Some(due_ns)
    }

    /// The connection that the next request of an open loop goes to.
    #[inline]
    pub(super) fn next_place(&mut self, connections: usize) -> usize {
        let place = self.next_place;
        self.next_place = if place + 1 >= connections { 0 } else { place + 1 };
        place.min(connections.saturating_sub(1))
    }

    /// Whether the connection in this place is used yet. During the ramp ever more of them are.
    pub(super) fn is_taking_part(&self, place: usize, connections: usize, now_ns: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.began_ns);
        elapsed_ns >= self.ramp_ns
            || place as u128 * u128::from(self.ramp_ns) <= connections as u128 * u128::from(elapsed_ns)
    }

    /// Whether connections of a closed loop may be left that are not used yet.
    pub(super) fn is_ramping(&self, now_ns: u64) -> bool {
        // A little longer, so that the last of them is looked at.
        !self.is_open() && self.ramp_ns > 0 && now_ns.saturating_sub(self.began_ns) < self.ramp_ns + 200_000_000
    }

    /// Whether nothing more is sent.
    pub(super) fn has_ended(&self, shared: &Shared, now_ns: u64) -> bool {
        if shared.is_stopped() {
            return true;
        }
        match self.is_open() {
            true => self.next_ns == u64::MAX,
            false => self.is_time_up(now_ns) || (self.lease == 0 && shared.is_used_up()),
        }
    }

    /// When to look next, on the loop's clock, of which the time is `now_us`; on the other it is `turn_ns`.
    pub(super) fn wakeup_us(&self, now_us: u64, turn_ns: u64, is_waiting: bool) -> Option<u64> {
        if !self.is_open() {
            return None;
        }
        if self.spins && is_waiting {
            return Some(now_us);
        }
        if self.next_ns == u64::MAX {
            return None;
        }
        let away_us = self.next_ns.saturating_sub(turn_ns) / 1000;
        Some(now_us + if self.spins { away_us.saturating_sub(SPIN_US) } else { away_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Spacing;
    use std::time::Duration;

    fn closed(requests: Option<u64>) -> (Plan, Shared) {
        let plan = Plan { requests, pipeline: 16, ..Plan::default() };
        let shared = Shared::new(&plan);
        (plan, shared)
    }

    #[test]
    fn threads_share_exactly_the_requests_of_a_run() {
        let (plan, shared) = closed(Some(1000));
        let plan = Plan { threads: 3, ..plan };
        let mut pacers: Vec<_> = (0..3).map(|number| Pacer::new(&plan, number)).collect();
        let mut sent = 0;
        for turn in 0..1000 {
            sent += pacers[turn % 3].take_batch(&shared, 0);
        }
        assert_eq!(sent, 1000);
        assert!(pacers.iter().all(|pacer| pacer.has_ended(&shared, 0)));
    }

    #[test]
    fn a_closed_loop_ends_when_its_time_is_up() {
        let (plan, shared) = closed(None);
        let mut pacer = Pacer::new(&Plan { duration: Some(Duration::from_secs(1)), ..plan }, 0);
        pacer.begin(500);
        assert_eq!(pacer.take_batch(&shared, 500 + 999_999_999), 16);
        assert_eq!(pacer.take_batch(&shared, 500 + 1_000_000_000), 0);
        assert!(pacer.has_ended(&shared, 500 + 1_000_000_000));
    }

    #[test]
    fn a_request_is_due_at_its_time_however_late_the_thread_is() {
        let (plan, shared) = closed(None);
        let pace = Pace::Open { rate: 1000.0, spacing: Spacing::Even };
        let mut pacer = Pacer::new(&Plan { pace, duration: Some(Duration::from_millis(10)), ..plan }, 0);
        pacer.begin(7);
        assert_eq!(pacer.take_due(&shared, 7), None);
        let due: Vec<u64> = std::iter::from_fn(|| pacer.take_due(&shared, 3_500_007)).collect();
        assert_eq!(due, [1_000_007, 2_000_007, 3_000_007]);
        assert_eq!(std::iter::from_fn(|| pacer.take_due(&shared, 1 << 40)).count(), 6, "up to the end of the run");
        assert!(pacer.has_ended(&shared, 0));
    }

    #[test]
    fn a_spinning_thread_sleeps_only_far_from_the_next_request() {
        let (plan, _) = closed(None);
        let pace = Pace::Open { rate: 10.0, spacing: Spacing::Even };
        let mut pacer = Pacer::new(&Plan { pace, ..plan }, 0);
        pacer.begin(0);
        assert_eq!(pacer.wakeup_us(5, 0, false), Some(5 + 100_000 - SPIN_US));
        assert_eq!(pacer.wakeup_us(5, 99_500_000, false), Some(5), "it is near");
        assert_eq!(pacer.wakeup_us(5, 0, true), Some(5), "a reply may come at any moment");
    }

    #[test]
    fn ever_more_connections_take_part_during_the_ramp() {
        let (plan, _) = closed(None);
        let pacer = Pacer::new(&Plan { ramp: Duration::from_secs(1), ..plan }, 0);
        let taking = |now_ns| (0..10).filter(|&place| pacer.is_taking_part(place, 10, now_ns)).count();
        assert_eq!((taking(0), taking(500_000_000), taking(1_000_000_000)), (1, 6, 10));
    }
}
