//! How much one user may ask for: connections, requests and bytes in a second. Counted for the whole process.
//!
//! Requests and bytes are leaky buckets that hold one second's worth. A client that asks for more is not refused but read later,
//! like one whose node is busy: its own pipeline waits, and no other.

use respool_connection::Credentials;
use respool_route::PoolMode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Limits of one user, and its credentials at nodes; `None` is without bound, or shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Connections at a time.
    pub connections: Option<usize>,
    /// Requests in a second.
    pub requests_per_second: Option<u64>,
    /// Bytes of requests and replies in a second.
    pub bytes_per_second: Option<u64>,
    /// Connections to nodes that its clients have to themselves at a time.
    pub private_connections: Option<usize>,
    /// For how long they have them to themselves; `None`: as the settings say for all.
    pub pool_mode: Option<PoolMode>,
    /// What nodes are told instead of what they are configured with: there the user has connections of its own.
    pub node_credentials: Option<Arc<Credentials>>,
}

impl UserLimits {
    /// Whether requests have to be counted.
    pub(crate) fn has_rates(&self) -> bool {
        self.requests_per_second.is_some() || self.bytes_per_second.is_some()
    }
}

/// What one user may ask for, and has asked for.
#[derive(Debug)]
pub(crate) struct UserQuota {
    pub(crate) limits: UserLimits,
    used: Arc<QuotaUse>,
}

#[derive(Debug, Default)]
struct QuotaUse {
    connections: AtomicUsize,
    private: AtomicUsize,
    requests: RateBucket,
    bytes: RateBucket,
}

impl UserQuota {
    /// These limits; what is in use already is taken over.
    pub(crate) fn with(limits: UserLimits, before: Option<&Self>) -> Self {
        Self { limits, used: before.map_or_else(Arc::default, |before| Arc::clone(&before.used)) }
    }

