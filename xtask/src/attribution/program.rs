//! The Respool of a run: how it is started, and succeeded by another that has the same settings.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use respool_testkit::{Process, Respool};

pub(super) struct Program {
    pub(super) binary: PathBuf,
    pub(super) arguments: Vec<String>,
    /// Where one process asks the other for its place.
    pub(super) takeover: String,
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Program {
    pub(super) fn start(&self) -> io::Result<Respool> {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        Respool::start_in(&self.binary, self.environment.clone(), &[], &arguments)
    }

    /// Another process takes over while clients are busy. Gives the former one, which ends by itself once it has closed their
    /// connections.
    pub(super) fn succeed(&self, respool: &mut Respool) -> io::Result<Process> {
        let own = self.arguments.iter().map(String::as_str);
        let arguments: Vec<&str> = own.chain(["--take-over", &self.takeover]).collect();
        respool.succeed(&self.binary, &arguments)
    }
}
