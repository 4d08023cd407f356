//! `cargo xtask attribution`: does every reply belong to its request, whatever happens?
//!
//! Many clients share the lanes of one Respool to four redis-servers, and to one with a replica. Every key and value names the
//! client and the request that wrote it, so that a reply that went astray is recognised by its bytes. Meanwhile clients write in
//! odd pieces, read slowly, close their side and vanish, and servers are killed, paused, slow, full and replaced. An error is right
//! where a fault was inflicted on that node at that time, and nowhere else. Afterwards everything must work again, Respool must
//! have given back its memory and descriptors, and the process is succeeded by another, which ends, while clients go on. In the end
//! the nodes' own logs of what they executed are compared with what clients were told, write by write.

mod chaos;
mod client;
mod conversation;
mod excuses;
mod faults;
mod layout;
mod ledger;
mod log;
mod model;
mod packet_loss;
mod processors;
mod program;
mod states;
mod stops;
mod tally;
mod wall_clock;
mod watch;
mod world;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, io, thread};

use clap::Args;
use respool_testkit::{RedisServer, Respool, TempDir, proc_stats, wait_until};

use self::chaos::{Chaos, Form, WARM};
use self::client::Behaviour;
use self::faults::Faults;
use self::layout::{COPIES, Layout, MOVED, NODES, Nodes};
use self::ledger::{Ledger, ServerLog};
use self::program::Program;
use self::states::State;
use self::tally::Tally;
use self::wall_clock::WallClock;
use self::watch::Watch;
use self::world::World;
use crate::Outcome;
use crate::binary::Binary;

/// What a server needs beside its log to be troubled by orders.
const SERVER_ARGUMENTS: [&str; 2] = ["--enable-debug-command", "yes"];
/// Names that are tried to find some on every node.
const TAGS_MAX: usize = 1_000;
/// So many errors may be explained by lost packets alone, or by busy processors alone, and one more for each so many requests: there are
/// few of them, and a proxy that is late all the time is not to hide behind them.
const LATE_MAX: u64 = 100;
const REQUESTS_PER_LATE: u64 = 100_000;
/// Of a thousand requests, so many may be explained by a server that was silent although nothing was done to it, and by a fault that was felt
/// later because the process stood still; of as many replies, so many may be errors; and of as many writes, so many may have an outcome that
/// their clients do not know. A proxy that fails more often than it has to is not to hide behind faults.
const BY_SILENCE_PER_MILLE_MAX: u64 = 1;
const BY_STOP_PER_MILLE_MAX: u64 = 1;
const ERRORS_PER_MILLE_MAX: u64 = 100;
const UNKNOWN_PER_MILLE_MAX: u64 = 120;
/// The share of the requests that comes when the process is succeeded and ends.
const LEAVING_DIVISOR: u64 = 20;
/// The share of the requests that comes without routes, which refuse what is possible without them.
const UNROUTED_DIVISOR: u64 = 4;
/// Above this many requests the default is an optimised build.
const DEV_REQUESTS_MAX: u64 = 1_000_000;
/// The share of the requests that comes before memory and descriptors are noted as the base. Clients behave as badly as
/// later, since the allocator keeps the most that was ever needed: what grows beyond that is lost.
const WARM_UP_DIVISOR: u64 = 5;
/// Memory that may stay with the allocator beyond the base: a share of the base and a constant.
const RESIDENT_SHARE_MAX: f64 = 1.25;
const RESIDENT_EXTRA_MAX: u64 = 8 << 20;
/// So many more descriptors than at the base may be open: clean connections are kept for each worker, node and purpose, which are
/// waiting, and watching keys or being in pool mode `session`, this for each database and dialect: two, and one.
const WARM_DESCRIPTORS_MAX: usize = (NODES + 2) * WORKERS * WARM * (1 + 3);
const WORKERS: usize = 2;
/// From so many requests on every kind of trouble and every state of a session has to occur.
const COMPLETE_REQUESTS_MIN: u64 = 100_000;
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
    /// Print the names of all states and faults, and end
    #[arg(long)]
    list: bool,
    /// Dial nodes at the default rate: the time that a request waits for a dial counts as the node's
    #[arg(long)]
    default_dial_rate: bool,
    /// No state but this one; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// No fault but this one; may be given several times
    #[arg(long, value_name = "NAME")]
    fault: Vec<String>,
    /// Requests between two faults, on average
    #[arg(long, value_name = "NUMBER", default_value_t = chaos::REQUESTS_PER_FAULT, value_parser = clap::value_parser!(u64).range(1..))]
    fault_every: u64,
}

