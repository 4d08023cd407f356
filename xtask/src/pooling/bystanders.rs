//! Clients that do small plain things all the time, and how long they wait while something else goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use respool_testkit::{Address, Client};

/// How many of them there are.
pub(super) const CLIENTS: usize = 50;
const VALUE_BYTES: usize = 100;
/// Each rests so long between a reply and the next request: together they make about ten thousand requests a second.
const PAUSE: Duration = Duration::from_millis(5);

/// The time that ninety-nine of a hundred requests do not exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct P99(pub(super) Duration);

/// Has every client GET its value until `work` is done.
pub(super) fn measure<T>(address: &Address, work: impl FnOnce() -> io::Result<T>) -> io::Result<(P99, T)> {
    let is_over = &AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> =
            (0..CLIENTS).map(|number| scope.spawn(move || client(address, number, is_over))).collect();
        let worked = work();
        is_over.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for client in clients {
            times.extend(client.join().expect("a client does not panic")?);
        }
        Ok((p99(times)?, worked?))
    })
}

/// The same while nothing else goes on.
pub(super) fn alone(address: &Address, length: Duration) -> io::Result<P99> {
    measure(address, || {
        thread::sleep(length);
        Ok(())
    })
    .map(|(p99, ())| p99)
}

fn client(address: &Address, number: usize, is_over: &AtomicBool) -> io::Result<Vec<Duration>> {
    let mut client = Client::connect(address)?;
    client.set_timeout(Duration::from_secs(30))?;
    let key = format!("mouse:{number}");
    let value = format!("{number:0VALUE_BYTES$}");
    let reply = client.command(&["SET", &key, &value])?;
    if reply != b"+OK\r\n" {
        return Err(io::Error::other(format!("SET {key} got {:?}", String::from_utf8_lossy(&reply))));
    }
    let expected = format!("${VALUE_BYTES}\r\n{value}\r\n");
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let started = Instant::now();
        let reply = client.command(&["GET", &key])?;
        times.push(started.elapsed());
        if reply != expected.as_bytes() {
            let shown = String::from_utf8_lossy(&reply[..reply.len().min(200)]).into_owned();
            return Err(io::Error::other(format!("GET {key} got {shown:?}")));
        }
        thread::sleep(PAUSE);
    }
    Ok(times)
}

fn p99(mut times: Vec<Duration>) -> io::Result<P99> {
    times.sort_unstable();
    let p99 = times.get(times.len() * 99 / 100);
    p99.map(|time| P99(*time)).ok_or_else(|| io::Error::other("no client was answered once"))
}

/// The median over rounds: a burst of something else on the machine falls into one of them.
pub(super) fn median(mut rounds: Vec<P99>) -> P99 {
    rounds.sort_unstable_by_key(|round| round.0);
    rounds[rounds.len() / 2]
}

impl P99 {
    pub(super) fn ratio(self, to: P99) -> f64 {
        self.0.as_secs_f64() / to.0.as_secs_f64()
    }
}
