//! `cargo xtask bench client`: the client library, other clients and a socket without a client, measured in one run.
//!
//! Each measurement is a process of its own, of the programs in `bench/client`, which take the same command line and print one line of
//! JSON. Clients take turns within every round, so that a machine that slows down slows all of them; medians of rounds are compared.
//! What the server counts is asked of the server.

pub(super) mod bars;
mod cluster;
mod page;
mod plot;
pub(super) mod samples;
mod scenario;

use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use respool_testkit::RedisServer;
use serde_json::json;

use self::samples::{Conditions, Sample, Samples};
use self::scenario::{Rate, Scenario};
use super::{report, unix_s};
use crate::{Outcome, command};

/// The client of this project, by tasks and by threads. The names are those of the programs.
const OURS: [&str; 2] = ["respool", "respool-threads"];

/// Clients that know no clusters.
const NO_CLUSTER: [&str; 2] = ["go-redis-pipeline", "redigo"];

/// Clients that are not told here how to come by a unix socket.
const NO_UNIX: [&str; 4] = ["fred", "rustis", "valkey-glide", "rueidis"];

/// Clients whose callers are threads.
const IN_THREADS: [&str; 2] = ["respool-threads", "redis-threads"];

fn takes_part(scenario: &Scenario, peer: &str) -> bool {
    let is_left_out = scenario.harm.is_some() && NO_CLUSTER.contains(&peer)
        || scenario.is_unix && NO_UNIX.contains(&peer)
        || scenario.is_without_threads && IN_THREADS.contains(&peer);
    !is_left_out
}

/// Compare the client library with other clients and with a raw socket.
///
/// Builds the programs of `bench/client` first, which takes minutes where they were not built before; those in Go are left out where there
/// is no Go. Three rounds of a second take about half an hour, the default more than an hour.
#[derive(Args)]
pub(crate) struct Options {
    /// Two rounds of a second
    #[arg(long)]
    quick: bool,
    /// Rounds per scenario [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Seconds that one measurement lasts, roughly [default: 3]
    #[arg(long, value_parser = super::seconds)]
    seconds: Option<Duration>,
    /// Only these clients; may be given several times
    #[arg(long, value_name = "NAME")]
    peer: Vec<String>,
    /// Only scenarios whose name contains this; may be given several times
    #[arg(long, value_name = "TEXT")]
    scenario: Vec<String>,
    /// Print the names of the clients and scenarios, and end
    #[arg(long)]
    list: bool,
    /// Bytes of a value
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(16..))]
    value_bytes: u32,
    /// Threads of the clients' runtimes; with 0 the process has one thread for all tasks
    #[arg(long, default_value_t = 0)]
    workers: u16,
    /// Requests a second of the open loop that is not named by its rate, and twice as many of the one with half [default: a quarter of what the
    /// slowest client has done with 128 tasks]
    ///
    /// All have to keep up with it, and at times of their own requests cost a client up to twice as much.
    #[arg(long, value_name = "NUMBER")]
    rate: Option<u32>,
    /// Milliseconds that callers of a cluster pause between two pairs of requests
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    pause_ms: u32,
    /// Nodes of a cluster refuse everything while any slot has no primary, as is the servers' default
    #[arg(long)]
    full_coverage: bool,
    /// The server on the first processor, clients on the second
    #[arg(long)]
    pin: bool,
    /// Write docs/bench-client.md and its plot
    #[arg(long)]
    write: bool,
    /// The results of an earlier run, of which scenarios are taken that are not measured now; may be given several times
    #[arg(long, value_name = "FILE")]
    with: Vec<PathBuf>,
}

impl Options {
    fn rounds(&self) -> u16 {
        self.rounds.unwrap_or(if self.quick { 2 } else { 5 })
    }

    fn time(&self) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(if self.quick { 1 } else { 3 }))
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let is_wanted = |scenario: &Scenario| {
            self.scenario.is_empty() || self.scenario.iter().any(|part| scenario.name.contains(part.as_str()))
        };
        scenario::ALL.into_iter().filter(is_wanted).collect()
    }
}

