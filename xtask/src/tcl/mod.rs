//! `cargo xtask tcl`: the test suite of redis 7.0.15, run against a redis-server alone or through Respool.
//!
//! The suite (its external mode, which uses one client at a time) is Debian's source of the same redis that is installed.
//! Every unit gets fresh servers and a fresh Respool, so that what one leaves behind, or breaks, is not the next one's
//! trouble. What may fail is written down, test by test with its reason, in `xtask/expected`; everything else has to pass,
//! and so has what is written down there in vain.

mod expected;
mod output;
mod source;
mod unit;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use self::expected::{Counts, Expectations};
use self::output::{Failure, Tally};
use self::unit::Deployment;
use crate::Outcome;
use crate::binary::Binary;

/// How many tests have to pass through Respool with one server behind it, and with four in the suite's cluster mode.
const OK_MIN: usize = 1_900;
const OK_MIN_CLUSTER: usize = 1_750;

/// Lines of a failure that are shown.
const SHOWN_LINES_MAX: usize = 8;

/// Run the Tcl suite of redis 7.0.15 against a redis-server, or through Respool
#[derive(Args)]
pub(crate) struct Options {
    /// Put Respool between the suite and the server
    #[arg(long)]
    through_proxy: bool,
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

impl Options {
    fn is_whole(&self) -> bool {
        self.unit.is_empty() && self.only.is_empty()
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let counts = Counts::load(options.cluster_mode)?;
    let expectations = Expectations::load(options.through_proxy, options.cluster_mode)?;
    if options.list {
        return list(&counts, &expectations);
    }
    let source = source::locate(options.source.as_deref())?;
    let respool = options.through_proxy.then(|| options.binary.locate("release")).transpose()?;
    let deployment = Deployment { source, respool, expectations: &expectations, options };
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
        total.add(tally);
    }
    println!("in all: {} ok, {} failed, {} ignored", total.ok.len(), total.failed.len(), total.ignored);
    if options.is_whole() && options.through_proxy {
        complaints.extend(below_the_bar(&total, options.cluster_mode));
    }
    if complaints.is_empty() {
        return Ok(format!("{} passed, {} failed as expected", total.ok.len(), total.failed.len()));
    }
    println!("\n{}", complaints.join("\n"));
    Err(format!("{} complaints, {} passed; logs are in {}", complaints.len(), total.ok.len(), unit::logs().display())
        .into())
}

/// What differs from what is expected of one unit.
fn judge(unit: &str, tally: &Tally, expectations: &Expectations) -> Vec<String> {
    let mut complaints = Vec::new();
    for Failure { test, details } in &tally.failed {
        if expectations.reason(unit, test).is_none() {
            let shown: Vec<_> = details.lines().take(SHOWN_LINES_MAX).map(|line| format!("\n    {line}")).collect();
            complaints.push(format!("{unit}: {test}{}", shown.concat()));
        }
    }
    for test in expectations.of(unit) {
        let has_failed = tally.failed.iter().any(|failure| failure.test == test);
        if !has_failed && tally.ok.iter().any(|passed| passed == test) {
            complaints.push(format!("{unit}: {test}\n    passes, although it is expected to fail"));
        }
    }
    complaints
}

fn below_the_bar(total: &Tally, cluster_mode: bool) -> Option<String> {
    let wanted = if cluster_mode { OK_MIN_CLUSTER } else { OK_MIN };
    (total.ok.len() < wanted).then(|| format!("{} tests passed, {wanted} have to", total.ok.len()))
}

fn list(counts: &Counts, expectations: &Expectations) -> Outcome {
    for (unit, ok) in counts.units() {
        println!("{unit}: a bare server passes {ok}");
        for test in expectations.of(unit) {
            println!("  fails: {test} ({})", expectations.reason(unit, test).unwrap_or_default());
        }
    }
    Ok(format!("{} units", counts.units().count()))
}
