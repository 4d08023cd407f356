//! Crowds that wait for keys of an engine in this process.

use crate::bench::Bench;
use crate::support::config;
use respool_command::{Execute, Millis, Outcome, Row, SessionView, WaitId};
use respool_connection::{ConnId, Machine};
use respool_wire::{Args, Encoder, Protocol};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A key of a database.
type Key = (u32, Vec<u8>);

/// Lists, and who waits for them.
#[derive(Debug, Default)]
struct Lists {
    lists: BTreeMap<Key, VecDeque<Vec<u8>>>,
    waits: BTreeMap<WaitId, Vec<Key>>,
    /// By key, those who wait for it.
    waiting: BTreeMap<Key, BTreeSet<WaitId>>,
    parked: u64,
    ready: VecDeque<Key>,
    /// How often a parked request was asked for.
    polled: Arc<AtomicUsize>,
}

impl Lists {
    fn pop(&mut self, key: &Key, reply: &mut Encoder<'_>) -> bool {
        let Some(list) = self.lists.get_mut(key) else { return false };
        reply.array(2);
        reply.bulk(&key.1);
        reply.bulk(&list.pop_front().expect("no empty list is kept"));
        if list.is_empty() {
            self.lists.remove(key);
        }
        true
    }
}

impl Execute for Lists {
    fn execute(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        view: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Outcome {
        let at = |key: &[u8]| (view.database, key.to_vec());
        match row.name {
            "RPUSH" => {
                let list = self.lists.entry(at(args.at(1))).or_default();
                list.extend(args.from(2).iter().map(<[u8]>::to_vec));
                reply.integer(list.len() as i64);
                self.ready.push_back(at(args.at(1)));
            }
            "BLPOP" => {
                let keys: Vec<Key> = args.iter().skip(1).take(args.len() - 2).map(at).collect();
                if keys.iter().any(|key| self.pop(key, reply)) {
                    return Outcome::Done;
                }
                self.parked += 1;
                let wait = WaitId(self.parked);
                for key in &keys {
                    self.waiting.entry(key.clone()).or_default().insert(wait);
                }
                self.waits.insert(wait, keys);
                return Outcome::Parked(wait);
            }
            other => unreachable!("{other} is not asked"),
        }
        Outcome::Done
    }

    fn tick(&mut self, now: Millis) -> Option<Millis> {
        Some(Millis(now.0 + 1))
    }

    fn poll_ready(&mut self, _: Millis, reply: &mut Vec<u8>) -> Option<WaitId> {
        self.polled.fetch_add(1, Ordering::Relaxed);
        while let Some(key) = self.ready.front().cloned() {
            let first = self.waiting.get(&key).and_then(BTreeSet::first).copied();
            if let Some(wait) = first.filter(|_| self.pop(&key, &mut Encoder::new(reply, Protocol::Resp2))) {
                self.cancel(wait);
                return Some(wait);
            }
            self.ready.pop_front();
        }
        None
    }

    fn cancel(&mut self, wait: WaitId) {
        for key in self.waits.remove(&wait).into_iter().flatten() {
            let Some(waiting) = self.waiting.get_mut(&key) else { continue };
            waiting.remove(&wait);
            if waiting.is_empty() {
                self.waiting.remove(&key);
            }
        }
    }

    fn awaited_keys(&self) -> usize {
        self.waiting.len()
    }
}

fn server() -> (Bench<Lists>, Arc<AtomicUsize>) {
    let engine = Lists::default();
    let polled = Arc::clone(&engine.polled);
    let mut config = config(1, 1);
    config.clients_max = 100_000;
    config.lanes.blocked_commands_max = 100_000;
    config.request_limits.elements_max = 1 << 20;
    config.budgets.process = 4 << 30;
    (Bench::server(config, engine), polled)
}

fn keys_waited_for(bench: &Bench<Lists>) -> usize {
    let keys = bench.worker.remains().into_iter().find(|(what, _)| what.starts_with("keys of an engine"));
    keys.map_or(0, |(_, count)| count)
}

#[test]
fn of_a_crowd_that_waits_for_one_element_one_is_served() {
    let (mut bench, polled) = server();
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
        let before = polled.load(Ordering::Relaxed);
        assert_eq!(bench.answer(pusher, &["RPUSH", "queue", "x"]), ":1\r\n");
        assert_eq!(bench.heard(*client), "*2\r\n$5\r\nqueue\r\n$1\r\nx\r\n", "in the order in which they came");
        let polled = polled.load(Ordering::Relaxed) - before;
        assert!(polled <= 8, "{polled}");
    }
    bench.ask(pusher, &["RPUSH", "queue", "1", "2", "3"]);
    let served = crowd.iter().filter(|client| !bench.heard(**client).is_empty()).count();
    assert_eq!(served, 3);
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

#[test]
fn what_is_released_is_parked_no_longer() {
    let (mut bench, _) = server();
    let [client, other, pusher] = [bench.accept(), bench.accept(), bench.accept()];
    bench.ask(client, &["BLPOP", "a", "b", "0.05"]);
    bench.ask(other, &["BLPOP", "b", "0"]);
    assert_eq!(keys_waited_for(&bench), 2);
    bench.pass(100_000);
    assert_eq!((bench.heard(client).as_str(), keys_waited_for(&bench)), ("*-1\r\n", 1));
    // The one that is left is first now.
    assert_eq!(bench.answer(pusher, &["RPUSH", "b", "x"]), ":1\r\n");
    assert_eq!(bench.heard(other), "*2\r\n$1\r\nb\r\n$1\r\nx\r\n");
    assert_eq!(keys_waited_for(&bench), 0);
}
