//! `cargo xtask tcl`: the test suite of redis 7.0.15, run against a redis-server alone or through Respool.
//!
//! The suite (its external mode, which uses one client at a time) is Debian's source of the same redis that is installed.
//! Every unit gets fresh servers and a fresh Respool, so that what one leaves behind, or breaks, is not the next one's
//! trouble. What may fail is written down, test by test with its reason, in `xtask/expected`; everything else has to pass,
//! what is written down there has to fail, and each unit has to pass as many tests as a bare server does, less those. A test
//! that spoils others is run by itself; a bare server has to pass it so, which a run without Respool checks. Nothing excuses
//! a unit that ends early, a test that hangs, or a Respool that has ended.

mod expected;
mod matrix;
mod output;
mod source;
mod unit;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use self::expected::{Counts, Expectations, How};
use self::output::{Ending, Failure, Tally};
use self::unit::Deployment;
use crate::Outcome;
use crate::binary::Binary;

/// Lines of a failure that are shown.
const SHOWN_LINES_MAX: usize = 8;

/// Run the Tcl suite of redis 7.0.15 against a redis-server, or through Respool
#[derive(Args)]
pub(crate) struct Options {
    /// Put Respool between the suite and the server
    #[arg(long)]
    through_proxy: bool,
    /// Run it against `respool server` in the place of redis-server
    #[arg(long, conflicts_with_all = ["through_proxy", "cluster_mode"])]
    embedded: bool,
    /// Have the suite start its servers itself: `respool server` with --embedded
    #[arg(long, conflicts_with_all = ["through_proxy", "cluster_mode"])]
    internal: bool,
    /// Write down what the units run now give, with --embedded
    #[arg(long, requires = "embedded")]
    save: bool,
    /// Whose tests are run; those of Valkey in external mode alone
    #[arg(long, value_enum, default_value = "redis")]
    suite: source::Suite,
    /// Leave out what does not work on a Redis Cluster; through Respool there are four servers then
    #[arg(long)]
    cluster_mode: bool,
    /// Run this unit only, such as `unit/type/list`; may be given several times
    #[arg(long, value_name = "UNIT")]
    unit: Vec<String>,
    /// Run tests of this name only, or that match when it begins with a slash; may be given several times
    #[arg(long, value_name = "TEST")]
    only: Vec<String>,
    /// Run nothing: show the units, what a bare server passes of them, and what is expected to fail
    #[arg(long)]
    list: bool,
    /// Seconds without progress after which a test counts as hung
    #[arg(long, default_value_t = 120)]
    timeout: u64,
    /// Use the suite that is unpacked here instead of fetching it
    #[arg(long, value_name = "DIRECTORY")]
    source: Option<PathBuf>,
    #[command(flatten)]
    binary: Binary,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let counts = Counts::load(options.cluster_mode)?;
    let expectations = match options {
        Options { through_proxy: true, .. } => Expectations::of_respool(options.cluster_mode)?,
        Options { embedded: true, suite: source::Suite::Redis, internal, .. } => Expectations::of_embedded(*internal)?,
        Options { embedded: true, suite: source::Suite::Valkey, .. } => Expectations::of_embedded_valkey()?,
        _ => Expectations::none(),
    };
    if options.list {
        return list(&counts, &expectations);
    }
    let mut source = source::locate(options.suite, options.source.as_deref())?;
    let respool = options.through_proxy.then(|| options.binary.locate("release")).transpose()?;
    let mut server = None;
    if options.embedded {
        let tree = source::with_server(options.suite, &source, &options.binary.locate("release")?)?;
        server = Some(tree.join("src").join(options.suite.server()));
        // Valkey's suite is told where programs are, and asks where the folder of its tests really is.
        if options.suite == source::Suite::Redis {
            source = tree;
        }
    }
    let deployment = Deployment { source, respool, server, expectations: &expectations, options };
    if options.embedded || options.internal {
        return matrix::run(&deployment, options);
    }
    let units = if options.unit.is_empty() { deployment.units()? } else { options.unit.clone() };
    let (mut total, mut complaints) = (Tally::default(), Vec::new());
    println!("{:<32} {:>5} {:>7} {:>8} {:>5} {:>6}", "unit", "ok", "failed", "ignored", "bare", "s");
    for unit in &units {
        let started = Instant::now();
        let tally = deployment.run(unit)?;
        let bare = counts.ok(unit).map_or("-".into(), |count| count.to_string());
        println!(
            "{unit:<32} {:>5} {:>7} {:>8} {bare:>5} {:>6.0}",
            tally.ok.len(),
            tally.failed.len(),
            tally.ignored,
            started.elapsed().as_secs_f64()
        );
        complaints.extend(judge(unit, &tally, &expectations));
        if options.only.is_empty() {
            complaints.extend(count(unit, &tally, &counts, &expectations));
            complaints.extend(alone(&deployment, unit)?);
        }
        total.add(tally);
    }
    println!("in all: {} ok, {} failed, {} ignored", total.ok.len(), total.failed.len(), total.ignored);
    if complaints.is_empty() {
        return Ok(format!("{} passed, {} failed as expected", total.ok.len(), total.failed.len()));
    }
    println!("\n{}", complaints.join("\n"));
    Err(format!("{} complaints, {} passed; logs are in {}", complaints.len(), total.ok.len(), unit::logs().display())
        .into())
}

