//! How long a node takes to answer, by the last request of each batch.

use super::limits::FLUSH_LIMITS;

/// The round trips of one connection, in microseconds; 0 before the first sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    /// Smoothed.
    pub(crate) smoothed_us: u64,
    /// The shortest of late: what the link takes, without the node's own queue.
    pub(crate) shortest_us: u64,
    /// That of the last batch that was answered, until it is taken; 0 if there is none.
    pub(crate) sample_us: u64,
    /// The least of the last one or two windows of samples. It stays where it is while a node has a queue, which
    /// `shortest_us` does not.
    least_us: u64,
    /// The least of this window, and what is left of it.
    window_least_us: u64,
    window_left: u32,
}

impl RoundTrip {
    /// Exponential smoothing with a weight of one eighth, as TCP does.
    pub(crate) fn note(&mut self, sample_us: u64) {
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
        if self.window_left == 0 {
            self.begin_window(sample_us);
        }
        self.window_left -= 1;
        self.window_least_us = self.window_least_us.min(sample_us);
    }

    #[cold]
    fn begin_window(&mut self, sample_us: u64) {
        let is_first = self.window_least_us == 0 && self.least_us == 0;
        self.least_us = if is_first { sample_us } else { self.window_least_us };
        self.window_least_us = sample_us;
        self.window_left = FLUSH_LIMITS.least_round_trip_samples;
    }

    /// How much longer requests take than the link: what they wait at the node, in microseconds.
    pub(crate) fn queue_us(&self) -> u64 {
        self.smoothed_us.saturating_sub(self.least_us.min(self.window_least_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(samples: impl IntoIterator<Item = u64>) -> RoundTrip {
        let mut round_trip = RoundTrip::default();
        samples.into_iter().for_each(|sample_us| round_trip.note(sample_us));
        round_trip
    }

    #[test]
    fn a_queue_is_what_exceeds_the_least_round_trip() {
        assert_eq!(RoundTrip::default().queue_us(), 0);
        assert_eq!(noted([60]).queue_us(), 0);
        assert_eq!(noted([60; 5_000]).queue_us(), 0);
        let busy = noted([60].into_iter().chain([600; 500]));
        assert!((500..=540).contains(&busy.queue_us()), "{busy:?}");
        assert!(busy.shortest_us > 500, "the other measure has taken the queue for the link: {busy:?}");
    }

    #[test]
    fn a_longer_link_is_believed_after_two_windows() {
        let window = FLUSH_LIMITS.least_round_trip_samples as usize;
        assert!(noted([60].into_iter().chain(vec![600; window])).queue_us() > 500);
        assert_eq!(noted([60].into_iter().chain(vec![600; 2 * window + 1])).queue_us(), 0);
    }

    #[test]
    fn samples_of_zero_do_no_harm() {
        assert_eq!(noted([0; 5_000]).queue_us(), 0);
        assert_eq!(noted([0, u64::from(u32::MAX), 0]).shortest_us, 1);
    }
}
