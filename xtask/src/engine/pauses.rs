//! The slowest of a thousand GETs while very many keys come, and while very many expire at once.
//!
//! GETs come at times of their own, as in the open loop of `cargo xtask bench`: what counts is the time from when one was to be
//! sent until its reply is there. The servers share core 0. One thread on core 1 sends the GETs and the SETs, so that neither takes
//! the processor from the other.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use respool_testkit::{Address, Client, RedisServer, Rng, request};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::items::fill;
use super::probe::{LATENCY_MAX_NS, Line, PATIENCE, pause};
use super::{Options, Pair, Row};
use crate::bench::deployment::pin;
use crate::bench::row::median;

/// Keys that are asked for.
const KEYS: usize = 100_000;
const CONNECTIONS: usize = 50;
/// Keys that come in all rounds together, and how many in a second and in one batch.
const NEW_KEYS: usize = 10_000_000;
const NEW_KEYS_PER_SECOND: usize = 200_000;
const NEW_KEYS_AT_ONCE: usize = 50;
/// New keys that are under way at once: a server that is slower than they come gets them later, and none is left out.
const NEW_KEYS_UNDER_WAY: usize = 5_000;
/// Keys that expire in one round.
const EXPIRING_KEYS: usize = 1_000_000;
/// From when all of them are there until they expire, at least, and how long is measured from just before that.
const EXPIRY_LEAD: Duration = Duration::from_secs(1);
const EXPIRY_LENGTH: Duration = Duration::from_secs(5);
/// What filling in those keys may take.
const EXPIRY_FILL: Duration = Duration::from_secs(20);

/// What comes and how long it goes on.
struct Load {
    rate: u32,
    length: Duration,
    /// The numbers of new keys. It goes on until the last of them is sent.
    new_keys: Range<usize>,
}

pub(super) fn measure(options: &Options, respool: &Path, add: &mut dyn FnMut(Row)) -> io::Result<()> {
    let Options { rounds, rate, .. } = *options;
    for (name, is_expiry) in [("GET p99.9 while 10 M keys come", false), ("GET p99.9 while 1 M keys expire", true)] {
        if !options.matches(name) {
            continue;
        }
        let pair = Pair::start(respool)?;
        for (_, server) in pair.in_turn(0) {
            pin(server.pid(), 0)?;
            let mut client = Client::connect(&server.tcp())?;
            fill(&mut client, 0..KEYS, |n| request(&["SET", &key(n), "xxx"]))?;
        }
        let mut micros = [Vec::new(), Vec::new()];
        for round in 0..usize::from(rounds) {
            for (which, server) in pair.in_turn(round) {
                let latencies = if is_expiry {
                    while_keys_expire(server, rate)?
                } else {
                    while_keys_come(server, rate, round, rounds)?
                };
                micros[which].push(latencies.value_at_quantile(0.999) as f64 / 1e3);
            }
        }
        let [redis, embedded] = micros.map(|micros| median(micros).unwrap_or(f64::NAN));
        add(Row { name: name.into(), unit: "us", redis, embedded, ratio_max: 1.2 });
    }
    Ok(())
}

fn key(number: usize) -> String {
    format!("key:{number:012}")
}

/// Every round goes on where the one before has ended, so that the servers grow to their full size once.
fn while_keys_come(server: &RedisServer, rate: u32, round: usize, rounds: u16) -> io::Result<Histogram<u64>> {
    let keys = NEW_KEYS / usize::from(rounds);
    let length = Duration::from_secs_f64(keys as f64 / NEW_KEYS_PER_SECOND as f64);
    run(&server.tcp(), &Load { rate, length, new_keys: round * keys..(round + 1) * keys }, round as u64)
}

fn while_keys_expire(server: &RedisServer, rate: u32) -> io::Result<Histogram<u64>> {
    let mut client = Client::connect(&server.tcp())?;
    let started = Instant::now();
    let at = SystemTime::now() + EXPIRY_FILL;
    let at_ms = at.duration_since(UNIX_EPOCH).map_err(io::Error::other)?.as_millis().to_string();
    fill(&mut client, 0..EXPIRING_KEYS, |n| request(&["SET", &format!("e{n}"), "xxx", "PXAT", &at_ms]))?;
    let lead = EXPIRY_FILL.checked_sub(started.elapsed()).filter(|lead| *lead >= EXPIRY_LEAD);
    let Some(lead) = lead else { return Err(io::Error::other("the keys expire before all of them are there")) };
    std::thread::sleep(lead - EXPIRY_LEAD / 2);
    run(&server.tcp(), &Load { rate, length: EXPIRY_LENGTH, new_keys: 0..0 }, 7)
}

/// Sends what comes, on a core of its own, and gives the latencies of the GETs.
fn run(address: &Address, load: &Load, seed: u64) -> io::Result<Histogram<u64>> {
    let everywhere = sched_getaffinity(None)?;
    // A thread of its own: what it is bound to ends with it.
    std::thread::scope(|scope| {
        let generator = scope.spawn(|| {
            let mut core = CpuSet::new();
            core.set(if everywhere.is_set(1) { 1 } else { 0 });
            sched_setaffinity(None, &core)?;
            generate(address, load, seed)
        });
        generator.join().expect("the generator does not panic")
    })
}

fn generate(address: &Address, load: &Load, seed: u64) -> io::Result<Histogram<u64>> {
    let mut latencies = Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).map_err(io::Error::other)?;
    let lines = (0..CONNECTIONS).map(|_| Line::connect(address, b"$3\r\nxxx\r\n"));
    let mut lines: Vec<Line> = lines.collect::<io::Result<_>>()?;
    let mut inserts = Line::connect(address, b"+OK\r\n")?;
    let mut new_keys = load.new_keys.clone();
    let mut rng = Rng::part(seed, u64::from(load.rate));
    let begin = Instant::now();
    let mut end = begin + load.length;
    let (mut due, mut insert_due) = (begin, begin);
    let (mut sent, mut answered) = (0_u64, 0_u64);
    let insert_pause = Duration::from_secs_f64(NEW_KEYS_AT_ONCE as f64 / NEW_KEYS_PER_SECOND as f64);
    loop {
        let now = Instant::now();
        if !new_keys.is_empty() {
            end = end.max(now);
        }
        while due <= now && due < end {
            let place = rng.below(lines.len());
            lines[place].ask(due, &request(&["GET", &key(rng.below(KEYS))]))?;
            sent += 1;
            due += pause(&mut rng, load.rate);
        }
        while insert_due <= now && !new_keys.is_empty() && inserts.under_way() < NEW_KEYS_UNDER_WAY {
            let numbers = new_keys.start..new_keys.end.min(new_keys.start + NEW_KEYS_AT_ONCE);
            new_keys.start = numbers.end;
            sent += numbers.len() as u64;
            inserts.ask_all(insert_due, numbers.map(|n| request(&["SET", &format!("new:{n:010}"), "v"])))?;
            insert_due += insert_pause;
        }
        if now >= end && answered == sent {
            return Ok(latencies);
        }
        if now > end + PATIENCE {
            return Err(io::Error::other(format!("{} of {sent} requests were never answered", sent - answered)));
        }
        for line in &mut lines {
            answered += line.take(|due| latencies.saturating_record((Instant::now() - due).as_nanos() as u64))?;
        }
        answered += inserts.take(|_| ())?;
    }
}
