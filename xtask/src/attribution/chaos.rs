//! Trouble for the nodes and orders for Respool, by a schedule that follows from the seed and from how many requests are done.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{fmt, fs, io, thread};

use respool_testkit::{RedisServer, Respool, Rng};
use rustix::process::{Pid, Signal, kill_process};

use super::states::{GUEST, OWNER};
use super::{WARM, World};

/// The stream of random numbers that belongs to the faults; clients have their own numbers.
const PART: u64 = u64::MAX;
/// Faults are this many requests apart on average, but there are some in every run and not too many in a long one.
const REQUESTS_PER_FAULT: u64 = 10_000;
const FAULTS_MIN: u64 = 16;
const FAULTS_MAX: u64 = 2_000;
/// A run whose requests stop coming is noticed by its clients; nothing more to do here then.
const STALLED_LIMIT: Duration = Duration::from_secs(60);

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A node dies and comes back empty.
    Kill,
    /// A node says nothing for a while.
    Pause,
    /// Other settings: a node has another address, a user another limit.
    Reload,
    /// All connections to nodes are made anew.
    Reconnect,
    /// All requests wait for a while.
    Hold,
}

impl Fault {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Kill, "kills of nodes"),
        (Self::Pause, "pauses of nodes"),
        (Self::Reload, "reloads"),
        (Self::Reconnect, "reconnects"),
        (Self::Hold, "orders to wait"),
    ];
}

#[derive(Default)]
pub(super) struct Summary {
    counts: [usize; Fault::ALL.len()],
}

impl Summary {
    /// Kinds of trouble that never came.
    pub(super) fn missing(&self) -> Vec<String> {
        let never = self.counts.iter().zip(Fault::ALL).filter(|(count, _)| **count == 0);
        never.map(|(_, (_, name))| format!("no {name}")).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.counts.iter().zip(Fault::ALL).map(|(count, (_, name))| format!("{count} {name}"));
        f.write_str(&counted.collect::<Vec<_>>().join(", "))
    }
}

/// The settings of the run, in two forms that mean the same nodes.
pub(super) fn settings(nodes: &[RedisServer], is_other: bool) -> String {
    let node = |(number, node): (usize, &RedisServer)| {
        let address = if is_other && number == 0 { node.unix() } else { node.tcp() };
        format!("\"{address} name=node{number}\"")
    };
    let nodes: Vec<String> = nodes.iter().enumerate().map(node).collect();
    let [name, password] = GUEST;
    let [owner, of_owner] = OWNER;
    let limit = if is_other { "requests_per_second = 10000000\n" } else { "" };
    format!(
        "nodes = [{}]\nprivate_connections_warm = {WARM}\nadmin_commands = \"allow\"\n\
         [users.{owner}]\nrules = \"on >{of_owner} ~* &* +@all\"\npool_mode = \"session\"\n\
         [users.{name}]\nrules = \"on >{password} ~* +@read\"\n{limit}",
        nodes.join(", ")
    )
}

/// Runs the schedule to its end; all nodes are up afterwards.
pub(super) fn run(
    world: &World,
    nodes: &mut [RedisServer],
    respool: &Respool,
    settings_file: &Path,
    requests: u64,
) -> io::Result<Summary> {
    let mut rng = Rng::part(world.seed, PART);
    let mut summary = Summary::default();
    let mut operator = respool.client()?;
    let mut is_other = false;
    let faults = (requests / REQUESTS_PER_FAULT).clamp(FAULTS_MIN, FAULTS_MAX);
    // The last tenth is for recovery under load.
    let step = requests * 9 / 10 / faults;
    let begin = world.requests_done.load(Ordering::Relaxed);
    for number in 0..faults {
        let due = begin + number * step + rng.below(step.max(1) as usize) as u64;
        if !wait_for(world, due) {
            break;
        }
        let node = rng.below(nodes.len());
        let length = Duration::from_millis(rng.between(0, 600) as u64);
        // Each in turn at first, so that there is every kind in every run.
        let place = if (number as usize) < Fault::ALL.len() { number as usize } else { rng.below(Fault::ALL.len()) };
        summary.counts[place] += 1;
        match Fault::ALL[place].0 {
            Fault::Kill => {
                nodes[node].kill()?;
                world.kills.fetch_add(1, Ordering::SeqCst);
                thread::sleep(length);
                nodes[node].restart()?;
            }
            Fault::Pause => {
                nodes[node].pause()?;
                thread::sleep(length);
                nodes[node].resume()?;
            }
            Fault::Reload => {
                is_other = !is_other;
                // All of it or nothing: an earlier order to read it may be under way.
                let beside = settings_file.with_extension("new");
                fs::write(&beside, settings(nodes, is_other))?;
                fs::rename(&beside, settings_file)?;
                let respool = i32::try_from(respool.pid()).ok().and_then(Pid::from_raw);
                kill_process(respool.expect("a child has a process id"), Signal::HUP)?;
            }
            Fault::Reconnect => expect(&operator.ask("PROXY RECONNECT")?, ":")?,
            Fault::Hold => {
                expect(&operator.ask("PROXY PAUSE")?, "+OK")?;
                thread::sleep(length / 4);
                expect(&operator.ask("PROXY RESUME")?, "+OK")?;
            }
        }
    }
    Ok(summary)
}

fn expect(reply: &str, beginning: &str) -> io::Result<()> {
    match reply.starts_with(beginning) {
        true => Ok(()),
        false => Err(io::Error::other(format!("the console answers {reply:?}"))),
    }
}

fn wait_for(world: &World, due: u64) -> bool {
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        let done = world.requests_done.load(Ordering::Relaxed);
        if done >= due {
            return true;
        }
        if done != seen {
            (seen, since) = (done, Instant::now());
        }
        if since.elapsed() > STALLED_LIMIT {
            return false;
        }
        thread::sleep(Duration::from_micros(500));
    }
}
