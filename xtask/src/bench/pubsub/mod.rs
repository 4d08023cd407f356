//! `cargo xtask bench pubsub`: the experiment with a million channels, on redis-server, on the embedded server, and through the proxy
//! with a redis-server behind it.
//!
//! Subjects take turns within every round, each with fresh processes, and medians of rounds are compared. The load is that of
//! `respool bench pubsub`: five processes which each subscribe to all channels and publish on them, as the experiment had it.

mod bars;
mod experiment;
mod latency;
mod stalled;
mod subject;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::json;

use self::experiment::Experiment;
use self::subject::{Server, Subject};
use super::client::bars::short;
use super::client::samples::{Sample, Samples};
use super::{report, unix_s};
use crate::binary::Binary;
use crate::{Outcome, command};

/// Compare publish/subscribe with very many channels: redis-server, the embedded server, and the proxy (about ten minutes).
#[derive(Args)]
pub(crate) struct Options {
    /// Only this part; may be given several times
    #[arg(long, value_name = "PART")]
    part: Vec<Part>,
    /// Leave a subject out; may be given several times. Bars that compare with it are not judged
    #[arg(long, value_name = "SUBJECT")]
    without: Vec<Subject>,
    /// Channels
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(100..=10_000_000))]
    channels: u32,
    /// Messages that are published together [default: 1, 8, 32]; may be given several times
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    batch: Vec<u16>,
    /// Rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Seconds that are published in one measurement
    #[arg(long, default_value = "4", value_parser = super::seconds)]
    seconds: Duration,
    #[command(flatten)]
    binary: Binary,
    /// The Respool whose `bench` is the load [default: the one that is measured]
    #[arg(long, value_name = "PATH")]
    generator: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// How long one process takes to subscribe to all channels
    Subscribe,
    /// Memory of five processes' subscriptions, and deliveries a second
    Deliver,
    /// Four subscribers beside one that does not read
    Stalled,
    /// What the load generator says of a server that answers after a millisecond
    Latency,
}

impl Part {
    const ALL: [Self; 4] = [Self::Subscribe, Self::Deliver, Self::Stalled, Self::Latency];
}

/// Processes that subscribe and publish.
const PROCESSES: u32 = 5;

impl Options {
    fn parts(&self) -> impl Iterator<Item = Part> {
        Part::ALL.into_iter().filter(|part| self.part.is_empty() || self.part.contains(part))
    }

    fn subjects(&self) -> Vec<Subject> {
        Subject::ALL.into_iter().filter(|subject| !self.without.contains(subject)).collect()
    }

    fn batches(&self) -> Vec<u16> {
        if self.batch.is_empty() { vec![1, 8, 32] } else { self.batch.clone() }
    }
}

/// What every measurement needs to know.
struct Setting<'a> {
    options: &'a Options,
    respool: PathBuf,
    generator: PathBuf,
}

impl Setting<'_> {
    fn start(&self, subject: Subject, output_bytes: u64) -> io::Result<Server> {
        Server::start(subject, &self.respool, &self.options.binary, output_bytes)
    }

    fn experiment(&self, processes: u32) -> Experiment<'_> {
        Experiment { generator: &self.generator, channels: self.options.channels, processes }
    }
}

/// A name of what is measured, and how.
type Measurement<'a> = (String, Box<dyn Fn(Subject) -> io::Result<Sample> + 'a>);