/// A client, and the program that has it.
struct Peer {
    name: String,
    program: PathBuf,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let (peers, notes) = peers(options)?;
    let scenarios = options.scenarios();
    if options.list {
        peers.iter().for_each(|peer| println!("{}", peer.name));
        scenarios.iter().for_each(|scenario| println!("{}", scenario.name));
        return Ok(format!("{} clients, {} scenarios", peers.len(), scenarios.len()));
    }
    if peers.is_empty() || scenarios.is_empty() {
        return Err("no client or no scenario has such a name; --list shows all".into());
    }
    let mut samples = Samples::default();
    samples.notes = notes;
    for path in &options.with {
        let results: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        samples.take_from(&results, |name| !scenarios.iter().any(|scenario| scenario.name == name))?;
    }
    for scenario in &scenarios {
        let rounds = if scenario.is_once { 1 } else { options.rounds() };
        let began = Instant::now();
        for round in 0..usize::from(rounds) {
            for turn in 0..peers.len() {
                let peer = &peers[(round + turn) % peers.len()];
                eprintln!("{}: round {} of {rounds}: {}", scenario.name, round + 1, peer.name);
                if !takes_part(scenario, &peer.name) {
                    continue;
                }
                match measure(options, scenario, peer, &samples, round) {
                    Ok(sample) => samples.add(scenario.name, &peer.name, sample),
                    Err(error) => samples.fail(scenario.name, &peer.name, &error),
                }
            }
        }
        let load = std::fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN);
        let seconds = options.time().as_secs_f64();
        samples.note_conditions(scenario.name, Conditions { rounds: rounds.into(), seconds, load });
        print!("{}", page::table(scenario, &peers_of(&peers), &samples));
        println!("({:.0} s)\n", began.elapsed().as_secs_f64());
    }
    let bars = bars::bars(&samples);
    bars.iter().for_each(|bar| println!("{bar}"));
    let raw = command::root().join(format!("bench-results/{}-client.json", unix_s()));
    let conditions = json!({
        "machine": report::machine(),
        "conditions": samples.json_of_conditions(),
        "workers": options.workers,
        "value bytes": options.value_bytes,
        "pinned": options.pin,
        "notes": samples.notes,
        "samples": samples.json(),
    });
    std::fs::write(&raw, format!("{conditions:#}\n"))?;
    if options.write {
        let has_samples = |scenario: &Scenario| samples.conditions(scenario.name).is_some();
        let scenarios: Vec<Scenario> = scenario::ALL.into_iter().filter(has_samples).collect();
        let page = page::page(options, &scenarios, &peers_of(&peers), &samples, &bars)?;
        std::fs::write(command::root().join("docs/bench-client.md"), page)?;
        std::fs::write(command::root().join("docs/bench-client.svg"), plot::plot(&peers_of(&peers), &samples)?)?;
    }
    let short = bars.iter().filter(|bar| !bar.is_reached).count();
    let summary = format!("{} bars of which {short} short, {}", bars.len(), raw.display());
    if samples.failures.is_empty() {
        return Ok(summary);
    }
    samples.failures.iter().for_each(|failure| println!("{failure}"));
    Err(format!("{} measurements failed; {summary}", samples.failures.len()).into())
}

fn peers_of(peers: &[Peer]) -> Vec<&str> {
    peers.iter().map(|peer| peer.name.as_str()).collect()
}

/// Clients that are asked for at the Go module proxy, and have not been had from there.
const WANTED_MODULES: [&str; 1] = ["github.com/joomcode/redispipe"];

