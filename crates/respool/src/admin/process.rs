//! What the system knows about this process: memory, file descriptors, threads.

use std::fs;

use respool_proxy::hooks::{ProcessUsage, ProcessorTime};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Resource, getrlimit};

use super::metrics::{Family, Reading, Sample};

static BUILD: Family = Family { name: "build_info", help: "Always 1; the version is a label." };
static MEMORY: Family =
    Family { name: "process_resident_memory_bytes", help: "Memory in use, as the system counts it." };
static FILES: Family = Family { name: "process_open_fds", help: "Open file descriptors." };
static FILES_MAX: Family = Family { name: "process_max_fds", help: "File descriptors that may be open." };
static THREADS: Family = Family { name: "process_threads", help: "Threads of the process." };

/// The samples of this process; what the system does not tell is left out.
#[must_use]
pub fn snapshot() -> Vec<Sample> {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    let mut samples = vec![Sample { family: &BUILD, labels: version, reading: Reading::Gauge(1) }];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let files = open_files();
    let files_max = getrlimit(Resource::Nofile).current;
    let figures = [
        (&MEMORY, field(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024)),
        (&THREADS, field(&status, "Threads:")),
        (&FILES, files.and_then(|count| i64::try_from(count).ok())),
        (&FILES_MAX, files_max.and_then(|count| i64::try_from(count).ok())),
    ];
    let known = figures.into_iter().filter_map(|(family, figure)| Some((family, figure?)));
    samples.extend(known.map(|(family, figure)| Sample { family, labels: vec![], reading: Reading::Gauge(figure) }));
    samples
}

/// What this process has taken of the machine; nothing where the system does not tell. The thread is the one that asks.
#[must_use]
pub fn usage() -> ProcessUsage {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let bytes = |text: &str, name: &str| {
        field(text, name).and_then(|kilobytes| u64::try_from(kilobytes * 1024).ok()).unwrap_or(0)
    };
    let [process, children] = times(&fs::read_to_string("/proc/self/stat").unwrap_or_default());
    let [thread, _] = times(&fs::read_to_string("/proc/thread-self/stat").unwrap_or_default());
    ProcessUsage {
        process,
        children,
        thread,
        resident_bytes: bytes(&status, "VmRSS:"),
        system_bytes: bytes(&memory, "MemTotal:"),
        allocator: allocator(),
    }
}

#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
fn allocator() -> String {
    crate::allocator::name().unwrap_or_default()
}

#[cfg(not(all(feature = "jemalloc", target_os = "linux", target_env = "gnu")))]
fn allocator() -> String {
    String::new()
}

/// The times in the form of `/proc/self/stat`: its own, and those of processes that it has waited for.
fn times(stat: &str) -> [ProcessorTime; 2] {
    // The name of the program, in brackets, may have spaces.
    let figures = stat.rsplit_once(") ").map_or("", |(_, figures)| figures);
    let ticks: Vec<u64> = figures.split(' ').skip(11).take(4).map_while(|figure| figure.parse().ok()).collect();
    let us = |place: usize| ticks.get(place).map_or(0, |ticks| ticks * 1_000_000 / clock_ticks_per_second().max(1));
    [0, 2].map(|place| ProcessorTime { user_us: us(place), system_us: us(place + 1) })
}

/// The number of open file descriptors. Newer kernels give it as the size of the folder; otherwise they are counted.
fn open_files() -> Option<u64> {
    const FOLDER: &str = "/proc/self/fd";
    let told = fs::metadata(FOLDER).ok()?.len();
    if told > 0 { Some(told) } else { fs::read_dir(FOLDER).ok().map(|files| files.count() as u64) }
}

/// The number behind a name in the form of `/proc/self/status`.
fn field(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let status = "Name:\trespool\nVmRSS:\t    2048 kB\nThreads:\t3\n";
        assert_eq!(
            (field(status, "VmRSS:"), field(status, "Threads:"), field(status, "Vm:")),
            (Some(2048), Some(3), None)
        );
    }

    #[test]
    fn times_are_found_behind_a_name_with_spaces() {
        let [own, children] = times("7 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 300 20 50 6 20 0 1\n");
        let figures = [own.user_us, own.system_us, children.user_us, children.system_us];
        let ticks = [300, 20, 50, 6].map(|ticks| ticks * 1_000_000 / clock_ticks_per_second());
        assert_eq!(figures, ticks);
        assert_eq!(times("").map(|time| time.user_us), [0, 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_uses_memory_and_files() {
        let samples = snapshot();
        for family in [&MEMORY, &FILES, &FILES_MAX, &THREADS] {
            let sample = samples.iter().find(|sample| sample.family == family).unwrap();
            assert!(matches!(sample.reading, Reading::Gauge(1..)), "{sample:?}");
        }
    }
}
