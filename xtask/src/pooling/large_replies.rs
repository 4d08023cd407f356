//! Replies of any size to readers of any speed: they arrive whole, and Respool holds a few megabytes of them.

use std::io::{self, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use respool_testkit::{Address, RedisServer, Respool, proc_stats, request};

use super::{Bench, Finding, Wanted};

const MB: u64 = 1_000_000;
/// What a process may occupy at its peak, whatever is read.
const RESIDENT_MAX_MB: f64 = 48.0;
/// A reader that does nothing before its pipeline has been answered in part.
const PAUSE: Duration = Duration::from_millis(1_500);
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
/// Different keys that a pipeline asks for in turn, so that all nodes have some.
const KEYS: usize = 16;
const PIECE_BYTES: usize = 256 << 10;

/// What one reader asks for, and how it takes it.
struct Reading {
    what: &'static str,
    nodes: usize,
    value_bytes: u64,
    count: usize,
    /// Bytes a second; `None`: as fast as they come, after a pause.
    speed: Option<u64>,
}

const fn at(what: &'static str, nodes: usize, value_bytes: u64, count: usize, speed: Option<u64>) -> Reading {
    Reading { what, nodes, value_bytes, count, speed }
}

const READINGS: [Reading; 11] = [
    at("300 MB at 40 MB/s, the first time", 1, 300 * MB, 1, Some(40 * MB)),
    at("300 MB at 10 MB/s", 1, 300 * MB, 1, Some(10 * MB)),
    at("300 MB at 200 MB/s", 1, 300 * MB, 1, Some(200 * MB)),
    at("8 x 60 MB at 30 MB/s", 1, 60 * MB, 8, Some(30 * MB)),
    at("8 x 60 MB at 30 MB/s", 4, 60 * MB, 8, Some(30 * MB)),
    at("600 x 1 MB after a pause", 1, MB, 600, None),
    at("600 x 1 MB after a pause", 4, MB, 600, None),
    at("600 x 1 MiB after a pause", 1, 1 << 20, 600, None),
    at("600 x 1 MiB after a pause", 4, 1 << 20, 600, None),
    at("58,600 x 10 KB after a pause", 1, 10_000, 58_600, None),
    at("58,600 x 10 KB after a pause", 4, 10_000, 58_600, None),
];

pub(super) fn run(bench: &Bench) -> io::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for nodes in [1, 4] {
        let servers: Vec<_> = (0..nodes).map(|_| RedisServer::start()).collect::<io::Result<_>>()?;
        let addresses: Vec<_> = servers.iter().map(RedisServer::tcp).collect();
        let arguments = bench.binary.arguments(&["--bulk-bytes-max", "512mb"]);
        let respool = Respool::start(&bench.respool, &addresses, &arguments)?;
        for reading in READINGS.iter().filter(|reading| reading.nodes == nodes) {
            findings.extend(measure(&respool, reading)?);
        }
    }
    Ok(findings)
}

fn measure(respool: &Respool, reading: &Reading) -> io::Result<Vec<Finding>> {
    let keys: Vec<String> =
        (0..KEYS.min(reading.count)).map(|number| format!("{}:{number}", reading.value_bytes)).collect();
    let mut client = respool.client()?;
    for key in &keys {
        client.command(&["SETRANGE", key, &(reading.value_bytes - 1).to_string(), "x"])?;
    }
    proc_stats::reset_peak(respool.pid())?;
    let received = read(&respool.tcp(), &keys, reading)?;
    let peak = proc_stats::peak_resident_bytes(respool.pid())? as f64 / (1 << 20) as f64;
    client.command(&[&["DEL"][..], &keys.iter().map(String::as_str).collect::<Vec<_>>()].concat())?;
    let what = format!("{}, {} node{}", reading.what, reading.nodes, if reading.nodes == 1 { "" } else { "s" });
    Ok(vec![
        Finding::new(format!("{what}: of it arrived"), received * 100.0, Wanted::Exactly(100.0), "%"),
        Finding::new(format!("{what}: peak memory"), peak, Wanted::AtMost(RESIDENT_MAX_MB), "MB"),
    ])
}

/// Asks for all in one pipeline and takes it as it is wanted. Gives the share that arrived.
fn read(address: &Address, keys: &[String], reading: &Reading) -> io::Result<f64> {
    let mut stream = address.connect()?;
    stream.set_read_timeout(Some(SILENCE_LIMIT))?;
    let pipeline: Vec<u8> = keys.iter().cycle().take(reading.count).flat_map(|key| request(&["GET", key])).collect();
    let mut writer = stream.try_clone()?;
    // The proxy does not read on before its replies are.
    let sender = thread::spawn(move || writer.write_all(&pipeline));
    let reply_bytes = reading.value_bytes + format!("${}\r\n\r\n", reading.value_bytes).len() as u64;
    let whole = reply_bytes * reading.count as u64;
    if reading.speed.is_none() {
        thread::sleep(PAUSE);
    }
    let (begun, mut received, mut piece) = (Instant::now(), 0, vec![0; PIECE_BYTES]);
    while received < whole {
        if let Some(speed) = reading.speed {
            let due = Duration::from_micros(received * 1_000_000 / speed);
            thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => break,
            Ok(count) => received += count as u64,
        }
    }
    drop(stream);
    // If it was cut off the sender was, too, and that shows in what arrived.
    let _ = sender.join();
    Ok(received as f64 / whole as f64)
}
