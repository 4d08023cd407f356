//! Respool's own verbs: `cargo xtask help`.
//!
//! Every verb ends with one line on standard output that says how it went, and with an exit code that agrees.

#![forbid(unsafe_code)]

mod attribution;
mod bench;
mod binary;
mod codegen;
mod command;
mod differential;
mod engine;
mod fuzz;
mod instructions;
mod pooling;
mod redis_py;
mod setup;
mod tcl;
mod test;
mod tidy;

use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What a verb ends with: a few words for its last line, or what went wrong.
type Outcome = Result<String, Box<dyn std::error::Error>>;

/// Build, test and bench verbs of Respool.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = false)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Install what tests and benches need, where it is missing
    Setup(setup::Options),
    /// Run all checks and tests; installs what they need if it is missing
    Test(test::Options),
    /// Compare Respool with a direct connection and with twemproxy
    Bench(bench::Options),
    /// Compare the embedded server with redis-server: processor time, memory, pauses
    Engine(engine::Options),
    /// Check that not one reply goes to the wrong request while nodes and clients fail
    Attribution(attribution::Options),
    /// Run the Tcl suite of redis 7.0.15 against a redis-server, or through Respool
    Tcl(tcl::Options),
    /// Compare Respool's replies with those of a redis-server, for every command
    Differential(differential::Options),
    /// Count the instructions that a plain GET or SET costs, and compare with a baseline
    Instructions(instructions::Options),
    /// Check what transactions, blocking pops, subscriptions and slow readers cost the others
    Pooling(pooling::Options),
    /// Run the Python client's tests straight to a redis-server and through Respool, in both dialects
    RedisPy(redis_py::Options),
    /// Build all fuzz targets, and with --minutes run them
    Fuzz(fuzz::Options),
    /// Check what no compiler checks: edges between crates, purity, lengths, leftovers, stale files
    Tidy(tidy::Options),
    /// Write the generated files anew
    Codegen(codegen::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    end_children_when_told_to_end();
    let started = Instant::now();
    let (name, outcome) = match &arguments.verb {
        Verb::Setup(options) => ("setup", setup::run(options)),
        Verb::Test(options) => ("test", test::run(options)),
        Verb::Bench(options) => ("bench", bench::run(options)),
        Verb::Engine(options) => ("engine", engine::run(options)),
        Verb::Attribution(options) => ("attribution", attribution::run(options)),
        Verb::Tcl(options) => ("tcl", tcl::run(options)),
        Verb::Differential(options) => ("differential", differential::run(options)),
        Verb::Instructions(options) => ("instructions", instructions::run(options)),
        Verb::Pooling(options) => ("pooling", pooling::run(options)),
        Verb::RedisPy(options) => ("redis-py", redis_py::run(options)),
        Verb::Fuzz(options) => ("fuzz", fuzz::run(options)),
        Verb::Tidy(options) => ("tidy", tidy::run(options)),
        Verb::Codegen(options) => ("codegen", codegen::run(options)),
    };
    let seconds = started.elapsed().as_secs();
    match outcome {
        Ok(summary) => {
            println!("xtask {name}: ok, {summary} ({seconds} s)");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("xtask {name}: FAILED, {error} ({seconds} s)");
            ExitCode::FAILURE
        }
    }
}

/// Servers and proxies must not outlive a run that is broken off.
fn end_children_when_told_to_end() {
    let Ok(mut signals) = Signals::new([SIGHUP, SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            respool_testkit::kill_running();
            println!("xtask: broken off by signal {signal}");
            std::process::exit(128 + signal);
        }
    });
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_verb_can_be_parsed() {
        Arguments::command().debug_assert();
        for verb in [
            "setup",
            "test",
            "bench",
            "engine",
            "attribution",
            "differential",
            "tcl",
            "instructions",
            "pooling",
            "redis-py",
            "fuzz",
            "tidy",
            "codegen",
        ] {
            assert!(Arguments::try_parse_from(["cargo xtask", verb]).is_ok(), "{verb}");
        }
    }
}
