//! Transactions of many clients, at a steady pace: none of them may cost a connection to the node.
//!
//! MULTI and EXEC alone need no connection of their own, so there is no new one. Who watches keys has one to itself until EXEC:
//! there are as many as clients were ever watching at the same moment, and when by chance it is one more than ever before,
//! one more is opened. None is closed, so none is opened in the place of another.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client};

use super::node::Pair;
use super::{Bench, Finding, Wanted};

const CLIENTS: usize = 100;
const PER_SECOND: u32 = 300;
/// For each of two workers a shared connection, and as many as it keeps for the next who watches (`private_connections_warm`).
const CONNECTIONS_MAX: u32 = 2 * (1 + 16);
const WARM_UP: Duration = Duration::from_secs(2);
const LENGTH: Duration = Duration::from_secs(10);

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for (is_watching, what) in [(false, "MULTI/EXEC"), (true, "WATCH/MULTI/EXEC")] {
        let mut pair = Pair::start(bench, &["--workers", "2"])?;
        let address = pair.respool.tcp();
        let warm_up = all_clients(&address, is_watching, WARM_UP)?;
        let (before, open_before) = (pair.connections_ever()?, pair.connections()?);
        let started = Instant::now();
        let done = all_clients(&address, is_watching, LENGTH)?;
        let speed = done as f64 / started.elapsed().as_secs_f64();
        let (new, open) = (pair.connections_ever()? - before, pair.connections()?);
        println!("transactions: {done} {what}, {speed:.0} a second, {open} connections in all, {new} of them new");
        findings.push(Finding::new(
            format!("{what} a second of {CLIENTS} clients"),
            speed.round(),
            at_pace(),
            "a second",
        ));
        if is_watching {
            let replaced = (open_before + new) as f64 - open as f64;
            let name = format!("upstream connections opened in place of closed ones, {what}");
            findings.push(Finding::new(name, replaced, Wanted::Exactly(0.0), ""));
            let name = format!("upstream connections for {what}");
            findings.push(Finding::new(name, open as f64, Wanted::AtMost(f64::from(CONNECTIONS_MAX)), ""));
        } else {
            let name = format!("new upstream connections for {what}");
            findings.push(Finding::new(name, new as f64, Wanted::Exactly(0.0), ""));
        }
        let counted = pair.number("GET counter")?;
        findings.push(Finding::new(
            format!("{what} carried out once each"),
            counted as f64,
            Wanted::Exactly((warm_up + done) as f64),
            "",
        ));
    }
    Ok(findings)
}

/// The clients keep the pace but for what a busy machine takes away.
fn at_pace() -> Wanted {
    Wanted::AtLeast(f64::from(PER_SECOND) * 0.97)
}

fn all_clients(address: &Address, is_watching: bool, length: Duration) -> io::Result<u64> {
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(address, number, is_watching, length))).collect();
        let mut done = 0;
        for client in clients {
            done += client.join().expect("a client does not panic")?;
        }
        Ok(done)
    })
}

/// One transaction after the other, each at its time.
fn client(address: &Address, number: usize, is_watching: bool, length: Duration) -> io::Result<u64> {
    let mut client = Client::connect(address)?;
    let step = Duration::from_secs(CLIENTS as u64) / PER_SECOND;
    let begin = Instant::now() + step * number as u32 / CLIENTS as u32;
    let mut done = 0;
    for round in 0.. {
        let due = begin + step * round;
        if due >= begin + length {
            return Ok(done);
        }
        thread::sleep(due.saturating_duration_since(Instant::now()));
        done += u64::from(transaction(&mut client, number, is_watching)?);
    }
    unreachable!("the loop returns when the time is over")
}

/// Whether it was carried out.
fn transaction(client: &mut Client, number: usize, is_watching: bool) -> io::Result<bool> {
    let key = format!("{{counter}}:{number}");
    if is_watching {
        expect(client.ask(&format!("WATCH {key}"))?, "+OK\r\n")?;
        let held = client.ask(&format!("GET {key}"))?;
        let is_right = held == "$-1\r\n" || held == format!("${}\r\nx{number}\r\n", format!("x{number}").len());
        if !is_right {
            return Err(io::Error::other(format!("GET {key} got {held:?}")));
        }
    }
    expect(client.ask("MULTI")?, "+OK\r\n")?;
    expect(client.ask("INCR counter")?, "+QUEUED\r\n")?;
    expect(client.ask(&format!("SET {key} x{number}"))?, "+QUEUED\r\n")?;
    expect(client.ask(&format!("GET {key}"))?, "+QUEUED\r\n")?;
    let reply = client.ask("EXEC")?;
    let value = format!("x{number}");
    let is_right =
        reply.starts_with("*3\r\n:") && reply.ends_with(&format!("\r\n+OK\r\n${}\r\n{value}\r\n", value.len()));
    if is_right { Ok(true) } else { Err(io::Error::other(format!("EXEC got {reply:?}"))) }
}

fn expect(reply: String, wanted: &str) -> io::Result<()> {
    if reply == wanted { Ok(()) } else { Err(io::Error::other(format!("got {reply:?} instead of {wanted:?}"))) }
}
