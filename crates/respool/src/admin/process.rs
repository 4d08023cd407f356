//! What the system knows about this process: memory, file descriptors, threads.

use std::fs;

use super::metrics::{Family, Reading, Sample};

static BUILD: Family = Family { name: "build_info", help: "Always 1; the version is a label." };
static MEMORY: Family =
    Family { name: "process_resident_memory_bytes", help: "Memory in use, as the system counts it." };
static FILES: Family = Family { name: "process_open_fds", help: "Open file descriptors." };
static THREADS: Family = Family { name: "process_threads", help: "Threads of the process." };

/// The samples of this process; what the system does not tell is left out.
#[must_use]
pub fn snapshot() -> Vec<Sample> {
    let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    let mut samples = vec![Sample { family: &BUILD, labels: version, reading: Reading::Gauge(1) }];
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let files = fs::read_dir("/proc/self/fd").map(|entries| entries.count()).ok();
    let figures = [
        (&MEMORY, field(&status, "VmRSS:").map(|kilobytes| kilobytes * 1024)),
        (&THREADS, field(&status, "Threads:")),
        (&FILES, files.and_then(|count| i64::try_from(count).ok())),
    ];
    let known = figures.into_iter().filter_map(|(family, figure)| Some((family, figure?)));
    samples.extend(known.map(|(family, figure)| Sample { family, labels: vec![], reading: Reading::Gauge(figure) }));
    samples
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
        for family in [&MEMORY, &FILES, &THREADS] {
            let sample = samples.iter().find(|sample| sample.family == family).unwrap();
            assert!(matches!(sample.reading, Reading::Gauge(1..)), "{sample:?}");
        }
    }
}
