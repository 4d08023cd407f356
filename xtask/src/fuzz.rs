//! `cargo xtask fuzz`: builds the fuzz targets, and runs them for a while.
//!
//! The coverage instrumentation is made of stable code generation options, so neither a nightly compiler nor
//! cargo-fuzz is needed; the corpus layout is cargo-fuzz's, for those who prefer it.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::{Outcome, command};

/// What libFuzzer needs of the compiler to see which edges an input reached.
const INSTRUMENTATION: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Clink-dead-code -Cdebug-assertions -Coverflow-checks \
    -Ccodegen-units=1";

/// Memory that a target may use before it counts as a finding, in megabytes.
const MEMORY_MAX_MB: u32 = 2_048;

/// Build all fuzz targets, and with --minutes run them
#[derive(Args)]
pub(crate) struct Options {
    /// Run only these targets
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Minutes that each target runs
    #[arg(long)]
    minutes: Option<f64>,
    /// List the targets, and end
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let targets = targets()?;
    if options.list {
        targets.iter().for_each(|target| println!("{target}"));
        return Ok(format!("{} targets listed", targets.len()));
    }
    let Some(minutes) = options.minutes else { return build() };
    let chosen: Vec<&String> = match options.targets.is_empty() {
        true => targets.iter().collect(),
        false => options.targets.iter().collect(),
    };
    if let Some(unknown) = chosen.iter().find(|target| !targets.contains(target)) {
        return Err(format!("no fuzz target {unknown}; there are {}", targets.join(", ")).into());
    }
    let mut build = cargo();
    build.args(["build", "--release", "--target", host()?.as_str()]).env("RUSTFLAGS", INSTRUMENTATION);
    command::run(build.args(chosen.iter().flat_map(|target| ["--bin", target])))?;
    for target in &chosen {
        fuzz(target, minutes)?;
    }
    Ok(format!("{} targets ran {minutes} minutes each without a finding", chosen.len()))
}

/// Builds all targets without instrumentation, which shows that they still fit the code.
pub(crate) fn build() -> Outcome {
    let targets = targets()?;
    command::run(cargo().arg("build"))?;
    Ok(format!("{} targets built: {}", targets.len(), targets.join(", ")))
}

fn fuzz(target: &str, minutes: f64) -> Result<(), Box<dyn std::error::Error>> {
    let directory = command::root().join("fuzz");
    let (corpus, artifacts) = (directory.join("corpus").join(target), directory.join("artifacts").join(target));
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let binary = target_directory()?.join(host()?).join("release").join(target);
    let mut run = Command::new(binary);
    run.arg(format!("-max_total_time={:.0}", minutes * 60.0))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-rss_limit_mb={MEMORY_MAX_MB}"))
        .args(["-timeout=10", "-print_final_stats=1", "-verbosity=1"])
        .arg(corpus);
    command::run(&mut run)?;
    Ok(())
}

fn cargo() -> Command {
    let mut cargo = command::cargo();
    cargo.current_dir(command::root().join("fuzz"));
    cargo
}

fn metadata() -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let text = command::capture(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    Ok(serde_json::from_str(&text)?)
}

fn target_directory() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let metadata = metadata()?;
    Ok(metadata["target_directory"].as_str().ok_or("cargo metadata names no target directory")?.into())
}

fn targets() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    if !command::root().join("fuzz/Cargo.toml").is_file() {
        return Err("fuzz/Cargo.toml is missing".into());
    }
    let metadata = metadata()?;
    let binaries = metadata["packages"][0]["targets"].as_array().ok_or("cargo metadata lists no targets")?;
    Ok(binaries.iter().filter_map(|target| Some(target["name"].as_str()?.to_owned())).collect())
}

/// The triple of this machine.
fn host() -> Result<String, Box<dyn std::error::Error>> {
    let version = command::capture(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}
