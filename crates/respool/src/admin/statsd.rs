//! Metrics sent to a statsd server under the names that rmux gave them.
//!
//! rmux sent a packet for every event. Here what happened in an interval is sent at its end: counters as what was added,
//! gauges as they are, and of times their mean with the share of it that one value is, from which the server knows how many
//! there were. Datagrams that are lost are lost; a server that cannot be reached is tried again with the next interval.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tracing::warn;

use super::end::End;
use super::metrics::{Metrics, Reading, Sample};
use crate::control::{Control, Phase};
use crate::settings::config::StatsdSettings;

/// Bytes of one datagram: what passes through an Ethernet in one piece.
const DATAGRAM_BYTES_MAX: usize = 1432;

/// rmux' counters, and ours that count the same.
const COUNTERS: [(&str, &str); 3] =
    [("accepted", "clients_accepted"), ("reconnect_error", "dial_failures"), ("nettimeout", "timeouts")];

/// Sends metrics from a thread of its own until everything stops, and once more then; nothing if there is no server.
///
/// # Errors
/// What the system says when it refuses the thread.
pub fn start(settings: &StatsdSettings, control: &Arc<Control>, metrics: Metrics) -> io::Result<Option<End>> {
    let Some(address) = &settings.address else { return Ok(None) };
    let interval = settings.interval;
    let mut sender =
        Sender { address: address.to_string(), socket: None, has_failed: false, lines: Lines::new(settings) };
    // What was counted before is not news.
    sender.lines.render(&metrics.sums());
    let asked = Arc::clone(control);
    let (running, end) = End::new();
    let run = move || {
        let _running = running;
        let mut next = Instant::now() + interval;
        loop {
            let is_over = asked.phase() == Phase::Stopping;
            let now = Instant::now();
            // The end is not held up by a server that is looked for in vain.
            if (is_over && !sender.has_failed) || now >= next {
                next = now + interval;
                sender.send(&metrics);
            }
            if is_over {
                return;
            }
            thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
    };
    let thread = thread::Builder::new().name("statsd".to_owned()).spawn(run)?.thread().clone();
    control.on_change(Box::new(move || thread.unpark()));
    Ok(Some(end))
}

struct Sender {
    address: String,
    socket: Option<UdpSocket>,
    /// The log knows.
    has_failed: bool,
    lines: Lines,
}

impl Sender {
    fn send(&mut self, metrics: &Metrics) {
        let lines = self.lines.render(&metrics.sums());
        let sent = datagrams(&lines).iter().try_for_each(|datagram| self.send_one(datagram.as_bytes()));
        match sent {
            Ok(()) => self.has_failed = false,
            Err(error) => {
                // Its name may lead elsewhere by now.
                self.socket = None;
                if !std::mem::replace(&mut self.has_failed, true) {
                    warn!(address = self.address, "metrics cannot be sent: {error}");
                }
            }
        }
    }

    fn send_one(&mut self, datagram: &[u8]) -> io::Result<()> {
        let socket = match &self.socket {
            Some(socket) => socket,
            None => self.socket.insert(connect(&self.address)?),
        };
        socket.send(datagram).map(drop)
    }
}

fn connect(address: &str) -> io::Result<UdpSocket> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        let local = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        match UdpSocket::bind(local).and_then(|socket| socket.connect(address).map(|()| socket)) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Lines joined into as few datagrams as they fit in.
fn datagrams(lines: &[String]) -> Vec<String> {
    let mut datagrams: Vec<String> = Vec::new();
    for line in lines {
        match datagrams.last_mut() {
            Some(last) if last.len() + 1 + line.len() <= DATAGRAM_BYTES_MAX => {
                last.push('\n');
                last.push_str(line);
            }
            _ => datagrams.push(line.clone()),
        }
    }
    datagrams
}

/// What is sent, and what was counted when it was sent last.
struct Lines {
    prefix: String,
    before: BTreeMap<&'static str, u64>,
    /// Number and sum of round trips, in seconds.
    trips_before: (u64, f64),
}

impl Lines {
    fn new(settings: &StatsdSettings) -> Self {
        let prefix = settings.prefix.clone().unwrap_or_else(|| format!("rmux.{}.", host()));
        Self { prefix, before: BTreeMap::new(), trips_before: (0, 0.0) }
    }

    fn render(&mut self, sums: &[Sample]) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, ours) in COUNTERS {
            self.count(name, total(sums, ours), &mut lines);
        }
        let has_left = total(sums, "clients_accepted").saturating_sub(total(sums, "clients"));
        self.count("disconnect", has_left, &mut lines);
        self.time(sums, &mut lines);
        // The same node may stand in several pools, and a gauge that is sent twice is what was sent last.
        let mut connections: BTreeMap<String, i64> = BTreeMap::new();
        for sample in sums.iter().filter(|sample| sample.family.name == "node_connections") {
            let node = sample.labels.iter().find(|(label, _)| *label == "node");
            if let (Some((_, node)), Reading::Gauge(count)) = (node, &sample.reading) {
                *connections.entry(word(node)).or_default() += count;
            }
        }
        lines.extend(connections.iter().map(|(node, count)| format!("{}pools.{node}:{count}|g", self.prefix)));
        lines
    }

    fn count(&mut self, name: &'static str, now: u64, lines: &mut Vec<String>) {
        // Workers count on while they are read, so a difference of two counters can be less for a moment.
        let before = self.before.entry(name).or_default();
        if now > *before {
            lines.push(format!("{}{name}:{}|c", self.prefix, now - *before));
            *before = now;
        }
    }

    /// How long nodes took, on average.
    fn time(&mut self, sums: &[Sample], lines: &mut Vec<String>) {
        let mut now = (0, 0.0);
        for sample in sums.iter().filter(|sample| sample.family.name == "node_round_trip_seconds") {
            if let Reading::Histogram(histogram) = &sample.reading {
                now.0 += histogram.buckets.iter().map(|(_, count)| count).sum::<u64>();
                now.1 += histogram.sum;
            }
        }
        let (count, seconds) = (now.0.saturating_sub(self.trips_before.0), now.1 - self.trips_before.1);
        self.trips_before = now;
        if count == 0 {
            return;
        }
        let mut line = format!("{}redis_write:{:.4}|ms", self.prefix, seconds * 1e3 / count as f64);
        if count > 1 {
            let _ = write!(line, "|@{:.9}", 1.0 / count as f64);
        }
        lines.push(line);
    }
}

