//! Scenarios on a cluster of three primaries and three replicas, to which something is done while callers ask.
//!
//! Beside the client, a few sockets without one ask the shards that nothing is done to, from this process. What becomes of their rate is
//! the servers' and the machine's doing, and of no client.

use std::io;
use std::ops::Range;
use std::process::Stdio;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use respool_testkit::{Address, Client, RedisCluster};

use super::samples::Sample;
use super::scenario::{Harm, Scenario};
use super::{Options, Peer, program, sample_of};

/// How long the program may take to connect and to set its keys.
const PREPARATION: Duration = Duration::from_secs(2);

/// The shards that nothing is done to, and a hash tag of each.
const OTHERS: [(usize, &str); 2] = [(1, "{c}"), (2, "{a}")];

/// Sockets at each of them: enough to tell, and too few to matter beside the callers.
const SOCKETS: usize = 4;

/// One run of one client, on a cluster of its own.
pub(super) fn measure(
    options: &Options,
    scenario: &Scenario,
    peer: &Peer,
    harm: Harm,
) -> Result<Sample, Box<dyn std::error::Error>> {
    // A primary that is killed is replaced soon; none is replaced because the machine is busy.
    let timeout = if harm == Harm::Kill { "1000" } else { "15000" };
    // Nodes that have their own slots go on while nothing has those of another: otherwise the servers refuse all.
    let coverage = if options.full_coverage { "yes" } else { "no" };
    let settings = ["--cluster-node-timeout", timeout, "--cluster-require-full-coverage", coverage];
    let mut cluster = RedisCluster::start(3, 1, &settings)?;
    // A replica takes over after one to three seconds, and the other shards are looked at meanwhile.
    let time = options.time().mul_f64(scenario.length).max(Duration::from_secs(9));
    let begin = SystemTime::now() + PREPARATION;
    let mut command = program(options, scenario, peer, &cluster.seeds(&[0, 1, 2]), time);
    command.args(["--begin-ms", &begin.duration_since(SystemTime::UNIX_EPOCH)?.as_millis().to_string()]);
    let pause = Duration::from_millis(options.pause_ms.into());
    command.args(["--pause-ms", &options.pause_ms.to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let sockets: Vec<JoinHandle<io::Result<[usize; 2]>>> = (0..SOCKETS * OTHERS.len())
        .map(|number| {
            let (node, tag) = OTHERS[number % OTHERS.len()];
            let address = cluster.nodes[node].tcp();
            std::thread::spawn(move || ask(&address, &format!("{tag}control:{number}"), begin, [time / 3, pause]))
        })
        .collect();
    std::thread::sleep(begin.duration_since(SystemTime::now()).unwrap_or_default() + time / 3);
    let began = Instant::now();
    let moved_before = moved(&cluster);
    let harmed = match harm {
        Harm::Kill => cluster.nodes[0].kill(),
        Harm::Move => cluster.move_slots(0..1_000, 0, 1),
    };
    let took = began.elapsed();
    let sample = sample_of(child, time);
    harmed?;
    let mut sample = sample?;
    sample.insert("moved".to_owned(), moved(&cluster) - moved_before);
    let mut pairs = [0.0; 2];
    for socket in sockets {
        let [before, during] = socket.join().map_err(|_| "a socket's thread has panicked")??;
        pairs = [pairs[0] + before as f64, pairs[1] + during as f64];
    }
    // The first tenth of the time is no part of what was before.
    let to_before = pairs[1] / (pairs[0] / (1.0 - 0.3));
    sample.insert("control_to_before".to_owned(), to_before);
    let others = sample.get("others_to_before").copied().unwrap_or(f64::NAN);
    sample.insert("others_to_control".to_owned(), others / to_before);
    sample.insert("harm_s".to_owned(), took.as_secs_f64());
    Ok(sample)
}

/// How many requests nodes have redirected for good, as they count it. One that was killed is not asked.
fn moved(cluster: &RedisCluster) -> f64 {
    let of_node = |node: &respool_testkit::RedisServer| -> Option<f64> {
        let info = node.client().ok()?.ask("INFO errorstats").ok()?;
        let count = info.lines().find_map(|line| line.trim().strip_prefix("errorstat_MOVED:count="))?;
        count.parse().ok()
    };
    cluster.nodes.iter().filter_map(of_node).sum()
}

/// As a caller of the program does it, without a client: counts a key up, reads it, and pauses. Gives how often it has done so in the first
/// third of the time, but for the first tenth of all, and in the second.
fn ask(address: &Address, key: &str, begin: SystemTime, [third, pause]: [Duration; 2]) -> io::Result<[usize; 2]> {
    let mut socket = Client::connect(address)?;
    std::thread::sleep(begin.duration_since(SystemTime::now()).unwrap_or_default());
    let began = Instant::now();
    let windows: [Range<Duration>; 2] = [third * 3 / 10..third, third..2 * third];
    let mut pairs = [0; 2];
    while began.elapsed() < windows[1].end {
        let replies = [socket.command(&["INCR", key])?, socket.command(&["GET", key])?];
        if let Some(error) = replies.iter().find(|reply| reply.starts_with(b"-")) {
            return Err(io::Error::other(format!("{key}: {}", error.escape_ascii())));
        }
        let now = began.elapsed();
        for (count, window) in pairs.iter_mut().zip(&windows) {
            *count += usize::from(window.contains(&now));
        }
        std::thread::sleep(pause);
    }
    Ok(pairs)
}
