//! `cargo xtask pooling`: do clients that hold on to something cost the others anything?
//!
//! Bounded loads, each with its verdict: what a pooler must bear that a plain multiplexer need not. A row says what was
//! wanted and what was reached. The clients that are only there to be disturbed are slow on purpose: they do not fill the
//! machine, so that what makes them late is Respool.

mod blocked;
mod bursts;
mod bystanders;
mod cancelled_pops;
mod herd;
mod large_replies;
mod node;
mod paused;
mod slow_reader;
mod subscribers;
mod transactions;
mod unread;

use std::fmt;
use std::path::PathBuf;

use clap::Args;

use crate::Outcome;
use crate::binary::Binary;

/// Check what transactions, blocking pops, subscriptions and slow readers cost the others, what a herd of connections costs, who is held up by a pause, and what bursts leave behind
#[derive(Args)]
pub(crate) struct Options {
    /// Run only what has this in its name; may be given several times
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    #[command(flatten)]
    binary: Binary,
}

/// What every load is given.
struct Bench<'a> {
    respool: PathBuf,
    binary: &'a Binary,
}

/// One row of the result.
struct Finding {
    what: String,
    reached: f64,
    wanted: Wanted,
    unit: &'static str,
}

#[derive(Clone, Copy)]
enum Wanted {
    Exactly(f64),
    AtMost(f64),
    AtLeast(f64),
}

impl Finding {
    fn new(what: impl Into<String>, reached: f64, wanted: Wanted, unit: &'static str) -> Finding {
        Finding { what: what.into(), reached, wanted, unit }
    }

    fn is_reached(&self) -> bool {
        match self.wanted {
            Wanted::Exactly(wanted) => self.reached == wanted,
            Wanted::AtMost(limit) => self.reached <= limit,
            Wanted::AtLeast(limit) => self.reached >= limit,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = match self.wanted {
            Wanted::Exactly(wanted) => format!("= {wanted} {}", self.unit),
            Wanted::AtMost(limit) => format!("<= {limit} {}", self.unit),
            Wanted::AtLeast(limit) => format!(">= {limit} {}", self.unit),
        };
        let reached =
            if self.reached.fract() == 0.0 { format!("{}", self.reached) } else { format!("{:.2}", self.reached) };
        write!(
            f,
            "{:<72} | {wanted:>20} | {reached:>10} | {}",
            self.what,
            if self.is_reached() { "ok" } else { "SHORT" }
        )
    }
}

type Load = fn(&Bench) -> std::io::Result<Vec<Finding>>;

const LOADS: [(&str, Load); 10] = [
    ("slow-reader", slow_reader::run),
    ("large-replies", large_replies::run),
    ("unread", unread::run),
    ("transactions", transactions::run),
    ("blocked", blocked::run),
    ("poppers", cancelled_pops::run),
    ("subscribers", subscribers::run),
    ("paused", paused::run),
    ("herd", herd::run),
    ("bursts", bursts::run),
];

pub(crate) fn run(options: &Options) -> Outcome {
    let bench = Bench { respool: options.binary.locate("release")?, binary: &options.binary };
    let is_wanted = |name: &str| options.filter.is_empty() || options.filter.iter().any(|text| name.contains(text));
    let (mut count, mut short) = (0, Vec::new());
    for (name, load) in LOADS.into_iter().filter(|(name, _)| is_wanted(name)) {
        let findings = match load(&bench) {
            Ok(findings) => findings,
            Err(error) => {
                println!("{name}: {error}");
                short.push(name);
                continue;
            }
        };
        for finding in findings {
            println!("{finding}");
            count += 1;
            if !finding.is_reached() {
                short.push(name);
            }
        }
    }
    match short[..] {
        [] if count == 0 => Err("no load has such a name".into()),
        [] => Ok(format!("{count} bars reached")),
        _ => Err(format!("{} short of their bars: {}", short.len(), short.join(", ")).into()),
    }
}
