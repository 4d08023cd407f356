//! How much clients have sent and received of late, as INFO shows it of a server: the mean over samples that the timers take.

use std::collections::VecDeque;

/// Time that the samples cover, in microseconds, as in Redis. Two are kept however far they are apart.
const SPAN_US: u64 = 1_600_000;
/// Time between two of them at least, in microseconds, as in Redis.
const INTERVAL_US: u64 = 100_000;

/// Requests and bytes, in total or in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) requests: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// As many requests there had been when the statistics began that are shown.
    pub(crate) since: u64,
}

/// The totals at the latest samples, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Rates {
    samples: VecDeque<(u64, Traffic)>,
}

impl Rates {
    /// The totals at a time, unless the last sample is more recent than it has to be. Statistics that some worker has begun anew have
    /// samples of their own.
    pub(crate) fn note(&mut self, now_us: u64, total: Traffic) {
        self.samples.retain(|(_, sample)| sample.since == total.since);
        if self.samples.back().is_some_and(|(at_us, _)| now_us < at_us + INTERVAL_US) {
            return;
        }
        self.samples.push_back((now_us, total));
        while self.samples.len() > 2 && self.samples[0].0 + SPAN_US < now_us {
            self.samples.pop_front();
        }
    }

    /// What there was in a second between the first sample of the statistics of this total and the last.
    pub(crate) fn per_second(&self, total: Traffic) -> Traffic {
        let ends = self.samples.front().zip(self.samples.back()).filter(|((_, first), _)| first.since == total.since);
        let Some(((from_us, before), (to_us, after))) = ends else { return Traffic::default() };
        let rate = |before: u64, after: u64| {
            let per_second = u128::from(after.saturating_sub(before)) * 1_000_000;
            per_second.checked_div(u128::from(to_us - from_us)).unwrap_or(0) as u64
        };
        Traffic {
            requests: rate(before.requests, after.requests),
            bytes_in: rate(before.bytes_in, after.bytes_in),
            bytes_out: rate(before.bytes_out, after.bytes_out),
            since: total.since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_mean_over_the_latest_samples() {
        let mut rates = Rates::default();
        let none = Traffic::default();
        assert_eq!(rates.per_second(none), none);
        let total = |seconds: u64| Traffic { requests: 1_000 * seconds, bytes_in: 30 * seconds, ..none };
        rates.note(0, total(0));
        assert_eq!(rates.per_second(none), none);
        // Too early to be a sample.
        rates.note(50_000, total(1_000));
        (1..=40).for_each(|second| rates.note(second * 1_000_000, total(second)));
        assert_eq!(rates.per_second(none), total(1));
        // Nothing since.
        (401..=600).for_each(|tenth| rates.note(tenth * 100_000, total(40)));
        assert_eq!(rates.samples.len() as u64, SPAN_US / INTERVAL_US + 1);
        assert_eq!(rates.per_second(none), none);
    }

    #[test]
    fn statistics_that_begin_anew_have_no_rate_of_those_before() {
        let mut rates = Rates::default();
        let total = |requests: u64, since: u64| Traffic { requests, since, ..Traffic::default() };
        rates.note(0, total(0, 0));
        rates.note(1_000_000, total(500, 0));
        assert_eq!(rates.per_second(total(501, 0)).requests, 500);
        // Another worker was told to begin anew.
        assert_eq!(rates.per_second(total(502, 501)).requests, 0);
        rates.note(1_500_000, total(600, 501));
        assert_eq!(rates.per_second(total(600, 501)).requests, 0);
        rates.note(2_000_000, total(610, 501));
        assert_eq!(rates.per_second(total(610, 501)).requests, 20);
    }
}
