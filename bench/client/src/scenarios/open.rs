//! Requests that do not wait for others' replies: a Poisson process. Times count from when a request was due.

use super::{Found, Keys, ask, fill, load};
use crate::crowd::run_in_thread;
use crate::measure::{Chance, Report, Times, cpu_us};
use crate::options::Options;
use crate::peers::Peer;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Requests that may be due and not answered. Beyond that the client does not keep up, and the run ends.
const OWED_MAX: usize = 200_000;

#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    turn: usize,
}

/// Hands out requests when they are due, from a thread of its own: a runtime's clock is too coarse. Gives how late they were handed out.
fn pace(options: &Options, mut hand_out: impl FnMut(Due) -> bool) -> Times {
    let mut chance = Chance::new(options.seed);
    let mut late = Times::default();
    let mut at = Instant::now();
    let until = at + options.time;
    while at < until {
        at += chance.gap(options.rate);
        let wait = at.saturating_duration_since(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        late.push(at.elapsed());
        if !hand_out(Due { at, turn: chance.next() as usize >> 1 }) {
            break;
        }
    }
    late
}

pub(super) async fn open<P: Peer>(peer: P, keys: &Keys, options: &Options) -> Report {
    fill(&peer, keys).await;
    load(&peer, keys, options.tasks, super::WARM_UP, false).await;
    let cpu = cpu_us();
    let began = Instant::now();
    let (mut late, mut found, overrun) =
        if P::IN_THREADS { by_threads(&peer, keys, options) } else { by_tasks(&peer, keys, options).await };
    let (took, cpu) = (began.elapsed(), cpu_us() - cpu);
    let mut report = Report::default();
    report.add("ops_s", found.times.len() as f64 / took.as_secs_f64());
    report.add("cpu_us", cpu / found.times.len() as f64);
    report.add("rate", options.rate);
    report.add("overrun", f64::from(overrun));
    report.add("late_p50_us", late.at(500));
    report.add("late_p99_us", late.at(990));
    found.report(&mut report);
    report
}

/// So many threads take what is due in turns.
fn by_threads<P: Peer>(peer: &P, keys: &Keys, options: &Options) -> (Times, Found, bool) {
    let (send, receive) = mpsc::sync_channel::<Due>(OWED_MAX);
    let receive = Arc::new(Mutex::new(receive));
    let threads: Vec<_> = (0..options.tasks)
        .map(|_| {
            let (mut peer, keys, receive) = (peer.clone(), keys.clone(), Arc::clone(&receive));
            std::thread::spawn(move || {
                let mut found = Found::default();
                loop {
                    let next = receive.lock().expect("a thread has panicked").recv();
                    let Ok(due) = next else { return found };
                    let is_right = run_in_thread(ask(&mut peer, &keys, due.turn));
                    found.times.push(due.at.elapsed());
                    found.note(is_right);
                }
            })
        })
        .collect();
    let mut overrun = false;
    let late = pace(options, |due| {
        overrun = send.try_send(due).is_err();
        !overrun
    });
    drop(send);
    let found = threads.into_iter().map(|thread| thread.join().expect("a caller has panicked")).collect();
    (late, Found::sum(found), overrun)
}

/// A task for each.
async fn by_tasks<P: Peer>(peer: &P, keys: &Keys, options: &Options) -> (Times, Found, bool) {
    let (found, owed) = (Arc::new(Mutex::new(Found::default())), Arc::new(()));
    let runtime = tokio::runtime::Handle::current();
    let pacer = {
        let (peer, keys, options) = (peer.clone(), keys.clone(), options.clone());
        let (found, owed) = (Arc::clone(&found), Arc::clone(&owed));
        move || {
            let mut overrun = false;
            let late = pace(&options, |due| {
                let (mut peer, keys) = (peer.clone(), keys.clone());
                let (found, owed) = (Arc::clone(&found), Arc::clone(&owed));
                overrun = Arc::strong_count(&owed) > OWED_MAX;
                runtime.spawn(async move {
                    let is_right = ask(&mut peer, &keys, due.turn).await;
                    let mut found = found.lock().expect("a task has panicked");
                    found.times.push(due.at.elapsed());
                    found.note(is_right);
                    drop(owed);
                });
                !overrun
            });
            (late, overrun)
        }
    };
    let pacer = std::thread::spawn(pacer);
    while !pacer.is_finished() || Arc::strong_count(&owed) > 1 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (late, overrun) = pacer.join().expect("the pacer has panicked");
    let found = std::mem::take(&mut *found.lock().expect("a task has panicked"));
    (late, found, overrun)
}