    /// Whether both count the same.
    pub(crate) fn counts_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.used, &other.used)
    }

    /// Counts a connection in, unless there are as many as there may be.
    pub(crate) fn enter(&self) -> bool {
        let max = self.limits.connections.unwrap_or(usize::MAX);
        let connections = &self.used.connections;
        connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now < max).then_some(now + 1)).is_ok()
    }

    /// Counts a connection in that is there already, whatever the limit is.
    pub(crate) fn enter_anyway(&self) {
        self.used.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection out.
    pub(crate) fn leave(&self) {
        self.used.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Connections of the user now.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> usize {
        self.used.connections.load(Ordering::Relaxed)
    }

    /// Counts a connection to a node in, for as long as the result is kept, unless there are as many as there may be.
    pub(crate) fn lend(&self) -> Option<QuotaGuard> {
        let max = self.limits.private_connections.unwrap_or(usize::MAX);
        let next = |now| (now < max).then_some(now + 1);
        let is_let = self.used.private.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok();
        is_let.then(|| QuotaGuard(Arc::clone(&self.used)))
    }

    /// Counts a request of so many bytes, unless it comes too early.
    pub(crate) fn admits(&self, now_us: u64, bytes: usize) -> bool {
        let (requests, bytes_rate) = (self.limits.requests_per_second, self.limits.bytes_per_second);
        if bytes_rate.is_some_and(|rate| !self.used.bytes.has_room(now_us, rate)) {
            return false;
        }
        if requests.is_some_and(|rate| !self.used.requests.take(now_us, rate)) {
            return false;
        }
        self.charge(now_us, bytes);
        true
    }

    /// Whether nothing is owed for bytes that have gone already.
    pub(crate) fn has_room(&self, now_us: u64) -> bool {
        self.limits.bytes_per_second.is_none_or(|rate| self.used.bytes.has_room(now_us, rate))
    }

    /// Counts bytes that have gone already.
    pub(crate) fn charge(&self, now_us: u64, bytes: usize) {
        if let Some(rate) = self.limits.bytes_per_second {
            self.used.bytes.add(now_us, rate, bytes as u64);
        }
    }
}

/// A connection to a node that counts among those of a user.
#[derive(Debug)]
pub(crate) struct QuotaGuard(Arc<QuotaUse>);

impl Drop for QuotaGuard {
    fn drop(&mut self) {
        self.0.private.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What was taken and is not paid for. A second's worth may be owed, and more if something came that was larger than what was left.
#[derive(Debug, Default)]
struct RateBucket {
    /// When all of it is paid, in nanoseconds of the monotonic clock. 0, as at first: nothing is owed, whatever time it is.
    due_ns: AtomicU64,
    /// At this rate.
    rate: AtomicU64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl RateBucket {
    /// With another rate than before, what is owed is paid at that one from now on.
    fn go_by(&self, now_us: u64, rate: u64) {
        let before = self.rate.load(Ordering::Relaxed);
        if before != rate {
            self.change_rate(now_us, before, rate);
        }
    }

    #[cold]
    fn change_rate(&self, now_us: u64, before: u64, rate: u64) {
        // If another worker is about to do it, it is done.
        if self.rate.compare_exchange(before, rate, Ordering::Relaxed, Ordering::Relaxed).is_err() || before == 0 {
            return;
        }
        let now = now_us * 1_000;
        let next = |due: u64| {
            let owed = u128::from(due.saturating_sub(now)) * u128::from(before) / u128::from(rate.max(1));
            Some(now.saturating_add(u64::try_from(owed).unwrap_or(u64::MAX / 2)))
        };
        let _ = self.due_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    fn has_room(&self, now_us: u64, rate: u64) -> bool {
        self.go_by(now_us, rate);
        self.due_ns.load(Ordering::Relaxed) <= now_us * 1_000 + SECOND_NS
    }

    fn take(&self, now_us: u64, rate: u64) -> bool {
        self.go_by(now_us, rate);
        let now = now_us * 1_000;
        let step = SECOND_NS / rate.max(1);
        let next = |due: u64| {
            let due = due.max(now) + step;
            (due <= now + SECOND_NS).then_some(due)
        };
        self.due_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    fn add(&self, now_us: u64, rate: u64, units: u64) {
        self.go_by(now_us, rate);
        let now = now_us * 1_000;
        let cost = u128::from(units) * u128::from(SECOND_NS) / u128::from(rate.max(1));
        let cost = u64::try_from(cost).unwrap_or(u64::MAX / 2);
        let next = |due: u64| Some(due.max(now).saturating_add(cost));
        let _ = self.due_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that has just begun: nothing is owed then either.
    const START_US: u64 = 1;

    fn allowance(requests: Option<u64>, bytes: Option<u64>) -> UserQuota {
        let limits = UserLimits {
            connections: Some(2),
            requests_per_second: requests,
            bytes_per_second: bytes,
            private_connections: Some(1),
            ..UserLimits::default()
        };
        UserQuota::with(limits, None)
    }

    #[test]
    fn requests_come_in_a_burst_and_then_at_the_rate() {
        let allowance = allowance(Some(10), None);
        let burst = (0..100).filter(|_| allowance.admits(START_US, 1)).count();
        let later = (1..=200).filter(|i| allowance.admits(START_US + i * 10_000, 1)).count();
        assert_eq!((burst, later), (10, 20));
    }

    #[test]
    fn bytes_may_be_owed_and_are_paid_back() {
        let allowance = allowance(None, Some(1_000));
        assert!(allowance.admits(START_US, 3_000), "there is always room for one more");
        assert!(!allowance.admits(START_US + 1_900_000, 1));
        assert!(allowance.admits(START_US + 2_000_000, 1));
        allowance.charge(START_US + 2_000_000, 5_000);
        assert!(!allowance.admits(START_US + 6_900_000, 1) && allowance.admits(START_US + 7_100_000, 1));
    }

    #[test]
    fn a_debt_is_paid_at_the_current_rate() {
        let at = |rate: u64, before: Option<&UserQuota>| {
            UserQuota::with(UserLimits { bytes_per_second: Some(rate), ..UserLimits::default() }, before)
        };
        let slow = at(1_000, None);
        slow.charge(START_US, 100_000);
        assert!(!slow.has_room(START_US + 90_000_000));
        let fast = at(100_000, Some(&slow));
        let later = START_US + 10_000_000;
        assert!(!at(80_000, Some(&fast)).has_room(later), "90,000 bytes are owed, and a second's worth may be");
        assert!(fast.has_room(later));
        // And back: some worker may go by the former limits for a moment.
        assert!(!slow.has_room(later) && !slow.has_room(START_US + 98_000_000) && slow.has_room(START_US + 99_100_000));
        let requests = |rate: u64, before: Option<&UserQuota>| {
            UserQuota::with(UserLimits { requests_per_second: Some(rate), ..UserLimits::default() }, before)
        };
        let few = requests(1, None);
        assert!(few.admits(START_US, 1) && !few.admits(START_US, 1));
        assert!(requests(10, Some(&few)).admits(START_US, 1));
    }

    #[test]
    fn private_connections_count_for_as_long_as_they_are_kept() {
        let first = allowance(None, None);
        let lent = first.lend();
        assert!(lent.is_some() && first.lend().is_none());
        let wider = UserQuota::with(UserLimits { private_connections: Some(2), ..first.limits.clone() }, Some(&first));
        let second = wider.lend();
        assert!(second.is_some() && wider.lend().is_none());
        drop((lent, second));
        assert!(first.lend().is_some());
    }

    #[test]
    fn connections_are_counted_over_changes_of_the_limit() {
        let first = allowance(None, None);
        assert!(first.enter() && first.enter() && !first.enter());
        let wider = UserQuota::with(UserLimits { connections: Some(3), ..first.limits.clone() }, Some(&first));
        assert!(wider.enter() && !wider.enter());
        first.leave();
        assert_eq!(wider.connections(), 2);
    }
}
