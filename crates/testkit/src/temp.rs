//! A directory of its own for a test, gone when the test is.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A fresh directory that is removed with all it holds when the value is dropped.
///
/// The path is kept short, since a unix socket's path may have at most 107 bytes.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Creates the directory under the system's place for temporary files.
    pub fn new() -> io::Result<TempDir> {
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = env::temp_dir().join(format!("respool-{}-{number}", process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(TempDir { path }),
                // A leftover of an earlier process that had the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path inside it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A leftover directory is untidy, not wrong: the test's own outcome matters more.
        let _ = fs::remove_dir_all(&self.path);
    }
}
