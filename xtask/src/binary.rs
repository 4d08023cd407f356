//! The Respool that a verb tries: one that is given, or one that it builds.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::command;

/// Options that every verb with a running Respool has.
#[derive(Args)]
// Part of the options of verbs that are part of others' themselves.
#[group(skip)]
pub(crate) struct Binary {
    /// Use this Respool instead of building one
    #[arg(long = "respool", value_name = "PATH")]
    given: Option<PathBuf>,
    /// Cargo profile to build it with
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Further argument for `respool serve`; may be given several times
    #[arg(long = "respool-argument", value_name = "ARGUMENT", allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Binary {
    /// Where it is, after it was built if need be; with the verb's usual profile if no other is said.
    pub(crate) fn locate(&self, usual: &str) -> io::Result<PathBuf> {
        let Some(path) = &self.given else {
            return command::build_respool(self.profile.as_deref().unwrap_or(usual));
        };
        canonical(path)
    }

    /// Where it is from, for people. Results that say so are published, and a directory of this machine says nothing elsewhere.
    pub(crate) fn origin(&self, usual: &str) -> String {
        match (&self.given, &self.profile) {
            (Some(path), _) => format!("given: {}", path.file_name().unwrap_or_default().display()),
            (None, profile) => format!("built with --profile {}", profile.as_deref().unwrap_or(usual)),
        }
    }

    /// The verb's own arguments for it, and those that the user adds.
    pub(crate) fn arguments<'a>(&'a self, own: &[&'a str]) -> Vec<&'a str> {
        own.iter().copied().chain(self.arguments.iter().map(String::as_str)).collect()
    }
}

/// A path of a Respool that holds in every directory that it may be started from.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    let found = path.canonicalize();
    found.map_err(|error| io::Error::new(error.kind(), format!("no Respool at {}: {error}", path.display())))
}
