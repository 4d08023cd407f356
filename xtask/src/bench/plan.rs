//! What a run is going to measure, and how long that takes.
//!
//! Expected times are rough: they say which rows are dear. How fast this machine is comes from the rows that are done.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use super::extras::Extra;
use super::open_loop::Load;
use super::scenario::{Keys, Scenario, Subject, Work};

/// One line of `--list`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// All subjects in one scenario.
    Row(Scenario),
    Extra(Extra),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Row(scenario) => scenario.fmt(f),
            Item::Extra(extra) => extra.fmt(f),
        }
    }
}

/// The items that are left, and what those that are done took.
pub(crate) struct Plan {
    left: VecDeque<(Item, Duration)>,
    count_done: usize,
    expected_done: Duration,
    took: Duration,
}

/// Starting a proxy and a short trial run.
const SET_UP: Duration = Duration::from_millis(500);
/// Setting a hundred thousand keys, some more than once.
const FILL: Duration = Duration::from_millis(1_000);
/// What comes to each run beside its length: connecting, and asking what was used.
const OVERHEAD: Duration = Duration::from_millis(100);
/// Requests per second of what is slow. A run has at least one pipeline of every client.
const SPEED: usize = 300_000;
const SPEED_MSET: usize = 60_000;
/// Expected time after which the machine's speed counts as much as what was expected of it.
const CONFIDENCE: Duration = Duration::from_secs(20);

impl Plan {
    pub(crate) fn new(subjects: &[Subject], scenarios: Vec<Scenario>, rounds: u32, length: Duration) -> Plan {
        let mut left = VecDeque::new();
        for scenario in scenarios {
            let count = scenario.subjects().iter().filter(|subject| subjects.contains(subject)).count();
            if count > 0 {
                let expected = count as u32 * expected(&scenario, rounds, length);
                left.push_back((Item::Row(scenario), expected));
            }
        }
        if !subjects.is_empty() {
            let extras = Extra::all(subjects).into_iter();
            left.extend(extras.map(|extra| (Item::Extra(extra), extra.expected(subjects))));
        }
        Plan { left, count_done: 0, expected_done: Duration::ZERO, took: Duration::ZERO }
    }

    /// Nothing but these loads.
    pub(crate) fn of_open_loops(loads: impl Iterator<Item = Load>, subjects: &[Subject]) -> Plan {
        let items = loads.map(|load| (Item::Extra(Extra::OpenLoop(load)), Extra::OpenLoop(load).expected(subjects)));
        Plan { left: items.collect(), count_done: 0, expected_done: Duration::ZERO, took: Duration::ZERO }
    }

    /// These loads, too.
    pub(crate) fn add(&mut self, other: Plan) {
        self.left.extend(other.left);
    }

    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&Item) -> bool) {
        self.left.retain(|(item, _)| is_wanted(item));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.left.iter().map(|(item, _)| item)
    }

    /// The item to measure now; it stays until it is done.
    pub(crate) fn next(&self) -> Option<Item> {
        self.left.front().map(|(item, _)| item.clone())
    }

    /// Takes the item out that was measured.
    pub(crate) fn done(&mut self, took: Duration) {
        if let Some((_, expected)) = self.left.pop_front() {
            self.count_done += 1;
            self.expected_done += expected;
            self.took += took;
        }
    }

    /// How long the rest takes.
    pub(crate) fn time_left(&self) -> Duration {
        let expected: Duration = self.left.iter().map(|(_, expected)| *expected).sum();
        let slowness = (self.took + CONFIDENCE).as_secs_f64() / (self.expected_done + CONFIDENCE).as_secs_f64();
        expected.mul_f64(slowness)
    }

    /// Where a run stands, for the one who waits.
    pub(crate) fn progress(&self) -> String {
        let count = self.count_done + self.left.len();
        format!("row {} of {count}, {} left", self.count_done + 1, Shown(self.time_left()))
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, {}", self.left.len(), Shown(self.time_left()))
    }
}

/// What one subject takes.
fn expected(scenario: &Scenario, rounds: u32, length: Duration) -> Duration {
    let speed = if scenario.work == Work::Mset { SPEED_MSET } else { SPEED };
    let least = Duration::from_secs_f64((scenario.clients * scenario.pipeline) as f64 / speed as f64);
    let fills = scenario.work == Work::Get && scenario.keys == Keys::Spread;
    // The trial run, and one more under perf, count as rounds.
    SET_UP + if fills { FILL } else { Duration::ZERO } + least + rounds * (length.max(least) + OVERHEAD)
}

struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            seconds if seconds < 90 => write!(f, "about {seconds} s"),
            seconds => write!(f, "about {} min", (seconds + 30) / 60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::{BASE, Cores, quick};
    use super::*;

    const LENGTH: Duration = Duration::from_millis(400);

    fn plan(subjects: &[Subject]) -> Plan {
        Plan::new(subjects, vec![BASE, Scenario { cores: Cores::Own, ..BASE }], 5, LENGTH)
    }

    #[test]
    fn rows_without_a_participant_are_left_out() {
        let names = |subjects: &[Subject]| plan(subjects).items().map(Item::to_string).collect::<Vec<_>>();
        assert_eq!(names(&[]), Vec::<String>::new());
        assert!(!names(&[Subject::Embedded]).iter().any(|name| name.starts_with("n1")));
        assert_eq!(names(&[Subject::Respool])[..2], [BASE.to_string(), "n1 GET one-key c50 P1 tcp own-core".into()]);
    }

    #[test]
    fn the_time_that_is_left_follows_what_rows_took() {
        let mut plan = Plan::new(&Subject::ALL, quick(), 5, LENGTH);
        let first = plan.time_left();
        assert!((300..1_200).contains(&first.as_secs()), "the quick rows take about ten minutes: {first:?}");
        while plan.left.len() > 20 {
            let expected = plan.left[0].1;
            plan.done(2 * expected);
        }
        let expected: Duration = plan.left.iter().map(|(_, expected)| *expected).sum();
        let slowness = plan.time_left().as_secs_f64() / expected.as_secs_f64();
        assert!((1.7..2.0).contains(&slowness), "everything takes twice as long as expected: {slowness}");
        while plan.next().is_some() {
            plan.done(LENGTH);
        }
        assert_eq!(plan.time_left(), Duration::ZERO);
    }

    #[test]
    fn more_rounds_and_larger_batches_take_longer() {
        let base = expected(&BASE, 5, LENGTH);
        assert!(expected(&BASE, 6, LENGTH) > base);
        let batch = Scenario { work: Work::Mset, clients: 500, pipeline: 1000, ..BASE };
        assert!(expected(&batch, 5, LENGTH) > 10 * base);
    }
}