/// The sum of a counter or gauge over everything that it is told apart by.
fn total(sums: &[Sample], name: &str) -> u64 {
    let readings = sums.iter().filter(|sample| sample.family.name == name).map(|sample| match &sample.reading {
        Reading::Counter(value) => *value,
        Reading::Gauge(value) => u64::try_from(*value).unwrap_or(0),
        Reading::Histogram(_) => 0,
    });
    readings.sum()
}

/// This machine's name, as a word.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = word(name.trim());
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// A name without what separates names, values and lines.
fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{Family, Histogram};

    static ACCEPTED: Family = Family { name: "clients_accepted", help: "" };
    static CLIENTS: Family = Family { name: "clients", help: "" };
    static TRIPS: Family = Family { name: "node_round_trip_seconds", help: "" };
    static NODE: Family = Family { name: "node_connections", help: "" };

    fn sums(accepted: u64, clients: i64, trips: u64, seconds: f64) -> Vec<Sample> {
        let plain = |family, reading| Sample { family, labels: vec![], reading };
        let histogram = Histogram { sum: seconds, buckets: vec![(0.1, trips), (f64::INFINITY, 0)] };
        vec![
            plain(&ACCEPTED, Reading::Counter(accepted)),
            plain(&CLIENTS, Reading::Gauge(clients)),
            plain(&TRIPS, Reading::Histogram(histogram)),
            Sample { labels: vec![("node", "10.0.0.1:6379".to_owned())], ..plain(&NODE, Reading::Gauge(3)) },
        ]
    }

    #[test]
    fn what_was_added_is_sent_once() {
        let mut lines = Lines { prefix: "rmux.here.".to_owned(), before: BTreeMap::new(), trips_before: (0, 0.0) };
        let first = lines.render(&sums(5, 3, 4, 0.002));
        let expected = [
            "rmux.here.accepted:5|c",
            "rmux.here.disconnect:2|c",
            "rmux.here.redis_write:0.5000|ms|@0.250000000",
            "rmux.here.pools.10-0-0-1-6379:3|g",
        ];
        assert_eq!(first, expected);
        assert_eq!(lines.render(&sums(5, 3, 4, 0.002)), expected[3..]);
        assert_eq!(lines.render(&sums(5, 3, 5, 0.004))[0], "rmux.here.redis_write:2.0000|ms");
    }

    #[test]
    fn what_seems_less_for_a_moment_is_not_counted_twice() {
        let mut lines = Lines { prefix: String::new(), before: BTreeMap::new(), trips_before: (0, 0.0) };
        let disconnects = |lines: &mut Lines, clients| {
            lines.render(&sums(5, clients, 0, 0.0)).into_iter().filter(|line| line.starts_with("disconnect")).collect()
        };
        let counted: Vec<Vec<String>> = [3, 4, 3, 2].map(|clients| disconnects(&mut lines, clients)).into();
        assert_eq!(counted, [vec!["disconnect:2|c"], vec![], vec![], vec!["disconnect:1|c"]]);
    }

    #[test]
    fn a_node_of_several_pools_is_one_gauge() {
        let mut lines = Lines { prefix: String::new(), before: BTreeMap::new(), trips_before: (0, 0.0) };
        let of_pool = |pool: &str, connections| Sample {
            family: &NODE,
            labels: vec![("node", "a:1".to_owned()), ("pool", pool.to_owned())],
            reading: Reading::Gauge(connections),
        };
        assert_eq!(lines.render(&[of_pool("x", 2), of_pool("y", 3)]), ["pools.a-1:5|g"]);
    }

    #[test]
    fn datagrams_are_filled_and_no_line_is_cut() {
        let lines: Vec<String> = (0..100).map(|n| format!("rmux.a.metric{n}:{}|c", n * 1_000)).collect();
        let datagrams = datagrams(&lines);
        assert!(datagrams.len() > 1 && datagrams.iter().all(|datagram| datagram.len() <= DATAGRAM_BYTES_MAX));
        assert_eq!(datagrams.join("\n"), lines.join("\n"));
    }
}
