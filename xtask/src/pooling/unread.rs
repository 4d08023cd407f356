//! Clients that pipeline much and read nothing, beside one that asks the same node for a small key every ten milliseconds.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, request};

use super::node::Pair;
use super::{Bench, Finding, Wanted};

const VALUE_BYTES: usize = 100_000;
const LENGTH: Duration = Duration::from_secs(8);
const PAUSE: Duration = Duration::from_millis(10);
/// Clients that read nothing, requests of each, and the longest latency of another client's GET, in milliseconds.
const LOADS: [(usize, usize, f64); 4] = [(1, 2_000, 50.0), (1, 20_000, 50.0), (1, 300_000, 50.0), (10, 20_000, 100.0)];

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    let pair = Pair::start(bench, &["--workers", "1"])?;
    let mut client = pair.respool.client()?;
    client.command(&["SETRANGE", "large", &(VALUE_BYTES - 1).to_string(), "x"])?;
    client.command(&["SET", "small", "1"])?;
    let address = pair.respool.tcp();
    let (without, _) = probe(&address, 0, 0)?;
    let mut findings = Vec::new();
    for (clients, requests, longest_max) in LOADS {
        let (p99, longest) = probe(&address, clients, requests)?;
        let what = format!("beside {clients} x {requests} unread GETs of 100 KB");
        let ratio = p99.as_secs_f64() / without.as_secs_f64().max(f64::EPSILON);
        findings.push(Finding::new(format!("p99 of a small GET {what}"), ratio, Wanted::AtMost(3.0), "x without"));
        let longest = longest.as_secs_f64() * 1e3;
        findings.push(Finding::new(format!("longest {what}"), longest, Wanted::AtMost(longest_max), "ms"));
    }
    let ejected = client.figure("proxy", "nodes_ejected")?;
    findings.push(Finding::new("times that the node went out of use", ejected as f64, Wanted::Exactly(0.0), ""));
    Ok(findings)
}

/// The time that ninety-nine of a hundred small GETs do not exceed, and the longest.
fn probe(address: &Address, clients: usize, requests: usize) -> io::Result<(Duration, Duration)> {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let probing = scope.spawn(move || -> io::Result<Vec<Duration>> {
            let mut client = Client::connect(address)?;
            let mut times = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let reply = client.command(&["GET", "small"])?;
                times.push(begun.elapsed());
                if reply != b"$1\r\n1\r\n" {
                    return Err(io::Error::other(format!("GET small got {:?}", String::from_utf8_lossy(&reply))));
                }
                thread::sleep(PAUSE);
            }
            times.sort_unstable();
            Ok(times)
        });
        thread::sleep(LENGTH / 8);
        let mut idle = Vec::new();
        for _ in 0..clients {
            let stream = address.connect()?;
            let mut writer = stream.try_clone()?;
            idle.push(stream);
            let pipeline = request(&["GET", "large"]).repeat(requests);
            // What is not read any more is not sent: that ends with the connection.
            thread::spawn(move || writer.write_all(&pipeline));
        }
        thread::sleep(LENGTH / 8 * 7);
        is_over.store(true, Ordering::Relaxed);
        for stream in idle {
            stream.shutdown(std::net::Shutdown::Both)?;
        }
        let times = probing.join().expect("a probe does not panic")?;
        let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
        Ok((p99, times.last().copied().unwrap_or_default()))
    })
}
