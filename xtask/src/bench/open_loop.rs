//! Requests that come when they come, whether others are answered or not, as from many independent users.
//!
//! A closed loop asks again when it is answered: a proxy that is slow is asked less, and waiting costs it nothing. Here
//! requests have times of their own (`respool bench --rate`). What counts is the time from when a request was to be sent until
//! its reply is there. Servers and proxies share core 0 and the generator spins on core 1.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use respool_testkit::{Address, Client, Nutcracker, Respool, TempDir, Transport, proc_stats};
use rustix::thread::sched_getaffinity;
use serde_json::{Value, json};

use super::deployment::{Deployment, pin};
use super::load;
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
    Contestant { subject: Subject::Respool, arguments: &["--flush", "immediate"] },
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
    /// Its p50, p99 and p99.9.
    latencies_us: [f64; 3],
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
            let measured = quiet_round(deployment.generator(), &running[one], load, length, round as u64)?;
            running[one].rounds.push(measured);
        }
    }
    Ok(running.iter().map(|running| running.medians(load)).collect())
}

impl Running {
    fn medians(&self, load: Load) -> Measured {
        let at = |place: usize| {
            let of_rounds = self.rounds.iter().map(|round| round.latencies_us[place]);
            median(of_rounds.collect()).unwrap_or(f64::NAN)
        };
        Measured {
            load,
            contestant: self.contestant.to_string(),
            p50_us: at(0),
            p99_us: at(1),
            p999_us: at(2),
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
fn quiet_round(generator: &Path, running: &Running, load: Load, length: Duration, round: u64) -> io::Result<Round> {
    let mut best: Option<Round> = None;
    for _ in 0..TRIES {
        let one = one_round(generator, running, load, length, round)?;
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

fn one_round(generator: &Path, running: &Running, load: Load, length: Duration, round: u64) -> io::Result<Round> {
    let pid = running.proxy.as_ref().map(Proxy::pid);
    let before = pid.map(proc_stats::processor_time).transpose()?;
    let stolen = proc_stats::stolen_time()?;
    let directory = TempDir::new()?;
    let results = directory.join("results.json");
    load::output(&command_line(generator, running, load, length, round, &results)?)?;
    let after = pid.map(proc_stats::processor_time).transpose()?;
    let used = before.zip(after).map(|(before, after)| after.saturating_sub(before).as_secs_f64() * 1e6);
    let json: Value = serde_json::from_slice(&std::fs::read(&results)?)?;
    let said = said(&json["results"][0])?;
    Ok(Round {
        latencies_us: said.latencies_us,
        proxy_us: used.map(|us| us / said.sent),
        reached: said.reached,
        stolen: proc_stats::stolen_time()?.saturating_sub(stolen),
    })
}

fn command_line(
    generator: &Path,
    running: &Running,
    load: Load,
    length: Duration,
    round: u64,
    results: &Path,
) -> io::Result<Vec<String>> {
    let core = if sched_getaffinity(None)?.is_set(1) { 1 } else { 0 };
    let mut words = load::command_line(generator, core, &running.address);
    words.extend(["-q", "-t", "get", "--json"].map(str::to_owned));
    words.push(results.display().to_string());
    for (flag, value) in [
        ("-c", load.connections.to_string()),
        ("-r", KEYS.to_string()),
        ("--rate", load.rate.to_string()),
        ("--duration", format!("{}ms", length.as_millis())),
        ("--warm-up", format!("{}ms", WARM_UP.as_millis())),
        ("--seed", round.to_string()),
    ] {
        words.extend([flag.to_owned(), value]);
    }
    Ok(words)
}

/// What the load generator says of one round.
struct Said {
    latencies_us: [f64; 3],
    sent: f64,
    reached: f64,
}

/// A round in which something went wrong, or found no value, is none.
fn said(result: &Value) -> io::Result<Said> {
    for wrong in ["errors", "misses", "wrong_replies", "lost_connections", "unanswered", "unsent"] {
        if result[wrong].as_u64() != Some(0) {
            return Err(io::Error::other(format!("{wrong} of an open loop: {}", result[wrong])));
        }
    }
    let number = |value: &Value| {
        value.as_f64().ok_or_else(|| io::Error::other(format!("respool bench did not say a figure: {result}")))
    };
    let at = |name: &str| Ok::<f64, io::Error>(number(&result["latency_ms"][name])? * 1e3);
    let latencies_us = [at("p50")?, at("p99")?, at("p99.9")?];
    Ok(Said { latencies_us, sent: number(&result["sent"])?, reached: number(&result["rps"])? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_with_something_wrong_is_none() {
        let good = json!({
            "errors": 0, "misses": 0, "wrong_replies": 0, "lost_connections": 0, "unanswered": 0, "unsent": 0,
            "sent": 10, "rps": 5.0, "latency_ms": { "p50": 0.5, "p99": 1.0, "p99.9": 2.0 },
        });
        assert_eq!(said(&good).unwrap().latencies_us, [500.0, 1000.0, 2000.0]);
        for name in ["errors", "misses", "wrong_replies", "lost_connections", "unanswered", "unsent"] {
            let mut bad = good.clone();
            bad[name] = 1.into();
            assert!(said(&bad).is_err(), "{name}");
        }
        assert!(said(&Value::Null).is_err());
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
            contestant: "respool --flush immediate".into(),
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