/// What differs from what is expected of one unit.
fn judge(unit: &str, tally: &Tally, expectations: &Expectations) -> Vec<String> {
    let unexpected = tally.failed.iter().filter(|failure| expectations.excuse(unit, failure).is_none());
    let mut complaints: Vec<String> = unexpected.map(|failure| shown(unit, failure)).collect();
    for row in expectations.of(unit).filter(|row| row.how == How::Fails) {
        let test = &row.test;
        let has_passed = tally.ok.iter().any(|passed| passed == test);
        let has_failed =
            tally.failed.iter().any(|failure| expectations.excuse(unit, failure).is_some_and(|by| by.test == *test));
        if !has_failed && has_passed {
            complaints.push(format!("{unit}: {test}\n    passes, although it is expected to fail"));
        } else if !has_failed && row.is_outside() {
            complaints.push(format!("{unit}: {test}\n    is expected and did not happen"));
        }
    }
    complaints
}

/// Compares how many tests passed with how many a bare server passes, but for those that are written down.
fn count(unit: &str, tally: &Tally, counts: &Counts, expectations: &Expectations) -> Option<String> {
    let Some(bare) = counts.ok(unit) else {
        return Some(format!("{unit}: no count of a bare server's is written down"));
    };
    let (least, most) = expectations.missing(unit);
    let ok = tally.ok.len();
    let is_right = (bare.saturating_sub(most)..=bare.saturating_sub(least)).contains(&ok);
    (!is_right).then(|| {
        format!("{unit}: {ok} tests passed, a bare server passes {bare}, and what is written down stands for {least} to {most}")
    })
}

/// The error of a server while a script of an earlier test still runs. The unit breaks off with it.
const SCRIPT_RUNS_ON: &str = "BUSY Redis is busy running a script.";

/// Runs each test by itself that spoils others. Through Respool it has to go on failing as it is written down; a bare server
/// has to pass it, or its failure would mean nothing.
fn alone(deployment: &Deployment<'_>, unit: &str) -> std::io::Result<Vec<String>> {
    let mut complaints = Vec::new();
    let of_respool = Expectations::of_respool(deployment.options.cluster_mode)?;
    for row in of_respool.of(unit).filter(|row| row.how.is_alone()) {
        let ends = row.how == How::Ends;
        let mut tally = deployment.run_alone(unit, &row.test, ends, &of_respool)?;
        if ends {
            tally.ok.retain(|test| *test == row.test);
            tally.failed.retain(|failure| failure.test == row.test);
        }
        // What follows from the test between it and the next is its own doing: a script that runs on, a state that is left.
        let is_between = |failure: &&Failure| match failure.ending {
            Ending::Outside => true,
            Ending::Broken => failure.details.contains(SCRIPT_RUNS_ON),
            _ => failure.test == output::OUTSIDE,
        };
        let wanted = if row.how == How::Hangs { Ending::Hung } else { Ending::Failed };
        let is_wanted = |failure: &Failure| failure.test == row.test && (ends || failure.ending == wanted);
        let mut own = tally.failed.iter().filter(|failure| !is_between(failure)).peekable();
        let is_right = match deployment.respool {
            Some(_) => own.peek().is_some() && own.all(is_wanted),
            None => tally.failed.is_empty() && !tally.ok.is_empty(),
        };
        let how = match tally.failed.first() {
            Some(failure) => format!("{:?}", failure.ending),
            None => format!("passes {} times", tally.ok.len()),
        };
        println!("  alone: {how}: {}", row.test);
        if !is_right {
            complaints.push(format!("{unit}: {}\n    run alone: {how}, written down as {row}", row.test));
            complaints.extend(tally.failed.iter().map(|failure| shown(unit, failure)));
        }
    }
    Ok(complaints)
}

fn shown(unit: &str, Failure { test, details, .. }: &Failure) -> String {
    let lines: Vec<_> = details.lines().take(SHOWN_LINES_MAX).map(|line| format!("\n    {line}")).collect();
    format!("{unit}: {test}{}", lines.concat())
}

fn list(counts: &Counts, expectations: &Expectations) -> Outcome {
    for (unit, ok) in counts.units() {
        println!("{unit}: a bare server passes {ok}");
        expectations.of(unit).for_each(|row| println!("  {row}"));
    }
    Ok(format!("{} units", counts.units().count()))
}
