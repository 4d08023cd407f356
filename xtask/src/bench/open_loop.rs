//! Requests that come when they come, whether others are answered or not, as from many independent users.
//!
//! redis-benchmark asks again when it is answered: a proxy that is slow is asked less, and waiting costs it nothing. Here
//! requests have times of their own, which follow from a seed and are as far apart as chance has it (a Poisson process of a
//! fixed rate), each on one of the connections. What counts is the time from when a request was to be sent until its reply is
//! there. Servers and proxies share core 0 and the generator spins on core 1.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use hdrhistogram::Histogram;
use respool_testkit::{Address, Client, Nutcracker, Respool, Rng, Transport, proc_stats};
use rustix::event::epoll;
use rustix::event::{Timespec, epoll::EventFlags};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use super::deployment::{Deployment, pin};
use super::row::median;
use super::scenario::Subject;

/// Connections and requests a second that are measured unless others are said.
pub(crate) const CONNECTIONS: [usize; 2] = [50, 500];
pub(crate) const RATES: [u32; 3] = [1_000, 8_000, 16_000];
/// Distinct keys.
const KEYS: usize = 100_000;
/// What a round has at least, so that one in a thousand is not one alone; and how long it lasts at least and at most.
const REQUESTS_MIN: f64 = 5_000.0;
const LENGTH_MIN: Duration = Duration::from_secs(2);
const LENGTH_MAX: Duration = Duration::from_secs(10);
/// The beginning of a round, which is not counted.
const WARM_UP: Duration = Duration::from_millis(300);
/// A round during which the host took the processors away from this machine says nothing about a contestant: one in a hundred
/// requests waits for that alone. It is measured anew, at most so often; then the round counts of which least was taken.
const TRIES: usize = 4;
/// What is not answered by then never is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Latencies are kept in nanoseconds, to three digits.
pub(crate) const LATENCY_MAX_NS: u64 = 10_000_000_000;
/// Ready connections that are read in one go.
const EVENTS: usize = 256;

/// One kind of load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    /// Requests a second.
    pub(crate) rate: u32,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("open-loop c{} {}/s", self.connections, self.rate))
    }
}

impl Load {
    fn length(self) -> Duration {
        Duration::from_secs_f64(REQUESTS_MIN / f64::from(self.rate)).clamp(LENGTH_MIN, LENGTH_MAX)
    }

    /// What one round of all contestants of these subjects takes.
    pub(crate) fn expected(self, subjects: &[Subject]) -> Duration {
        let contestants = CONTESTANTS.iter().filter(|contestant| subjects.contains(&contestant.subject));
        (self.length() + WARM_UP + Duration::from_millis(200)) * contestants.count() as u32
    }
}

/// Who is compared.
const CONTESTANTS: [Contestant; 5] = [
    Contestant { subject: Subject::Direct, arguments: &[] },
    Contestant { subject: Subject::Twemproxy, arguments: &[] },
    Contestant { subject: Subject::Respool, arguments: &[] },
    Contestant { subject: Subject::Respool, arguments: &["--flush", "adaptive"] },
    Contestant { subject: Subject::Baseline, arguments: &[] },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Contestant {
    subject: Subject,
    arguments: &'static [&'static str],
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.subject)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}

/// Medians over rounds, in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    pub(crate) load: Load,
    /// The subject and its arguments.
    pub(crate) contestant: String,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    /// Processor time of the proxy for each request.
    pub(crate) proxy_us: Option<f64>,
    /// Requests a second that were answered.
    pub(crate) reached: f64,
    /// Processor time that the host took from this machine in the rounds that count.
    pub(crate) stolen_ms: f64,
}

