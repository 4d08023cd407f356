//! What a burst leaves behind: soon after its clients have gone, Respool occupies about as much memory as before they came.
//!
//! Each burst meets a Respool of its own, which has served a few requests and rests; that is what it is compared with. All
//! requests of a burst are sent before the first reply is read.

use std::io;
use std::thread;
use std::time::Duration;

use respool_testkit::{Client, RedisServer, Respool, proc_stats, request, wait_until};

use super::{Bench, Finding, Wanted};
use crate::command;

const WORKERS: &str = "2";
const NODES: usize = 2;
const KEYS: usize = 100;
const SMALL_BYTES: usize = 1_000;
const LARGE_BYTES: usize = 1_000_000;
/// How long Respool rests before a burst, and how long it has to recover from one.
const REST: Duration = Duration::from_secs(3);
const RECOVERY: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);
/// Memory after a burst, by that before it.
const RATIO_MAX: f64 = 1.5;

type Burst = fn(&Respool) -> io::Result<Vec<Client>>;

const BURSTS: [(&str, Burst); 5] = [
    ("2,000 clients that GET 100 x 1 KB", |respool| small(respool, false)),
    ("2,000 clients that SET 100 x 1 KB", |respool| small(respool, true)),
    ("200 clients that GET 1 MB twice", large),
    ("20,000 clients, 10,000 at a time", connections),
    ("100,000 channels", channels),
];

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    command::allow_open_files(11_000)?;
    BURSTS.into_iter().map(|(what, burst)| measure(bench, what, burst)).collect()
}

fn measure(bench: &Bench, what: &str, burst: Burst) -> io::Result<Finding> {
    let servers: Vec<_> = (0..NODES).map(|_| RedisServer::start()).collect::<io::Result<_>>()?;
    let addresses: Vec<_> = servers.iter().map(RedisServer::tcp).collect();
    let arguments = bench.binary.arguments(&["--workers", WORKERS, "--max-clients", "12000"]);
    let respool = Respool::start(&bench.respool, &addresses, &arguments)?;
    let mut observer = respool.client()?;
    for key in 0..KEYS {
        observer.command(&["SET", &small_key(key), &"x".repeat(SMALL_BYTES)])?;
        observer.command(&["SETRANGE", &large_key(key % 10), &(LARGE_BYTES - 1).to_string(), "x"])?;
    }
    thread::sleep(REST);
    let idle = proc_stats::resident_bytes(respool.pid())?;
    proc_stats::reset_peak(respool.pid())?;
    let clients = burst(&respool)?;
    let peak = proc_stats::peak_resident_bytes(respool.pid())?;
    drop(clients);
    wait_until("all have left", PATIENCE, || Ok(observer.figure("clients", "connected_clients")? <= 1))?;
    thread::sleep(RECOVERY);
    let after = proc_stats::resident_bytes(respool.pid())?;
    let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!("bursts: {what}: {:.1} MB before, {:.1} MB at the peak, {:.1} MB after", mb(idle), mb(peak), mb(after));
    let what = format!("memory {} s after {what}", RECOVERY.as_secs());
    Ok(Finding::new(what, after as f64 / idle as f64, Wanted::AtMost(RATIO_MAX), "x before"))
}

fn small_key(number: usize) -> String {
    format!("small:{number}")
}

fn large_key(number: usize) -> String {
    format!("large:{number}")
}

fn crowd(respool: &Respool, count: usize) -> io::Result<Vec<Client>> {
    (0..count)
        .map(|_| {
            let client = respool.client()?;
            client.set_timeout(PATIENCE)?;
            Ok(client)
        })
        .collect()
}

/// Has all of them send `pipeline`, and then reads so many replies of each.
fn ask(clients: &mut [Client], pipeline: &[u8], replies: usize) -> io::Result<()> {
    for client in &mut *clients {
        client.send(pipeline)?;
    }
    for client in clients {
        let replies = client.replies(replies)?;
        if let Some(error) = replies.iter().find(|reply| reply.starts_with(b"-")) {
            return Err(io::Error::other(format!("a client got {}", String::from_utf8_lossy(error))));
        }
    }
    Ok(())
}

fn small(respool: &Respool, is_write: bool) -> io::Result<Vec<Client>> {
    let mut clients = crowd(respool, 2_000)?;
    let value = "y".repeat(SMALL_BYTES);
    let one = |number: usize| match is_write {
        true => request(&["SET", &small_key(number), &value]),
        false => request(&["GET", &small_key(number)]),
    };
    let pipeline: Vec<u8> = (0..KEYS).flat_map(one).collect();
    ask(&mut clients, &pipeline, KEYS)?;
    Ok(clients)
}

fn large(respool: &Respool) -> io::Result<Vec<Client>> {
    let mut clients = crowd(respool, 200)?;
    let pipeline = [request(&["GET", &large_key(3)]), request(&["GET", &large_key(7)])].concat();
    ask(&mut clients, &pipeline, 2)?;
    Ok(clients)
}

fn connections(respool: &Respool) -> io::Result<Vec<Client>> {
    let first = crowd(respool, 10_000)?;
    drop(first);
    let mut clients = crowd(respool, 10_000)?;
    ask(&mut clients, &request(&["GET", &small_key(1)]), 1)?;
    Ok(clients)
}

fn channels(respool: &Respool) -> io::Result<Vec<Client>> {
    let mut clients = crowd(respool, 10)?;
    for (number, client) in clients.iter_mut().enumerate() {
        let names: Vec<String> = (0..10_000).map(|channel| format!("channel:{number}:{channel}")).collect();
        for names in names.chunks(1_000) {
            let words: Vec<&str> = std::iter::once("SUBSCRIBE").chain(names.iter().map(String::as_str)).collect();
            client.send(&request(&words))?;
            client.replies(names.len())?;
        }
    }
    // Half of them say that they leave.
    for client in clients.iter_mut().step_by(2) {
        client.send(&request(&["UNSUBSCRIBE"]))?;
        client.replies(10_000)?;
    }
    Ok(clients)
}
