//! Measurements that are no run of the load generator in rounds: idle clients, a lone client, memory through a table.

use std::time::{Duration, Instant};
use std::{fmt, io};

use respool_testkit::{Address, Client, Respool, SlowLink, Transport, proc_stats, wait_until};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use super::deployment::{Arrangement, Deployment};
use super::load;
use super::open_loop::{self, Load, Measured};
use super::row::median;
use super::scenario::{BASE, Cores, Keys, Scenario, Subject, Work};
use crate::command;

const IDLE_CLIENTS: usize = 10_000;
/// Rounds of the open loop that are expected.
const OPEN_LOOP_ROUNDS: u32 = 5;
const LONE_ROUNDS: usize = 7;
const LONE_REQUESTS: usize = 4_000;
/// One way; a round trip takes twice that.
const SLOW_LINK_DELAY: Duration = Duration::from_millis(5);

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extra {
    /// All subjects in turn.
    LoneClient(Cores),
    IdleClients(Subject),
    ShardingTable(Subject),
    SlowLink(Subject),
    /// All subjects in turn.
    OpenLoop(Load),
}

/// What `--filter` is matched against.
impl fmt::Display for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Extra::LoneClient(cores) => write!(f, "extra lone-client {cores}"),
            Extra::IdleClients(subject) => write!(f, "extra idle-clients {subject}"),
            Extra::ShardingTable(subject) => write!(f, "extra sharding-table {subject}"),
            Extra::SlowLink(subject) => write!(f, "extra slow-link {subject}"),
            Extra::OpenLoop(load) => write!(f, "extra {load}"),
        }
    }
}

impl Extra {
    /// All of them for these subjects.
    pub(crate) fn all(subjects: &[Subject]) -> Vec<Extra> {
        let mut extras = vec![Extra::LoneClient(Cores::One), Extra::LoneClient(Cores::Own)];
        extras.extend(subjects.iter().map(|&subject| Extra::IdleClients(subject)));
        let proxies = subjects.iter().filter(|&&subject| subject != Subject::Direct);
        extras.extend(proxies.map(|&subject| Extra::ShardingTable(subject)));
        let linked = [Subject::Direct, Subject::Respool, Subject::Baseline]
            .into_iter()
            .filter(|subject| subjects.contains(subject));
        extras.extend(linked.map(Extra::SlowLink));
        extras
    }

    /// How long it takes, roughly.
    pub(crate) fn expected(self, subjects: &[Subject]) -> Duration {
        Duration::from_secs(match self {
            Extra::LoneClient(_) => 2 * subjects.len() as u64,
            Extra::IdleClients(_) => 3,
            Extra::ShardingTable(_) => 12,
            Extra::SlowLink(_) => 5,
            Extra::OpenLoop(load) => return load.expected(subjects) * OPEN_LOOP_ROUNDS,
        })
    }
}

/// Values per subject, in the order measured.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Extras {
    /// Median time of one GET of a client that is alone, by where the subject runs.
    pub(crate) lone_client: Vec<(Cores, Subject, Duration)>,
    /// Resident bytes that each of ten thousand clients cost which made one request and are silent now.
    pub(crate) idle_client_bytes: Vec<(Subject, f64)>,
    /// The most memory that was resident through the table of redis-sharding.
    pub(crate) sharding_peak_bytes: Vec<(Subject, u64)>,
    /// Over a slow link to the server: a lone client's median time, and requests per second of fifty clients.
    pub(crate) slow_link: Vec<(Subject, Duration, f64)>,
    /// Latencies of requests that do not wait for others' replies.
    pub(crate) open_loop: Vec<Measured>,
}

impl Extras {
    /// Measures one and says what came out.
    pub(crate) fn measure(
        &mut self,
        deployment: &mut Deployment<'_>,
        extra: Extra,
        subjects: &[Subject],
        rounds: u16,
        length: Option<Duration>,
    ) -> io::Result<String> {
        Ok(match extra {
            Extra::LoneClient(cores) => {
                let times = measure_lone_client(deployment, subjects, cores)?;
                let shown = times.iter().map(|(_, subject, time)| format!("{subject} {:.1} us", micros(*time)));
                let shown = shown.collect::<Vec<_>>().join(", ");
                self.lone_client.extend(times);
                format!("p50 {shown}")
            }
            Extra::IdleClients(subject) => {
                let bytes = measure_idle_clients(deployment, subject)?;
                self.idle_client_bytes.push((subject, bytes));
                format!("{bytes:.0} bytes each")
            }
            Extra::ShardingTable(subject) => {
                let bytes = measure_sharding_table(deployment, subject)?;
                self.sharding_peak_bytes.push((subject, bytes));
                format!("peak {:.1} MB", bytes as f64 / 1e6)
            }
            Extra::SlowLink(subject) => {
                let (time, speed) = measure_slow_link(deployment, subject)?;
                self.slow_link.push((subject, time, speed));
                format!("p50 {:.2} ms alone, {speed:.0} req/s of 50", micros(time) / 1e3)
            }
            Extra::OpenLoop(load) => {
                let measured = open_loop::measure(deployment, load, rounds, length, subjects)?;
                measured.iter().for_each(|one| println!("{one}"));
                let said = format!("{} contestants", measured.len());
                self.open_loop.extend(measured);
                said
            }
        })
    }

