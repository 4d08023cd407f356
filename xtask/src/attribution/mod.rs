//! `cargo xtask attribution`: does every reply belong to its request, whatever happens?
//!
//! Many clients share the lanes of one Respool to four redis-servers. Every key and value names the client and the
//! request that wrote it, so that a reply that went astray is recognised by its bytes. Meanwhile clients write in
//! odd pieces, read slowly and vanish, and servers are killed, paused and restarted. Afterwards everything must work
//! again, and Respool must have given back its memory and descriptors.

mod chaos;
mod client;
mod model;
mod states;
mod tally;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io, thread};

use clap::Args;
use respool_testkit::{Address, RedisServer, Respool, TempDir, usage, wait_until};

use self::client::Behaviour;
use self::tally::Tally;
use crate::Outcome;
use crate::binary::Binary;

const NODES: usize = 4;
/// Above this many requests the default is an optimised build.
const DEV_REQUESTS_MAX: u64 = 1_000_000;
/// The share of the requests that comes before memory and descriptors are noted as the base. Clients behave as badly as
/// later, since the allocator keeps the most that was ever needed: what grows beyond that is lost.
const WARM_UP_DIVISOR: u64 = 5;
/// Memory that may stay with the allocator beyond the base: a share of the base and a constant.
const RESIDENT_SHARE_MAX: f64 = 1.25;
const RESIDENT_EXTRA_MAX: u64 = 8 << 20;
/// Clean connections that Respool keeps for those who need one to themselves, for each worker, node and purpose: waiting,
/// and watching keys or being in pool mode `session`, this for each database and dialect: two, and one.
/// So many more descriptors than at the base may be open.
const WARM: usize = 2;
const WARM_DESCRIPTORS_MAX: usize = NODES * WORKERS * WARM * (1 + 3);
const WORKERS: usize = 2;
/// From so many requests on every kind of trouble and every state of a session has to occur.
const COMPLETE_REQUESTS_MIN: u64 = 50_000;
const SETTLE_LIMIT: Duration = Duration::from_secs(20);

/// Check that not one reply goes to the wrong request while nodes and clients fail
#[derive(Args)]
// Part of `test`'s options, too, which are a group of the same name.
#[group(skip)]
pub(crate) struct Options {
    /// Requests that all clients together send
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Clients at the same time
    #[arg(long, default_value_t = 200)]
    clients: u64,
    /// Repeat the requests and faults of an earlier run [default: from the clock]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    binary: Binary,
    /// Leave the nodes alone
    #[arg(long)]
    calm: bool,
}

/// What all clients and the one who makes trouble share.
struct World {
    seed: u64,
    /// Nothing happens to the nodes.
    is_calm: bool,
    addresses: [Address; 2],
    /// Requests answered or given up so far; the schedule of faults follows it.
    requests_done: AtomicU64,
    /// Kills so far, counted before the node is started again: a key written before the last one may be gone.
    kills: AtomicU64,
    tally: Mutex<Tally>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let seed = options.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64 % 1_000_000_000)
    });
    println!("seed {seed}, {} requests of {} clients, {NODES} nodes", options.requests, options.clients);
    let mut nodes = (0..NODES).map(|_| RedisServer::start()).collect::<io::Result<Vec<_>>>()?;
    let directory = TempDir::new()?;
    let settings_file = directory.join("respool.toml");
    fs::write(&settings_file, chaos::settings(&nodes, false))?;
    let respool = start_respool(options, &settings_file)?;
    let world = World {
        seed,
        is_calm: options.calm,
        addresses: [respool.tcp(), respool.unix()],
        requests_done: AtomicU64::new(0),
        kills: AtomicU64::new(0),
        tally: Mutex::new(Tally::default()),
    };

    let per_client = options.requests.div_ceil(options.clients);
    all_clients(options, &world, per_client.div_ceil(WARM_UP_DIVISOR), Behaviour::WarmUp);
    let base = settle(&respool, None)?;
    let summary = thread::scope(|scope| {
        let chaos = scope.spawn(|| match options.calm {
            true => Ok(chaos::Summary::default()),
            false => {
                let requests = options.requests - options.requests / WARM_UP_DIVISOR;
                chaos::run(&world, &mut nodes, &respool, &settings_file, requests)
            }
        });
        all_clients(options, &world, per_client - per_client.div_ceil(WARM_UP_DIVISOR), Behaviour::Hostile);
        chaos.join().expect("the chaos thread does not panic")
    })?;
    println!("{summary}");
    all_clients(options, &world, 1, Behaviour::Recovered);

    let tally = world.tally.into_inner().expect("no client panics");
    println!("{tally}");
    let hint = format!("repeat with --seed {seed} --requests {}", options.requests);
    let after = settle(&respool, Some(&base)).map_err(|error| format!("{error}; {hint}"))?;
    println!(
        "descriptors {} before, {} after; resident {:.1} MB before, {:.1} MB after",
        base.open_files,
        after.open_files,
        base.resident_bytes as f64 / 1e6,
        after.resident_bytes as f64 / 1e6
    );
    let mut complaints = tally.complaints();
    if !options.calm && options.requests >= COMPLETE_REQUESTS_MIN {
        complaints.extend(tally.missing());
        complaints.extend(summary.missing());
    }
    if !complaints.is_empty() {
        respool.output().iter().for_each(|line| println!("respool: {line}"));
        return Err(format!("{}; {hint}", complaints.join("; ")).into());
    }
    Ok(format!("{} replies, 0 to the wrong request, seed {seed}", tally.replies))
}

