//! What the units of the suite give against `respool server`, in both of its modes, written down in `tcl-embedded.tsv`.
//!
//! A unit that passes fewer tests than are written down is a complaint; one that passes more is written down with `--save`, and one
//! that passes fewer if each failure has a reason. Tests that vary
//! count as failed however they end. A unit that is left
//! out has a reason there in the place of its counts. Each test of redis's suite that fails has to be in the table of its mode
//! (`tcl-embedded-fails.tsv`, `tcl-embedded-internal-fails.tsv`); and each that is left out, because it needs what there is not, in the other
//! (`tcl-embedded-left-out.tsv`, `tcl-embedded-internal-left-out.tsv`).

use std::time::Instant;
use std::{fs, io};

use super::output::Tally;
use super::source::Suite;
use super::unit::Deployment;
use super::{Options, judge, shown, unit};
use crate::{Outcome, command};

/// The table of a suite.
fn file(suite: Suite) -> &'static str {
    match suite {
        Suite::Redis => "tcl-embedded.tsv",
        Suite::Valkey => "tcl-embedded-valkey.tsv",
    }
}

/// The table of tests that are left out in a mode.
fn left_out_file(is_internal: bool) -> &'static str {
    if is_internal { "tcl-embedded-internal-left-out.tsv" } else { "tcl-embedded-left-out.tsv" }
}

/// Why tests with a tag are left out.
const NEEDS: [(&str, &str); 2] = [
    ("needs:repl", "needs replication: it reads what SYNC sends, or sets what a replica does"),
    ("needs:save", "needs a snapshot or an append-only file"),
];

/// A test that is left out.
#[derive(Clone, PartialEq, Eq)]
struct LeftOut {
    unit: String,
    test: String,
    why: String,
}

fn load_left_out(is_internal: bool) -> io::Result<Vec<LeftOut>> {
    let rows = command::expected(left_out_file(is_internal), 3)?.into_iter().map(|fields| {
        let [unit, test, why] = <[String; 3]>::try_from(fields).expect("three were read");
        LeftOut { unit, test, why }
    });
    Ok(rows.collect())
}

/// Those of a unit that the suite has just named.
fn named(unit: &str, tally: &Tally) -> Vec<LeftOut> {
    let why = |tag: &str| NEEDS.iter().find(|(known, _)| *known == tag).map(|(_, why)| (*why).to_owned());
    let rows = tally
        .needy
        .iter()
        .filter_map(|(test, tag)| Some(LeftOut { unit: unit.to_owned(), test: test.clone(), why: why(tag)? }));
    rows.collect()
}

/// Writes down those of one unit in the place of what was known of it. Rows with other reasons stay: the suite does not name those.
fn take_named(rows: &mut Vec<LeftOut>, unit: &str, named: Vec<LeftOut>) {
    let place = rows.iter().position(|row| row.unit == unit).unwrap_or(rows.len());
    let is_named = |row: &LeftOut| row.unit == unit && NEEDS.iter().any(|(_, why)| *why == row.why);
    rows.retain(|row| !is_named(row));
    for row in named.into_iter().rev() {
        if !rows.contains(&row) {
            rows.insert(place, row);
        }
    }
}

/// A line of the matrix.
struct Row {
    unit: String,
    /// `external` or `internal`.
    mode: String,
    given: Given,
}

enum Given {
    /// Tests that pass, fail and do not suit the mode.
    Counts(usize, usize, usize),
    /// The unit is not run. Why.
    LeftOut(String),
}

fn load(suite: Suite) -> io::Result<Vec<Row>> {
    let rows = command::expected(file(suite), 5)?.into_iter().map(|fields| {
        let [unit, mode, ok, failed, rest] = <[String; 5]>::try_from(fields).expect("five were read");
        let given = match (ok.parse(), failed.parse(), rest.parse()) {
            (Ok(ok), Ok(failed), Ok(ignored)) => Given::Counts(ok, failed, ignored),
            _ if ok == "-" => Given::LeftOut(rest),
            _ => return Err(command::malformed(file(suite), &unit, &"neither counts nor a reason")),
        };
        Ok(Row { unit, mode, given })
    });
    rows.collect()
}

