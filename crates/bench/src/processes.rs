//! What other processes use: processor time and memory, as the kernel tells of them by their numbers.

use std::fs;
use std::io;

/// What a process has used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Its number.
    pub pid: u32,
    /// Processor time in seconds, user and system, of all its threads.
    pub processor_s: f64,
    /// Memory that is in use, in bytes.
    pub resident_bytes: u64,
    /// The most that ever was.
    pub peak_resident_bytes: u64,
}

/// What process `pid` has used so far.
///
/// # Errors
/// There is no such process, or the kernel does not tell (it does on Linux).
pub(crate) fn used(pid: u32) -> io::Result<Used> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let ticks = ticks_of(&stat).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat reads {stat:?}")))?;
    Ok(Used {
        pid,
        processor_s: ticks as f64 / rustix::param::clock_ticks_per_second() as f64,
        resident_bytes: kilobytes_of(&status, "VmRSS:") * 1024,
        peak_resident_bytes: kilobytes_of(&status, "VmHWM:") * 1024,
    })
}

/// How long the calling thread has been ready while others had its processor, in nanoseconds; 0 where the kernel does not tell.
pub(crate) fn waited_ns() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(|text| waited_of(&text)).unwrap_or(0)
}

/// Time on a processor, time of waiting for one, and how often it had one.
fn waited_of(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// User and system time. What stands in parentheses is the program's name, which may hold anything.
fn ticks_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn kilobytes_of(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_spaces_misleads_nothing() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 40 2 0 0";
        assert_eq!(ticks_of(stat), Some(42));
        assert_eq!(ticks_of("7 (a"), None);
    }

    #[test]
    fn the_time_of_waiting_is_the_second_of_three() {
        assert_eq!(waited_of("126052 3743753 2\n"), Some(3_743_753));
        assert_eq!(waited_of(""), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_uses_memory() {
        let used = used(std::process::id()).unwrap();
        assert!(used.resident_bytes > 0 && used.peak_resident_bytes >= used.resident_bytes);
        assert!(super::used(u32::MAX).is_err());
    }
}