/// What the Go module proxy says of a module that `bench/client/go` does not have.
fn note_of(module: &str) -> String {
    let mut list = Command::new("go");
    list.args(["list", "-m", &format!("{module}@latest")]).current_dir(std::env::temp_dir());
    let output = match list.output() {
        Ok(output) => output,
        Err(error) => return format!("`{module}` is not compared, and was not asked for: {error}"),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).split_whitespace().collect::<Vec<_>>().join(" ");
    if output.status.success() {
        format!("`{module}` is not compared, though the Go module proxy has it by now: {}", text(&output.stdout))
    } else {
        println!("note: {module}: {}", text(&output.stderr));
        format!("`{module}` is not compared: it cannot be had from the Go module proxy")
    }
}

/// Builds the programs and asks them for the names of their clients. What is said of those that are missing.
fn peers(options: &Options) -> Result<(Vec<Peer>, Vec<String>), Box<dyn std::error::Error>> {
    let mut notes: Vec<String> = WANTED_MODULES.map(note_of).into();
    let directory = command::root().join("bench/client");
    let manifest = directory.join("Cargo.toml");
    // The lock file pins what is compared. What the client library has come to depend on since may be added to it.
    let build = |features: &[&str]| {
        command::run(command::cargo().args(["build", "--release", "--manifest-path"]).arg(&manifest).args(features))
    };
    if let Err(error) = build(&[]) {
        notes.push(format!("`valkey-glide` is not compared: the programs cannot be built with it ({error})"));
        build(&["--no-default-features"])?;
    }
    let mut metadata = command::cargo();
    metadata.args(["metadata", "--format-version", "1", "--no-deps", "--manifest-path"]).arg(&manifest);
    let metadata: serde_json::Value = serde_json::from_str(&command::capture(&mut metadata)?)?;
    let target = PathBuf::from(metadata["target_directory"].as_str().ok_or("cargo names no target directory")?);
    let mut programs = vec![target.join("release/respool-client-bench")];
    let in_go = target.join("respool-client-bench-go");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&in_go).arg(".").current_dir(directory.join("go"));
    match command::run(&mut build) {
        Ok(()) => programs.push(in_go),
        Err(error) => notes.push(format!("The clients in Go are not compared: {error}")),
    }
    let mut peers = Vec::new();
    for program in programs {
        let names = command::capture(Command::new(&program).arg("--list"))?;
        let names = names.lines().filter(|name| options.peer.is_empty() || options.peer.iter().any(|p| p == name));
        peers.extend(names.map(|name| Peer { name: name.to_owned(), program: program.clone() }));
    }
    notes.iter().for_each(|note| println!("note: {note}"));
    Ok((peers, notes))
}

