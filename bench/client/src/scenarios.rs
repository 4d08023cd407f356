//! What callers do, and what is found out about it.

mod cluster;
mod lost;
mod open;
mod serial;

use crate::allocations::allocations;
use crate::crowd::{crowd, sleep};
use crate::measure::{Report, Times, cpu_us};
use crate::options::Options;
use crate::peers::{Failure, Peer};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Keys of the load.
const KEYS: usize = 10_000;

/// How long the load runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// The bytes of the large value.
const BIG_BYTES: usize = 8 << 20;

/// How often it is read.
const BIG_PAUSE: Duration = Duration::from_millis(50);

/// Runs the scenario that is asked for.
pub(crate) async fn run<P: Peer>(peer: P, options: Options) -> Report {
    let keys = Keys::new(options.value_bytes);
    match options.scenario.as_str() {
        "serial" => serial::serial(peer, &keys, &options).await,
        "closed" => closed(peer, &keys, &options).await,
        "batch" => batch(peer, &keys, &options).await,
        "cluster" => cluster::cluster(peer, &options).await,
        "open" => open::open(peer, &keys, &options).await,
        "big" => big(peer, &keys, &options).await,
        "cancel" => lost::cancel(peer, &keys, &options).await,
        "restart" => lost::restart(peer, &options).await,
        other => panic!("the scenario {other} is not known"),
    }
}

/// The keys of the load and their values, made before it is measured.
#[derive(Clone, Debug)]
pub(crate) struct Keys(Arc<[(String, String)]>);

impl Keys {
    /// With values of so many bytes, each of which says whose it is.
    fn new(bytes: usize) -> Self {
        Self((0..KEYS).map(|number| (format!("load:{number:011}"), format!("{number:0bytes$}"))).collect())
    }

    /// One of them, and its value.
    fn get(&self, number: usize) -> (&str, &[u8]) {
        let (key, value) = &self.0[number % KEYS];
        (key, value.as_bytes())
    }

    /// So many in a row, from the one with this number or before it.
    fn some(&self, number: usize, count: usize) -> &[(String, String)] {
        let first = number % (KEYS - count);
        &self.0[first..first + count]
    }
}

/// What callers have found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) times: Times,
    pub(crate) errors: usize,
    /// Replies that cannot be to the request.
    pub(crate) wrong: usize,
}

impl Found {
    fn sum(all: Vec<Self>) -> Self {
        let mut sum = Self::default();
        for found in all {
            sum.times.append(found.times);
            sum.errors += found.errors;
            sum.wrong += found.wrong;
        }
        sum
    }

    fn note<E>(&mut self, is_right: Result<bool, E>) {
        match is_right {
            Ok(true) => {}
            Ok(false) => self.wrong += 1,
            Err(_) => self.errors += 1,
        }
    }

    fn report(&mut self, report: &mut Report) {
        report.add_times("", &mut self.times);
        report.add("ops", self.times.len() as f64);
        report.add("errors", self.errors as f64);
        report.add("wrong", self.wrong as f64);
    }
}

/// Sets all keys.
pub(crate) async fn fill<P: Peer>(peer: &P, keys: &Keys) {
    const FILLERS: usize = 32;
    let fill_part = |filler: usize| {
        let (mut peer, keys) = (peer.clone(), keys.clone());
        async move {
            for number in (filler..KEYS).step_by(FILLERS) {
                let (key, value) = keys.get(number);
                peer.set(key, value).await.expect("the keys are set");
            }
        }
    };
    crowd::<P, _, _>(FILLERS, fill_part).await;
}

/// Asks for one of them: even turns set it, odd ones read it.
async fn ask<P: Peer>(peer: &mut P, keys: &Keys, turn: usize) -> Result<bool, Failure> {
    let (key, value) = keys.get(turn / 2);
    if turn.is_multiple_of(2) { peer.set(key, value).await.map(|()| true) } else { peer.get_is(key, value).await }
}

/// Callers that ask again as soon as they have their reply: SET and GET of the same key, in turns; with `only_reads`, GET alone.
async fn load<P: Peer>(peer: &P, keys: &Keys, callers: usize, time: Duration, only_reads: bool) -> (Duration, Found) {
    let until = Instant::now() + time;
    let step = if only_reads { 2 } else { 1 };
    let run = |caller: usize| {
        let (mut peer, keys) = (peer.clone(), keys.clone());
        async move {
            let (mut found, mut turn) = (Found::default(), caller * 7919 * 2 + step - 1);
            loop {
                let began = Instant::now();
                if began >= until {
                    return found;
                }
                let is_right = ask(&mut peer, &keys, turn).await;
                found.times.push(began.elapsed());
                found.note(is_right);
                turn += step;
            }
        }
    };
    let (began, found) = crowd::<P, _, _>(callers, run).await;
    (began.elapsed(), Found::sum(found))
}

