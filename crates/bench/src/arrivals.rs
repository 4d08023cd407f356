//! When the requests of an open loop are due: at random and independent of each other, as from many users (a Poisson process), or
//! evenly. The times follow from a seed; no clock is read here.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};

/// How the times of requests lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Independent of each other: the gaps are exponentially distributed.
    Poisson,
    /// The same gap again and again.
    Even,
}

/// The times at which requests are due, in nanoseconds since the beginning of the run.
#[derive(Debug)]
pub struct Arrivals {
    spacing: Spacing,
    chance: SmallRng,
    /// Requests a nanosecond, when the ramp is over.
    rate: f64,
    /// During this time the rate grows evenly from nothing.
    ramp_ns: f64,
    /// How many requests were due so far, on average: the process runs at rate one on this scale.
    expected: f64,
}

impl Arrivals {
    /// `rate` requests a second, reached evenly within `ramp_ns`.
    pub fn new(spacing: Spacing, rate: f64, ramp_ns: u64, seed: u64) -> Self {
        let chance = SmallRng::seed_from_u64(seed);
        Self { spacing, chance, rate: rate / 1e9, ramp_ns: ramp_ns as f64, expected: 0.0 }
    }

    /// When the next request is due.
    pub fn next_ns(&mut self) -> u64 {
        let gap: f64 = match self.spacing {
            Spacing::Poisson => Exp1.sample(&mut self.chance),
            Spacing::Even => 1.0,
        };
        self.expected += gap;
        self.time_of(self.expected) as u64
    }

    /// The time by which so many requests are due on average. During the ramp that is `rate * t^2 / (2 * ramp)`.
    fn time_of(&self, expected: f64) -> f64 {
        let of_ramp = self.rate * self.ramp_ns / 2.0;
        if expected < of_ramp {
            (2.0 * self.ramp_ns * expected / self.rate).sqrt()
        } else {
            self.ramp_ns + (expected - of_ramp) / self.rate
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(spacing: Spacing, rate: f64, ramp_ns: u64, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(spacing, rate, ramp_ns, 7);
        (0..count).map(|_| arrivals.next_ns()).collect()
    }

    #[test]
    fn a_seed_gives_the_same_times_again() {
        assert_eq!(times(Spacing::Poisson, 1e4, 0, 1000), times(Spacing::Poisson, 1e4, 0, 1000));
    }

    #[test]
    fn gaps_are_exponential_and_of_the_rate() {
        let times = times(Spacing::Poisson, 10_000.0, 0, 100_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 100_000.0 - 1.0).abs() < 0.02, "{mean}");
        // The deviation of an exponential distribution is its mean.
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
    }

    #[test]
    fn even_requests_are_due_on_the_dot() {
        assert_eq!(times(Spacing::Even, 1000.0, 0, 3), [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn the_rate_grows_evenly_during_the_ramp() {
        let times = times(Spacing::Even, 1000.0, 1_000_000_000, 1500);
        let before = |ns: u64| times.iter().filter(|&&time| time <= ns).count();
        // A quarter of what the ramp brings comes in its first half.
        assert_eq!((before(500_000_000), before(1_000_000_000)), (125, 500));
        assert_eq!(before(2_000_000_000), 1500);
    }
}
