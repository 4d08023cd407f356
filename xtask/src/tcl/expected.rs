//! What is known beforehand: how many tests a bare server passes, and which fail through Respool, each with its reason.

use std::{fmt, io};

use super::output::{self, Ending, Failure, Tally};
use crate::command;

/// Tests that a bare redis-server passes, by unit.
pub(super) struct Counts(Vec<(String, usize)>);

/// Tests that cannot pass.
pub(super) struct Expectations(Vec<Expectation>);

/// A test that cannot pass, by name, or an error outside of all tests, by how its text begins.
#[derive(Debug)]
pub(super) struct Expectation {
    unit: String,
    pub(super) test: String,
    pub(super) how: How,
    /// Passes of a bare server that are missing for it: a unit may run a test more than once, and an error outside of all
    /// tests need not cost any.
    times: usize,
    reason: String,
}

/// What becomes of a test that cannot pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It is run and has to fail: the list must not say that something does not work which does.
    Fails,
    /// It is run and may pass: time or chance decides.
    Varies,
    /// It is run alone and has to fail: what it leaves behind makes the others of its unit fail or hang.
    Spoils,
    /// It is run alone and has to make no progress any more.
    Hangs,
    /// It is run behind those before it, which it needs, and has to fail or hang; what comes behind it is not judged.
    Ends,
}

impl How {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Fails, "fails"),
        (Self::Varies, "varies"),
        (Self::Spoils, "spoils"),
        (Self::Hangs, "hangs"),
        (Self::Ends, "ends"),
    ];

    /// Whether it is kept away from the other tests of its unit.
    pub(super) fn is_alone(self) -> bool {
        matches!(self, Self::Spoils | Self::Hangs | Self::Ends)
    }

    /// `fails`, or `fails*2` for a test whose unit runs it twice.
    fn parse(text: &str) -> Option<(Self, usize)> {
        let (word, times) = text.split_once('*').unwrap_or((text, "1"));
        let (how, _) = Self::ALL.into_iter().find(|(_, known)| *known == word)?;
        Some((how, times.parse().ok()?))
    }
}

impl Counts {
    pub(super) fn load(cluster_mode: bool) -> io::Result<Counts> {
        let column = if cluster_mode { 2 } else { 1 };
        let rows = command::expected("tcl-units.tsv", 3)?;
        rows.into_iter()
            .map(|fields| {
                let count = fields[column].parse();
                Ok((fields[0].clone(), count.map_err(|error| command::malformed("tcl-units.tsv", &fields[0], &error))?))
            })
            .collect::<io::Result<_>>()
            .map(Counts)
    }

    pub(super) fn ok(&self, unit: &str) -> Option<usize> {
        self.0.iter().find(|(name, _)| name == unit).map(|&(_, count)| count)
    }

    /// Units of which a bare server passes anything.
    pub(super) fn units(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(unit, count)| (unit.as_str(), *count))
    }
}

impl Expectations {
    /// Those that hold for a redis-server alone.
    pub(super) fn none() -> Expectations {
        Expectations(Vec::new())
    }

    /// Those that hold through Respool.
    pub(super) fn of_respool(cluster_mode: bool) -> io::Result<Expectations> {
        Self::load(if cluster_mode { "tcl-cluster-mode.tsv" } else { "tcl-one-node.tsv" })
    }

    /// Those that hold for the embedded server in external or internal mode.
    pub(super) fn of_embedded(is_internal: bool) -> io::Result<Expectations> {
        Self::load(if is_internal { "tcl-embedded-internal-fails.tsv" } else { "tcl-embedded-fails.tsv" })
    }

    /// Tests of Valkey's suite that are left out against the embedded server, since others fail behind them.
    pub(super) fn of_embedded_valkey() -> io::Result<Expectations> {
        Self::load("tcl-embedded-valkey-spoils.tsv")
    }

    fn load(file: &str) -> io::Result<Expectations> {
        let expectations = command::expected(file, 4)?.into_iter().map(|fields| {
            let [unit, test, how, reason] = <[String; 4]>::try_from(fields).expect("four were read");
            let known = How::parse(&how);
            let (how, times) =
                known.ok_or_else(|| command::malformed(file, &test, &format!("{how} is no way to fail")))?;
            Ok(Expectation { unit, test, how, times, reason })
        });
        expectations.collect::<io::Result<_>>().map(Expectations)
    }

    /// The row that a failure is excused by, if there is one: an error outside of all tests only by how it begins, and an
    /// early end of the unit, or a test that hangs beside others, by nothing.
    pub(super) fn excuse(&self, unit: &str, failure: &Failure) -> Option<&Expectation> {
        let is_it = |row: &&Expectation| match row.test.strip_prefix(output::OUTSIDE) {
            Some(beginning) => {
                failure.ending == Ending::Outside && failure.details.trim_start().starts_with(beginning.trim_start())
            }
            None => failure.ending == Ending::Failed && !row.how.is_alone() && row.test == failure.test,
        };
        self.of(unit).find(is_it)
    }

