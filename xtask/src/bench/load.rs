//! One measurement: `respool bench` against a target, and what the processes used meanwhile.
//!
//! The load generator is that of the repository in the binary that is measured, one and the same for all subjects.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use respool_testkit::{Address, Process, figure, proc_stats};

use super::deployment::{Deployment, Node, Target};
use super::scenario::{Keys, Scenario, Subject, Work};

/// Distinct keys of a scenario that spreads them.
const KEYS_SPREAD: usize = 100_000;
/// A run that is longer than this has hung; the slowest take a quarter of it.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// What one run measured. Times are per request that a client sent, an MSET of ten keys being one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sample {
    pub(crate) requests_per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    /// Processor time of the proxy or the embedded server.
    pub(crate) proxy_us: Option<f64>,
    /// Processor time of all redis-servers together.
    pub(crate) nodes_us: Option<f64>,
    /// Commands that a redis-server got out of one read, on average.
    pub(crate) commands_per_read: Option<f64>,
    /// Of the process that answers the load generator, during this run.
    pub(crate) peak_resident_bytes: u64,
}

/// SETs per key before GETs are measured, so that nearly all of the random keys are there.
const FILL_FACTOR: usize = 3;

/// Sees to it that GETs find what they ask for.
fn fill(deployment: &mut Deployment<'_>, scenario: &Scenario, subject: Subject) -> io::Result<()> {
    let scenario = Scenario { work: Work::Set, clients: 50, pipeline: 50, keep_alive: true, ..scenario.clone() };
    let requests = if scenario.keys == Keys::Spread { FILL_FACTOR * KEYS_SPREAD } else { 1 };
    run(deployment, &scenario, subject, requests).map(drop)
}

/// Warms the subject up and finds how many requests take about `length`.
pub(crate) fn calibrate(
    deployment: &mut Deployment<'_>,
    scenario: &Scenario,
    subject: Subject,
    length: Duration,
) -> io::Result<usize> {
    if scenario.work == Work::Get {
        fill(deployment, scenario, subject)?;
    }
    let batch = scenario.clients * scenario.pipeline;
    let trial = if scenario.clients == 1 { 2_000 } else { batch.max(if scenario.keep_alive { 20_000 } else { 2_000 }) };
    let speed = run(deployment, scenario, subject, trial)?.requests_per_second;
    let wanted = (speed * length.as_secs_f64()) as usize;
    Ok(wanted.next_multiple_of(scenario.pipeline).clamp(batch.max(1_000), 20_000_000))
}

/// Runs `requests` requests and accounts for them.
pub(crate) fn run(
    deployment: &mut Deployment<'_>,
    scenario: &Scenario,
    subject: Subject,
    requests: usize,
) -> io::Result<Sample> {
    let target = deployment.target(scenario.arrangement(), subject, scenario.cores)?;
    let pid = target.pid();
    proc_stats::reset_peak(pid)?;
    let (reads_before, times_before) = (reads(target.nodes)?, times(&target)?);
    let (requests_per_second, p50_ms, p99_ms) = benchmark(target.generator, &target.address, scenario, requests)?;
    let (times_after, reads_after) = (times(&target)?, reads(target.nodes)?);
    let per_request =
        |before: Duration, after: Duration| after.saturating_sub(before).as_secs_f64() * 1e6 / requests as f64;
    // The later INFO counts itself as a read but not as a command, and the earlier one the other way round.
    let asked = target.nodes.len() as u64;
    let commands = reads_after.commands.saturating_sub(reads_before.commands).saturating_sub(asked);
    let reads = reads_after.reads.saturating_sub(reads_before.reads).saturating_sub(asked);
    Ok(Sample {
        requests_per_second,
        p50_ms,
        p99_ms,
        proxy_us: target.proxy.map(|_| per_request(times_before.proxy, times_after.proxy)),
        nodes_us: (!target.nodes.is_empty()).then(|| per_request(times_before.nodes, times_after.nodes)),
        commands_per_read: (reads > 0).then(|| commands as f64 / reads as f64),
        peak_resident_bytes: proc_stats::peak_resident_bytes(pid)?,
    })
}

/// System calls per request of the process that answers the load generator. The run is not timed.
pub(crate) fn count_syscalls(
    deployment: &mut Deployment<'_>,
    scenario: &Scenario,
    subject: Subject,
    requests: usize,
) -> io::Result<f64> {
    let target = deployment.target(scenario.arrangement(), subject, scenario.cores)?;
    let mut words: Vec<String> = COUNT_SYSCALLS.map(str::to_owned).into();
    words.extend(["--pid".into(), target.pid().to_string(), "--".into()]);
    words.extend(closed_loop(target.generator, &target.address, scenario, requests));
    Ok(counted(&output(&words)?)? as f64 / requests as f64)
}

/// How system calls are counted, up to whose.
const COUNT_SYSCALLS: [&str; 6] = ["perf", "stat", "--field-separator", ",", "--event", "raw_syscalls:sys_enter"];

/// Why the kernel's counter of system calls cannot be used here, if it cannot.
pub(crate) fn why_no_syscalls() -> Option<String> {
    let mut words: Vec<String> = COUNT_SYSCALLS.map(str::to_owned).into();
    words.extend(["--".into(), "true".into()]);
    output(&words).and_then(|said| counted(&said)).err().map(|error| error.to_string())
}

/// The number in what perf says: `29,,raw_syscalls:sys_enter,...`, or words where it could not count.
fn counted(said: &[String]) -> io::Result<u64> {
    let line = said.iter().find(|line| line.contains("raw_syscalls:sys_enter"));
    let count = line.and_then(|line| line.split(',').next()?.parse().ok());
    count.ok_or_else(|| io::Error::other(format!("perf did not count system calls: {}", said.join(" / "))))
}

