//! How long a node takes to answer, by the last request of each batch.

/// The round trips of one connection, in microseconds; 0 before the first sample.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    /// Smoothed.
    pub(super) smoothed_us: u64,
    /// The shortest of late: what the link takes, without the node's own queue.
    pub(super) shortest_us: u64,
    /// That of the last batch that was answered, until it is taken; 0 if there is none.
    pub(super) sample_us: u64,
}

impl RoundTrip {
    /// Exponential smoothing with a weight of one eighth, as TCP does.
    pub(super) fn note(&mut self, sample_us: u64) {
        self.sample_us = sample_us.max(1);
        self.smoothed_us = match self.smoothed_us {
            0 => sample_us,
            smoothed => (smoothed * 7 + sample_us) / 8,
        };
        // Falls at once and rises slowly, so that a busy node does not look like a long link.
        self.shortest_us = match self.shortest_us {
            0 => sample_us.max(1),
            shortest => sample_us.clamp(1, shortest + shortest / 64 + 1),
        };
    }
}