    pub(crate) fn has(&self, extra: Extra, subjects: &[Subject]) -> bool {
        match extra {
            Extra::LoneClient(cores) => {
                let has = |subject| self.lone_client.iter().any(|&(on, of, _)| (on, of) == (cores, subject));
                subjects.iter().all(|&subject| has(subject))
            }
            Extra::IdleClients(subject) => self.idle_client_bytes.iter().any(|&(of, _)| of == subject),
            Extra::ShardingTable(subject) => self.sharding_peak_bytes.iter().any(|&(of, _)| of == subject),
            Extra::SlowLink(subject) => self.slow_link.iter().any(|&(of, ..)| of == subject),
            Extra::OpenLoop(load) => self.open_loop.iter().any(|one| one.load == load),
        }
    }

    pub(crate) fn forget(&mut self, extra: Extra) {
        match extra {
            Extra::LoneClient(cores) => self.lone_client.retain(|&(on, ..)| on != cores),
            Extra::IdleClients(subject) => self.idle_client_bytes.retain(|&(of, _)| of != subject),
            Extra::ShardingTable(subject) => self.sharding_peak_bytes.retain(|&(of, _)| of != subject),
            Extra::SlowLink(subject) => self.slow_link.retain(|&(of, ..)| of != subject),
            Extra::OpenLoop(load) => self.open_loop.retain(|one| one.load != load),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        let lone = self.lone_client.iter().map(|(cores, subject, time)| {
            json!({ "cores": cores.to_string(), "subject": subject.to_string(), "p50_us": micros(*time) })
        });
        let idle = self.idle_client_bytes.iter();
        let peak = self.sharding_peak_bytes.iter();
        let slow = self.slow_link.iter().map(|(subject, time, speed)| {
            json!({ "subject": subject.to_string(), "p50_us": micros(*time), "requests_per_second": speed })
        });
        json!({
            "lone_client": lone.collect::<Vec<_>>(),
            "idle_client_bytes": idle.map(|(subject, bytes)| json!([subject.to_string(), bytes])).collect::<Vec<_>>(),
            "sharding_table_peak_bytes":
                peak.map(|(subject, bytes)| json!([subject.to_string(), bytes])).collect::<Vec<_>>(),
            "slow_link": slow.collect::<Vec<_>>(),
            "open_loop": self.open_loop.iter().map(Measured::to_json).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn from_json(json: &Value) -> Option<Extras> {
        let of = |value: &Value| value.as_str()?.parse::<Subject>().ok();
        let time = |value: &Value| Duration::try_from_secs_f64(value["p50_us"].as_f64()? / 1e6).ok();
        let all = |name: &str| json[name].as_array().map(|array| array.iter());
        Some(Extras {
            lone_client: all("lone_client")?
                .map(|one| Some((one["cores"].as_str()?.parse().ok()?, of(&one["subject"])?, time(one)?)))
                .collect::<Option<_>>()?,
            idle_client_bytes: all("idle_client_bytes")?
                .map(|one| Some((of(&one[0])?, one[1].as_f64()?)))
                .collect::<Option<_>>()?,
            sharding_peak_bytes: all("sharding_table_peak_bytes")?
                .map(|one| Some((of(&one[0])?, one[1].as_u64()?)))
                .collect::<Option<_>>()?,
            slow_link: all("slow_link")?
                .map(|one| Some((of(&one["subject"])?, time(one)?, one["requests_per_second"].as_f64()?)))
                .collect::<Option<_>>()?,
            // Files of earlier versions lack it.
            open_loop: all("open_loop").into_iter().flatten().map(Measured::from_json).collect::<Option<_>>()?,
        })
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The median over rounds of the median time of one GET, subjects in turn. The client waits on core 0.
fn measure_lone_client(
    deployment: &mut Deployment<'_>,
    subjects: &[Subject],
    cores: Cores,
) -> io::Result<Vec<(Cores, Subject, Duration)>> {
    let everywhere = sched_getaffinity(None)?;
    let mut core = CpuSet::new();
    core.set(0);
    sched_setaffinity(None, &core)?;
    let mut medians = vec![Vec::new(); subjects.len()];
    for _ in 0..LONE_ROUNDS {
        for (&subject, medians) in subjects.iter().zip(&mut medians) {
            let arrangement = Arrangement { nodes: 1, transport: Transport::Tcp };
            let target = deployment.target(arrangement, subject, cores)?;
            medians.push(lone_median(&target.address, LONE_REQUESTS)?.as_secs_f64());
        }
    }
    sched_setaffinity(None, &everywhere)?;
    let medians = medians.into_iter().map(|medians| Duration::from_secs_f64(median(medians).unwrap_or(0.0)));
    Ok(subjects.iter().zip(medians).map(|(&subject, time)| (cores, subject, time)).collect())
}

/// The median time of one GET.
fn lone_median(address: &Address, requests: usize) -> io::Result<Duration> {
    let mut client = Client::connect(address)?;
    client.command(&["SET", "key", "xxx"])?;
    let mut times = Vec::with_capacity(requests);
    for _ in 0..requests {
        let started = Instant::now();
        client.command(&["GET", "key"])?;
        times.push(started.elapsed().as_secs_f64());
    }
    Ok(Duration::from_secs_f64(median(times).unwrap_or(0.0)))
}

/// What is held back to be written together must not wait for a reply that is a long way off.
fn measure_slow_link(deployment: &mut Deployment<'_>, subject: Subject) -> io::Result<(Duration, f64)> {
    deployment.end_proxies();
    let link = SlowLink::open(deployment.server(), SLOW_LINK_DELAY)?;
    let respool = match subject {
        Subject::Direct => None,
        _ => Some(deployment.start_respool(subject, &[link.address()], &[])?),
    };
    let address = respool.as_ref().map_or(link.address(), Respool::tcp);
    let (speed, ..) = load::benchmark(deployment.generator(), &address, &BASE, 10_000)?;
    Ok((lone_median(&address, 200)?, speed))
}

fn measure_idle_clients(deployment: &mut Deployment<'_>, subject: Subject) -> io::Result<f64> {
    command::allow_open_files(IDLE_CLIENTS as u64 + 500)?;
    let target = deployment.fresh(subject)?;
    let connect = || -> io::Result<Client> {
        let mut client = Client::connect(&target.address)?;
        client.command(&["GET", "key"])?;
        Ok(client)
    };
    // What the first clients make the process set up is not the cost of an idle one.
    let first: Vec<Client> = (0..50).map(|_| connect()).collect::<io::Result<_>>()?;
    let (pid, before) = (target.pid(), proc_stats::resident_bytes(target.pid())?);
    let files_before = proc_stats::open_files(pid)?;
    let clients: Vec<Client> = (0..IDLE_CLIENTS).map(|_| connect()).collect::<io::Result<_>>()?;
    let after = proc_stats::resident_bytes(pid)?;
    drop((first, clients));
    wait_until("the idle clients are gone", Duration::from_secs(30), || {
        Ok(proc_stats::open_files(pid)? <= files_before)
    })?;
    Ok(after.saturating_sub(before) as f64 / IDLE_CLIENTS as f64)
}

/// The table of redis-sharding: ten clients, pipelines of one to a thousand, over four nodes, one process throughout.
fn measure_sharding_table(deployment: &mut Deployment<'_>, subject: Subject) -> io::Result<u64> {
    let pid = deployment.fresh(subject)?.pid();
    let mut peak = 0;
    for pipeline in [1, 10, 100, 1000] {
        for work in [Work::Set, Work::Get, Work::Mset] {
            let scenario = Scenario { nodes: 4, work, keys: Keys::Spread, clients: 10, pipeline, ..BASE };
            let sample = load::run(deployment, &scenario, subject, 10_000 * pipeline.min(10))?;
            peak = peak.max(sample.peak_resident_bytes);
            println!("  {scenario} {subject}: {:.0} req/s", sample.requests_per_second);
        }
    }
    assert_eq!(pid, deployment.target(Arrangement { nodes: 4, transport: Transport::Tcp }, subject, Cores::One)?.pid());
    Ok(peak)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_comes_back_from_the_file() {
        let extras = Extras {
            lone_client: vec![(Cores::Own, Subject::Respool, Duration::from_micros(27))],
            idle_client_bytes: vec![(Subject::Embedded, 526.5)],
            sharding_peak_bytes: vec![(Subject::Twemproxy, 14_000_000)],
            slow_link: vec![(Subject::Direct, Duration::from_micros(10_500), 4_717.25)],
            open_loop: Vec::new(),
        };
        assert_eq!(Extras::from_json(&extras.to_json()).as_ref(), Some(&extras));
        let subjects = [Subject::Respool];
        assert!(extras.has(Extra::LoneClient(Cores::Own), &subjects));
        assert!(!extras.has(Extra::LoneClient(Cores::One), &subjects));
        assert!(!extras.has(Extra::LoneClient(Cores::Own), &[Subject::Respool, Subject::Direct]));
        for extra in [
            Extra::LoneClient(Cores::Own),
            Extra::IdleClients(Subject::Embedded),
            Extra::ShardingTable(Subject::Twemproxy),
            Extra::SlowLink(Subject::Direct),
        ] {
            let mut less = Extras::from_json(&extras.to_json()).unwrap();
            assert!(less.has(extra, &subjects), "{extra}");
            less.forget(extra);
            assert!(!less.has(extra, &subjects), "{extra}");
        }
    }
}
