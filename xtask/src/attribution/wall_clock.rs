//! A wall clock of the proxy's own, which is set forward and back while the machine's goes on.
//!
//! A library that answers for the system is built with the C compiler, which the allocator needs as well, and preloaded into the
//! proxy. It looks into a file for how much later it is there. What the proxy itself says that it is late or early by is compared
//! with that: a program that reads the clock in another way would have no steps.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use respool_testkit::{Client, TempDir, elements, wait_until};

const SOURCE: &str = include_str!("wall_clock.c");
/// The variable that tells the library where the file is.
const VARIABLE: &str = "ATTRIBUTION_WALL_CLOCK";
/// How much a step is, in seconds.
pub(super) const HOUR: i64 = 3_600;
/// The largest difference between the wall clock that was set and the one that TIME reports, in seconds. The reply to TIME may be late.
const EXACT: u64 = 60;
const SEEN_LIMIT: Duration = Duration::from_secs(20);

/// The wall clock of one run.
pub(super) struct WallClock {
    directory: TempDir,
    file: File,
}

impl WallClock {
    /// It is as late as the system's.
    pub(super) fn new() -> io::Result<WallClock> {
        let directory = TempDir::new()?;
        let source = directory.join("wall_clock.c");
        std::fs::write(&source, SOURCE)?;
        let library = directory.join("wall_clock.so");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source).output()?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr).into_owned();
            return Err(io::Error::other(format!("the C compiler has not built the wall clock: {said}")));
        }
        let file = File::create(directory.join("later_by"))?;
        let clock = WallClock { directory, file };
        clock.set(0)?;
        Ok(clock)
    }

    /// What a process has to have in its environment to go by it.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = |name: &str| self.directory.join(name).into_os_string();
        vec![("LD_PRELOAD".into(), path("wall_clock.so")), (VARIABLE.into(), path("later_by"))]
    }

    /// It is so many seconds later than the system's from now on.
    fn set(&self, later_by: i64) -> io::Result<()> {
        self.file.write_all_at(&later_by.to_ne_bytes(), 0)
    }

    /// The same, and the proxy goes by it.
    pub(super) fn step(&self, later_by: i64, proxy: &mut Client) -> io::Result<()> {
        self.set(later_by)?;
        wait_until("the proxy's wall clock is set", SEEN_LIMIT, || {
            let said = seconds(&proxy.ask("TIME")?)
                .ok_or_else(|| io::Error::other("the proxy does not say how late it is"))?;
            let system = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            Ok(said.abs_diff(system.saturating_add_signed(later_by)) <= EXACT)
        })
    }
}

/// The seconds of a reply to TIME.
fn seconds(reply: &str) -> Option<u64> {
    let bulk = std::str::from_utf8(elements(reply.as_bytes()).first()?).ok()?;
    bulk.lines().nth(1)?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_process_has_the_time_that_is_set() {
        let clock = WallClock::new().expect("there is a C compiler");
        let told = |later_by: i64| {
            clock.set(later_by).expect("the file can be written");
            let said = Command::new("date").arg("+%s").envs(clock.environment()).output().expect("date is there");
            let said: u64 = String::from_utf8_lossy(&said.stdout).trim().parse().expect("a number of seconds");
            let system = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than that").as_secs();
            said.abs_diff(system.saturating_add_signed(later_by))
        };
        for later_by in [0, HOUR, -HOUR] {
            assert!(told(later_by) <= EXACT, "{later_by}");
        }
    }

    #[test]
    fn the_seconds_of_a_time_are_read() {
        assert_eq!(seconds("*2\r\n$10\r\n1700000000\r\n$3\r\n123\r\n"), Some(1_700_000_000));
        assert_eq!(seconds("-ERR no\r\n"), None);
    }
}
