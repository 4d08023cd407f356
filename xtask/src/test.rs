//! `cargo xtask test`: everything that has to hold before a change is taken, cheapest first.

use std::process::Command;
use std::time::Instant;

use clap::Args;

use crate::{Outcome, attribution, command, fuzz, setup, tidy};

/// Crates that must build where there are no sockets.
const PURE_PACKAGES: [&str; 7] = [
    "respool-wire",
    "respool-command",
    "respool-connection",
    "respool-access",
    "respool-route",
    "respool-engine",
    "respool-proxy",
];

/// What programs use that are clients.
const CLIENT_PACKAGES: [&str; 2] = ["respool-client", "respool-client-derive"];

/// All features but TLS, whose cryptography takes minutes to build.
const CLIENT_FEATURES: &str = "respool-client/bb8,respool-client/cache,respool-client/deadpool,respool-client/derive,\
    respool-client/serde,respool-client/tracing";

/// Run all checks and tests; installs what they need if it is missing
#[derive(Args)]
pub(crate) struct Options {
    /// How the attribution run at the end is done.
    #[command(flatten)]
    attribution: attribution::Options,
}

pub(crate) fn run(options: &Options) -> Outcome {
    step("setup", || setup::run(&setup::Options { minimal: true }))?;
    step("format", || cargo(&["fmt", "--all", "--check"]))?;
    step("lint", || cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    step("links between items", check_doc_links)?;
    step("build without sockets", build_without_sockets)?;
    step("build with the oldest toolchain", build_with_oldest_toolchain)?;
    step("build with fewer features", build_with_fewer_features)?;
    step("fuzz targets build", fuzz::build)?;
    step("dependencies", check_dependencies)?;
    // The binary is built before the tests that run it.
    step("build", || cargo(&["build", "--locked", "--package", "respool"]))?;
    step("tests", || cargo(&["test", "--locked", "--workspace", "--no-fail-fast"]))?;
    step("tidy", || tidy::run(&tidy::Options {}))?;
    step("attribution", || attribution::run(&options.attribution))?;
    Ok("all checks and tests passed".into())
}

/// Runs one step under a heading and says how it went.
fn step(name: &str, work: impl FnOnce() -> Outcome) -> Outcome {
    println!("\n== {name}");
    let started = Instant::now();
    let summary = work().map_err(|error| format!("{name}: {error}"))?;
    println!("== {name}: {summary} ({:.0} s)", started.elapsed().as_secs_f64());
    Ok(summary)
}

fn cargo(arguments: &[&str]) -> Outcome {
    command::run(command::cargo().args(arguments))?;
    Ok("ok".into())
}

/// What comments link to must be there; a link from a private item counts as well.
fn check_doc_links() -> Outcome {
    cargo(&["doc", "--locked", "--workspace", "--no-deps", "--document-private-items", "--quiet"])
}

fn build_without_sockets() -> Outcome {
    if !setup::has_bare_target() {
        return Ok("skipped, the target is not installed".into());
    }
    let mut arguments = vec!["check", "--locked", "--target", setup::BARE_TARGET];
    arguments.extend(PURE_PACKAGES.iter().flat_map(|package| ["--package", package]));
    cargo(&arguments)
}

/// What `rust-version` promises to programs that build on the pure crates, and to those that use the client library. Without the toolchain
/// clippy still finds functions of the standard library that are too new, but not syntax.
fn build_with_oldest_toolchain() -> Outcome {
    if !setup::has_oldest_toolchain() {
        return Ok(format!("skipped, Rust {} is not installed", setup::OLDEST_TOOLCHAIN));
    }
    let mut check = Command::new("rustup");
    check.args(["run", setup::OLDEST_TOOLCHAIN, "cargo", "check", "--locked"]);
    check.args(PURE_PACKAGES.iter().chain(&CLIENT_PACKAGES).flat_map(|package| ["--package", package]));
    check.args(["--features", CLIENT_FEATURES]);
    command::run(check.current_dir(command::root()))?;
    Ok("ok".into())
}

/// What programs that embed the library leave out: everything, and the part that the program cannot do without alone; and what users of
/// the client library do: clusters, the runtime, and both, beside a cache. Only these crates themselves are compiled anew for them.
fn build_with_fewer_features() -> Outcome {
    for features in
        [&[][..], &["--features", "tokio,cache"], &["--features", "cluster,cache"], &["--features", "cache"]]
    {
        let check = ["clippy", "--locked", "--package", "respool-client", "--lib", "--no-default-features"];
        command::run(command::cargo().args(check).args(features).args(["--", "--deny", "warnings"]))?;
    }
    for rest in [&["--lib"][..], &["--features", "cli"]] {
        let check = ["check", "--locked", "--package", "respool", "--no-default-features"];
        command::run(command::cargo().args(check).args(rest))?;
    }
    Ok("ok".into())
}

fn check_dependencies() -> Outcome {
    if !setup::has_cargo_deny() {
        return Ok("skipped, cargo-deny is not installed".into());
    }
    // What other platforms need is looked at as well, and nothing has been built of it.
    cargo(&["fetch", "--locked"])?;
    // Advisories would need the network each time.
    cargo(&["deny", "--offline", "--log-level", "error", "check", "bans", "licenses", "sources"])
}