impl Measured {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "connections": self.load.connections, "rate": self.load.rate, "contestant": self.contestant,
            "p50_us": self.p50_us, "p99_us": self.p99_us, "p99.9_us": self.p999_us,
            "proxy_us_per_request": self.proxy_us, "requests_per_second": self.reached,
            "stolen_ms": self.stolen_ms,
        })
    }

    pub(crate) fn from_json(json: &Value) -> Option<Measured> {
        let number = |name: &str| json[name].as_f64();
        Some(Measured {
            load: Load { connections: json["connections"].as_u64()? as usize, rate: json["rate"].as_u64()? as u32 },
            contestant: json["contestant"].as_str()?.to_owned(),
            p50_us: number("p50_us")?,
            p99_us: number("p99_us")?,
            p999_us: number("p99.9_us")?,
            proxy_us: number("proxy_us_per_request"),
            reached: number("requests_per_second")?,
            stolen_ms: number("stolen_ms").unwrap_or(f64::NAN),
        })
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { load, contestant, p50_us, p99_us, p999_us, proxy_us, reached, stolen_ms } = self;
        write!(
            f,
            "{load:<26} | {contestant:<22} | p50 {p50_us:>6.0} us | p99 {p99_us:>6.0} us | p99.9 {p999_us:>7.0} us"
        )?;
        match proxy_us {
            Some(us) => write!(f, " | {us:>5.1} us of proxy | {reached:.0}/s")?,
            None => write!(f, " | {:>14} | {reached:.0}/s", "")?,
        }
        write!(f, " | {stolen_ms:.0} ms stolen")
    }
}

/// A contestant that runs.
struct Running {
    contestant: Contestant,
    address: Address,
    proxy: Option<Proxy>,
    rounds: Vec<Round>,
}

enum Proxy {
    Twemproxy(Nutcracker),
    Respool(Respool),
}

impl Proxy {
    fn pid(&self) -> u32 {
        match self {
            Proxy::Twemproxy(proxy) => proxy.pid(),
            Proxy::Respool(proxy) => proxy.pid(),
        }
    }
}

/// What one round of one contestant came to.
struct Round {
    latencies: Histogram<u64>,
    proxy_us: Option<f64>,
    reached: f64,
    stolen: Duration,
}

/// Measures all contestants of these subjects in interleaved rounds.
pub(crate) fn measure(
    deployment: &mut Deployment<'_>,
    load: Load,
    rounds: u16,
    length: Option<Duration>,
    subjects: &[Subject],
) -> io::Result<Vec<Measured>> {
    let length = length.unwrap_or_else(|| load.length());
    deployment.end_proxies();
    let nodes = deployment.all_nodes()?;
    let mut running = Vec::new();
    for contestant in CONTESTANTS.into_iter().filter(|contestant| subjects.contains(&contestant.subject)) {
        let proxy = match contestant.subject {
            Subject::Direct | Subject::Embedded => None,
            Subject::Twemproxy => Some(Proxy::Twemproxy(Nutcracker::start(Transport::Tcp, &nodes)?)),
            subject @ (Subject::Respool | Subject::Baseline) => {
                Some(Proxy::Respool(deployment.start_respool(subject, &nodes, contestant.arguments)?))
            }
        };
        let address = match &proxy {
            None => nodes[0].clone(),
            Some(Proxy::Twemproxy(proxy)) => proxy.address().clone(),
            Some(Proxy::Respool(proxy)) => proxy.tcp(),
        };
        if let Some(proxy) = &proxy {
            pin(proxy.pid(), 0)?;
        }
        fill(&address)?;
        running.push(Running { contestant, address, proxy, rounds: Vec::new() });
    }
    for round in 0..usize::from(rounds) {
        for turn in 0..running.len() {
            let one = (round + turn) % running.len();
            let measured = quiet_round(&running[one], load, length, round as u64)?;
            running[one].rounds.push(measured);
        }
    }
    Ok(running.iter().map(|running| running.medians(load)).collect())
}

