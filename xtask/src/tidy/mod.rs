//! `cargo xtask tidy`: what a reviewer should not have to look for.
//!
//! Every check is also a test of this crate, so that `cargo test` alone finds what broke.

mod edges;
mod purity;
mod text;

use clap::Args;

use crate::{Outcome, codegen};

/// Check what no compiler checks: edges between crates, purity, file lengths, leftovers, stale generated files
#[derive(Args)]
pub(crate) struct Options {}

pub(crate) fn run(_options: &Options) -> Outcome {
    let checks = [
        ("edges between crates", edges::check()),
        ("purity", purity::check()),
        ("texts", text::check()),
        ("generated files", codegen::stale()),
    ];
    let mut complaints = 0;
    for (name, found) in checks {
        println!("{name}: {}", if found.is_empty() { "ok".to_owned() } else { format!("{} complaints", found.len()) });
        found.iter().for_each(|complaint| println!("  {complaint}"));
        complaints += found.len();
    }
    if complaints > 0 { Err(format!("{complaints} complaints").into()) } else { Ok("nothing to complain about".into()) }
}
