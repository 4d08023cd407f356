//! What the system knows about this process: memory, file descriptors, threads.

use std::fs;

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
