//! `respool serve`: turns the settings' meaning into a running process.

use std::sync::Arc;

use crate::admin::Metrics;
use crate::control::Control;
use crate::failure::Failure;
use crate::settings::Address;

/// What there is to serve, and by whom it can be told to end.
#[derive(Debug)]
pub struct Job {
    /// Worker threads.
    pub workers: usize,
    /// The settings in force, and the requests to drain, stop and reload.
    pub control: Arc<Control>,
    /// Where counters are shown.
    pub metrics: Metrics,
}

/// Runs until it is told to stop.
///
/// `ready` is called once, when every listener is open and before any thread runs, with the addresses really listened
/// on, per instance.
///
/// # Errors
/// What kept it from starting or ended it early.
pub fn run(job: &Job, ready: impl FnOnce(&[Vec<Address>]) -> Result<(), Failure>) -> Result<(), Failure> {
    let _ = (job, ready);
    Err(Failure::running("this version cannot serve yet: the settings are understood, the event loop is not connected")
        .hint("`respool check CONFIG` shows what the settings mean"))
}