    /// How many tests have passed that vary.
    pub(super) fn varying(&self, unit: &str, tally: &Tally) -> usize {
        let varies = |test: &String| self.of(unit).any(|row| row.how == How::Varies && row.test == *test);
        tally.ok.iter().filter(|test| varies(test)).count()
    }

    /// The rows of a unit.
    pub(super) fn of(&self, unit: &str) -> impl Iterator<Item = &Expectation> {
        self.0.iter().filter(move |row| row.unit == unit)
    }

    /// Names of those that are kept away from the others of their unit.
    pub(super) fn left_out(&self, unit: &str) -> impl Iterator<Item = &str> {
        self.of(unit).filter(|row| row.how.is_alone()).map(|row| row.test.as_str())
    }

    /// How many of the passes of a bare server are missing: at least, and at most.
    pub(super) fn missing(&self, unit: &str) -> (usize, usize) {
        let most = self.of(unit).map(|row| row.times).sum();
        (self.of(unit).filter(|row| row.how != How::Varies).map(|row| row.times).sum(), most)
    }
}

impl Expectation {
    /// Whether the error is one outside of all tests.
    pub(super) fn is_outside(&self) -> bool {
        self.test.starts_with(output::OUTSIDE)
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, how) = How::ALL.into_iter().find(|(how, _)| *how == self.how).expect("all are listed");
        write!(f, "{how}: {} ({})", self.test, self.reason)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_committed_tables_can_be_read() {
        for (cluster_mode, expectations) in [
            (false, Expectations::of_respool(false)),
            (true, Expectations::of_respool(true)),
            (false, Expectations::of_embedded(false)),
            (false, Expectations::of_embedded(true)),
        ] {
            let (counts, expectations) = (Counts::load(cluster_mode).unwrap(), expectations.unwrap());
            for Expectation { unit, test, .. } in &expectations.0 {
                assert!(counts.ok(unit).is_some(), "{unit} is no unit of the suite");
                let same = expectations.0.iter().filter(|row| row.unit == *unit && row.test == *test);
                assert_eq!(same.count(), 1, "{unit}: {test} is written down twice");
                assert_ne!(test, output::OUTSIDE, "{unit}: an error outside of tests is known by its text");
            }
        }
    }

    #[test]
    fn what_is_left_out_of_valkeys_suite_spoils_others() {
        let rows = Expectations::of_embedded_valkey().unwrap().0;
        assert!(rows.iter().all(|row| row.how == How::Spoils), "nothing else is judged there");
    }

    fn row(test: &str, how: How) -> Expectation {
        Expectation { unit: "unit/x".into(), test: test.into(), how, times: 1, reason: "known".into() }
    }

    #[test]
    fn tests_that_vary_are_counted_however_they_end() {
        let known = Expectations(vec![row("one", How::Varies), row("two", How::Fails)]);
        let tally = |ok: &[&str]| Tally { ok: ok.iter().map(|test| (*test).to_owned()).collect(), ..Tally::default() };
        assert_eq!(known.varying("unit/x", &tally(&["one", "two", "three"])), 1);
        assert_eq!(known.varying("unit/x", &tally(&["two", "three"])), 0);
        assert_eq!(known.varying("unit/y", &tally(&["one"])), 0, "that is another test");
    }

    #[test]
    fn an_excuse_holds_for_one_text_and_one_way_to_end() {
        let outside = format!("{} no SYNC", output::OUTSIDE);
        let known = Expectations(vec![row("one", How::Fails), row("two", How::Spoils), row(&outside, How::Fails)]);
        let is_excused = |test: &str, ending, details: &str| {
            known.excuse("unit/x", &Failure { test: test.into(), ending, details: details.into() }).is_some()
        };
        assert!(is_excused("one", Ending::Failed, "anything"));
        assert!(!is_excused("one", Ending::Hung, ""), "a test that fails does not hang");
        assert!(!is_excused("two", Ending::Failed, ""), "it is kept away from the others");
        assert!(is_excused(output::OUTSIDE, Ending::Outside, "no SYNC here\n"));
        assert!(!is_excused(output::OUTSIDE, Ending::Outside, "I/O error reading reply"), "another error");
        assert!(!is_excused(output::OUTSIDE, Ending::Broken, "no SYNC here"), "the unit ended early");
        assert_eq!(known.missing("unit/x"), (3, 3));
    }

    #[test]
    fn units_that_run_nothing_are_named_in_the_pages() {
        let page = fs::read_to_string(command::root().join("docs").join("testing.md")).unwrap();
        for (unit, count) in Counts::load(false).unwrap().units() {
            let is_named = page.contains(&format!("`{unit}`"));
            assert_eq!(is_named, count == 0, "{unit}: a bare server passes {count} in external mode");
        }
    }
}
