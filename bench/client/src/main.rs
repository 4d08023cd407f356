//! One client in one scenario: `respool-client-bench --peer NAME --scenario NAME --address HOST:PORT ...`, see `options.rs`.
//!
//! Prints one line of JSON. `cargo xtask bench client` runs it for all clients in turns, and the Go program beside it, which has the
//! same command line. Every value that is read is checked.

mod allocations;
mod crowd;
mod measure;
mod options;
mod peers;
mod scenarios;

use crate::options::Options;
#[cfg(feature = "glide")]
use crate::peers::Glide;
use crate::peers::{Fred, Peer, RedisThreads, Respool, RespoolThreads, Rustis, UNIX, redis_candidate, redis_stable};
use respool_client::Client;
use tokio::runtime::{Builder, Runtime};

/// What the xtask asks for: the names of all clients of this program.
const PEERS: &[&str] = &[
    "respool",
    "respool-threads",
    "redis",
    "redis-threads",
    "redis-rc",
    "fred",
    "rustis",
    #[cfg(feature = "glide")]
    "valkey-glide",
];

fn main() {
    if std::env::args().nth(1).as_deref() == Some("--list") {
        PEERS.iter().for_each(|peer| println!("{peer}"));
        return;
    }
    let options = Options::read();
    let runtime = match options.workers {
        0 => Builder::new_current_thread().enable_all().build(),
        workers => Builder::new_multi_thread().worker_threads(workers).enable_all().build(),
    }
    .expect("a runtime");
    let address = options.address.as_str();
    // Some connections of the crate `redis` are not made anew when they are lost.
    let is_lost = options.scenario == "restart";
    let is_cluster = options.scenario == "cluster";
    let open = || {
        let url = match address.strip_prefix(UNIX) {
            Some(path) => format!("redis+unix://{path}"),
            None if is_cluster => format!("redis+cluster://{address}"),
            None => address.to_owned(),
        };
        Client::open(&url).expect("an address")
    };
    match options.peer.as_str() {
        "respool" => run(&runtime, Respool(open()), &options),
        "respool-threads" => run(&runtime, RespoolThreads(open()), &options),
        "redis" if is_cluster => run(&runtime, runtime.block_on(redis_stable::cluster(address)), &options),
        "redis" if is_lost => run(&runtime, runtime.block_on(redis_stable::managed(address)), &options),
        "redis" => run(&runtime, runtime.block_on(redis_stable::plain(address)), &options),
        "redis-threads" => run(&runtime, RedisThreads::new(address, is_cluster), &options),
        "redis-rc" if is_cluster => run(&runtime, runtime.block_on(redis_candidate::cluster(address)), &options),
        "redis-rc" if is_lost => run(&runtime, runtime.block_on(redis_candidate::managed(address)), &options),
        "redis-rc" => run(&runtime, runtime.block_on(redis_candidate::plain(address)), &options),
        "fred" => run(&runtime, runtime.block_on(Fred::connect(address, is_cluster)), &options),
        "rustis" => run(&runtime, runtime.block_on(Rustis::connect(address, is_cluster)), &options),
        #[cfg(feature = "glide")]
        "valkey-glide" if is_cluster => run(&runtime, runtime.block_on(Glide::connect_cluster(address)), &options),
        #[cfg(feature = "glide")]
        "valkey-glide" => run(&runtime, runtime.block_on(Glide::connect(address)), &options),
        other => panic!("the client {other} is not known: --list names all"),
    }
}

fn run<P: Peer>(runtime: &Runtime, peer: P, options: &Options) {
    let scenario = scenarios::run(peer, options.clone());
    let report = if P::IN_THREADS {
        // Nothing of a runtime is near.
        crowd::run_in_thread(scenario)
    } else {
        runtime.block_on(async { tokio::spawn(scenario).await.expect("the scenario has panicked") })
    };
    report.print();
    // What some clients leave running ends with the process.
    std::process::exit(0);
}
