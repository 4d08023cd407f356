//! Scenarios on a cluster of three primaries and three replicas, to which something is done while callers ask.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use respool_testkit::RedisCluster;

use super::samples::Sample;
use super::scenario::{Harm, Scenario};
use super::{Options, Peer, program, sample_of};

/// How long the program may take to connect and to set its keys.
const PREPARATION: Duration = Duration::from_secs(2);

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
    let settings = ["--cluster-node-timeout", timeout, "--cluster-require-full-coverage", "no"];
    let mut cluster = RedisCluster::start(3, 1, &settings)?;
    // A replica takes over after one to three seconds, and the other shards are looked at meanwhile.
    let time = options.time().mul_f64(scenario.length).max(Duration::from_secs(9));
    let begin = SystemTime::now() + PREPARATION;
    let mut command = program(options, scenario, peer, &cluster.seeds(&[0, 1, 2]), time);
    command.args(["--begin-ms", &begin.duration_since(SystemTime::UNIX_EPOCH)?.as_millis().to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    std::thread::sleep(begin.duration_since(SystemTime::now()).unwrap_or_default() + time / 3);
    let harmed = match harm {
        Harm::Kill => cluster.nodes[0].kill(),
        Harm::Move => cluster.move_slots(0..1_000, 0, 1),
    };
    let sample = sample_of(child, time);
    harmed?;
    sample
}
