//! How a run goes: how many connections, at what pace, until when.

use std::time::Duration;

use crate::arrivals::Spacing;

/// How a run goes, whatever it asks.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Connections in all.
    pub connections: usize,
    /// Threads; each has its share of the connections.
    pub threads: usize,
    /// Requests that are written together; their replies are waited for together. Of a closed loop.
    pub pipeline: usize,
    /// Whether a connection is used again; otherwise each has one batch.
    pub is_kept: bool,
    /// When requests are sent.
    pub pace: Pace,
    /// How many requests there are; `None`: until the time is up.
    pub requests: Option<u64>,
    /// How long requests are sent, the warm-up not counted; `None`: until all have been.
    pub duration: Option<Duration>,
    /// The beginning, which is not counted.
    pub warm_up: Duration,
    /// The time in which the rate, or the number of connections that are used, grows to what it is.
    pub ramp: Duration,
    /// What all chance follows from.
    pub seed: u64,
    /// An error reply does not end the run.
    pub goes_on: bool,
    /// The first length of an interval of the timeline.
    pub interval: Duration,
    /// A thread that waits for an open loop's next request looks again and again instead of sleeping.
    pub spins: bool,
}

/// When requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// When those before have been answered, on each connection.
    Closed,
    /// At times of their own. Latency counts from these.
    Open {
        /// Requests a second in all.
        rate: f64,
        /// How the times lie.
        spacing: Spacing,
    },
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            connections: 50,
            threads: 1,
            pipeline: 1,
            is_kept: true,
            pace: Pace::Closed,
            requests: Some(100_000),
            duration: None,
            warm_up: Duration::ZERO,
            ramp: Duration::ZERO,
            seed: 1,
            goes_on: false,
            interval: Duration::from_millis(100),
            spins: true,
        }
    }
}

impl Plan {
    /// How many connections thread `number` has.
    pub(crate) fn connections_of(&self, number: usize) -> usize {
        self.connections / self.threads + usize::from(number < self.connections % self.threads)
    }
}
