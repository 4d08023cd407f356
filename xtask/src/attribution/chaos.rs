//! Trouble for the nodes, by a schedule that follows from the seed and from how many requests are done.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use respool_testkit::{RedisServer, Rng};
use rustix::process::{Pid, Signal, kill_process};

use super::World;

/// The stream of random numbers that belongs to the faults; clients have their own numbers.
const PART: u64 = u64::MAX;
/// Faults are this many requests apart on average, but there are some in every run and not too many in a long one.
const REQUESTS_PER_FAULT: u64 = 5_000;
const FAULTS_MIN: u64 = 12;
const FAULTS_MAX: u64 = 500;
/// A run whose requests stop coming is noticed by its clients; nothing more to do here then.
const STALLED_LIMIT: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Summary {
    kills: usize,
    pauses: usize,
    reloads: usize,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nodes killed {} times and paused {} times, settings read again {} times",
            self.kills, self.pauses, self.reloads
        )
    }
}

/// Runs the schedule to its end; all nodes are up afterwards.
pub(super) fn run(world: &World, nodes: &mut [RedisServer], respool: u32, requests: u64) -> io::Result<Summary> {
    let mut rng = Rng::part(world.seed, PART);
    let mut summary = Summary::default();
    let faults = (requests / REQUESTS_PER_FAULT).clamp(FAULTS_MIN, FAULTS_MAX);
    // The last tenth is for recovery under load.
    let step = requests * 9 / 10 / faults;
    let begin = world.requests_done.load(Ordering::Relaxed);
    for fault in 0..faults {
        let due = begin + fault * step + rng.below(step.max(1) as usize) as u64;
        if !wait_for(world, due) {
            break;
        }
        let node = rng.below(nodes.len());
        let length = Duration::from_millis(rng.between(0, 600) as u64);
        if rng.once_in(5) {
            summary.reloads += 1;
            let respool = i32::try_from(respool).ok().and_then(Pid::from_raw);
            kill_process(respool.expect("a child has a process id"), Signal::HUP)?;
        } else if rng.once_in(2) {
            summary.kills += 1;
            nodes[node].kill()?;
            world.kills.fetch_add(1, Ordering::SeqCst);
            thread::sleep(length);
            nodes[node].restart()?;
        } else {
            summary.pauses += 1;
            nodes[node].pause()?;
            thread::sleep(length);
            nodes[node].resume()?;
        }
    }
    Ok(summary)
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
