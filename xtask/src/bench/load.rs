//! One measurement: redis-benchmark against a target, and what the processes used meanwhile.

use std::io;
use std::process::Command;
use std::time::Duration;

use respool_testkit::{Address, usage};

use super::deployment::{Arrangement, Deployment, Node, Target};
use super::scenario::{Keys, Scenario, Subject, Work};
use crate::command;

/// Distinct keys of a scenario that spreads them.
const KEYS_SPREAD: usize = 100_000;

/// What one run measured. Times are per request that a client sent, an MSET of ten keys being one.
#[derive(Debug, Clone, Copy)]
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
fn fill(deployment: &mut Deployment, scenario: &Scenario, subject: Subject) -> io::Result<()> {
    let scenario = Scenario { work: Work::Set, clients: 50, pipeline: 50, keep_alive: true, ..scenario.clone() };
    let requests = if scenario.keys == Keys::Spread { FILL_FACTOR * KEYS_SPREAD } else { 1 };
    run(deployment, &scenario, subject, requests).map(drop)
}

/// Warms the subject up and finds how many requests take about `length`.
pub(crate) fn calibrate(
    deployment: &mut Deployment,
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
    deployment: &mut Deployment,
    scenario: &Scenario,
    subject: Subject,
    requests: usize,
) -> io::Result<Sample> {
    let arrangement = Arrangement { nodes: scenario.nodes, transport: scenario.transport };
    let target = deployment.target(arrangement, subject, scenario.cores)?;
    let pid = target.pid();
    usage::reset_peak(pid)?;
    let (reads_before, times_before) = (reads(target.nodes)?, times(&target)?);
    let (requests_per_second, p50_ms, p99_ms) = benchmark(&target.address, scenario, requests)?;
    let (times_after, reads_after) = (times(&target)?, reads(target.nodes)?);
    let per_request = |used: Duration| used.as_secs_f64() * 1e6 / requests as f64;
    // The later INFO counts itself as a read but not as a command, and the earlier one the other way round.
    let commands = (reads_after.commands - reads_before.commands).saturating_sub(target.nodes.len() as u64);
    let reads = (reads_after.reads - reads_before.reads).saturating_sub(target.nodes.len() as u64);
    Ok(Sample {
        requests_per_second,
        p50_ms,
        p99_ms,
        proxy_us: target.proxy.map(|_| per_request(times_after.proxy - times_before.proxy)),
        nodes_us: (!target.nodes.is_empty()).then(|| per_request(times_after.nodes - times_before.nodes)),
        commands_per_read: (reads > 0).then(|| commands as f64 / reads as f64),
        peak_resident_bytes: usage::peak_resident_bytes(pid)?,
    })
}

/// System calls per request of the process that answers the load generator, or `None` where the kernel's counters
/// cannot be used. The run is not timed.
pub(crate) fn count_syscalls(
    deployment: &mut Deployment,
    scenario: &Scenario,
    subject: Subject,
    requests: usize,
) -> io::Result<Option<f64>> {
    let arrangement = Arrangement { nodes: scenario.nodes, transport: scenario.transport };
    let target = deployment.target(arrangement, subject, scenario.cores)?;
    let mut command = Command::new("perf");
    command.args(["stat", "--field-separator", ",", "--event", "raw_syscalls:sys_enter"]);
    command.args(["--pid", &target.pid().to_string(), "--"]);
    command.args(redis_benchmark(&target.address, scenario, requests));
    let Ok(output) = command.output() else { return Ok(None) };
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = report.lines().find(|line| line.contains("raw_syscalls:sys_enter"));
    let count = line.and_then(|line| line.split(',').next()?.parse::<u64>().ok());
    Ok(count.map(|count| count as f64 / requests as f64))
}

/// Requests per second, p50 and p99 in milliseconds, as redis-benchmark reports them.
pub(crate) fn benchmark(address: &Address, scenario: &Scenario, requests: usize) -> io::Result<(f64, f64, f64)> {
    let words = redis_benchmark(address, scenario, requests);
    let csv = command::capture(Command::new(&words[0]).args(&words[1..]))?;
    // "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
    let fields: Vec<f64> = csv
        .lines()
        .last()
        .unwrap_or_default()
        .rsplit("\",\"")
        .filter_map(|field| field.trim_matches('"').parse().ok())
        .collect();
    match fields[..] {
        [_max, p99, _p95, p50, _min, _average, speed] => Ok((speed, p50, p99)),
        _ => Err(io::Error::other(format!("redis-benchmark said {csv:?} to {scenario}"))),
    }
}

/// The load generator's command line, on core 0.
fn redis_benchmark(address: &Address, scenario: &Scenario, requests: usize) -> Vec<String> {
    let mut words: Vec<String> =
        ["taskset", "-c", "0", "redis-benchmark", "--csv", "--precision", "3"].map(str::to_owned).into();
    match address {
        Address::Tcp(address) => {
            words.extend(["-h".into(), address.ip().to_string(), "-p".into(), address.port().to_string()])
        }
        Address::Unix(path) => words.extend(["-s".into(), path.display().to_string()]),
    }
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
    let proxy = target.proxy.map_or(Ok(Duration::ZERO), usage::processor_time)?;
    let nodes =
        target.nodes.iter().map(|node| usage::processor_time(node.server.pid())).sum::<io::Result<Duration>>()?;
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
        let text = node.control.ask("INFO stats")?;
        let field =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse::<u64>().ok()).unwrap_or(0);
        total.commands += field("total_commands_processed:");
        total.reads += field("total_reads_processed:");
    }
    Ok(total)
}
