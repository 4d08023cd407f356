//! The `respool` program, as a library so that its parts can be tested and fuzzed: settings, command line, the front ends
//! that stand in for other programs, logs, metrics and signals. `main.rs` only calls [`cli::main`].
#![forbid(unsafe_code)]

pub mod admin;
pub mod banner;
pub mod cli;
pub mod control;
pub mod failure;
pub mod frontend;
pub mod logging;
pub mod output;
pub mod serve;
pub mod settings;
pub mod signals;
pub mod systemd;