impl Options {
    /// Whether faults are of all kinds and as many as usual: what a run has to have and what may go wrong at most is said of such runs.
    fn has_usual_faults(&self) -> bool {
        self.fault.is_empty() && self.fault_every == chaos::REQUESTS_PER_FAULT
    }
}

pub(crate) fn run(options: &Options) -> Outcome {
    let seed = options.seed.unwrap_or_else(|| {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64 % 1_000_000_000)
    });
    if options.list {
        State::ALL.iter().map(|state| state.name()).chain(chaos::names()).for_each(|name| println!("{name}"));
        return Ok(format!("{} states, {} faults", State::ALL.len(), chaos::names().count()));
    }
    let unrouted = options.requests / UNROUTED_DIVISOR;
    let mut told = Vec::new();
    for (is_routed, requests) in [(true, options.requests - unrouted), (false, unrouted)] {
        if let Some(plan) = chaos::Plan::new(&options.fault, options.fault_every, is_routed)? {
            told.push(live(options, seed, requests, is_routed, &plan)?);
        }
    }
    Ok(format!("{}; seed {seed}", told.join("; ")))
}

/// One deployment from its beginning to its end.
fn live(options: &Options, seed: u64, requests: u64, is_routed: bool, plan: &chaos::Plan) -> Outcome {
    let kind = if is_routed { "with a replica and a route" } else { "without routes" };
    println!("seed {seed}, {requests} requests of {} clients, {NODES} nodes, {kind}", options.clients);
    let mut servers = start_servers()?;
    let directory = TempDir::new()?;
    let settings_file = directory.join("respool.toml");
    // One of the two deployments has the rate that users have.
    let form = Form::new(is_routed, options.default_dial_rate || !is_routed, options.clients);
    fs::write(&settings_file, chaos::settings(&servers, form))?;
    let clock = WallClock::new()?;
    let program = program(options, &settings_file, &clock)?;
    let mut respool = program.start()?;
    let states: Arc<[State]> = states(options, is_routed)?.into();
    let layout = Arc::new(Layout { tags: tags(&respool, &servers)? });
    let node_of = |server: usize| if server == NODES + 2 { MOVED } else { server };
    let of_nodes = servers.iter().enumerate().map(|(number, server)| (server, Nodes::one(node_of(number))));
    let world = World {
        seed,
        is_calm: options.calm,
        addresses: [respool.tcp(), respool.unix()],
        requests_done: AtomicU64::new(0),
        is_leaving: AtomicBool::new(false),
        is_ending: AtomicBool::new(false),
        moves: AtomicU64::new(0),
        layout,
        states: Arc::clone(&states),
        faults: Faults::new((0..NODES + 2).map(|node| format!("node{node}")).collect(), Watch::new(of_nodes)),
        tally: Mutex::new(Tally::default()),
        ledger: Mutex::new(Ledger::default()),
    };

    let processors = &world.faults.watch.processors;
    servers
        .iter()
        .enumerate()
        .for_each(|(number, server)| processors.note_server(Nodes::one(node_of(number)), server.pid()));
    processors.note_proxy(respool.pid());
    let (summary, integrity_faults) = thread::scope(|scope| {
        world.faults.watch.begin(scope);
        let of_chaos = (&program, &clock, &*settings_file, form);
        let summary = phases(options, &world, &mut servers, &mut respool, (of_chaos, plan), requests);
        world.faults.watch.end();
        summary
    })?;
    let hint = format!("repeat with --seed {seed} --requests {}", options.requests);

    let World { tally, ledger, faults, .. } = world;
    let tally = tally.into_inner().expect("no client panics");
    println!("{tally}");
    println!(
        "{} errors about servers that answered no request for a while, to which nothing was done",
        faults.by_silence()
    );
    println!("{} errors of faults that were felt later because the process stood still", faults.by_stop());
    println!("{}", faults.told_of());
    println!("{integrity_faults} replies that were not those of their requests, as a proof says");
    println!(
        "{} errors after the kernel had lost packets, {} in all, to which nothing was done",
        faults.by_packet_loss(),
        faults.watch.packet_loss.packets()
    );
    println!(
        "{} errors about answers that were late while a server or the process had no processor",
        faults.by_processor()
    );
    let audit = ledger::audit(&ledger.into_inner().expect("no client panics"), &logs(&servers)?, &faults.stops);
    println!(
        "{} writes compared with the nodes' own logs: {} of unknown outcome, of which {} were done; {} totals, {} shared values \
         that were read, {} transactions, {} elements, {} times requests were held, {} writes of closed connections were done meanwhile",
        audit.writes,
        audit.unknown,
        audit.unknown_done,
        audit.totals,
        audit.reads,
        audit.blocks,
        audit.pops,
        audit.holds,
        audit.late_in_holds
    );
    audit.described.iter().for_each(|complaint| println!("  {complaint}"));
    let mut complaints = tally.complaints();
    if audit.complaints > 0 {
        complaints.push(format!("{} writes are not what clients were told", audit.complaints));
    }
    let late_max = LATE_MAX + requests / REQUESTS_PER_LATE;
    for (late, what) in [(faults.by_packet_loss(), "lost packets"), (faults.by_processor(), "busy processors")] {
        if late > late_max {
            complaints.push(format!("{late} late nodes are explained by {what} alone, more than {late_max}"));
        }
    }
    for (count, of, per_mille_max, what) in [
        (faults.by_silence(), requests, BY_SILENCE_PER_MILLE_MAX, "errors are explained by a silent server alone"),
        (faults.by_stop(), requests, BY_STOP_PER_MILLE_MAX, "errors are explained by a stop of the process"),
        (
            tally.avoidable_errors(),
            tally.replies,
            ERRORS_PER_MILLE_MAX,
            "replies are errors of servers that load nothing",
        ),
        (audit.unknown as u64, audit.writes as u64, UNKNOWN_PER_MILLE_MAX, "writes have an outcome that is not known"),
    ] {
        // A short run has few requests and as many faults.
        let max = of.max(COMPLETE_REQUESTS_MIN) * per_mille_max / 1_000;
        if count > max && options.has_usual_faults() {
            complaints.push(format!("{count} {what}, more than {max}"));
        }
    }
    if integrity_faults > 0 {
        complaints.push(format!("{integrity_faults} replies of nodes did not prove to be those of their requests"));
    }
    if !options.calm && options.has_usual_faults() && requests >= COMPLETE_REQUESTS_MIN {
        complaints.extend(tally.missing(&states, requests));
        complaints.extend(summary.missing());
    }
    if !complaints.is_empty() {
        respool.output().iter().for_each(|line| println!("respool: {line}"));
        return Err(format!("{}; {hint}", complaints.join("; ")).into());
    }
    Ok(format!("{kind}: {} replies, 0 to the wrong request, {} writes as told", tally.replies, audit.writes))
}

