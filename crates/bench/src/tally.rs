//! What is counted of a run: latencies of each kind of request, replies over time, and whatever went wrong.

use hdrhistogram::Histogram;

use crate::limits::{INTERVALS_MAX, LATENCY_NS_MAX};

/// Latencies in nanoseconds, to three digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are constants that are allowed"))
    }
}

impl Latencies {
    /// Counts one.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        self.0.saturating_record(latency_ns);
    }

    /// Counts all of `other` as well.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in milliseconds that `percent` of all do not exceed; 0 if there are none.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.value_at_quantile(percent / 100.0) as f64 / 1e6 }
    }

    /// The mean in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e6
    }

    /// The shortest in milliseconds; 0 if there are none.
    pub fn min_ms(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.min() as f64 / 1e6 }
    }

    /// The longest in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.0.max() as f64 / 1e6
    }

    /// Latencies in milliseconds at ever finer percentiles, with how many are no longer: half of what is left at each step.
    pub fn steps(&self) -> Vec<(f64, f64, u64)> {
        let mut steps = Vec::new();
        let mut sum = 0;
        for value in self.0.iter_quantiles(1) {
            sum += value.count_since_last_iteration();
            steps.push((value.quantile_iterated_to() * 100.0, value.value_iterated_to() as f64 / 1e6, sum));
        }
        steps
    }

    /// How many are no longer than so many milliseconds.
    pub fn up_to(&self, ms: f64) -> u64 {
        self.0.count_between(0, (ms * 1e6) as u64)
    }
}

/// What went wrong, and is no latency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrongs {
    /// Error replies.
    pub errors: u64,
    /// The first of them.
    pub first_error: Option<String>,
    /// Nothing was found where a value could have been: not wrong, but good to know.
    pub misses: u64,
    /// Replies that are those to other requests, or to none.
    pub mismatches: u64,
    /// The first of them.
    pub first_mismatch: Option<String>,
    /// Connections that were lost, and requests on them that were not answered.
    pub lost_connections: u64,
    /// Requests that were sent and never answered.
    pub unanswered: u64,
    /// Requests of an open loop that were due and not sent: too many were not answered, or their connection was not there.
    pub unsent: u64,
}

impl Wrongs {
    /// Adds what went wrong elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.errors += other.errors;
        self.misses += other.misses;
        self.mismatches += other.mismatches;
        self.lost_connections += other.lost_connections;
        self.unanswered += other.unanswered;
        self.unsent += other.unsent;
        for (ours, theirs) in
            [(&mut self.first_error, &other.first_error), (&mut self.first_mismatch, &other.first_mismatch)]
        {
            if ours.is_none() {
                ours.clone_from(theirs);
            }
        }
    }
}

/// A time of a run, for what it looks like over time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Replies in it.
    pub replies: u64,
    /// In nanoseconds; the sum, for the mean.
    pub latency_sum_ns: u64,
    /// In nanoseconds.
    pub latency_max_ns: u64,
}

/// Replies over time. Intervals are as long as they have to be for the run to have no more than [`INTERVALS_MAX`].
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The length of one interval, in nanoseconds.
    pub interval_ns: u64,
    /// From the beginning of the run on.
    pub intervals: Vec<Interval>,
}

impl Timeline {
    /// Intervals that have this length at first.
    pub fn new(interval_ns: u64) -> Self {
        Self { interval_ns: interval_ns.max(1), intervals: Vec::new() }
    }

    /// Counts a reply so long after the beginning.
    #[inline]
    pub fn record(&mut self, at_ns: u64, latency_ns: u64) {
        let mut place = (at_ns / self.interval_ns) as usize;
        while place >= INTERVALS_MAX {
            self.halve();
            place = (at_ns / self.interval_ns) as usize;
        }
        if place >= self.intervals.len() {
            self.intervals.resize(place + 1, Interval::default());
        }
        let interval = &mut self.intervals[place];
        interval.replies += 1;
        interval.latency_sum_ns += latency_ns;
        interval.latency_max_ns = interval.latency_max_ns.max(latency_ns);
    }

    /// Makes one interval of two.
    fn halve(&mut self) {
        self.interval_ns = self.interval_ns.saturating_mul(2);
        let pairs = self.intervals.chunks(2).map(|pair| pair.iter().copied().reduce(joined).unwrap_or_default());
        self.intervals = pairs.collect();
    }

