//! `cargo xtask tidy`: what a reviewer should not have to look for.
//!
//! The checks of sources are also tests of this crate, so that `cargo test` alone finds what broke; that generated
//! files are up to date is tested where their content is made.

mod circles;
mod clocks;
mod dependencies;
mod edges;
mod folders;
mod hazards;
mod ids;
mod pages;
mod purity;
mod rust_pieces;
mod shape;
mod text;
mod words;

use clap::Args;

use crate::{Outcome, codegen};

/// Check what no compiler checks: edges between crates, how many the client library brings, purity, uses of the wall clock, lengths of
/// files and folders, words, circles of imports, the shape of the proxy, ids without a type, leftovers, dead links, tests that are named and
/// not there, stale generated files
#[derive(Args)]
pub(crate) struct Options {}

pub(crate) fn run(_options: &Options) -> Outcome {
    let checks = [
        ("edges between crates", edges::check()),
        ("crates that the client library brings", dependencies::check()),
        ("purity", purity::check()),
        ("uses of the wall clock", clocks::check()),
        ("texts", text::check()),
        ("words of comments and pages", words::check()),
        ("folders of the proxy", folders::check()),
        ("circles of imports", circles::check()),
        ("shape of the proxy", shape::check()),
        ("ids of clients, lanes, nodes and workers", ids::check()),
        ("links and sources that pages name", pages::check()),
        ("tests that docs/testing.md names", hazards::check()),
        ("generated files", generated_files()),
    ];
    let mut complaints = 0;
    for (name, found) in checks {
        println!("{name}: {}", if found.is_empty() { "ok".to_owned() } else { format!("{} complaints", found.len()) });
        found.iter().for_each(|complaint| println!("  {complaint}"));
        complaints += found.len();
    }
    println!("largest circles of imports, in files: {}", circles::figures());
    println!("shape of the proxy: {}", shape::figures());
    if complaints > 0 { Err(format!("{complaints} complaints").into()) } else { Ok("nothing to complain about".into()) }
}

fn generated_files() -> Vec<String> {
    codegen::run(&codegen::Options { check: true, only: String::new() })
        .err()
        .map(|error| error.to_string())
        .into_iter()
        .collect()
}
