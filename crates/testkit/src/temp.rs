//! A directory of its own for a test, gone when the test is.

use std::io;
use std::path::{Path, PathBuf};

/// A fresh directory that is removed with all it holds when the value is dropped.
///
/// The path is kept short, since a unix socket's path may have at most 107 bytes.
#[derive(Debug)]
pub struct TempDir(tempfile::TempDir);

impl TempDir {
    /// Creates the directory under the system's place for temporary files.
    pub fn new() -> io::Result<TempDir> {
        tempfile::Builder::new().prefix("respool-").tempdir().map(TempDir)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A path inside it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
