//! `cargo xtask bench`: Respool, twemproxy and a direct connection measured in one run on one machine.
//!
//! Every scenario runs in rounds; each round measures every subject once, in rotating order, so that a machine that
//! slows down slows all of them. Medians are compared, never single runs. The load comes from `respool bench`.

mod ancestors;
mod bars;
mod client;
pub(crate) mod deployment;
mod extras;
pub(crate) mod load;
pub(crate) mod open_loop;
mod plan;
mod pubsub;
mod report;
mod results;
pub(crate) mod row;
mod scenario;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::deployment::{Binaries, Deployment};
use self::open_loop::{CONNECTIONS, Load, RATES};
use self::plan::{Item, Plan};
use self::results::{Conditions, Failure, Results};
use self::row::Row;
use self::scenario::{Scenario, Subject};
use crate::binary::{self, Binary};
use crate::{Outcome, command};

const USUAL_PROFILE: &str = "release";

/// Compare Respool with a direct connection and with twemproxy.
///
/// Without a preset the rows that the bars need are measured (about ten minutes); `--full` measures every row (about
/// an hour; it says how long at the start). The file of results is written after every row, and `--resume` goes on with
/// one that was broken off. What cannot be measured is said and tried no further; everything else is measured before the
/// run fails for it. Needs redis-server, nutcracker and taskset: see `cargo xtask setup`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    other: Option<Other>,
    /// Only the rows that the bars need (the default)
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Every row
    #[arg(long)]
    full: bool,
    /// Only requests that do not wait for others' replies, at fixed rates (six minutes)
    #[arg(long, conflicts_with_all = ["full", "quick"])]
    open_loop: bool,
    /// With --open-loop: requests a second [default: 1000, 8000, 16000]; may be given several times
    #[arg(long, value_name = "NUMBER", requires = "open_loop", value_parser = clap::value_parser!(u32).range(1..=200_000))]
    rate: Vec<u32>,
    /// With --open-loop: connections that they come over [default: 50, 500]; may be given several times
    #[arg(long, value_name = "NUMBER", requires = "open_loop", value_parser = clap::value_parser!(u16).range(1..=5_000))]
    connections: Vec<u16>,
    /// Only rows whose name contains this; may be given several times, all must match. Skips the rest of the bars
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Print the names of the rows that would be measured, and end
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    binary: Binary,
    /// Measure this Respool too, in the same rounds, and compare with it
    #[arg(long, value_name = "PATH")]
    baseline: Option<PathBuf>,
    /// Leave a subject out: direct, twemproxy, respool, baseline, embedded; may be given several times
    #[arg(long, value_name = "SUBJECT")]
    without: Vec<Subject>,
    /// Rounds per row
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds that one measurement lasts, roughly [default: 0.4; 2 to 10 with --open-loop]
    #[arg(long, value_parser = seconds)]
    seconds: Option<Duration>,
    /// Count system calls per request too, in a run of their own under perf (with --full it is done where it can be)
    #[arg(long)]
    syscalls: bool,
    /// Where the JSON goes [default: bench-results/TIME-PRESET.json]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Go on with a file of results: only what it lacks is measured and added to it. Binary, machine and settings must
    /// be the same
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    resume: Option<PathBuf>,
}

/// What else is measured.
#[derive(Subcommand)]
enum Other {
    Ancestors(Box<ancestors::Options>),
    Client(Box<client::Options>),
    Pubsub(Box<pubsub::Options>),
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::try_from_secs_f64);
    match seconds {
        Ok(Ok(length)) if (0.01..=60.0).contains(&length.as_secs_f64()) => Ok(length),
        _ => Err("a number from 0.01 to 60 is needed".into()),
    }
}

impl Options {
    fn matches(&self, name: &str) -> bool {
        self.filter.iter().all(|part| name.contains(part.as_str()))
    }

    fn run_length(&self) -> Duration {
        self.seconds.unwrap_or(Duration::from_millis(400))
    }

    /// Runs per row; counting system calls takes one.
    fn runs(&self) -> u32 {
        u32::from(self.rounds) + u32::from(self.full || self.syscalls)
    }

    fn subjects(&self, of: &[Subject]) -> Vec<Subject> {
        let is_there = |subject: &Subject| *subject != Subject::Baseline || self.baseline.is_some();
        of.iter().copied().filter(|subject| is_there(subject) && !self.without.contains(subject)).collect()
    }

    fn open_loops(&self) -> Plan {
        let connections = self.connections.iter().copied().map(usize::from);
        let connections = if self.connections.is_empty() { CONNECTIONS.to_vec() } else { connections.collect() };
        let rates = if self.rate.is_empty() { RATES.to_vec() } else { self.rate.clone() };
        let of = |connections: usize| rates.iter().map(move |&rate| Load { connections, rate });
        Plan::of_open_loops(connections.into_iter().flat_map(of), &self.subjects(&Subject::ALL))
    }

