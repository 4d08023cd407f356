//! What is known beforehand: how many tests a bare server passes, and which fail through Respool, each with its reason.

use std::fs;
use std::io;

use crate::command;

/// Tests that a bare redis-server passes, by unit.
pub(super) struct Counts(Vec<(String, usize)>);

/// Tests that cannot pass: unit, name, whether they are run, reason.
pub(super) struct Expectations(Vec<[String; 4]>);

/// Run, and wanted to fail: nobody must be told that something does not work which does.
const FAILS: &str = "fails";
/// Run, and may pass: time or chance decides.
const VARIES: &str = "varies";
/// Not run, since what it leaves behind when it fails makes others fail or hang.
const SPOILS: &str = "spoils";

impl Counts {
    pub(super) fn load(cluster_mode: bool) -> io::Result<Counts> {
        let column = if cluster_mode { 2 } else { 1 };
        let rows = rows("tcl-units.tsv", 3)?;
        rows.into_iter()
            .map(|fields| {
                let count = fields[column].parse();
                Ok((fields[0].clone(), count.map_err(|error| malformed("tcl-units.tsv", &fields[0], &error))?))
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
    pub(super) fn load(through_proxy: bool, cluster_mode: bool) -> io::Result<Expectations> {
        let file = match (through_proxy, cluster_mode) {
            (false, _) => return Ok(Expectations(Vec::new())),
            (true, false) => "tcl-one-node.tsv",
            (true, true) => "tcl-cluster-mode.tsv",
        };
        let fields = rows(file, 4)?.into_iter().map(|fields| {
            let fields = <[String; 4]>::try_from(fields).expect("four were read");
            let ways = [FAILS, VARIES, SPOILS];
            let is_known = ways.contains(&fields[2].as_str());
            if is_known { Ok(fields) } else { Err(malformed(file, &fields[1], &format!("one of {ways:?}?"))) }
        });
        fields.collect::<io::Result<_>>().map(Expectations)
    }

    /// Why this test fails, if it is written down.
    pub(super) fn reason(&self, unit: &str, test: &str) -> Option<&str> {
        self.0.iter().find(|[of, name, ..]| of == unit && name == test).map(|[.., reason]| reason.as_str())
    }

    /// The tests of a unit that are written down and must not pass.
    pub(super) fn of(&self, unit: &str) -> impl Iterator<Item = &str> {
        let failing = self.0.iter().filter(move |[of, _, how, _]| of == unit && how != VARIES);
        failing.map(|[_, test, ..]| test.as_str())
    }

    /// Those of them that are not even run.
    pub(super) fn left_out(&self, unit: &str) -> impl Iterator<Item = &str> {
        let spoiling = self.0.iter().filter(move |[of, _, how, _]| of == unit && how == SPOILS);
        spoiling.map(|[_, test, ..]| test.as_str())
    }
}

/// The rows of a table in `xtask/expected`: fields between tabs, comments behind `#`.
fn rows(file: &str, columns: usize) -> io::Result<Vec<Vec<String>>> {
    let path = command::root().join("xtask").join("expected").join(file);
    let text = fs::read_to_string(&path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display())))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
            let is_whole = fields.len() == columns && fields.iter().all(|field| !field.is_empty());
            if is_whole { Ok(fields) } else { Err(malformed(file, line, &format!("not {columns} fields"))) }
        })
        .collect()
}

fn malformed(file: &str, line: &str, error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("xtask/expected/{file}: {line:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_tables_can_be_read() {
        for cluster_mode in [false, true] {
            let counts = Counts::load(cluster_mode).unwrap();
            let expectations = Expectations::load(true, cluster_mode).unwrap();
            for [unit, test, ..] in &expectations.0 {
                assert!(counts.ok(unit).is_some(), "{unit} is no unit of the suite");
                let same = expectations.0.iter().filter(|[of, other, ..]| of == unit && other == test);
                assert_eq!(same.count(), 1, "{unit}: {test} is written down twice");
            }
        }
    }
}
