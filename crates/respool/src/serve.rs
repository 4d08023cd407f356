//! `respool serve`: turns the settings' meaning into a running process.

use crate::failure::Failure;
use crate::settings::{Address, Process};

/// Runs until it is told to stop. `ready` is called once, when every listener is open, with the addresses really
/// listened on, per instance.
///
/// # Errors
/// What kept it from starting or ended it early.
pub fn run(process: &Process, ready: impl FnOnce(&[Vec<Address>])) -> Result<(), Failure> {
    let _ = (process, ready);
    Err(Failure::running("this version cannot serve yet: the settings are understood, the event loop is not connected")
        .hint("`respool check CONFIG` shows what the settings mean"))
}