impl Running {
    fn medians(&self, load: Load) -> Measured {
        let at = |quantile: f64| {
            let of_rounds = self.rounds.iter().map(|round| round.latencies.value_at_quantile(quantile) as f64 / 1e3);
            median(of_rounds.collect()).unwrap_or(f64::NAN)
        };
        Measured {
            load,
            contestant: self.contestant.to_string(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            proxy_us: median(self.rounds.iter().filter_map(|round| round.proxy_us).collect()),
            reached: median(self.rounds.iter().map(|round| round.reached).collect()).unwrap_or(f64::NAN),
            stolen_ms: self.rounds.iter().map(|round| round.stolen).sum::<Duration>().as_secs_f64() * 1e3,
        }
    }
}

fn key(number: usize) -> String {
    format!("key:{number:012}")
}

/// Sees to it that every GET finds something.
fn fill(address: &Address) -> io::Result<()> {
    const BATCH: usize = 500;
    let mut client = Client::connect(address)?;
    for first in (0..KEYS).step_by(BATCH) {
        let requests =
            (first..first + BATCH).flat_map(|number| respool_testkit::request(&["SET", &key(number), "xxx"]));
        client.send(&requests.collect::<Vec<u8>>())?;
        for reply in client.replies(BATCH)? {
            if reply != b"+OK\r\n" {
                return Err(io::Error::other(format!("SET got {:?}", String::from_utf8_lossy(&reply))));
            }
        }
    }
    Ok(())
}

/// The first round in which the host took nothing, or the best of several.
fn quiet_round(running: &Running, load: Load, length: Duration, round: u64) -> io::Result<Round> {
    let mut best: Option<Round> = None;
    for _ in 0..TRIES {
        let one = one_round(running, load, length, round)?;
        best = Some(match best {
            Some(best) if best.stolen <= one.stolen => best,
            _ => one,
        });
        if best.as_ref().is_some_and(|best| best.stolen.is_zero()) {
            break;
        }
    }
    Ok(best.expect("there was one"))
}

fn one_round(running: &Running, load: Load, length: Duration, round: u64) -> io::Result<Round> {
    let pid = running.proxy.as_ref().map(Proxy::pid);
    let before = pid.map(proc_stats::processor_time).transpose()?;
    let stolen = proc_stats::stolen_time()?;
    let everywhere = sched_getaffinity(None)?;
    // A thread of its own: what it is bound to ends with it.
    let (latencies, answered, took) = thread::scope(|scope| {
        let generator = scope.spawn(|| {
            let mut core = CpuSet::new();
            core.set(if everywhere.is_set(1) { 1 } else { 0 });
            sched_setaffinity(None, &core)?;
            Generator::connect(&running.address, load)?.run(load, length, round)
        });
        generator.join().expect("the generator does not panic")
    })?;
    let after = pid.map(proc_stats::processor_time).transpose()?;
    let used = before.zip(after).map(|(before, after)| after.saturating_sub(before).as_secs_f64() * 1e6);
    Ok(Round {
        latencies,
        proxy_us: used.map(|us| us / answered as f64),
        reached: answered as f64 / took.as_secs_f64(),
        stolen: proc_stats::stolen_time()?.saturating_sub(stolen),
    })
}

/// One connection, and when what is under way on it was to be sent.
pub(crate) struct Line {
    stream: TcpStream,
    /// What every request is answered.
    reply: &'static [u8],
    due: VecDeque<Instant>,
    /// What did not fit into the socket.
    unsent: Vec<u8>,
    received: Vec<u8>,
}

struct Generator {
    epoll: rustix::fd::OwnedFd,
    lines: Vec<Line>,
}

impl Generator {
    fn connect(address: &Address, load: Load) -> io::Result<Generator> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut lines = Vec::with_capacity(load.connections);
        for number in 0..load.connections {
            let line = Line::connect(address, b"$3\r\nxxx\r\n")?;
            epoll::add(&epoll, line.stream.as_fd(), epoll::EventData::new_u64(number as u64), EventFlags::IN)?;
            lines.push(line);
        }
        Ok(Generator { epoll, lines })
    }

    /// Sends requests at their times until the time is over, and waits for what is under way. Gives the latencies behind the
    /// beginning, how many requests were answered in all, and how long the sending took.
    fn run(mut self, load: Load, length: Duration, seed: u64) -> io::Result<(Histogram<u64>, u64, Duration)> {
        let mut latencies = Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).map_err(io::Error::other)?;
        let mut rng = Rng::part(seed, u64::from(load.rate));
        let begin = Instant::now() + Duration::from_millis(20);
        let (counted, end) = (begin + WARM_UP, begin + WARM_UP + length);
        let mut due = begin;
        let (mut sent, mut answered) = (0_u64, 0_u64);
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let now = Instant::now();
            while due <= now && due < end {
                let place = rng.below(self.lines.len());
                self.lines[place].ask(due, &respool_testkit::request(&["GET", &key(rng.below(KEYS))]))?;
                sent += 1;
                due += pause(&mut rng, load.rate);
            }
            if now >= end && answered == sent {
                return Ok((latencies, answered, end - begin));
            }
            if now > end + PATIENCE {
                return Err(io::Error::other(format!("{} of {sent} requests were never answered", sent - answered)));
            }
            events.clear();
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&at_once))?;
            for event in &events {
                let line = &mut self.lines[event.data.u64() as usize];
                answered += line.take(|due| {
                    if due >= counted {
                        latencies.saturating_record((Instant::now() - due).as_nanos() as u64);
                    }
                })?;
            }
        }
    }
}

