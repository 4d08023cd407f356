//! Callers that give up, and servers that go: what the client says about each request, beside what the server has counted. Each
//! caller counts up a key of its own, so every reply says how often its requests were executed so far.

use super::{Found, Keys, load};
use crate::crowd::{crowd, sleep};
use crate::measure::{Chance, Report};
use crate::options::Options;
use crate::peers::{Failure, Peer};
use std::time::{Duration, Instant};

/// One caller's counter, which nothing else counts up.
#[derive(Debug, Default)]
pub(super) struct Counter {
    /// Calls with a reply.
    acknowledged: i64,
    not_sent: i64,
    /// Calls that may have been executed: without a reply, or given up.
    maybe: i64,
    /// The last reply.
    last: i64,
    /// Calls of these two kinds since then.
    not_sent_since: i64,
    maybe_since: i64,
    /// Replies that cannot be to the request: the counter has not grown.
    pub(super) wrong: i64,
    /// Executions beyond what was asked for.
    repeated: i64,
    /// Executions of what was said not to have been sent.
    untrue: i64,
    /// Calls beside those that count, without a reply.
    unread: i64,
}

impl Counter {
    /// A call that counts nothing may have failed.
    pub(super) fn note_read(&mut self, failure: Option<Failure>) {
        self.unread += i64::from(failure.is_some());
    }

    pub(super) fn note(&mut self, reply: Result<i64, Failure>) {
        match reply {
            Ok(value) => {
                self.acknowledged += 1;
                let grown = value - std::mem::replace(&mut self.last, value);
                self.wrong += i64::from(grown < 1);
                let excess = (grown - 1 - std::mem::take(&mut self.maybe_since)).max(0);
                let untrue = excess.min(std::mem::take(&mut self.not_sent_since));
                self.untrue += untrue;
                self.repeated += excess - untrue;
            }
            Err(Failure::NotSent) => {
                (self.not_sent, self.not_sent_since) = (self.not_sent + 1, self.not_sent_since + 1)
            }
            Err(Failure::Maybe) => (self.maybe, self.maybe_since) = (self.maybe + 1, self.maybe_since + 1),
        }
    }
}

pub(super) fn report_of(counters: Vec<Counter>, report: &mut Report) {
    let sum = |part: fn(&Counter) -> i64| counters.iter().map(part).sum::<i64>() as f64;
    report.add("acknowledged", sum(|counter| counter.acknowledged));
    report.add("not_sent", sum(|counter| counter.not_sent));
    report.add("maybe", sum(|counter| counter.maybe));
    report.add("repeated", sum(|counter| counter.repeated));
    report.add("untrue", sum(|counter| counter.untrue));
    report.add("wrong", sum(|counter| counter.wrong));
    report.add("unread", sum(|counter| counter.unread));
}

/// Asks until the server answers: the last reply says what it has counted.
pub(super) async fn count<P: Peer>(peer: &mut P, key: &str, counter: &mut Counter) {
    for _ in 0..100 {
        let reply = peer.incr(key).await;
        counter.note(reply);
        if reply.is_ok() {
            return;
        }
        sleep::<P>(Duration::from_millis(50)).await;
    }
    panic!("the server does not answer any more");
}

/// Three calls of ten are given up, at any time between none at all and twice the usual.
pub(super) async fn cancel<P: Peer>(peer: P, keys: &Keys, options: &Options) -> Report {
    let (_, mut usual) = load(&peer, keys, options.tasks, super::WARM_UP, false).await;
    let usual_us = usual.times.at(500);
    let until = Instant::now() + options.time;
    let ask = |caller: usize| {
        let (mut peer, keys, options) = (peer.clone(), keys.clone(), options.clone());
        async move {
            let mut chance = Chance::new(options.seed ^ (caller as u64) << 32);
            let (mut counter, mut cancelled, mut found) = (Counter::default(), 0_i64, Found::default());
            let counted = format!("cancel:{}:{caller}", options.seed);
            let (key, value) = keys.get(caller);
            while Instant::now() < until {
                if chance.part() < 0.3 {
                    let turns = (chance.next() % 6) as u32;
                    let limit = Duration::from_secs_f64(usual_us * 2.0 * chance.part() / 1e6);
                    match peer.incr_for(&counted, turns, limit).await {
                        Some(reply) => counter.note(reply),
                        None => {
                            counter.note(Err(Failure::Maybe));
                            cancelled += 1;
                        }
                    }
                } else if chance.next().is_multiple_of(2) {
                    counter.note(peer.incr(&counted).await);
                } else {
                    let _ = peer.set(key, value).await;
                    found.note(peer.get_is(key, value).await);
                }
            }
            count(&mut peer, &counted, &mut counter).await;
            counter.wrong += found.wrong as i64;
            (counter, cancelled)
        }
    };
    let (_, results) = crowd::<P, _, _>(options.tasks, ask).await;
    let (counters, cancelled): (Vec<Counter>, Vec<i64>) = results.into_iter().unzip();
    let mut report = Report::default();
    report.add("cancelled", cancelled.iter().sum::<i64>() as f64);
    if let Some(taken) = peer.taken() {
        report.add("taken", taken as f64);
    }
    report_of(counters, &mut report);
    report
}

/// The server is ended and started again meanwhile, by the xtask. It keeps what it has executed.
pub(super) async fn restart<P: Peer>(peer: P, options: &Options) -> Report {
    let until = Instant::now() + options.time;
    let ask = |caller: usize| {
        let (mut peer, options) = (peer.clone(), options.clone());
        async move {
            let mut counter = Counter::default();
            let counted = format!("restart:{}:{caller}", options.seed);
            while Instant::now() < until {
                let reply = peer.incr(&counted).await;
                counter.note(reply);
                if reply.is_err() {
                    sleep::<P>(Duration::from_millis(1)).await;
                }
            }
            count(&mut peer, &counted, &mut counter).await;
            counter
        }
    };
    let (_, counters) = crowd::<P, _, _>(options.tasks, ask).await;
    let mut report = Report::default();
    report_of(counters, &mut report);
    report
}