/// Everything that clients do, from the first request to the end of the process.
fn phases(
    options: &Options,
    world: &World,
    servers: &mut [RedisServer],
    respool: &mut Respool,
    ((program, clock, settings_file, form), plan): ((&Program, &WallClock, &Path, Form), &chaos::Plan),
    requests: u64,
) -> Result<(chaos::Summary, u64), Box<dyn std::error::Error>> {
    let per_client = requests.div_ceil(options.clients);
    all_clients(options, world, per_client.div_ceil(WARM_UP_DIVISOR), Behaviour::WarmUp);
    let base = settle(respool, None)?;
    let summary = thread::scope(|scope| {
        let chaos = scope.spawn(|| match options.calm {
            true => Ok(chaos::Summary::default()),
            false => {
                let requests = requests - requests / WARM_UP_DIVISOR;
                Chaos::new(world, servers, respool, (program, clock), settings_file, form).run(requests, plan)
            }
        });
        all_clients(options, world, per_client - per_client.div_ceil(WARM_UP_DIVISOR), Behaviour::Hostile);
        chaos.join().expect("the chaos thread does not panic")
    })?;
    println!("{summary}");
    let throttled = summary.throttled + throttled(respool)?;
    println!("{throttled} times a client was not read for a while because its user had asked for too much");
    let is_limited = world.states.contains(&State::Limited) && requests >= COMPLETE_REQUESTS_MIN;
    if is_limited && throttled == 0 {
        return Err("no user has asked for too much".into());
    }
    all_clients(options, world, 1, Behaviour::Recovered);
    let hint = format!("repeat with --seed {} --requests {}", world.seed, options.requests);
    let after = settle(respool, Some(&base)).map_err(|error| format!("{error}; {hint}"))?;
    println!(
        "descriptors {} before, {} after; resident {:.1} MB before, {:.1} MB after",
        base.open_files,
        after.open_files,
        base.resident_bytes as f64 / 1e6,
        after.resident_bytes as f64 / 1e6
    );
    // The last process is asked before it goes.
    let integrity_faults = summary.integrity_faults + integrity_faults(respool)?;
    let leaving = per_client.div_ceil(LEAVING_DIVISOR);
    thread::scope(|scope| {
        let succession = scope.spawn(|| succeed(program, world, respool, leaving * options.clients));
        all_clients(options, world, leaving, Behaviour::Leaving);
        succession.join().expect("the successor's thread does not panic")
    })?;
    Ok((summary, integrity_faults))
}