/// How long after one request the next one comes: on average so many a second, each independent of the others.
pub(crate) fn pause(rng: &mut Rng, rate: u32) -> Duration {
    let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    Duration::from_secs_f64(-(1.0 - uniform).ln() / f64::from(rate))
}

impl Line {
    pub(crate) fn connect(address: &Address, reply: &'static [u8]) -> io::Result<Line> {
        let Address::Tcp(address) = address else { return Err(io::Error::other("over TCP only")) };
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Line { stream, reply, due: VecDeque::new(), unsent: Vec::new(), received: Vec::new() })
    }

    pub(crate) fn ask(&mut self, due: Instant, request: &[u8]) -> io::Result<()> {
        self.due.push_back(due);
        self.unsent.extend_from_slice(request);
        self.send()
    }

    /// Requests that are not answered yet.
    pub(crate) fn under_way(&self) -> usize {
        self.due.len()
    }

    /// Sends several requests in one write.
    pub(crate) fn ask_all(&mut self, due: Instant, requests: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
        for request in requests {
            self.due.push_back(due);
            self.unsent.extend_from_slice(&request);
        }
        self.send()
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes all whole replies.
    pub(crate) fn take(&mut self, mut answered: impl FnMut(Instant)) -> io::Result<u64> {
        let expected = self.reply;
        let mut piece = [0; 4096];
        match self.stream.read(&mut piece) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "a connection was closed")),
            Ok(count) => self.received.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        }
        let whole = self.received.len() / expected.len();
        for reply in self.received[..whole * expected.len()].chunks(expected.len()) {
            if reply != expected {
                return Err(io::Error::other(format!("a request got {:?}", String::from_utf8_lossy(reply))));
            }
            let due = self.due.pop_front().ok_or_else(|| io::Error::other("a reply that was not asked for"))?;
            answered(due);
        }
        self.received.drain(..whole * expected.len());
        self.send()?;
        Ok(whole as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_the_rate_as_their_mean_and_no_memory() {
        let mut rng = Rng::new(1);
        let pauses: Vec<f64> = (0..100_000).map(|_| pause(&mut rng, 1_000).as_secs_f64() * 1e3).collect();
        let mean = pauses.iter().sum::<f64>() / pauses.len() as f64;
        assert!((0.98..1.02).contains(&mean), "{mean} ms");
        // Of an exponential distribution a share of 1/e is longer than the mean.
        let longer = pauses.iter().filter(|pause| **pause > 1.0).count() as f64 / pauses.len() as f64;
        assert!((0.36..0.376).contains(&longer), "{longer}");
    }

    #[test]
    fn rounds_are_long_enough_for_one_in_a_thousand() {
        for rate in RATES {
            let load = Load { connections: 50, rate };
            assert!(load.length().as_secs_f64() * f64::from(rate) >= REQUESTS_MIN, "{load}");
        }
        let subjects = [Subject::Direct, Subject::Twemproxy, Subject::Respool];
        let all: Duration = CONNECTIONS
            .into_iter()
            .flat_map(|connections| RATES.map(|rate| Load { connections, rate }.expected(&subjects)))
            .sum();
        assert!(5 * all < Duration::from_secs(600), "five rounds take {:?}", 5 * all);
    }

    #[test]
    fn what_was_measured_comes_back_from_the_file() {
        let measured = Measured {
            load: Load { connections: 50, rate: 1_000 },
            contestant: "respool --flush adaptive".into(),
            p50_us: 95.0,
            p99_us: 287.5,
            p999_us: 900.0,
            proxy_us: Some(43.2),
            reached: 999.5,
            stolen_ms: 20.0,
        };
        assert_eq!(Measured::from_json(&measured.to_json()), Some(measured));
    }
}