fn start_respool(options: &Options, settings_file: &Path) -> io::Result<Respool> {
    // Large runs are worth an optimised build.
    let usual = if options.requests > DEV_REQUESTS_MAX { "release" } else { "dev" };
    let binary = options.binary.locate(usual)?;
    let (workers, settings_file) = (WORKERS.to_string(), settings_file.display().to_string());
    let mut arguments = vec!["--config", &settings_file, "--workers", &workers];
    if !options.calm {
        // Shorter than many pauses, so that there are late replies to swallow.
        arguments.extend(["--request-timeout", "250ms"]);
    }
    Respool::start(&binary, &[], &options.binary.arguments(&arguments))
}

/// Runs every client in a thread of its own until each has sent its requests.
fn all_clients(options: &Options, world: &World, requests: u64, behaviour: Behaviour) {
    thread::scope(|scope| {
        for number in 0..options.clients {
            thread::Builder::new()
                .stack_size(256 << 10)
                .spawn_scoped(scope, move || client::run(world, number, requests, behaviour))
                .expect("threads for all clients can be started");
        }
    });
}

/// What Respool holds at one moment.
#[derive(Debug)]
struct Used {
    open_files: usize,
    resident_bytes: u64,
}

impl Used {
    fn of(respool: &Respool) -> io::Result<Used> {
        let pid = respool.pid();
        Ok(Used { open_files: usage::open_files(pid)?, resident_bytes: usage::resident_bytes(pid)? })
    }
}

/// Waits until all clients' connections are closed on the other side too and, when there is a `base`, until
/// descriptors and memory are back to it.
fn settle(respool: &Respool, base: Option<&Used>) -> io::Result<Used> {
    let mut used = Used::of(respool)?;
    let Some(base) = base else {
        // All clients have closed; the count has settled when it stays the same for a while.
        let mut unchanged = 0;
        wait_until("Respool's descriptors settle", SETTLE_LIMIT, || {
            let before = std::mem::replace(&mut used, Used::of(respool)?);
            unchanged = if used.open_files == before.open_files { unchanged + 1 } else { 0 };
            Ok(unchanged >= 100)
        })?;
        return Ok(used);
    };
    let resident_max = (base.resident_bytes as f64 * RESIDENT_SHARE_MAX) as u64 + RESIDENT_EXTRA_MAX;
    let waited = wait_until("descriptors and memory are back to base", SETTLE_LIMIT, || {
        used = Used::of(respool)?;
        Ok(used.open_files <= base.open_files + WARM_DESCRIPTORS_MAX && used.resident_bytes <= resident_max)
    });
    match waited {
        Ok(()) => Ok(used),
        Err(error) => {
            Err(io::Error::other(format!("{error}: base {base:?}, now {used:?}, resident allowed {resident_max}")))
        }
    }
}
