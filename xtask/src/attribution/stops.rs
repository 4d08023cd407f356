//! When the proxy itself stood still: what follows from a fault of a node is told so much later.
//!
//! A stop explains no error by itself. It only makes a time longer that begins with something else: the proxy cannot have told
//! what it had no time to tell. An error about a node to which nothing was done is as wrong behind a stop as at any other time.

use std::sync::RwLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
struct Stop {
    begin: Instant,
    end: Instant,
    /// The second of the wall clock in which it ended.
    end_second: u64,
}

/// All stops of a run so far, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Stops(RwLock<Vec<Stop>>);

impl Stops {
    /// The proxy stood still from then until now.
    pub(super) fn note(&self, begin: Instant) {
        let end_second = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.add(Stop { begin, end: Instant::now(), end_second });
    }

    fn add(&self, stop: Stop) {
        self.0.write().expect("no client panics").push(stop);
    }

    /// The time from which on the proxy had run for so long at `at`; `None`: the machine has not been up for so long.
    pub(super) fn ran_since(&self, at: Instant, span: Duration) -> Option<Instant> {
        let (mut from, mut left) = (at, span);
        for stop in self.0.read().expect("no client panics").iter().rev().filter(|stop| stop.begin < at) {
            let ran = from.saturating_duration_since(stop.end);
            if ran >= left {
                break;
            }
            left -= ran;
            from = stop.begin;
        }
        from.checked_sub(left)
    }

    /// For how many seconds of the wall clock it stood still from that second to the other one, rounded up for each stop.
    pub(super) fn seconds(&self, since: u64, until: u64) -> u64 {
        let stops = self.0.read().expect("no client panics");
        let each = stops.iter().map(|stop| {
            let length = (stop.end - stop.begin).as_secs() + 1;
            let begin_second = stop.end_second.saturating_sub(length);
            (stop.end_second.min(until) + 1).saturating_sub(begin_second.max(since)).min(length)
        });
        each.sum()
    }
}

#[cfg(test)]
impl Stops {
    /// One stop.
    pub(super) fn of(begin: Instant, end: Instant, end_second: u64) -> Stops {
        Stops(RwLock::new(vec![Stop { begin, end, end_second }]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_millis(1_500);

    #[test]
    fn time_without_the_proxy_does_not_count() {
        let start = Instant::now() + Duration::from_secs(60);
        let after = |ms: u64| start + Duration::from_millis(ms);
        let stops = Stops::of(after(1_000), after(3_000), 0);
        stops.add(Stop { begin: after(3_500), end: after(4_000), end_second: 0 });
        let (first, second) = (after(1_000), after(3_500));
        let wanted = [
            (after(900), after(900) - SPAN),
            (after(2_500), first - SPAN),
            (after(3_400), first - (SPAN - Duration::from_millis(400))),
            (second, first - (SPAN - Duration::from_millis(500))),
            (after(5_400), second - Duration::from_millis(100)),
            (after(5_600), after(4_100)),
        ];
        for (at, since) in wanted {
            assert_eq!(stops.ran_since(at, SPAN), Some(since), "{:?} behind the beginning", at - start);
        }
    }

    #[test]
    fn seconds_of_stops_between_two_are_counted() {
        let begin = Instant::now();
        let stops = Stops::of(begin, begin + Duration::from_millis(2_400), 100);
        assert_eq!((stops.seconds(90, 96), stops.seconds(101, 110)), (0, 0), "before and behind it");
        assert_eq!((stops.seconds(90, 110), stops.seconds(98, 103)), (3, 3));
        assert_eq!(stops.seconds(100, 103), 1, "only its last second");
    }
}