    fn plan(&self) -> Plan {
        if self.open_loop {
            let mut plan = self.open_loops();
            plan.retain(|item| self.matches(&item.to_string()));
            return plan;
        }
        let scenarios = if self.full { scenario::full() } else { scenario::quick() };
        let mut plan = Plan::new(&self.subjects(&Subject::ALL), scenarios, self.runs(), self.run_length());
        if self.full {
            plan.add(self.open_loops());
        }
        plan.retain(|item| self.matches(&item.to_string()));
        plan
    }

    fn path(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| {
            let preset = match (self.full, self.open_loop) {
                (true, _) => "full",
                (_, true) => "open-loop",
                _ => "quick",
            };
            command::root().join(format!("bench-results/{}-{preset}.json", unix_s()))
        })
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    match &options.other {
        Some(Other::Ancestors(options)) => return ancestors::run(options),
        Some(Other::Client(options)) => return client::run(options),
        Some(Other::Pubsub(options)) => return pubsub::run(options),
        None => {}
    }
    let mut plan = options.plan();
    if plan.is_empty() {
        return Err(format!("no row's name has {:?} in it; --list shows all", options.filter).into());
    }
    if options.list {
        plan.items().for_each(|item| println!("{item}"));
        return Ok(plan.to_string());
    }
    let mut run = Run::new(options)?;
    plan.retain(|item| !run.has(item));
    println!("{plan}");
    println!("respool binary: {}", run.results.build);
    println!("results after every row: {}", run.results.path().display());
    report::print_heading();
    while let Some(item) = plan.next() {
        eprintln!("{}: {item}", plan.progress());
        let started = Instant::now();
        run.measure(&item)?;
        plan.done(started.elapsed());
    }
    run.results.is_complete = true;
    run.results.save()?;
    run.outcome()
}

/// One run of this verb.
struct Run<'a> {
    options: &'a Options,
    binaries: Binaries,
    counts_syscalls: bool,
    /// Started for the first row, and anew after something failed.
    deployment: Option<Deployment<'a>>,
    results: Results,
}

