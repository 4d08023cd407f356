//! How long commands took: a histogram for each, and the worst of every second in which one took too long.

use crate::limits::LATENCY_SAMPLES_MAX;
use crate::observe::histogram::Histogram;
use respool_command::{Command, Row};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;

/// The worst of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) unix_s: u64,
    pub(crate) ms: u64,
}

/// The latest samples of an event, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Event {
    pub(crate) samples: VecDeque<Sample>,
    pub(crate) most_ms: u64,
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    pub(crate) events: BTreeMap<&'static str, Event>,
    /// By the row's address. There are no more than rows in the table.
    pub(super) commands: BTreeMap<usize, (&'static Row, Box<Histogram>)>,
}

impl Latencies {
    /// A command has run for so long.
    pub(crate) fn count(&mut self, row: &'static Row, us: u64) {
        // Names that nodes have taught are without bound.
        if row.command != Command::Learnt {
            let place = std::ptr::from_ref(row).addr();
            self.commands.entry(place).or_insert_with(|| (row, Box::default())).1.record(us);
        }
    }

    pub(crate) fn note(&mut self, event: &'static str, unix_s: u64, ms: u64) {
        let event = self.events.entry(event).or_default();
        event.most_ms = event.most_ms.max(ms);
        match event.samples.back_mut().filter(|last| last.unix_s == unix_s) {
            Some(last) => last.ms = last.ms.max(ms),
            None => event.samples.push_back(Sample { unix_s, ms }),
        }
        if event.samples.len() > LATENCY_SAMPLES_MAX {
            event.samples.pop_front();
        }
    }

    /// The histograms of all commands, or of those that are named and their subcommands.
    pub(crate) fn histograms(&self, wanted: Option<&[u8]>) -> Vec<(&'static str, &Histogram)> {
        let is_wanted = |name: &str| {
            wanted.is_none_or(|wanted| {
                let container = name.split_once('|').map(|(container, _)| container);
                [Some(name), container].into_iter().flatten().any(|name| name.as_bytes().eq_ignore_ascii_case(wanted))
            })
        };
        let all = self.commands.values().map(|(row, histogram)| (row.full_name(), &**histogram));
        all.filter(|(name, _)| is_wanted(name)).collect()
    }
}

impl Event {
    /// The samples as a text of four rows, one column each, the oldest on the left.
    pub(crate) fn graph(&self, name: &str, now_s: u64) -> String {
        const ROWS: u64 = 4;
        let (high, low) = (self.samples.iter().map(|s| s.ms).max(), self.samples.iter().map(|s| s.ms).min());
        let (high, low) = (high.unwrap_or(0), low.unwrap_or(0));
        let mut text = format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", self.most_ms);
        let _ = writeln!(text, "{}", "-".repeat(80));
        for row in (0..ROWS).rev() {
            for sample in &self.samples {
                let height = ((sample.ms - low) * ROWS * 3).checked_div(high - low).unwrap_or(0);
                text.push(match height.saturating_sub(row * 3) {
                    0 if row == 0 => '_',
                    0 => ' ',
                    1 => '_',
                    2 => 'o',
                    _ => '#',
                });
            }
            text.push('\n');
        }
        let ages: Vec<String> = self.samples.iter().map(|sample| age(now_s.saturating_sub(sample.unix_s))).collect();
        let longest = ages.iter().map(String::len).max().unwrap_or(0);
        text.push('\n');
        for place in 0..longest {
            ages.iter().for_each(|age| text.push(age.as_bytes().get(place).map_or(' ', |byte| char::from(*byte))));
            text.push('\n');
        }
        text
    }

    /// What `LATENCY DOCTOR` says of an event: the figures that redis-server tells, in the form that programs read them in.
    pub(crate) fn told(&self, name: &str, now_s: u64) -> String {
        let count = self.samples.len().max(1) as u64;
        let mean = self.samples.iter().map(|sample| sample.ms).sum::<u64>() / count;
        let deviation = self.samples.iter().map(|sample| sample.ms.abs_diff(mean)).sum::<u64>() / count;
        let since_s = self.samples.front().map_or(0, |oldest| now_s.saturating_sub(oldest.unix_s)).max(1);
        format!(
            "{name}: {} latency spikes (average {mean}ms, mean deviation {deviation}ms, period {:.2} sec). Worst all time event {}ms.",
            self.samples.len(),
            since_s as f64 / count as f64,
            self.most_ms
        )
    }
}

/// A time in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_doctor_tells_the_figures_of_redis() {
        let mut latencies = Latencies::default();
        [(900, 70), (904, 20), (905, 30)].into_iter().for_each(|(at_s, ms)| latencies.note("command", at_s, ms));
        let told = latencies.events["command"].told("command", 912);
        assert_eq!(
            told,
            "command: 3 latency spikes (average 40ms, mean deviation 20ms, period 4.00 sec). Worst all time event 70ms."
        );
    }

    #[test]
    fn one_second_has_one_sample_and_old_ones_go() {
        let mut latencies = Latencies::default();
        for (second, ms) in [(1, 5), (1, 9), (1, 7), (2, 3)] {
            latencies.note("command", second, ms);
        }
        let event = &latencies.events["command"];
        assert_eq!(event.samples, [Sample { unix_s: 1, ms: 9 }, Sample { unix_s: 2, ms: 3 }]);
        assert_eq!(event.most_ms, 9);
        (3..1_000).for_each(|second| latencies.note("command", second, 1));
        let event = &latencies.events["command"];
        assert_eq!((event.samples.len(), event.most_ms), (LATENCY_SAMPLES_MAX, 9));
        assert_eq!(event.samples.back(), Some(&Sample { unix_s: 999, ms: 1 }));
    }

    #[test]
    fn a_graph_has_a_column_for_each_sample() {
        let mut latencies = Latencies::default();
        for (second, ms) in [(10, 1), (20, 50), (130, 100)] {
            latencies.note("command", second, ms);
        }
        let graph = latencies.events["command"].graph("command", 140);
        assert!(graph.starts_with("command - high 100 ms, low 1 ms (all time high 100 ms)\n---"), "{graph}");
        let lines: Vec<&str> = graph.lines().collect();
        assert_eq!(&lines[2..6], ["  #", "  #", " o#", "_##"], "{graph}");
        assert_eq!(&lines[7..], ["221", "mm0", "  s"], "{graph}");
    }
}
