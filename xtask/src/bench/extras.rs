//! Measurements that are no run of redis-benchmark in rounds: idle clients, a lone client, memory through a table.

use std::io;
use std::time::{Duration, Instant};

use respool_testkit::{Address, Client, Respool, SlowLink, Transport, usage, wait_until};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

use super::deployment::{Arrangement, Deployment};
use super::load;
use super::report::median;
use super::scenario::{BASE, Cores, Keys, Scenario, Subject, Work};
use crate::command;

/// What `--filter` is matched against.
pub(crate) const NAMES: [&str; 4] =
    ["extra lone-client", "extra idle-clients", "extra sharding-table", "extra slow-link"];

const IDLE_CLIENTS: usize = 10_000;
const LONE_ROUNDS: usize = 7;
const LONE_REQUESTS: usize = 4_000;
/// One way; a round trip takes twice that.
const SLOW_LINK_DELAY: Duration = Duration::from_millis(5);

/// Values per subject, in the order measured.
#[derive(Default)]
pub(crate) struct Extras {
    /// Median time of one GET of a client that is alone, by where the subject runs.
    pub(crate) lone_client: Vec<(Cores, Subject, Duration)>,
    /// Resident bytes that each of ten thousand clients cost which made one request and are silent now.
    pub(crate) idle_client_bytes: Vec<(Subject, f64)>,
    /// The most memory that was resident through the table of redis-sharding.
    pub(crate) sharding_peak_bytes: Vec<(Subject, u64)>,
    /// Over a slow link to the server: a lone client's median time, and requests per second of fifty clients.
    pub(crate) slow_link: Vec<(Subject, Duration, f64)>,
}

impl Extras {
    pub(crate) fn to_json(&self) -> Value {
        let lone = self.lone_client.iter().map(|(cores, subject, time)| {
            json!({ "cores": format!("{cores:?}"), "subject": subject.to_string(), "p50_us": time.as_secs_f64() * 1e6 })
        });
        let idle = self.idle_client_bytes.iter();
        let peak = self.sharding_peak_bytes.iter();
        let slow = self.slow_link.iter().map(|(subject, time, speed)| {
            json!({ "subject": subject.to_string(), "p50_us": time.as_secs_f64() * 1e6, "requests_per_second": speed })
        });
        json!({
            "lone_client": lone.collect::<Vec<_>>(),
            "idle_client_bytes": idle.map(|(subject, bytes)| json!([subject.to_string(), bytes])).collect::<Vec<_>>(),
            "sharding_table_peak_bytes":
                peak.map(|(subject, bytes)| json!([subject.to_string(), bytes])).collect::<Vec<_>>(),
            "slow_link": slow.collect::<Vec<_>>(),
        })
    }
}

pub(crate) fn measure(
    deployment: &mut Deployment,
    is_wanted: impl Fn(&str) -> bool,
    without: &[Subject],
) -> io::Result<Extras> {
    let mut extras = Extras::default();
    let subjects = [Subject::Direct, Subject::Twemproxy, Subject::Respool, Subject::Embedded];
    let subjects: Vec<_> = subjects.into_iter().filter(|subject| !without.contains(subject)).collect();
    let [lone_client, idle_clients, sharding_table, slow_link] = NAMES;
    if is_wanted(lone_client) {
        for cores in [Cores::One, Cores::Own] {
            extras.lone_client.extend(measure_lone_client(deployment, &subjects, cores)?);
        }
        for (cores, subject, time) in &extras.lone_client {
            println!("{lone_client} {cores:?} {subject}: p50 {:.1} us", time.as_secs_f64() * 1e6);
        }
    }
    if is_wanted(idle_clients) {
        for &subject in &subjects {
            let bytes = measure_idle_clients(deployment, subject)?;
            println!("{idle_clients} {subject}: {bytes:.0} bytes each");
            extras.idle_client_bytes.push((subject, bytes));
        }
    }
    if is_wanted(sharding_table) {
        for &subject in subjects.iter().filter(|&&subject| subject != Subject::Direct) {
            let bytes = measure_sharding_table(deployment, subject)?;
            println!("{sharding_table} {subject}: peak {:.1} MB", bytes as f64 / 1e6);
            extras.sharding_peak_bytes.push((subject, bytes));
        }
    }
    if is_wanted(slow_link) && subjects.contains(&Subject::Respool) {
        for subject in [Subject::Direct, Subject::Respool] {
            let (time, speed) = measure_slow_link(deployment, subject)?;
            println!("{slow_link} {subject}: p50 {:.2} ms alone, {speed:.0} req/s of 50", time.as_secs_f64() * 1e3);
            extras.slow_link.push((subject, time, speed));
        }
    }
    Ok(extras)
}

/// The median over rounds of the median time of one GET, subjects in turn. The client waits on core 0.
fn measure_lone_client(
    deployment: &mut Deployment,
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
fn measure_slow_link(deployment: &mut Deployment, subject: Subject) -> io::Result<(Duration, f64)> {
    deployment.end_proxies();
    let link = SlowLink::open(deployment.server(), SLOW_LINK_DELAY)?;
    let respool = if subject == Subject::Respool { Some(deployment.start_respool(&[link.address()])?) } else { None };
    let address = respool.as_ref().map_or(link.address(), Respool::tcp);
    let (speed, ..) = load::benchmark(&address, &BASE, 10_000)?;
    Ok((lone_median(&address, 200)?, speed))
}

fn measure_idle_clients(deployment: &mut Deployment, subject: Subject) -> io::Result<f64> {
    command::allow_open_files(IDLE_CLIENTS as u64 + 500)?;
    let target = deployment.fresh(subject)?;
    let connect = || -> io::Result<Client> {
        let mut client = Client::connect(&target.address)?;
        client.command(&["GET", "key"])?;
        Ok(client)
    };
    // What the first clients make the process set up is not the cost of an idle one.
    let first: Vec<Client> = (0..50).map(|_| connect()).collect::<io::Result<_>>()?;
    let (pid, before) = (target.pid(), usage::resident_bytes(target.pid())?);
    let files_before = usage::open_files(pid)?;
    let clients: Vec<Client> = (0..IDLE_CLIENTS).map(|_| connect()).collect::<io::Result<_>>()?;
    let after = usage::resident_bytes(pid)?;
    drop((first, clients));
    wait_until("the idle clients are gone", Duration::from_secs(30), || Ok(usage::open_files(pid)? <= files_before))?;
    Ok(after.saturating_sub(before) as f64 / IDLE_CLIENTS as f64)
}

/// The table of redis-sharding: ten clients, pipelines of one to a thousand, over four nodes, one process throughout.
fn measure_sharding_table(deployment: &mut Deployment, subject: Subject) -> io::Result<u64> {
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
