//! The aims of the rows, and the figures that they are compared with.

use super::super::client::bars::{Bar, short};
use super::super::client::samples::Samples;
use super::deliver;

/// What one process may take to subscribe to a million channels of redis-server, in seconds.
const SUBSCRIBE_S: f64 = 2.0;
/// How far off the latency of a server with a known one may be, in microseconds.
const OFF_US: f64 = 20.0;
/// What the server takes for a subscriber that does not read, beside its limit for that: outboxes of others.
const STALLED_MAX: f64 = 1.5;

/// The bars that can be judged by what was measured.
pub(super) fn bars(samples: &Samples, channels: u32) -> Vec<Bar> {
    let mut all = Judged { samples, bars: Vec::new() };
    let of_a_million = SUBSCRIBE_S * f64::from(channels) / 1e6;
    all.at_most("subscribe", "redis-server", "subscribed s", of_a_million);
    all.ratio_at_most("subscribe", "engine", "subscribed s", 1.0);
    let batches: Vec<u16> =
        (1..=1_000).filter(|batch| samples.scenarios().any(|name| *name == deliver(*batch))).collect();
    for batch in &batches {
        let name = deliver(*batch);
        all.ratio_at_most(&name, "engine", "bytes a pair", 0.27);
        all.ratio_at_most(&name, "proxy", "bytes a pair", 0.30);
        all.ratio_at_least(&name, "engine", "deliveries/s", 1.5);
        all.ratio_at_least(&name, "proxy", "deliveries/s", 1.0);
        // The channel by which the processes meet, and those of one more that is being told.
        all.at_most(&name, "proxy", "subscriptions behind", f64::from(channels) + 2.0);
        for subject in ["redis-server", "engine", "proxy"] {
            all.at_most(&name, subject, "lost, late or twice", 0.0);
        }
    }
    for subject in ["engine", "proxy"] {
        all.at_most("stalled", subject, "lost, late or twice", 0.0);
        all.at_most("stalled", subject, "memory to the limit", STALLED_MAX);
    }
    all.at_most("latency", "fake", "p50 us off", OFF_US);
    all.at_most("latency", "fake", "p99 us off", OFF_US);
    all.bars
}

struct Judged<'s> {
    samples: &'s Samples,
    bars: Vec<Bar>,
}

impl Judged<'_> {
    fn at_most(&mut self, scenario: &str, subject: &str, figure: &str, limit: f64) {
        let Some(median) = self.samples.median(scenario, subject, figure) else { return };
        // One round in which something was lost is one too many.
        let (low, high) = self.samples.range(scenario, subject, figure).unwrap_or((median, median));
        let reached = if limit == 0.0 { high } else { median };
        self.bars.push(Bar {
            what: format!("{scenario}, {subject}: {figure}"),
            wanted: format!("<= {}", short(limit)),
            reached: format!("{} ({} to {})", short(median), short(low), short(high)),
            is_reached: reached <= limit,
        });
    }

    fn ratio_at_most(&mut self, scenario: &str, subject: &str, figure: &str, limit: f64) {
        self.ratio(scenario, subject, figure, "<=", limit, |ratio| ratio <= limit);
    }

    fn ratio_at_least(&mut self, scenario: &str, subject: &str, figure: &str, limit: f64) {
        self.ratio(scenario, subject, figure, ">=", limit, |ratio| ratio >= limit);
    }

    fn ratio(
        &mut self,
        scenario: &str,
        subject: &str,
        figure: &str,
        sign: &str,
        limit: f64,
        is_reached: impl Fn(f64) -> bool,
    ) {
        let median = |subject: &str| self.samples.median(scenario, subject, figure);
        let (Some(ours), Some(theirs)) = (median(subject), median("redis-server")) else { return };
        self.bars.push(Bar {
            what: format!("{scenario}, {subject}: {figure} to redis-server's"),
            wanted: format!("{sign} {limit:.2}"),
            reached: format!("{:.3} ({} : {})", ours / theirs, short(ours), short(theirs)),
            is_reached: is_reached(ours / theirs),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::client::samples::Sample;
    use super::*;

    #[test]
    fn ratios_are_of_medians_and_one_loss_is_too_many() {
        let mut samples = Samples::default();
        for (subject, rate, lost) in
            [("redis-server", 100.0, 0.0), ("engine", 140.0, 0.0), ("engine", 160.0, 1.0), ("engine", 150.0, 0.0)]
        {
            let figures = [("deliveries/s".to_owned(), rate), ("lost, late or twice".to_owned(), lost)];
            samples.add(&deliver(8), subject, Sample::from(figures));
        }
        let bars = bars(&samples, 1_000);
        let reached: Vec<bool> = bars.iter().map(|bar| bar.is_reached).collect();
        assert_eq!(reached, [true, true, false], "{bars:?}");
    }
}
