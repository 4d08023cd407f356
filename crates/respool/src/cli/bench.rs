//! `respool bench` and `respool pubsub`: the load generator and the experiment, with the process' own files, terminal and signals.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ArgMatches;
use respool_bench::cli::Options;
use respool_bench::pubsub;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;

/// What standard input may hold: the largest value that a server takes.
const INPUT_BYTES_MAX: u64 = respool_bench::limits::VALUE_BYTES_MAX as u64;

/// Does what the command line asks.
pub(super) fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if let Some(("pubsub", matches)) = matches.subcommand() {
        return run_experiment(matches);
    }
    let stdin = || {
        let mut text = Vec::new();
        io::stdin().lock().take(INPUT_BYTES_MAX).read_to_end(&mut text)?;
        Ok(text)
    };
    let options = Options::of(matches, |path: &PathBuf| std::fs::read(path), stdin).map_err(Failure::settings)?;
    let is_stopped = stop_flag()?;
    respool_bench::bench(options, &mut io::stdout(), &is_stopped).map_err(Failure::running)
}

/// Runs one process of the publish/subscribe experiment.
pub(super) fn run_experiment(matches: &ArgMatches) -> Result<(), Failure> {
    let address = std::env::var(pubsub::cli::ADDRESS_ENV).ok();
    let process = RandomState::new().build_hasher().finish() as u32;
    let (plan, target, output) = pubsub::cli::understand(matches, address, process).map_err(Failure::settings)?;
    let is_stopped = stop_flag()?;
    let counted = pubsub::experiment(&plan, &target, &output, &mut io::stdout(), &is_stopped);
    counted.map(drop).map_err(Failure::running)
}

/// Becomes true with the first signal that asks the program to end; the second one ends it at once.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
