//! What is measured with: times of calls, the processor's time, chance from a seed.

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};
use std::time::Duration;

/// Processor time of this process, in microseconds.
pub(crate) fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}

/// Times of calls, in nanoseconds. All of them: percentiles are exact.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<u32>);

impl Times {
    /// With room for so many.
    pub(crate) fn with_room(calls: usize) -> Self {
        Self(Vec::with_capacity(calls))
    }

    pub(crate) fn push(&mut self, took: Duration) {
        self.0.push(u32::try_from(took.as_nanos()).unwrap_or(u32::MAX));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// That of so many in a thousand, in microseconds.
    pub(crate) fn at(&mut self, permille: usize) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let place = (self.0.len() - 1) * permille / 1000;
        f64::from(*self.0.select_nth_unstable(place).1) / 1e3
    }
}

/// What a run has found, by name.
#[derive(Debug, Default)]
pub(crate) struct Report(Map<String, Value>);

impl Report {
    pub(crate) fn add(&mut self, name: &str, value: f64) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// The usual percentiles.
    pub(crate) fn add_times(&mut self, prefix: &str, times: &mut Times) {
        for (name, permille) in [("p50_us", 500), ("p99_us", 990), ("p999_us", 999)] {
            self.add(&format!("{prefix}{name}"), times.at(permille));
        }
    }

    pub(crate) fn print(self) {
        println!("{}", Value::Object(self.0));
    }
}

/// Numbers by chance (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to 1, without 1.
    pub(crate) fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// The gap in front of the next arrival of a Poisson process.
    pub(crate) fn gap(&mut self, rate: f64) -> Duration {
        Duration::from_secs_f64(-(1.0 - self.part()).ln() / rate)
    }
}
