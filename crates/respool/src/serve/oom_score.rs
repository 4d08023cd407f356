//! By how much the kernel is told to prefer this process when it ends one for want of memory: `oom-score-adj`.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The bounds of the kernel.
const SCORE_MAX: i32 = 1000;

/// The adjustment of a process, and what it was before it was changed.
#[derive(Debug)]
pub(super) struct OomScore {
    file: PathBuf,
    base: Option<i32>,
}

impl Default for OomScore {
    fn default() -> Self {
        Self { file: PathBuf::from("/proc/self/oom_score_adj"), base: None }
    }
}

impl OomScore {
    /// Does what `oom-score-adj` says with the first of `oom-score-adj-values`, which is that of a server without a primary. With `no` it
    /// becomes what it was, if it was changed here.
    ///
    /// # Errors
    /// The kernel refuses it: to lower it takes a privilege.
    pub(super) fn apply(&mut self, mode: &str, values: &str) -> io::Result<()> {
        if mode == "no" {
            if let Some(base) = self.base {
                write(&self.file, base)?;
                self.base = None;
            }
            return Ok(());
        }
        let base = match self.base {
            Some(base) => base,
            None => fs::read_to_string(&self.file)?.trim().parse().map_err(io::Error::other)?,
        };
        let own: i32 = values.split(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0);
        let score = if mode == "absolute" { own } else { base + own };
        write(&self.file, score)?;
        self.base = Some(base);
        Ok(())
    }
}

fn write(file: &Path, score: i32) -> io::Result<()> {
    fs::write(file, score.clamp(-SCORE_MAX, SCORE_MAX).to_string())
}

#[cfg(test)]
mod tests {
    use respool_testkit::TempDir;

    use super::*;

    #[test]
    fn the_score_is_adjusted_and_given_back() {
        let directory = TempDir::new().expect("there is room");
        let file = directory.path().join("score");
        let mut score = OomScore { file: file.clone(), base: None };
        assert!(score.apply("yes", "10 20 30").is_err(), "there is no such file");
        score.apply("no", "10 20 30").expect("nothing is to be done");
        fs::write(&file, "22\n").expect("it can be written");
        for (mode, values, expected) in [
            ("no", "10 20 30", "22\n"),
            ("yes", "10 20 30", "32"),
            ("yes", "2000 0 0", "1000"),
            ("relative", "-15 20 30", "7"),
            ("absolute", "-15 20 30", "-15"),
            ("no", "-15 20 30", "22"),
            ("no", "0 0 0", "22"),
        ] {
            score.apply(mode, values).expect("it can be written");
            assert_eq!(fs::read_to_string(&file).expect("it is there"), expected, "{mode} {values}");
        }
    }
}
