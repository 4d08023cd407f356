//! The `respool` program; see ARCHITECTURE.md.

fn main() {}