/// A closed loop of batches: as many SET, then GET of the same keys.
async fn batch<P: Peer>(peer: P, keys: &Keys, options: &Options) -> Report {
    let load = |time: Duration| {
        let (peer, keys, size) = (peer.clone(), keys.clone(), options.batch);
        let until = Instant::now() + time;
        let run = move |caller: usize| {
            let (mut peer, keys) = (peer.clone(), keys.clone());
            async move {
                let (mut found, mut turn) = (Found::default(), caller * 7919 * 2);
                loop {
                    let began = Instant::now();
                    if began >= until {
                        return found;
                    }
                    let pairs = keys.some(turn / 2 * size, size);
                    let is_right = match turn % 2 {
                        0 => peer.set_all(pairs).await.map(|()| true),
                        _ => peer.get_are(pairs).await,
                    };
                    found.times.push(began.elapsed());
                    found.note(is_right);
                    turn += 1;
                }
            }
        };
        crowd::<P, _, _>(options.tasks, run)
    };
    load(WARM_UP).await;
    let (cpu, allocated) = (cpu_us(), allocations());
    let (began, found) = load(options.time).await;
    let took = began.elapsed();
    let (cpu, allocated) = (cpu_us() - cpu, allocations() - allocated);
    let mut found = Found::sum(found);
    let mut report = Report::default();
    let ops = (found.times.len() * options.batch) as f64;
    report.add("ops_s", ops / took.as_secs_f64());
    report.add("cpu_us", cpu / ops);
    report.add("allocations", allocated as f64 / ops);
    found.report(&mut report);
    report
}

/// A closed loop.
async fn closed<P: Peer>(peer: P, keys: &Keys, options: &Options) -> Report {
    load(&peer, keys, options.tasks, WARM_UP, false).await;
    let (cpu, allocated) = (cpu_us(), allocations());
    let (took, mut found) = load(&peer, keys, options.tasks, options.time, false).await;
    let (cpu, allocated) = (cpu_us() - cpu, allocations() - allocated);
    let mut report = Report::default();
    let ops = found.times.len() as f64;
    report.add("ops_s", ops / took.as_secs_f64());
    report.add("cpu_us", cpu / ops);
    report.add("allocations", allocated as f64 / ops);
    found.report(&mut report);
    report
}

/// Small values, without and with one caller that reads a large one now and then.
async fn big<P: Peer>(mut peer: P, keys: &Keys, options: &Options) -> Report {
    let value: Arc<[u8]> = vec![b'b'; BIG_BYTES].into();
    peer.set("big", &value).await.expect("the large value is set");
    fill(&peer, keys).await;
    load(&peer, keys, options.tasks, WARM_UP, true).await;
    let half = options.time / 2;
    let (_, mut alone) = load(&peer, keys, options.tasks, half, true).await;
    let read_big = {
        let (peer, value) = (peer.clone(), Arc::clone(&value));
        move |_| {
            let (mut peer, value) = (peer.clone(), Arc::clone(&value));
            let until = Instant::now() + half;
            async move {
                let (mut found, mut due) = (Found::default(), Instant::now());
                while due < until {
                    sleep::<P>(due.saturating_duration_since(Instant::now())).await;
                    let is_right = peer.get_is("big", &value).await;
                    found.times.push(due.elapsed());
                    found.note(is_right);
                    due += BIG_PAUSE;
                }
                found
            }
        }
    };
    // Two crowds at once: the small ones wait in their own.
    let (mut beside, mut large) = if P::IN_THREADS {
        let large = std::thread::spawn(move || crate::crowd::run_in_thread(read_big(0)));
        let (_, beside) = load(&peer, keys, options.tasks, half, true).await;
        (beside, large.join().expect("the reader of the large value has panicked"))
    } else {
        let large = tokio::spawn(read_big(0));
        let (_, beside) = load(&peer, keys, options.tasks, half, true).await;
        (beside, large.await.expect("the reader of the large value has panicked"))
    };
    let mut report = Report::default();
    report.add_times("alone_", &mut alone.times);
    report.add_times("big_", &mut large.times);
    report.add("big_ops", large.times.len() as f64);
    beside.errors += alone.errors + large.errors;
    beside.wrong += alone.wrong + large.wrong;
    beside.report(&mut report);
    report
}
