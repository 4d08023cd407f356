//! `cargo xtask engine`: the embedded server beside redis-server, in one run on one machine.
//!
//! Three parts: processor time per request, bytes per item, and how long requests take while very many keys come or expire.
//! Subjects take turns and medians are compared, as in `cargo xtask bench`. Processor time is that of the server's own process,
//! so that other work of the machine counts little. A row says what the embedded server needs of what redis-server needs, and
//! how much it may.

mod items;
mod pauses;
mod probe;
mod requests;

use std::io;
use std::path::Path;

use clap::{Args, ValueEnum};
use respool_testkit::{RedisServer, TempDir};

use crate::Outcome;
use crate::binary::Binary;

/// Compare the embedded server with redis-server: processor time, memory, pauses
#[derive(Args)]
pub(crate) struct Options {
    /// Only this part; may be given several times
    #[arg(long, value_name = "PART")]
    part: Vec<Part>,
    /// Only rows whose name contains this; may be given several times, all must match
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Rounds per row
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Pauses: requests a second, which should be half of what the servers can do
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    rate: u32,
    #[command(flatten)]
    binary: Binary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Processor time per request
    Requests,
    /// Bytes per item
    Items,
    /// The slowest of a thousand requests while keys come or expire
    Pauses,
}

/// One row of the result: figures of both servers, and their ratio.
struct Row {
    name: String,
    unit: &'static str,
    redis: f64,
    embedded: f64,
    /// What the ratio may be at most.
    ratio_max: f64,
}

impl Row {
    fn ratio(&self) -> f64 {
        self.embedded / self.redis
    }

    fn is_short(&self) -> bool {
        // What could not be measured is short, too.
        self.ratio().is_nan() || self.ratio() > self.ratio_max
    }

    fn print(&self) {
        let Row { name, unit, redis, embedded, ratio_max } = self;
        let verdict = if self.is_short() { "SHORT" } else { "ok" };
        println!(
            "{name:<42} | {redis:>9.2} | {embedded:>9.2} {unit:<8} | {:>5.2} <= {ratio_max:.2} | {verdict}",
            self.ratio()
        );
    }
}

/// The two servers.
struct Pair {
    redis: RedisServer,
    embedded: RedisServer,
    /// Has the link by which the embedded server is started.
    _directory: TempDir,
}

impl Pair {
    /// Starts both anew.
    fn start(respool: &Path) -> io::Result<Pair> {
        let directory = TempDir::new()?;
        // Under this name it takes redis-server's command line.
        let link = directory.join("redis-server");
        std::os::unix::fs::symlink(respool, &link)?;
        let (redis, embedded) = (RedisServer::start()?, RedisServer::start_program(&link, &[])?);
        Ok(Pair { redis, embedded, _directory: directory })
    }

    /// Both, in the order of this round.
    fn in_turn(&self, round: usize) -> [(usize, &RedisServer); 2] {
        let both = [(0, &self.redis), (1, &self.embedded)];
        if round.is_multiple_of(2) { both } else { [both[1], both[0]] }
    }
}

impl Options {
    fn has(&self, part: Part) -> bool {
        self.part.is_empty() || self.part.contains(&part)
    }

    fn matches(&self, name: &str) -> bool {
        self.filter.iter().all(|text| name.contains(text.as_str()))
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let respool = options.binary.locate("dist")?;
    println!("{:<42} | {:>9} | {:>9} {:<8} |", "", "redis", "embedded", "");
    let mut rows = Vec::new();
    let mut add = |row: Row| {
        row.print();
        rows.push(row);
    };
    if options.has(Part::Items) {
        items::measure(options, &respool, &mut add)?;
    }
    if options.has(Part::Requests) {
        requests::measure(options, &respool, &mut add)?;
    }
    if options.has(Part::Pauses) {
        pauses::measure(options, &respool, &mut add)?;
    }
    if rows.is_empty() {
        return Err(format!("no row's name has {:?} in it", options.filter).into());
    }
    let short = rows.iter().filter(|row| row.is_short()).count();
    Ok(format!("{} rows, {short} short of their aim", rows.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_figure_is_short() {
        let row = |embedded, redis| Row { name: String::new(), unit: "", redis, embedded, ratio_max: 1.0 };
        assert!(!row(1.0, 1.0).is_short());
        assert!(row(1.1, 1.0).is_short());
        assert!(row(f64::NAN, 1.0).is_short());
        assert!(row(0.0, 0.0).is_short());
    }
}