/// How often a client was not read for a while because of the rate of its user.
fn throttled(respool: &Respool) -> io::Result<u64> {
    let info = respool.client()?.ask("INFO")?;
    let told = info.lines().find_map(|line| line.trim_end().strip_prefix("throttled:")?.parse().ok());
    told.ok_or_else(|| io::Error::other("INFO does not say how often clients were throttled"))
}

/// How many batches of replies were found not to be answered in order, where that is proved.
fn integrity_faults(respool: &Respool) -> io::Result<u64> {
    respool.client()?.figure("proxy", "integrity_faults")
}

/// The states of this run.
fn states(options: &Options, is_routed: bool) -> Result<Vec<State>, String> {
    let state = |name: &String| State::named(name).ok_or_else(|| format!("no state is called {name:?}"));
    let only = options.only.iter().map(state).collect::<Result<Vec<_>, _>>()?;
    let listed = if only.is_empty() { State::ALL.to_vec() } else { only };
    let fits = |state: &State| state.needs_routes().is_none_or(|needs| needs == is_routed);
    Ok(listed.into_iter().filter(fits).collect())
}

/// The nodes, the one with a replica, that replica, and a spare one.
fn start_servers() -> io::Result<Vec<RedisServer>> {
    let logged = [&SERVER_ARGUMENTS[..], &log::SERVER_ARGUMENTS].concat();
    let mut servers = (0..=COPIES).map(|_| RedisServer::start_with(&logged)).collect::<io::Result<Vec<_>>>()?;
    let port = servers[COPIES].port().to_string();
    servers.push(RedisServer::start_with(&[&SERVER_ARGUMENTS[..], &["--replicaof", "127.0.0.1", &port]].concat())?);
    servers.push(RedisServer::start_with(&logged)?);
    Ok(servers)
}