impl<'a> Run<'a> {
    fn new(options: &'a Options) -> Result<Run<'a>, Box<dyn std::error::Error>> {
        let path = options.resume.clone().unwrap_or_else(|| options.path());
        if options.resume.is_none() && Results::is_broken_off(&path) {
            let path = path.display();
            return Err(format!("{path} is of a run that was broken off: --resume it, or remove it").into());
        }
        let why_no_syscalls = if options.syscalls || options.full { load::why_no_syscalls() } else { None };
        match why_no_syscalls.as_deref() {
            Some(why) if options.syscalls => return Err(why.into()),
            Some(why) => println!("note: no system calls per request: {why}"),
            None => {}
        }
        let counts_syscalls = (options.syscalls || options.full) && why_no_syscalls.is_none();
        let with_respool = !options.subjects(&[Subject::Respool, Subject::Embedded]).is_empty();
        let generator = options.binary.locate(USUAL_PROFILE)?;
        let binaries = Binaries {
            respool: with_respool.then(|| generator.clone()),
            baseline: options.baseline.as_deref().map(binary::canonical).transpose()?,
            generator,
        };
        let conditions = conditions(options, &binaries, counts_syscalls)?;
        let mut results = match &options.resume {
            Some(path) => Results::resume(path.clone(), conditions, &scenario::full())?,
            None => Results::new(path, conditions),
        };
        results.build = if with_respool { options.binary.origin(USUAL_PROFILE) } else { "none".into() };
        Ok(Run { options, binaries, counts_syscalls, deployment: None, results })
    }

    /// Whether all of it has been measured by an earlier run.
    fn has(&self, item: &Item) -> bool {
        match item {
            Item::Row(scenario) => {
                let mut rows = self.results.rows.iter().filter(|row| row.scenario == *scenario);
                let found: Vec<_> = rows.by_ref().map(|row| row.subject).collect();
                self.options.subjects(scenario.subjects()).iter().all(|subject| found.contains(subject))
            }
            Item::Extra(extra) => self.results.extras.has(*extra, &self.options.subjects(&Subject::ALL)),
        }
    }

    /// Measures it and saves what came out, be it numbers or errors.
    fn measure(&mut self, item: &Item) -> io::Result<()> {
        self.results.forget(&item.to_string());
        let mut failures = Vec::new();
        let mut fail = |subject: Option<Subject>, error: io::Error| {
            let subject = subject.map(|subject| subject.to_string());
            failures.push(Failure { name: item.to_string(), subject, error: error.to_string() });
        };
        let deployment = match self.deployment.take() {
            Some(deployment) => Ok(deployment),
            None => Deployment::new(self.binaries.clone(), &self.options.binary),
        };
        match deployment {
            Ok(mut deployment) => {
                match item {
                    Item::Row(scenario) => {
                        for (subject, outcome) in self.rows(&mut deployment, scenario) {
                            match outcome {
                                Ok(row) => {
                                    report::print_row(&row);
                                    self.results.rows.push(row);
                                }
                                Err(error) => fail(Some(subject), deployment.explain(subject, error)),
                            }
                        }
                    }
                    Item::Extra(extra) => {
                        self.results.extras.forget(*extra);
                        let subjects = self.options.subjects(&Subject::ALL);
                        let (rounds, length) = (self.options.rounds, self.options.seconds);
                        match self.results.extras.measure(&mut deployment, *extra, &subjects, rounds, length) {
                            Ok(said) => println!("{extra}: {said}"),
                            Err(error) => fail(None, error),
                        }
                    }
                }
                // What failed may have left others in any state.
                self.deployment = failures.is_empty().then_some(deployment);
            }
            Err(error) => fail(None, error),
        }
        for failure in failures {
            println!("{failure}");
            self.results.fail(failure);
        }
        self.results.save()
    }

    /// Measures all subjects of one scenario in interleaved rounds. One that fails takes no further part.
    fn rows(&self, deployment: &mut Deployment<'_>, scenario: &Scenario) -> Vec<(Subject, io::Result<Row>)> {
        // Every scenario meets fresh processes: twemproxy, for one, never gives memory back.
        deployment.end_proxies();
        let length = self.options.run_length();
        let subjects = self.options.subjects(scenario.subjects());
        let mut rows: Vec<(Subject, io::Result<Row>)> = Vec::new();
        for subject in subjects {
            let requests = load::calibrate(deployment, scenario, subject, length);
            rows.push((subject, requests.map(|requests| Row::new(scenario.clone(), subject, requests))));
        }
        for round in 0..usize::from(self.options.rounds) {
            for turn in 0..rows.len() {
                let turn = (round + turn) % rows.len();
                and_then(&mut rows[turn].1, |row| {
                    row.samples.push(load::run(deployment, scenario, row.subject, row.requests)?);
                    row.measured_at_unix_s = unix_s();
                    Ok(())
                });
            }
        }
        if self.counts_syscalls {
            for (_, row) in &mut rows {
                and_then(row, |row| {
                    row.syscalls = Some(load::count_syscalls(deployment, scenario, row.subject, row.requests)?);
                    Ok(())
                });
            }
        }
        rows
    }

    fn outcome(&self) -> Outcome {
        let bars = self.results.bars();
        report::print_bars(&bars);
        let short = bars.iter().filter(|bar| bar.is_short()).count();
        let (rows, file) = (self.results.rows.len(), self.results.path().display());
        let summary = format!("{rows} rows, {} bars of which {short} short, {file}", bars.len());
        let failures = self.results.failures();
        if failures.is_empty() {
            return Ok(summary);
        }
        println!();
        failures.iter().for_each(|failure| println!("{failure}"));
        Err(format!("{} could not be measured (--resume tries again); {summary}", failures.len()).into())
    }
}

/// Goes on with what has not failed so far.
fn and_then(row: &mut io::Result<Row>, step: impl FnOnce(&mut Row) -> io::Result<()>) {
    if let Ok(good) = row
        && let Err(error) = step(good)
    {
        *row = Err(error);
    }
}

/// What all rows of a file have in common.
fn conditions(options: &Options, binaries: &Binaries, counts_syscalls: bool) -> io::Result<Conditions> {
    let version = |program: &str| -> Value {
        let said = Command::new(program).arg("--version").output();
        // twemproxy says it on standard error.
        let said = said.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        String::from_utf8_lossy(&said).lines().next().into()
    };
    let hash = |path: &Path| {
        let mut hasher = DefaultHasher::new();
        std::fs::read(path)?.hash(&mut hasher);
        io::Result::Ok(Value::from(format!("{:016x}", hasher.finish())))
    };
    let hash = |path: Option<&Path>| path.map_or(Ok(Value::Null), hash);
    let json = json!({
        "baseline": hash(binaries.baseline.as_deref())?,
        "binary": hash(binaries.respool.as_deref())?,
        "load generator": hash(Some(&binaries.generator))?,
        "machine": report::machine(),
        "redis-server": version("redis-server"),
        "respool arguments": options.binary.arguments(&[]),
        "rounds": options.rounds,
        "seconds per run": options.run_length().as_secs_f64(),
        "system calls": counts_syscalls,
        "twemproxy": version("nutcracker"),
    });
    Ok(json.as_object().cloned().expect("it was written as an object"))
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
