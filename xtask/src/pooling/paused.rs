//! A pause of a minute with a thousand clients that connect and disconnect: monitoring is answered at once, clients are
//! counted right, memory does not grow, and in the end exactly the connected clients are served.
//!
//! Each client sends one request, which is held back. Every tenth of a second some of them disconnect, by closing or by a
//! reset, and as many connect. Once a second the console, INFO and metrics are queried, each timed by itself.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};
use std::{io, thread};

use respool_testkit::{Client, free_port, proc_stats, wait_until};

use super::node::Pair;
use super::{Bench, Finding, Wanted};
use crate::command;

const CLIENTS: usize = 1_000;
const LASTS: Duration = Duration::from_secs(60);
/// Clients that disconnect and connect in each step.
const STEP: usize = 20;
const STEPS_PER_LOOK: usize = 10;
const STEP_TIME: Duration = Duration::from_millis(100);
/// Time until a disconnected client is not counted any more.
const COUNTED: Duration = Duration::from_secs(2);
/// Memory is compared with that after as many disconnects as there are clients.
const SETTLED: Duration = Duration::from_secs(6);
const PATIENCE: Duration = Duration::from_secs(30);

/// The highest latency of each way of monitoring, in milliseconds.
#[derive(Default)]
struct Slowest {
    console: f64,
    info: f64,
    metrics: f64,
}

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    command::allow_open_files(CLIENTS as u64 + 500)?;
    let metrics = free_port()?;
    let listen = format!("127.0.0.1:{metrics}");
    let arguments = ["--workers", "2", "--admin-commands", "allow", "--metrics", &listen];
    let mut pair = Pair::start(bench, &arguments)?;
    let mut operator = pair.respool.client()?;
    operator.set_timeout(PATIENCE)?;
    // The proxy remembers a reply of the node to INFO.
    operator.ask("INFO")?;
    operator.ask("SET counter 0")?;
    expect("+OK\r\n", &operator.ask("PROXY PAUSE WAIT")?)?;
    let mut clients: VecDeque<Client> = (0..CLIENTS).map(|_| come(&pair)).collect::<io::Result<_>>()?;
    let (begin, mut slowest, mut miscounts, mut came) = (Instant::now(), Slowest::default(), 0, CLIENTS);
    let mut before = None;
    while begin.elapsed() < LASTS {
        for _ in 0..STEPS_PER_LOOK {
            clients.drain(..STEP);
            for _ in 0..STEP {
                clients.push_back(come(&pair)?);
            }
            came += STEP;
            thread::sleep(STEP_TIME);
        }
        look(&mut operator, metrics, &mut slowest)?;
        let is_counted = wait_until("all are counted", COUNTED, || {
            let connected = operator.figure("clients", "connected_clients")?;
            let blocked = operator.figure("clients", "blocked_clients")?;
            Ok((connected, blocked) == (CLIENTS as u64 + 1, CLIENTS as u64))
        });
        miscounts += u64::from(is_counted.is_err());
        if before.is_none() && begin.elapsed() > SETTLED {
            before = Some(proc_stats::resident_bytes(pair.respool.pid())?);
        }
    }
    let after = proc_stats::resident_bytes(pair.respool.pid())?;
    let executed_before = pair.number("GET counter")?;
    expect("+OK\r\n", &operator.ask("PROXY RESUME")?)?;
    let mut served = 0;
    for client in &mut clients {
        client.set_timeout(PATIENCE)?;
        served += u64::from(client.reply()?.starts_with(b":"));
    }
    let executed = pair.number("GET counter")?;
    println!(
        "paused: {came} clients came; console {:.1} ms, INFO {:.1} ms, metrics {:.1} ms at most; {executed} executed",
        slowest.console, slowest.info, slowest.metrics
    );
    let ratio = after as f64 / before.unwrap_or(after) as f64;
    Ok(vec![
        Finding::new("the console amid a pause, at most", slowest.console, Wanted::AtMost(50.0), "ms"),
        Finding::new("INFO amid a pause, at most", slowest.info, Wanted::AtMost(50.0), "ms"),
        Finding::new("metrics amid a pause, at most", slowest.metrics, Wanted::AtMost(50.0), "ms"),
        Finding::new("looks at which clients were counted wrong", miscounts as f64, Wanted::Exactly(0.0), ""),
        Finding::new("memory after a minute of clients that come and go", ratio, Wanted::AtMost(1.2), "x before"),
        Finding::new("requests executed amid a pause", executed_before as f64, Wanted::Exactly(0.0), ""),
        Finding::new("clients served behind it", served as f64, Wanted::Exactly(CLIENTS as f64), ""),
        Finding::new("requests executed behind it", executed as f64, Wanted::Exactly(CLIENTS as f64), ""),
    ])
}

/// Connects a client whose request is held back.
fn come(pair: &Pair) -> io::Result<Client> {
    let mut client = pair.respool.client()?;
    client.send(b"INCR counter\r\n")?;
    Ok(client)
}

fn look(operator: &mut Client, metrics: u16, slowest: &mut Slowest) -> io::Result<()> {
    let console = timed(|| operator.ask("PROXY SHOW NODES").map(drop))?;
    let info = timed(|| operator.ask("INFO").map(drop))?;
    let metrics = timed(|| scrape(metrics))?;
    slowest.console = slowest.console.max(console);
    slowest.info = slowest.info.max(info);
    slowest.metrics = slowest.metrics.max(metrics);
    Ok(())
}

fn timed(what: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let begin = Instant::now();
    what()?;
    Ok(begin.elapsed().as_secs_f64() * 1_000.0)
}

fn scrape(port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    if response.contains("respool_blocked_clients") { Ok(()) } else { Err(io::Error::other("these are no metrics")) }
}

fn expect(wanted: &str, reply: &str) -> io::Result<()> {
    if reply == wanted { Ok(()) } else { Err(io::Error::other(format!("{wanted:?} was wanted, not {reply:?}"))) }
}