/// Finds names whose keys are on each node.
fn tags(respool: &Respool, servers: &[RedisServer]) -> io::Result<Vec<String>> {
    let mut client = respool.client()?;
    let mut nodes = servers[..NODES].iter().map(RedisServer::client).collect::<io::Result<Vec<_>>>()?;
    let mut tags: Vec<Option<String>> = vec![None; NODES];
    for number in 0..TAGS_MAX {
        let tag = format!("t{number}");
        client.ask(&format!("SET {{{tag}}} 1"))?;
        for (node, tag_of_node) in nodes.iter_mut().zip(&mut tags) {
            if node.ask(&format!("EXISTS {{{tag}}}"))? == ":1\r\n" {
                tag_of_node.get_or_insert_with(|| tag.clone());
            }
        }
        if tags.iter().all(Option::is_some) {
            break;
        }
    }
    let tags = tags.into_iter().collect::<Option<Vec<_>>>();
    let mut tags = tags.ok_or_else(|| io::Error::other("not every node has keys"))?;
    // Keys of the node with a replica are known by how they begin.
    tags.push("copied".to_owned());
    Ok(tags)
}

/// What every server has executed. The last is the spare one of the node that moves.
fn logs(servers: &[RedisServer]) -> io::Result<Vec<ServerLog>> {
    let of_nodes = (0..=COPIES).map(|server| (server, server));
    of_nodes
        .chain([(NODES + 2, MOVED)])
        .map(|(server, node)| Ok(ServerLog { node, executed: log::read(servers[server].directory())? }))
        .collect()
}

/// How the proxy of this run is started.
fn program(options: &Options, settings_file: &Path, clock: &WallClock) -> io::Result<Program> {
    // Large runs are worth an optimised build.
    let usual = if options.requests > DEV_REQUESTS_MAX { "release" } else { "dev" };
    let takeover = settings_file.with_extension("takeover").display().to_string();
    let (workers, settings_file) = (WORKERS.to_string(), settings_file.display().to_string());
    let mut arguments = vec!["--config", &settings_file, "--workers", &workers, "--takeover-socket", &takeover];
    // So short that many clients are still connected to a process that is succeeded when its time is over.
    arguments.extend(["--drain-timeout", "500ms"]);
    let timeout = format!("{}ms", watch::REQUEST_TIMEOUT.as_millis());
    if !options.calm {
        // Shorter than many pauses, so that there are late replies to swallow.
        arguments.extend(["--request-timeout", &timeout]);
    }
    let arguments = options.binary.arguments(&arguments).into_iter().map(str::to_owned).collect();
    Ok(Program { binary: options.binary.locate(usual)?, arguments, takeover, environment: clock.environment() })
}

/// Another process takes over while clients are busy, and is told to end while they still are.
fn succeed(program: &Program, world: &World, respool: &mut Respool, requests: u64) -> io::Result<()> {
    let begin = world.requests_done.load(Ordering::Relaxed);
    if !chaos::wait_for(world, begin + requests / 3) {
        return Ok(());
    }
    world.is_leaving.store(true, Ordering::SeqCst);
    let mut retired = program.succeed(respool)?;
    world.faults.watch.processors.note_proxy(respool.pid());
    retired.wait(SETTLE_LIMIT)?;
    chaos::wait_for(world, begin + requests * 2 / 3);
    world.is_ending.store(true, Ordering::SeqCst);
    respool.terminate(SETTLE_LIMIT).map(drop)
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
        Ok(Used { open_files: proc_stats::open_files(pid)?, resident_bytes: proc_stats::resident_bytes(pid)? })
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
