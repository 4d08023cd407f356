//! Crowds that wait for keys of an engine in this process.

use crate::bench::Bench;
use crate::support::config;
use respool_command::{Execute, Millis, Outcome, Row, SessionView};
use respool_connection::{ConnId, Machine};
use respool_wire::{Args, Encoder};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Lists, and how often anything was asked about them.
#[derive(Debug, Default)]
struct Lists {
    lists: BTreeMap<(u32, Vec<u8>), VecDeque<Vec<u8>>>,
    /// The number of entries of each stream that no group has read.
    streams: BTreeMap<(u32, Vec<u8>), u32>,
    /// When streams expire, in milliseconds.
    expiries: BTreeMap<(u32, Vec<u8>), u64>,
    asked: Arc<AtomicUsize>,
}

impl Execute for Lists {
    fn execute(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        view: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Outcome {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let at = |key: &[u8]| (view.database, key.to_vec());
        self.expiries.retain(|key, expires_ms| {
            let is_expired = *expires_ms < view.now.0;
            if is_expired {
                self.streams.remove(key);
            }
            !is_expired
        });
        match row.name {
            "RPUSH" => {
                let list = self.lists.entry(at(args.at(1))).or_default();
                list.extend(args.from(2).iter().map(<[u8]>::to_vec));
                reply.integer(list.len() as i64);
            }
            "XADD" => {
                *self.streams.entry(at(args.at(1))).or_default() += 1;
                reply.bulk(b"1-1");
            }
            "XREADGROUP" => match self.streams.get_mut(&at(args.at(args.len() - 2))) {
                Some(0) => return Outcome::Parked,
                Some(unread) => {
                    *unread = 0;
                    reply.simple("entries");
                }
                None if view.has_waited => reply.error(b"UNBLOCKED gone"),
                None => return Outcome::Parked,
            },
            "DEL" => reply.integer(self.streams.remove(&at(args.at(1))).is_some().into()),
            "PEXPIRE" => {
                let lasts_ms: u64 = std::str::from_utf8(args.at(2)).expect("a text").parse().expect("a number");
                self.expiries.insert(at(args.at(1)), view.now.0 + lasts_ms);
                reply.integer(1);
            }
            "PEXPIRETIME" => reply.integer(self.expiries.get(&at(args.at(1))).map_or(-1, |ms| *ms as i64)),
            "TYPE" if self.streams.contains_key(&at(args.at(1))) => reply.simple("stream"),
            "TYPE" => reply.simple(if self.lists.contains_key(&at(args.at(1))) { "list" } else { "none" }),
            "BLPOP" => {
                let found = args.iter().skip(1).take(args.len() - 2).find(|key| self.lists.contains_key(&at(key)));
                let Some(key) = found else { return Outcome::Parked };
                let list = self.lists.get_mut(&at(key)).expect("it has just been found");
                reply.array(2);
                reply.bulk(key);
                reply.bulk(&list.pop_front().expect("no empty list is kept"));
                if list.is_empty() {
                    self.lists.remove(&at(key));
                }
            }
            other => unreachable!("{other} is not asked"),
        }
        Outcome::Done
    }

    fn tick(&mut self, now: Millis) -> Option<Millis> {
        Some(Millis(now.0 + 1))
    }
}

fn server() -> (Bench<Lists>, Arc<AtomicUsize>) {
    let engine = Lists::default();
    let asked = Arc::clone(&engine.asked);
    let mut config = config(1, 1);
    config.clients_max = 100_000;
    config.lanes.blocked_commands_max = 100_000;
    config.request_limits.elements_max = 1 << 20;
    config.budgets.process = 4 << 30;
    (Bench::server(config, engine), asked)
}

fn keys_waited_for(bench: &Bench<Lists>) -> usize {
    let keys = bench.worker.remains().into_iter().find(|(what, _)| what.starts_with("keys of an engine"));
    keys.map_or(0, |(_, count)| count)
}

#[test]
fn of_a_crowd_that_waits_for_one_element_one_is_asked_for() {
    let (mut bench, asked) = server();
    let crowd: Vec<ConnId> = (0..5_000).map(|_| bench.accept()).collect();
    let pusher = bench.accept();
    for (number, client) in crowd.iter().enumerate() {
        // Every other one in another database, in which nothing comes.
        if number % 2 == 1 {
            assert_eq!(bench.answer(*client, &["SELECT", "1"]), "+OK\r\n");
        }
        bench.ask(*client, &["BLPOP", "queue", "0"]);
    }
    for client in crowd.iter().step_by(2).take(100) {
        let before = asked.load(Ordering::Relaxed);
        assert_eq!(bench.answer(pusher, &["RPUSH", "queue", "x"]), ":1\r\n");
        assert_eq!(bench.heard(*client), "*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n", "in the order in which they came");
        let asked = asked.load(Ordering::Relaxed) - before;
        assert!(asked <= 8, "{asked}");
    }
    bench.ask(pusher, &["RPUSH", "queue", "1", "2", "3"]);
    let served = crowd.iter().filter(|client| !bench.heard(**client).is_empty()).count();
    assert_eq!(served, 3);
}

#[test]
fn of_a_crowd_that_reads_for_one_group_two_are_asked_for() {
    let (mut bench, asked) = server();
    let crowd: Vec<ConnId> = (0..5_000).map(|_| bench.accept()).collect();
    let writer = bench.accept();
    assert_eq!(bench.answer(writer, &["XADD", "s", "*", "f", "v"]), "$3\r\n1-1\r\n");
    let read = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", "s", ">"];
    assert_eq!(bench.answer(crowd[0], &read), "+entries\r\n");
    crowd.iter().for_each(|client| bench.ask(*client, &read));
    for client in &crowd[..50] {
        let before = asked.load(Ordering::Relaxed);
        bench.ask(writer, &["XADD", "s", "*", "f", "v"]);
        assert_eq!(bench.heard(*client), "+entries\r\n", "in the order in which they came");
        let asked = asked.load(Ordering::Relaxed) - before;
        assert!(asked <= 8, "{asked}");
    }
    // Requests that wait for a deleted stream get an error.
    bench.ask(writer, &["DEL", "s"]);
    let told = crowd.iter().filter(|client| bench.heard(**client).starts_with("-UNBLOCKED")).count();
    assert_eq!((told, keys_waited_for(&bench)), (4_950, 0));
}

#[test]
fn of_many_streams_that_are_read_for_groups_the_expired_one_is_asked_for() {
    let (mut bench, asked) = server();
    let writer = bench.accept();
    let readers: Vec<ConnId> = (0..2_000).map(|_| bench.accept()).collect();
    for (number, reader) in readers.iter().enumerate() {
        let key = format!("s{number}");
        let read = ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", &key, ">"];
        assert_eq!(bench.answer(writer, &["XADD", &key, "*", "f", "v"]), "$3\r\n1-1\r\n");
        assert_eq!(bench.answer(*reader, &read), "+entries\r\n");
        bench.ask(*reader, &read);
    }
    for key in ["s3", "s4", "s5"] {
        assert_eq!(bench.answer(writer, &["PEXPIRE", key, "100"]), ":1\r\n");
    }
    // A stream that is not read any more, and one that expires later than it was to.
    bench.turn(|worker| worker.handle_broken(readers[4], "gone"));
    assert_eq!(bench.answer(writer, &["PEXPIRE", "s5", "200"]), ":1\r\n");
    let before = asked.load(Ordering::Relaxed);
    bench.pass(50_000);
    assert_eq!(asked.load(Ordering::Relaxed), before, "no stream has expired");
    bench.pass(100_000);
    let asked = asked.load(Ordering::Relaxed) - before;
    assert!(asked <= 5, "{asked}");
    assert!(bench.heard(readers[3]).starts_with("-UNBLOCKED"));
    assert_eq!(bench.heard(readers[5]), "");
    bench.pass(100_000);
    assert!(bench.heard(readers[5]).starts_with("-UNBLOCKED"));
    assert_eq!(keys_waited_for(&bench), 1_997);
}

#[test]
fn who_leaves_is_waited_with_for_no_key() {
    let (mut bench, _) = server();
    let [client, other, pusher] = [bench.accept(), bench.accept(), bench.accept()];
    let keys: Vec<String> = (0..100_000).map(|number| format!("key-{number}")).collect();
    let mut words = vec!["BLPOP"];
    words.extend(keys.iter().map(String::as_str));
    words.extend(["key-7", "0"]);
    bench.ask(client, &words);
    bench.ask(other, &["BLPOP", "key-7", "0"]);
    assert_eq!(keys_waited_for(&bench), keys.len());
    // Without a look at the clock.
    bench.turn(|worker| worker.handle_broken(client, "gone"));
    assert_eq!(keys_waited_for(&bench), 1);
    assert_eq!(bench.answer(pusher, &["RPUSH", "key-7", "x"]), ":1\r\n");
    assert_eq!(bench.heard(other), "*2\r\n$5\r\nkey-7\r\n$1\r\nx\r\n");
    assert_eq!(keys_waited_for(&bench), 0);
}