pub(crate) fn run(options: &Options) -> Outcome {
    let respool = options.binary.locate("dist")?;
    let generator = options.generator.clone().map_or(Ok(respool.clone()), |path| crate::binary::canonical(&path))?;
    let setting = Setting { options, respool, generator };
    let subjects = options.subjects();
    let mut samples = Samples::default();
    for part in options.parts() {
        if part == Part::Latency {
            latency(&setting.generator, options.rounds, &mut samples);
            continue;
        }
        for (name, measure) in measurements(&setting, part) {
            let began = Instant::now();
            for round in 0..usize::from(options.rounds) {
                for turn in 0..subjects.len() {
                    let subject = subjects[(round + turn) % subjects.len()];
                    eprintln!("{name}: round {} of {}: {subject}", round + 1, options.rounds);
                    match measure(subject) {
                        Ok(sample) => samples.add(&name, subject.name(), sample),
                        Err(error) => samples.fail(&name, subject.name(), &error),
                    }
                }
            }
            print_table(&name, &subjects.iter().map(|subject| subject.name()).collect::<Vec<_>>(), &samples);
            println!("({:.0} s)\n", began.elapsed().as_secs_f64());
        }
    }
    let bars = bars::bars(&samples, options.channels);
    bars.iter().for_each(|bar| println!("{bar}"));
    let raw = command::root().join(format!("bench-results/{}-pubsub.json", unix_s()));
    let conditions = json!({
        "machine": report::machine(),
        "binary": options.binary.origin("dist"),
        "channels": options.channels,
        "processes": PROCESSES,
        "rounds": options.rounds,
        "seconds": options.seconds.as_secs_f64(),
        "samples": samples.json(),
    });
    std::fs::write(&raw, format!("{conditions:#}\n"))?;
    let missed = bars.iter().filter(|bar| !bar.is_reached).count();
    let summary = format!("{} bars of which {missed} short, {}", bars.len(), raw.display());
    if samples.failures.is_empty() {
        return Ok(summary);
    }
    Err(format!("{} measurements failed; {summary}", samples.failures.len()).into())
}

/// The output limit of a subscriber in rows where no subscriber may reach it.
const AMPLE_BYTES: u64 = 256 << 20;

fn measurements<'a>(setting: &'a Setting<'a>, part: Part) -> Vec<Measurement<'a>> {
    match part {
        Part::Subscribe => vec![(
            "subscribe".to_owned(),
            Box::new(|subject| {
                let server = setting.start(subject, AMPLE_BYTES)?;
                setting.experiment(1).subscribe(&server)
            }),
        )],
        Part::Deliver => {
            let of = |batch: u16| -> Measurement<'a> {
                let measure = move |subject| {
                    let server = setting.start(subject, AMPLE_BYTES)?;
                    setting.experiment(PROCESSES).publish(&server, batch, setting.options.seconds)
                };
                (deliver(batch), Box::new(measure))
            };
            setting.options.batches().into_iter().map(of).collect()
        }
        Part::Stalled => vec![(
            "stalled".to_owned(),
            Box::new(|subject| {
                let server = setting.start(subject, stalled::OUTPUT_BYTES)?;
                stalled::measure(&setting.experiment(PROCESSES - 1), &server, setting.options.seconds)
            }),
        )],
        Part::Latency => Vec::new(),
    }
}

/// The name of the measurements with this batch.
fn deliver(batch: u16) -> String {
    format!("deliver-b{batch}")
}

fn latency(generator: &Path, rounds: u16, samples: &mut Samples) {
    for round in 0..rounds {
        eprintln!("latency: round {} of {rounds}", round + 1);
        match latency::measure(generator) {
            Ok(sample) => samples.add("latency", "fake", sample),
            Err(error) => samples.fail("latency", "fake", &error),
        }
    }
    print_table("latency", &["fake"], samples);
    println!();
}

fn print_table(name: &str, subjects: &[&str], samples: &Samples) {
    let mut figures: Vec<&str> = Vec::new();
    for subject in subjects {
        for figure in samples.names(name, subject) {
            if !figures.contains(&figure) {
                figures.push(figure);
            }
        }
    }
    print!("{name:<30}");
    subjects.iter().for_each(|subject| print!(" | {:>28}", subject));
    println!();
    for figure in figures {
        print!("{figure:<30}");
        for subject in subjects {
            let median = samples.median(name, subject, figure);
            let range = samples.range(name, subject, figure);
            let text = median.zip(range).map_or("-".to_owned(), |(median, (low, high))| {
                format!("{} ({} to {})", short(median), short(low), short(high))
            });
            print!(" | {text:>28}");
        }
        println!();
    }
}