/// One run of one client, on a server of its own.
fn measure(
    options: &Options,
    scenario: &Scenario,
    peer: &Peer,
    so_far: &Samples,
    round: usize,
) -> Result<Sample, Box<dyn std::error::Error>> {
    if let Some(harm) = scenario.harm {
        return cluster::measure(options, scenario, peer, harm);
    }
    // What was executed outlives a server that is killed: it is with the kernel before it is answered.
    let kept = ["--appendonly", "yes", "--appendfsync", "no"];
    let mut server = RedisServer::start_with(if scenario.restarts > 0 { &kept } else { &[] })?;
    if options.pin {
        pin(&server)?;
    }
    let restarts = if options.quick { scenario.restarts.div_ceil(4) } else { scenario.restarts };
    let time = if restarts > 0 { RESTART_PAUSE * (restarts + 1) } else { options.time().mul_f64(scenario.length) };
    let address = if scenario.is_unix { server.unix() } else { server.tcp() }.to_string();
    let mut command = program(options, scenario, peer, &address, time);
    command.args(["--seed", &(round + 1).to_string()]);
    if scenario.program == "open" {
        let rate = rate(options, scenario, so_far).ok_or("--rate is needed without the closed loop")?;
        command.args(["--rate", &rate.round().to_string()]);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    for _ in 0..restarts {
        std::thread::sleep(RESTART_PAUSE);
        if child.try_wait()?.is_some() {
            break;
        }
        server.restart()?;
    }
    let mut sample = sample_of(child, time)?;
    if let (Some(done), Some(due)) = (sample.get("ops_s"), sample.get("rate")) {
        sample.insert("done_to_due".to_owned(), done / due);
    }
    let counted = server_counts(&server)?;
    sample.insert("commands_per_read".to_owned(), counted.commands / counted.reads);
    sample.insert("server_cpu_us".to_owned(), counted.cpu_us / counted.commands);
    Ok(sample)
}

/// How many requests are due a second.
fn rate(options: &Options, scenario: &Scenario, so_far: &Samples) -> Option<f64> {
    let part = match scenario.rate {
        Rate::Fixed(rate) => return Some(rate),
        Rate::OfSlowest(part) => part,
    };
    let all = so_far.peers("closed-128").filter_map(|peer| so_far.median("closed-128", peer, "ops_s"));
    // What the command line says is a quarter.
    let set = options.rate.map(|rate| f64::from(rate) * 4.0);
    set.or_else(|| all.reduce(f64::min)).map(|slowest| slowest * part)
}

/// The program of a client, on its way to a server or to the nodes of a cluster.
fn program(options: &Options, scenario: &Scenario, peer: &Peer, address: &str, time: Duration) -> Command {
    let mut command = match options.pin {
        true => {
            let mut command = Command::new("taskset");
            command.args(["-c", "1"]).arg(&peer.program);
            command
        }
        false => Command::new(&peer.program),
    };
    command.args(["--peer", &peer.name, "--scenario", scenario.program]);
    command.args(["--address", address, "--seconds", &time.as_secs_f64().to_string()]);
    command.args(["--tasks", &scenario.tasks.to_string(), "--value-bytes", &options.value_bytes.to_string()]);
    command.args(["--workers", &options.workers.to_string(), "--batch", &scenario.batch.to_string()]);
    command
}

/// What a program has found, which takes about this time.
fn sample_of(mut child: Child, time: Duration) -> Result<Sample, Box<dyn std::error::Error>> {
    let limit = Instant::now() + time + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() > limit {
            child.kill()?;
            child.wait()?;
            return Err(format!("not through {} s behind its time", PATIENCE.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(output.status.to_string().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// How long the server lives between two restarts.
const RESTART_PAUSE: Duration = Duration::from_millis(400);

/// How much longer than its time a run may take: keys are set, a load runs before, callers wait for a server that comes back.
const PATIENCE: Duration = Duration::from_secs(30);

struct ServerCounts {
    commands: f64,
    reads: f64,
    cpu_us: f64,
}

/// What the server has counted since it was started: the scenario's own, as it serves nothing else.
fn server_counts(server: &RedisServer) -> io::Result<ServerCounts> {
    let info = server.client()?.ask("INFO")?;
    let figure = |name: &str| -> io::Result<f64> {
        let found = info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        found.and_then(|text| text.trim().parse().ok()).ok_or_else(|| io::Error::other(format!("no {name} in INFO")))
    };
    let cpu_us = (figure("used_cpu_user")? + figure("used_cpu_sys")?) * 1e6;
    Ok(ServerCounts { commands: figure("total_commands_processed")?, reads: figure("total_reads_processed")?, cpu_us })
}

fn pin(server: &RedisServer) -> io::Result<()> {
    command::capture(Command::new("taskset").args(["-a", "-c", "-p", "0", &server.pid().to_string()])).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_left_out_of_what_they_cannot_do() {
        let named = |name: &str| scenario::ALL.into_iter().find(|scenario| scenario.name == name).unwrap();
        for (scenario, peer, takes) in [
            ("cluster-kill", "redigo", false),
            ("cluster-kill", "radix", true),
            ("serial-unix", "fred", false),
            ("serial-unix", "redigo", true),
            ("closed-10000", "respool-threads", false),
            ("closed-10000", "respool", true),
            ("closed-8", "respool-threads", true),
        ] {
            assert_eq!(takes_part(&named(scenario), peer), takes, "{scenario}, {peer}");
        }
    }
}
