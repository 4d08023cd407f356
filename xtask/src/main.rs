//! Respool's own verbs: `cargo xtask help`.

fn main() {}
