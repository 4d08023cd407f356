//! `cargo xtask instructions`: what a plain GET or SET costs Respool, in instructions of its own process.
//!
//! Times differ from machine to machine and minute to minute, counts hardly do. Valgrind counts those of a Respool with
//! one worker between one client and one redis-server, for a short and a long load; the difference, divided, is the price
//! of a request without start and end. One client that waits for its replies makes the turns of the loop the same in
//! every run. The prices of the commit that the baseline names are committed; more than a few per cent above is an error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, io};

use clap::Args;
use respool_testkit::{Address, Client, Process, RedisServer, TempDir, free_port, request, wait_until};
use rustix::process::Signal;

use crate::binary::Binary;
use crate::{Outcome, command, setup};

/// How much dearer than the baseline a request may be.
const RATIO_MAX: f64 = 1.03;
/// Requests of the short load; the long one has three times as many.
const REQUESTS: usize = 4_000;
/// Everything is some fifty times slower under valgrind.
const READY_LIMIT: Duration = Duration::from_secs(60);
const END_LIMIT: Duration = Duration::from_secs(60);
const PORTS_MAX: usize = 5;

/// Count the instructions that a plain GET or SET costs, and compare with a baseline
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    binary: Binary,
    /// Write what was counted to this file, in the baseline's form
    #[arg(long, value_name = "PATH")]
    save: Option<PathBuf>,
    /// Compare with this file
    #[arg(long, value_name = "PATH", default_value = "xtask/expected/instructions.tsv")]
    baseline: PathBuf,
}

/// A load that one client makes.
#[derive(Debug, Clone, Copy)]
struct Case {
    command: &'static str,
    pipeline: usize,
}

impl Case {
    fn name(self) -> String {
        format!("{} P{}", self.command, self.pipeline)
    }

    fn batch(self) -> Vec<u8> {
        let words: &[&str] =
            if self.command == "GET" { &["GET", "key:000000000001"] } else { &["SET", "key:000000000001", "xxx"] };
        request(words).repeat(self.pipeline)
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    if setup::find("valgrind").is_none() {
        return Err("no valgrind here: run `cargo xtask setup`, or install the package valgrind".into());
    }
    let binary = options.binary.locate("dist")?;
    let baseline = load(&command::root().join(&options.baseline)).or_else(|error| match options.save {
        Some(_) => Ok(Vec::new()),
        None => Err(error),
    })?;
    let server = RedisServer::start()?;
    server.client()?.command(&["SET", "key:000000000001", "xxx"])?;
    let (mut rows, mut worst) = (String::new(), 0.0_f64);
    println!("{:<10} {:>12} {:>12} {:>8}", "load", "baseline", "now", "ratio");
    for command in ["GET", "SET"] {
        for pipeline in [1, 100] {
            let case = Case { command, pipeline };
            let short = count(options, &binary, &server, case, REQUESTS)?;
            let long = count(options, &binary, &server, case, 3 * REQUESTS)?;
            let price = (long as f64 - short as f64) / (2 * REQUESTS) as f64;
            rows.push_str(&format!("{}\t{price:.1}\n", case.name()));
            let before = baseline.iter().find(|(name, _)| *name == case.name()).map(|&(_, price)| price);
            let ratio = before.map(|before| price / before);
            worst = worst.max(ratio.unwrap_or_default());
            let shown = |number: Option<f64>, digits: usize| number.map_or("-".into(), |n| format!("{n:.digits$}"));
            println!("{:<10} {:>12} {price:>12.1} {:>8}", case.name(), shown(before, 1), shown(ratio, 4));
        }
    }
    if let Some(path) = &options.save {
        fs::write(path, format!("# Instructions of Respool's process per request.\n{rows}"))?;
    }
    match worst {
        0.0 => Ok("no baseline to compare with".into()),
        worst if worst <= RATIO_MAX => Ok(format!("at most {worst:.4} of the baseline, {RATIO_MAX} are allowed")),
        worst => Err(format!("{worst:.4} of the baseline, {RATIO_MAX} are allowed").into()),
    }
}

/// Instructions of a whole life of Respool that serves so many requests.
fn count(options: &Options, binary: &Path, server: &RedisServer, case: Case, requests: usize) -> io::Result<u64> {
    let directory = TempDir::new()?;
    let (mut respool, address) = start(options, binary, server, &directory)?;
    let mut client = Client::connect(&address)?;
    client.set_timeout(READY_LIMIT)?;
    let batch = case.batch();
    for _ in 0..requests / case.pipeline {
        client.send(&batch)?;
        client.replies(case.pipeline)?;
    }
    drop(client);
    respool.signal(Signal::TERM)?;
    respool.wait(END_LIMIT)?;
    // The last line may be read a moment after the process was seen to have ended.
    let mut counted = None;
    wait_until("valgrind has said what it counted", END_LIMIT, || {
        counted = respool.output().iter().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
        Ok(counted.is_some())
    })?;
    Ok(counted.expect("the wait ended with a number"))
}

fn start(
    options: &Options,
    binary: &Path,
    server: &RedisServer,
    directory: &TempDir,
) -> io::Result<(Process, Address)> {
    let mut failure = None;
    for _ in 0..PORTS_MAX {
        let address = Address::loopback(free_port()?);
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(binary);
        command.current_dir(directory.path()).args(["serve", "--workers", "1"]);
        command.args(["--listen", &address.to_string(), "--node", &server.tcp().to_string()]);
        command.args(options.binary.arguments(&[]));
        let process = Process::spawn("respool under valgrind", &mut command)?;
        match process.wait_for_line("Ready to accept connections", READY_LIMIT) {
            Ok(_) => return Ok((process, address)),
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.expect("at least one start was tried"))
}

fn load(path: &Path) -> io::Result<Vec<(String, f64)>> {
    let text = fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display())))?;
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| {
        let row = line.split_once('\t').and_then(|(name, price)| Some((name.to_owned(), price.parse().ok()?)));
        row.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {line:?}", path.display())))
    })
    .collect()
}