    /// Adds another thread's, which began at the same time.
    pub fn add(&mut self, other: &Self) {
        let mut other = other.clone();
        while self.interval_ns < other.interval_ns {
            self.halve();
        }
        while other.interval_ns < self.interval_ns {
            other.halve();
        }
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), Interval::default());
        }
        for (ours, theirs) in self.intervals.iter_mut().zip(other.intervals) {
            *ours = joined(*ours, theirs);
        }
    }
}

fn joined(one: Interval, other: Interval) -> Interval {
    Interval {
        replies: one.replies + other.replies,
        latency_sum_ns: one.latency_sum_ns + other.latency_sum_ns,
        latency_max_ns: one.latency_max_ns.max(other.latency_max_ns),
    }
}

/// All that one thread, or one run, has counted.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Of each kind of request.
    pub latencies: Vec<Latencies>,
    /// Over time.
    pub timeline: Timeline,
    /// What went wrong.
    pub wrongs: Wrongs,
    /// Of an open loop: how long after its time each request was sent. Latencies contain it.
    pub sent_late: Latencies,
    /// How long threads of the load were ready and another had their processor, in nanoseconds: latencies contain that, too.
    pub waited_ns: u64,
    /// Replies that count: those after the warm-up.
    pub replies: u64,
    /// Requests that were sent, the warm-up's included.
    pub sent: u64,
    /// When the first request that counts was due, or sent, and when the last reply came, in nanoseconds since the run began.
    pub first_ns: u64,
    /// See there.
    pub last_ns: u64,
}

impl Tally {
    /// Nothing yet, of so many kinds of requests.
    pub fn new(operations: usize, interval_ns: u64) -> Self {
        Self {
            latencies: vec![Latencies::default(); operations],
            timeline: Timeline::new(interval_ns),
            wrongs: Wrongs::default(),
            sent_late: Latencies::default(),
            waited_ns: 0,
            replies: 0,
            sent: 0,
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    /// Adds what another thread, or another round, has counted.
    pub fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            ours.add(theirs);
        }
        self.timeline.add(&other.timeline);
        self.wrongs.add(&other.wrongs);
        self.sent_late.add(&other.sent_late);
        self.waited_ns += other.waited_ns;
        self.replies += other.replies;
        self.sent += other.sent;
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
    }

    /// The latencies of all kinds of requests together.
    pub fn all(&self) -> Latencies {
        let mut all = Latencies::default();
        self.latencies.iter().for_each(|latencies| all.add(latencies));
        all
    }

    /// How long was counted, in seconds.
    pub fn seconds(&self) -> f64 {
        self.last_ns.saturating_sub(self.first_ns.min(self.last_ns)) as f64 / 1e9
    }

    /// Replies a second.
    pub fn rate(&self) -> f64 {
        if self.seconds() > 0.0 { self.replies as f64 / self.seconds() } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_have_three_digits() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|us| latencies.record(us * 1000));
        for (percent, us) in [(50.0, 500.0), (99.0, 990.0), (99.9, 999.0), (100.0, 1000.0)] {
            let ms = latencies.percentile_ms(percent);
            assert!((ms * 1000.0 / us - 1.0).abs() < 0.002, "{percent}: {ms}");
        }
        assert!(Latencies::default().percentile_ms(99.0) == 0.0 && Latencies::default().min_ms() == 0.0);
        latencies.record(u64::MAX);
        assert!(latencies.max_ms() >= 99_000.0, "one that is longer than all counts as the longest");
    }

    #[test]
    fn a_long_timeline_has_longer_intervals() {
        let mut timeline = Timeline::new(10);
        (0..INTERVALS_MAX as u64 * 40).for_each(|at| timeline.record(at, 1));
        assert!(timeline.intervals.len() <= INTERVALS_MAX && timeline.interval_ns == 40);
        assert_eq!(timeline.intervals.iter().map(|interval| interval.replies).sum::<u64>(), INTERVALS_MAX as u64 * 40);
    }

    #[test]
    fn timelines_of_threads_add_up() {
        let mut one = Timeline::new(10);
        one.record(5, 7);
        let mut other = Timeline::new(20);
        other.record(5, 9);
        other.record(25, 1);
        one.add(&other);
        assert_eq!((one.interval_ns, one.intervals.len()), (20, 2));
        assert_eq!(one.intervals[0], Interval { replies: 2, latency_sum_ns: 16, latency_max_ns: 9 });
    }
}
