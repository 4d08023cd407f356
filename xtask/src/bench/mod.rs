//! `cargo xtask bench`: Respool, twemproxy and a direct connection measured in one run on one machine.
//!
//! Every scenario runs in rounds; each round measures every subject once, in rotating order, so that a machine that
//! slows down slows all of them. Medians are compared, never single runs. The load comes from redis-benchmark.

mod bars;
mod deployment;
mod extras;
mod load;
mod report;
mod scenario;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;

use self::deployment::Deployment;
use self::report::Row;
use self::scenario::{Scenario, Subject};
use crate::{Outcome, command};

/// Compare Respool with a direct connection and with twemproxy.
///
/// Without a preset the rows that the bars need are measured (about ten minutes); `--full` measures every row (about
/// an hour). Needs redis-server, redis-benchmark, nutcracker and taskset: see `cargo xtask setup`.
#[derive(Args)]
pub(crate) struct Options {
    /// Only the rows that the bars need, with short runs (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Every row, with longer runs
    #[arg(long)]
    full: bool,
    /// Only rows whose name contains this; may be given several times, all must match. Skips the rest of the bars
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Print the names of the rows that would be measured, and end
    #[arg(long)]
    list: bool,
    /// Measure this binary instead of building one
    #[arg(long, value_name = "PATH")]
    respool: Option<PathBuf>,
    /// Cargo profile that the binary is built with
    #[arg(long, default_value = "release")]
    profile: String,
    /// Further argument for `respool serve`; may be given several times
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    respool_argument: Vec<String>,
    /// Leave a subject out: direct, twemproxy, respool, embedded; may be given several times
    #[arg(long, value_name = "SUBJECT")]
    without: Vec<Subject>,
    /// Rounds per row
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds that one measurement lasts, roughly [default: 0.4, with --full 1]
    #[arg(long)]
    seconds: Option<f64>,
    /// Count system calls per request too, in a run of their own under perf
    #[arg(long)]
    syscalls: bool,
    /// Where the JSON goes [default: bench-results/TIME-PRESET.json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Options {
    fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios = if self.full { scenario::full() } else { scenario::quick() };
        scenarios.retain(|scenario| self.matches(&scenario.to_string()));
        scenarios
    }

    fn matches(&self, name: &str) -> bool {
        self.filter.iter().all(|part| name.contains(part.as_str()))
    }

    fn run_length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.unwrap_or(if self.full { 1.0 } else { 0.4 }))
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let scenarios = options.scenarios();
    if options.list {
        scenarios.iter().for_each(|scenario| println!("{scenario}"));
        extras::NAMES.iter().filter(|name| options.matches(name)).for_each(|name| println!("{name}"));
        return Ok(format!("{} rows listed", scenarios.len()));
    }
    let with_respool = [Subject::Respool, Subject::Embedded].iter().any(|subject| !options.without.contains(subject));
    let binary = match (&options.respool, with_respool) {
        (Some(path), _) => Some(path.canonicalize()?),
        (None, true) => Some(command::build_respool(&options.profile)?),
        (None, false) => None,
    };
    let respool_arguments = options.respool_argument.clone();
    let mut deployment = Deployment::new(binary.clone(), respool_arguments)?;

    let mut rows: Vec<Row> = Vec::new();
    report::print_heading();
    for scenario in &scenarios {
        for row in measure(options, &mut deployment, scenario)? {
            report::print_row(&row);
            rows.push(row);
        }
    }
    let extras = extras::measure(&mut deployment, |name| options.matches(name), &options.without)?;

    let bars = bars::judge(&rows, &extras);
    report::print_bars(&bars);
    let build = match (&options.respool, &binary) {
        (Some(path), _) => format!("given: {}", path.display()),
        (None, Some(_)) => format!("built with --profile {}", options.profile),
        (None, None) => "none".to_owned(),
    };
    println!("respool binary: {build}");
    let results = json!({
        "machine": report::machine(),
        "respool": build,
        "rounds": options.rounds,
        "seconds_per_run": options.run_length().as_secs_f64(),
        "rows": rows.iter().map(Row::to_json).collect::<Vec<_>>(),
        "extras": extras.to_json(),
        "bars": bars.iter().map(bars::Bar::to_json).collect::<Vec<_>>(),
    });
    let path = options.out.clone().unwrap_or_else(|| {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let preset = if options.full { "full" } else { "quick" };
        command::root().join(format!("bench-results/{time}-{preset}.json"))
    });
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(&path, serde_json::to_string_pretty(&results)? + "\n")?;
    let short = bars.iter().filter(|bar| bar.is_short()).count();
    Ok(format!("{} rows, {} bars of which {short} short, {}", rows.len(), bars.len(), path.display()))
}

/// Measures all subjects of one scenario in interleaved rounds.
fn measure(
    options: &Options,
    deployment: &mut Deployment,
    scenario: &Scenario,
) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    // Every scenario meets fresh processes: twemproxy, for one, never gives memory back.
    deployment.end_proxies();
    let subjects: Vec<_> = scenario.subjects().iter().filter(|subject| !options.without.contains(subject)).collect();
    let mut rows = Vec::new();
    for &&subject in &subjects {
        let requests = load::calibrate(deployment, scenario, subject, options.run_length())?;
        rows.push(Row::new(scenario.clone(), subject, requests));
    }
    for round in 0..options.rounds {
        for turn in 0..rows.len() {
            let row = (round + turn) % rows.len();
            let row = &mut rows[row];
            let sample = load::run(deployment, scenario, row.subject, row.requests)?;
            row.samples.push(sample);
        }
    }
    if options.syscalls {
        for row in &mut rows {
            row.syscalls = load::count_syscalls(deployment, scenario, row.subject, row.requests)?;
        }
    }
    Ok(rows)
}