pub(super) fn run(deployment: &Deployment<'_>, options: &Options) -> Outcome {
    let mode = if options.internal { "internal" } else { "external" };
    let mut rows = if options.embedded { load(options.suite)? } else { Vec::new() };
    let names_left_out = options.embedded && options.suite == Suite::Redis;
    let mut left_out = if names_left_out { load_left_out(options.internal)? } else { Vec::new() };
    let units = if options.unit.is_empty() { deployment.units()? } else { options.unit.clone() };
    let (mut total, mut complaints) = (Tally::default(), Vec::new());
    println!("{:<38} {:>5} {:>7} {:>8} {:>6} {:>6}", format!("unit ({mode})"), "ok", "failed", "ignored", "known", "s");
    for unit in &units {
        let known = rows.iter().position(|row| row.unit == *unit && row.mode == mode);
        if let Some(Given::LeftOut(why)) = known.map(|place| &rows[place].given) {
            println!("{unit:<38} left out: {why}");
            continue;
        }
        let started = Instant::now();
        let tally = deployment.run(unit)?;
        let before = match known.map(|place| &rows[place].given) {
            Some(Given::Counts(ok, ..)) => Some(*ok),
            _ => None,
        };
        // Which of those that vary passed this time says nothing.
        let varies = deployment.expectations.varying(unit, &tally);
        let (ok, failed) = (tally.ok.len() - varies, tally.failed.len() + varies);
        println!(
            "{unit:<38} {ok:>5} {failed:>7} {:>8} {:>6} {:>6.0}",
            tally.ignored,
            before.map_or_else(|| "-".to_owned(), |before| before.to_string()),
            started.elapsed().as_secs_f64()
        );
        if options.only.is_empty() && before.is_some_and(|before| ok < before) {
            complaints.push(format!("{unit}: {ok} tests passed, {} are written down", before.unwrap_or_default()));
            complaints.extend(tally.failed.iter().map(|failure| shown(unit, failure)));
        }
        let is_judged = options.embedded && options.suite == Suite::Redis;
        let unexcused = if is_judged { judge(unit, &tally, deployment.expectations) } else { Vec::new() };
        // A test that fails by chance must not lower what is asked of all runs to come.
        let is_fall = before.is_some_and(|before| ok < before) && !unexcused.is_empty();
        complaints.extend(unexcused);
        if names_left_out {
            let named = named(unit, &tally);
            if options.save {
                take_named(&mut left_out, unit, named);
                save_left_out(&left_out, options.internal)?;
            } else {
                let unknown = named.iter().filter(|row| !left_out.contains(row));
                complaints
                    .extend(unknown.map(|row| format!("{unit}: {}\n    is left out and not written down", row.test)));
            }
        }
        if options.save && !is_fall {
            let given = Given::Counts(ok, failed, tally.ignored);
            match known {
                Some(place) => rows[place].given = given,
                None => rows.push(Row { unit: unit.clone(), mode: mode.to_owned(), given }),
            }
            save(options.suite, &rows)?;
        }
        total.add(tally);
    }
    println!("in all: {} ok, {} failed, {} ignored", total.ok.len(), total.failed.len(), total.ignored);
    match complaints.is_empty() {
        true => Ok(format!(
            "{} passed, {} failed; logs are in {}",
            total.ok.len(),
            total.failed.len(),
            unit::logs().display()
        )),
        false => {
            println!("\n{}", complaints.join("\n"));
            Err(format!("{} complaints, {} passed", complaints.len(), total.ok.len()).into())
        }
    }
}

fn save_left_out(rows: &[LeftOut], is_internal: bool) -> io::Result<()> {
    let (mode, option) = if is_internal { ("internal", " --internal") } else { ("external", "") };
    let mut text = format!(
        "# Tests of redis 7.0.15's suite in {mode} mode that are not run against `respool server` (cargo xtask tcl --embedded{option} --save), in\n\
         # units that are run:\n\
         # unit, test, why.\n"
    );
    for LeftOut { unit, test, why } in rows {
        text += &format!("{unit}\t{test}\t{why}\n");
    }
    fs::write(command::root().join("xtask").join("expected").join(left_out_file(is_internal)), text)
}

fn save(suite: Suite, rows: &[Row]) -> io::Result<()> {
    let what = match suite {
        Suite::Redis => {
            "redis 7.0.15's suite gives against `respool server` (cargo xtask tcl --embedded --save, with --internal as well)"
        }
        Suite::Valkey => {
            "Valkey 9.1.2's suite gives against `respool server` (cargo xtask tcl --suite valkey --embedded --save)"
        }
    };
    let mut text = format!(
        "# What {what}, without tests that\n\
         # are slow or need replication, a snapshot or an append-only file:\n\
         # unit, mode, ok, failed, ignored; or two dashes and why the unit is left out.\n"
    );
    for Row { unit, mode, given } in rows {
        text += &match given {
            Given::Counts(ok, failed, ignored) => format!("{unit}\t{mode}\t{ok}\t{failed}\t{ignored}\n"),
            Given::LeftOut(why) => format!("{unit}\t{mode}\t-\t-\t{why}\n"),
        };
    }
    fs::write(command::root().join("xtask").join("expected").join(file(suite)), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_that_is_left_out_is_named_once() {
        for is_internal in [false, true] {
            let rows = load_left_out(is_internal).unwrap();
            for (place, row) in rows.iter().enumerate() {
                assert!(!row.why.is_empty());
                let is_same = |other: &LeftOut| other.unit == row.unit && other.test == row.test;
                assert!(!rows[..place].iter().any(is_same), "{}: {} is written down twice", row.unit, row.test);
            }
        }
    }

    #[test]
    fn the_committed_matrix_can_be_read() {
        for rows in [Suite::Redis, Suite::Valkey].map(|suite| load(suite).unwrap()) {
            for (place, row) in rows.iter().enumerate() {
                assert!(["external", "internal"].contains(&row.mode.as_str()), "{}: {}", row.unit, row.mode);
                let is_same = |other: &Row| other.unit == row.unit && other.mode == row.mode;
                assert!(!rows[..place].iter().any(is_same), "{} ({}) is written down twice", row.unit, row.mode);
            }
        }
    }
}