/// Requests per second, p50 and p99 in milliseconds. One error among the replies makes it fail.
pub(crate) fn benchmark(
    generator: &Path,
    address: &Address,
    scenario: &Scenario,
    requests: usize,
) -> io::Result<(f64, f64, f64)> {
    let said = output(&closed_loop(generator, address, scenario, requests))?;
    said.iter().find_map(|line| report(line)).ok_or_else(|| io::Error::other(format!("respool bench said {said:?}")))
}

/// "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
fn report(line: &str) -> Option<(f64, f64, f64)> {
    let fields: Vec<f64> = line.rsplit("\",\"").filter_map(|field| field.trim_matches('"').parse().ok()).collect();
    match fields[..] {
        [_max, p99, _p95, p50, _min, _average, speed] => Some((speed, p50, p99)),
        _ => None,
    }
}

/// What a program says that ends well and in time.
pub(super) fn output(words: &[String]) -> io::Result<Vec<String>> {
    let mut process = Process::spawn(&words[0], Command::new(&words[0]).args(&words[1..]))?;
    let (status, said) = process.finish(RUN_LIMIT)?;
    if status.success() {
        return Ok(said);
    }
    Err(io::Error::other(format!("`{}` failed: {status}: {}", words.join(" "), said.join(" / "))))
}

/// Has the load generator send one request many times, with as many clients, requests under way of each, and different numbers for
/// `__rand_int__`. One error among the replies makes it fail.
pub(crate) fn ask_many(
    generator: &Path,
    address: &Address,
    request: &[&str],
    [clients, pipeline, numbers]: [usize; 3],
    requests: usize,
) -> io::Result<()> {
    let mut words = command_line(generator, 0, address);
    for (flag, number) in [("-n", requests), ("-c", clients), ("-P", pipeline), ("-r", numbers)] {
        words.extend([flag.to_owned(), number.to_string()]);
    }
    words.push("--csv".into());
    words.extend(request.iter().map(|&word| word.to_owned()));
    output(&words).map(drop)
}

/// The beginning of the load generator's command line, on a core.
pub(super) fn command_line(generator: &Path, core: usize, address: &Address) -> Vec<String> {
    let mut words = vec!["taskset".to_owned(), "-c".to_owned(), core.to_string(), generator.display().to_string()];
    words.extend(["bench", "--no-progress", "--precision", "3"].map(str::to_owned));
    match address {
        Address::Tcp(address) => {
            words.extend(["-h".into(), address.ip().to_string(), "-p".into(), address.port().to_string()])
        }
        Address::Unix(path) => words.extend(["-s".into(), path.display().to_string()]),
    }
    words
}

/// The load generator's whole command line.
fn closed_loop(generator: &Path, address: &Address, scenario: &Scenario, requests: usize) -> Vec<String> {
    let mut words = command_line(generator, 0, address);
    words.push("--csv".into());
    let test = match scenario.work {
        Work::Get => "get",
        Work::Set => "set",
        Work::Mset => "mset",
    };
    words.extend(["-t".into(), test.into(), "-n".into(), requests.to_string()]);
    words.extend(["-c".into(), scenario.clients.to_string(), "-P".into(), scenario.pipeline.to_string()]);
    if scenario.keys == Keys::Spread {
        words.extend(["-r".into(), KEYS_SPREAD.to_string()]);
    }
    if !scenario.keep_alive {
        words.extend(["-k".into(), "0".into()]);
    }
    words
}

struct Times {
    proxy: Duration,
    nodes: Duration,
}

fn times(target: &Target<'_>) -> io::Result<Times> {
    let proxy = target.proxy.map_or(Ok(Duration::ZERO), proc_stats::processor_time)?;
    let nodes =
        target.nodes.iter().map(|node| proc_stats::processor_time(node.server.pid())).sum::<io::Result<Duration>>()?;
    Ok(Times { proxy, nodes })
}

struct Reads {
    commands: u64,
    reads: u64,
}

/// What the redis-servers say about themselves.
fn reads(nodes: &mut [Node]) -> io::Result<Reads> {
    let mut total = Reads { commands: 0, reads: 0 };
    for node in nodes {
        // One question: each of them counts.
        let stats = node.control.ask("INFO stats")?;
        total.commands += figure(&stats, "total_commands_processed")?;
        total.reads += figure(&stats, "total_reads_processed")?;
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn the_load_generators_report_is_read() {
        assert_eq!(report(r#""GET","1000.50","0.1","0.2","0.300","0.4","0.500","0.6""#), Some((1000.5, 0.3, 0.5)));
        for other in [r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms""#, "Error from server: x", ""]
        {
            assert_eq!(report(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_that_fails_says_why() {
        let error = output(&words(&["sh", "-c", "echo 'Error from server: no'; exit 1"])).unwrap_err().to_string();
        assert!(error.contains("Error from server: no") && error.contains("exit status: 1"), "{error}");
        assert_eq!(output(&words(&["echo", "a line"])).unwrap(), ["a line"]);
    }

    #[test]
    fn a_count_that_was_not_made_is_no_count() {
        assert_eq!(counted(&words(&["", "29,,raw_syscalls:sys_enter,537969,100.00,,"])).unwrap(), 29);
        for line in ["<not supported>,,raw_syscalls:sys_enter,0,100.00,,", "event syntax error"] {
            assert!(counted(&words(&[line])).is_err(), "{line}");
        }
    }
}
