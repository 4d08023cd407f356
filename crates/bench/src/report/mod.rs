//! What came out of a run, for people and programs. Nothing is written anywhere here: everything is text.

pub mod html;
pub mod json;
pub mod text;

use std::time::Duration;

use crate::run::Measured;

/// One test against one target, in however many rounds.
#[derive(Clone, Debug)]
pub struct Row {
    /// All rounds together.
    pub all: Measured,
    /// Each of them.
    pub rounds: Vec<Round>,
}

/// The figures of one round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Replies a second.
    pub rate: f64,
    /// In milliseconds.
    pub p50_ms: f64,
    /// In milliseconds.
    pub p99_ms: f64,
    /// Processor time of the target's processes for each request, in microseconds.
    pub processor_us: Option<f64>,
}

impl Round {
    fn of(measured: &Measured) -> Self {
        let all = measured.tally.all();
        Self {
            rate: measured.tally.rate(),
            p50_ms: all.percentile_ms(50.0),
            p99_ms: all.percentile_ms(99.0),
            processor_us: processor_us(measured),
        }
    }
}

/// Processor time of the target's processes for each request.
pub fn processor_us(measured: &Measured) -> Option<f64> {
    let all: f64 = measured.processes.iter().map(|process| process.processor_s).sum();
    (!measured.processes.is_empty() && measured.tally.sent > 0).then(|| all * 1e6 / measured.tally.sent as f64)
}

impl Row {
    /// The first round.
    pub fn new(measured: Measured) -> Self {
        Self { rounds: vec![Round::of(&measured)], all: measured }
    }

    /// One more round of the same.
    pub fn add(&mut self, measured: &Measured) {
        self.rounds.push(Round::of(measured));
        // Rounds follow each other: what is counted of them adds up, and so does their length.
        let seconds = self.all.tally.seconds() + measured.tally.seconds();
        self.all.tally.add(&measured.tally);
        self.all.tally.first_ns = 0;
        self.all.tally.last_ns = (seconds * 1e9) as u64;
        self.all.own_processor_s += measured.own_processor_s;
        for (ours, theirs) in self.all.processes.iter_mut().zip(&measured.processes) {
            ours.processor_s += theirs.processor_s;
            ours.resident_bytes = theirs.resident_bytes;
            ours.peak_resident_bytes = theirs.peak_resident_bytes;
        }
    }

    /// What the rounds of this row are, compared with those of another.
    pub fn ratio(&self, to: &Self, figure: impl Fn(&Round) -> f64) -> Option<Ratio> {
        let mut ratios: Vec<f64> = self
            .rounds
            .iter()
            .zip(&to.rounds)
            .map(|(ours, theirs)| figure(ours) / figure(theirs))
            .filter(|ratio| ratio.is_finite())
            .collect();
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (*ratios.first()?, *ratios.last()?);
        let (one, other) = (ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
        Some(Ratio { median: (one + other) / 2.0, low, high })
    }
}

/// How many times as much, in the median of all rounds, and in the least and most of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// A duration as people write it.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::keys::Spread;
    use crate::processes::Used;
    use crate::tally::Tally;
    use crate::values::Sizes;
    use crate::work::{Shape, Test, Work};
    use std::sync::Arc;

    /// A thousand replies within a second, each after as many microseconds as its number times `factor`.
    pub(crate) fn measured(target: &str, factor: u64) -> Measured {
        let shape =
            Shape { keys: None, spread: Spread::Uniform, sizes: Sizes::one(3), is_verified: false, is_tagged: false };
        let work = Arc::new(Work::of_test(Test::named("get").unwrap(), &shape));
        let mut tally = Tally::new(1, 100_000_000);
        for number in 1..=1000 {
            tally.latencies[0].record(number * 1000 * factor);
            tally.timeline.record(number * 1_000_000, number * 1000 * factor);
        }
        (tally.replies, tally.sent, tally.first_ns, tally.last_ns) = (1000, 1000, 0, 1_000_000_000 * factor);
        let used = Used { pid: 7, processor_s: 0.5, resident_bytes: 1 << 20, peak_resident_bytes: 2 << 20 };
        Measured { work, target: target.to_owned(), tally, own_processor_s: 0.01, processes: vec![used] }
    }

    #[test]
    fn rounds_add_up_and_are_compared_one_by_one() {
        let mut one = Row::new(measured("one", 1));
        one.add(&measured("one", 1));
        let mut other = Row::new(measured("other", 2));
        other.add(&measured("other", 4));
        assert_eq!((one.all.tally.replies, one.all.tally.rate()), (2000, 1000.0));
        assert_eq!(one.all.processes[0].processor_s, 1.0);
        let ratio = one.ratio(&other, |round| round.rate).unwrap();
        assert_eq!(ratio, Ratio { median: 3.0, low: 2.0, high: 4.0 });
    }
}
