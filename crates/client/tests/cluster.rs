//! Against redis-servers in cluster mode: slots that move under load, transactions that are redirected, requests that are split.

use respool_client::{Client, Config, Error, ErrorKind, Notice, Outcome, Reads, Reply, cmd};
use respool_route::cluster::slot_of;
use respool_testkit::RedisCluster;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Long enough for whatever a slow machine does.
const DEADLINE: Duration = Duration::from_secs(60);

/// No node is taken for dead because the machine is slow.
fn start(primaries: usize, replicas: usize) -> RedisCluster {
    RedisCluster::start(primaries, replicas, &["--cluster-node-timeout", "15000"]).unwrap()
}

/// A node that is killed is soon taken for dead.
fn start_to_kill(primaries: usize, replicas: usize) -> RedisCluster {
    RedisCluster::start(primaries, replicas, &["--cluster-node-timeout", "2000"]).unwrap()
}

fn client(cluster: &RedisCluster) -> Client {
    let url = format!("redis+cluster://{}", cluster.seeds(&[0, 1]));
    Client::with_config(Config::from_url(&url).unwrap().deadline(Some(DEADLINE)))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// The node that has a slot when the cluster is new.
fn owner(slot: u16, primaries: usize) -> usize {
    (0..primaries).rfind(|number| usize::from(slot) >= number * 16_384 / primaries).unwrap()
}

/// A key of its own slot for each number.
fn key(number: usize) -> String {
    format!("key:{number}")
}

/// What a worker knows of its keys. No other worker uses them.
struct Worker {
    number: usize,
    written: u64,
    counted: u64,
}

impl Worker {
    fn commands(&mut self) -> Vec<(respool_client::Command, String)> {
        self.written += 1;
        self.counted += 1;
        let (tag, value) = (format!("{{{}}}", key(self.number)), format!("{}:{}", self.number, self.written));
        vec![
            (cmd("SET").key(&tag).arg(&value), "OK".to_owned()),
            (cmd("GET").key(&tag), value.clone()),
            (cmd("INCR").key(format!("{tag}n")), self.counted.to_string()),
            (cmd("GET").key(&tag), value),
            // A key that is in the slot only while it is written.
            (cmd("DEL").key(format!("{tag}none")), "0".to_owned()),
        ]
    }

    fn pair(&self) -> [respool_client::Command; 2] {
        let tag = format!("{{{}}}", key(self.number));
        [cmd("SET").key(format!("{tag}x")).arg(self.written), cmd("SET").key(format!("{tag}y")).arg(self.written)]
    }

    fn read_pair(&self) -> respool_client::Command {
        let tag = format!("{{{}}}", key(self.number));
        cmd("MGET").key([format!("{tag}x"), format!("{tag}y")])
    }

    fn check_pair(&self, pair: &[Option<u64>]) {
        assert_eq!(pair, [Some(self.written), Some(self.written)], "worker {}", self.number);
    }
}

fn text(reply: Reply) -> String {
    match reply {
        Reply::Integer(number) => number.to_string(),
        Reply::Bulk(text) | Reply::Status(text) => String::from_utf8_lossy(&text).into_owned(),
        other => format!("{other:?}"),
    }
}

/// A reply of a worker's request, or the error in words and by its kind.
fn check_reply(worker: usize, command: &str, reply: Result<Reply, Error>, expected: &str) {
    match reply {
        Ok(reply) => assert_eq!(text(reply), expected, "worker {worker}: {command}"),
        Err(error) => panic!("worker {worker}: {command}: {error} ({:?}, {:?})", error.kind(), error.outcome()),
    }
}

/// When workers end, and how many rounds each has done.
struct Rounds {
    is_over: AtomicBool,
    done: [AtomicU64; 6],
}

impl Rounds {
    /// Waits until each worker has done one more.
    fn await_more(&self) {
        let before = self.done.each_ref().map(|done| done.load(Ordering::Relaxed));
        let has_more = || Ok(self.done.iter().zip(before).all(|(done, before)| done.load(Ordering::Relaxed) > before));
        respool_testkit::wait_until("all workers go on", DEADLINE, || {
            // One that has failed says why.
            if self.is_over.load(Ordering::Relaxed) { Ok(true) } else { has_more() }
        })
        .unwrap();
    }
}

fn work_in_thread(client: &Client, number: usize, rounds: &Rounds) -> u64 {
    let mut worker = Worker { number, written: 0, counted: 0 };
    while !rounds.is_over.load(Ordering::Relaxed) {
        for (command, expected) in worker.commands() {
            let shown = format!("{command:?}");
            let reply: Result<Reply, Error> = client.call(command).wait();
            check_reply(number, &shown, reply, &expected);
        }
        let results = client.transaction(worker.pair()).wait().unwrap();
        assert!(results.len() == 2 && results.iter().all(Result::is_ok), "{results:?}");
        let pair: Vec<Option<u64>> = client.call(worker.read_pair()).wait().unwrap();
        worker.check_pair(&pair);
        rounds.done[number].fetch_add(1, Ordering::Relaxed);
    }
    worker.counted
}

async fn work_in_task(client: Client, number: usize, rounds: &Rounds) -> u64 {
    let mut worker = Worker { number, written: 0, counted: 0 };
    while !rounds.is_over.load(Ordering::Relaxed) {
        for (command, expected) in worker.commands() {
            let shown = format!("{command:?}");
            let reply: Result<Reply, Error> = client.call(command).await;
            check_reply(number, &shown, reply, &expected);
        }
        let results = client.transaction(worker.pair()).await.unwrap();
        assert!(results.len() == 2 && results.iter().all(Result::is_ok), "{results:?}");
        let pair: Vec<Option<u64>> = client.call(worker.read_pair()).await.unwrap();
        worker.check_pair(&pair);
        rounds.done[number].fetch_add(1, Ordering::Relaxed);
    }
    worker.counted
}

/// Ends the work also if what happens meanwhile fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Works in threads and tasks on different keys while `happens`, which begins when all of them work. Returns the client.
fn under_load(cluster: &RedisCluster, happens: impl FnOnce(&Rounds)) -> Client {
    let client = client(cluster);
    let rounds = Rounds { is_over: AtomicBool::new(false), done: Default::default() };
    let runtime = runtime();
    let counted: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let (client, rounds) = (&client, &rounds);
                scope.spawn(move || {
                    let _ending = Ending(&rounds.is_over);
                    work_in_thread(client, number, rounds)
                })
            })
            .collect();
        let (tasks_client, tasks_rounds, runtime) = (client.clone(), &rounds, &runtime);
        let tasks = scope.spawn(move || {
            let _ending = Ending(&tasks_rounds.is_over);
            runtime.block_on(async {
                let works = |number| work_in_task(tasks_client.clone(), number, tasks_rounds);
                let (third, fourth, fifth) = tokio::join!(works(3), works(4), works(5));
                [third, fourth, fifth]
            })
        });
        let ending = Ending(&rounds.is_over);
        rounds.await_more();
        happens(&rounds);
        drop(ending);
        let counted = threads.into_iter().map(|thread| thread.join().unwrap());
        counted.collect::<Vec<_>>().into_iter().chain(tasks.join().unwrap()).collect()
    });
    for (number, counted) in counted.into_iter().enumerate() {
        assert!(counted > 0, "worker {number}");
        let found: Option<u64> = client.call(cmd("GET").key(format!("{{{}}}n", key(number)))).wait().unwrap();
        assert_eq!(found, Some(counted), "worker {number}");
    }
    client
}

/// As many processes that begin together, each with several callers: each dials each node once, and asks what the cluster looks like a few
/// times.
#[test]
fn clients_of_a_cluster_that_begin_at_once_dial_no_more() {
    const CLIENTS: usize = 25;
    const CALLERS: usize = 8;
    let cluster = start(3, 0);
    let counted = |field: &str| -> Vec<u64> {
        let info = |node: usize| cluster.nodes[node].client().unwrap().ask("INFO all").unwrap();
        let figure = |info: String| {
            let line = info.lines().find_map(|line| line.trim().strip_prefix(field).map(str::to_owned));
            let digits: String = line.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        (0..3).map(|node| figure(info(node))).collect()
    };
    let dialled = || counted("total_connections_received:");
    let asked = || counted("cmdstat_cluster|slots:calls=").into_iter().sum::<u64>();
    let (dialled_before, asked_before) = (dialled(), asked());
    let clients: Vec<Client> = (0..CLIENTS).map(|_| client(&cluster)).collect();
    let barrier = std::sync::Barrier::new(CLIENTS * CALLERS);
    std::thread::scope(|scope| {
        for client in &clients {
            for caller in 0..CALLERS {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    for number in 0..12 {
                        let key = format!("{}:{caller}", key(number));
                        client.call::<()>(cmd("SET").key(&key).arg(caller)).wait().unwrap();
                    }
                });
            }
        }
    });
    for (node, (after, before)) in dialled().into_iter().zip(dialled_before).enumerate() {
        // The sockets that ask for the counts are among them: one in front and one behind for each count.
        let theirs = 4;
        let made = after - before;
        assert!(made <= CLIENTS as u64 + theirs, "node {node}: {made} connections of {CLIENTS} clients");
    }
    let asked = asked() - asked_before;
    assert!((1..=4 * CLIENTS as u64).contains(&asked), "{asked}");
    let connections: Vec<u64> = clients.iter().map(|client| client.stats().connections).collect();
    assert!(connections.iter().all(|made| *made == 3), "{connections:?}");
}

#[test]
fn no_call_fails_while_slots_move() {
    let cluster = start(2, 0);
    let client = under_load(&cluster, |rounds| {
        for round in 0..2 {
            for number in 0..6 {
                let slot = slot_of(key(number).as_bytes());
                let home = owner(slot, 2);
                let (from, to) = if round % 2 == 0 { (home, 1 - home) } else { (1 - home, home) };
                // A slot that has moved before anything is asked shows nothing.
                cluster.move_slot(slot, from, to, || rounds.await_more()).unwrap();
            }
        }
    });
    // The cluster may be asked what it looks like, which is a request as well.
    let is_idle = || Ok((client.stats().in_flight, client.stats().callers) == (0, 0));
    respool_testkit::wait_until("nothing waits", DEADLINE, is_idle).unwrap();
}

#[test]
fn no_call_fails_when_a_replica_takes_over() {
    let cluster = start(2, 1);
    under_load(&cluster, |_| {
        for number in [2, 3] {
            cluster.ok(number, "CLUSTER FAILOVER").unwrap();
            cluster.await_one(number, "INFO replication", |text| text.contains("role:master")).unwrap();
        }
    });
}

#[test]
fn what_is_safe_outlives_a_primary_that_is_killed() {
    let mut cluster = start_to_kill(3, 1);
    let client = client(&cluster);
    let keys: Vec<String> = (0..60).map(key).collect();
    for key in &keys {
        let replies =
            client.batch([cmd("SET").key(key).arg(key), cmd("WAIT").arg(1).arg(20_000)]).dedicated().wait().unwrap();
        assert!(matches!(replies[1], Ok(Reply::Integer(1))), "{replies:?}");
    }
    cluster.nodes[0].kill().unwrap();
    // Those of the other shards are answered, and those of the dead one when its replica has taken over.
    let (dead, live): (Vec<_>, Vec<_>) = keys.iter().partition(|key| owner(slot_of(key.as_bytes()), 3) == 0);
    assert!(!dead.is_empty() && !live.is_empty());
    for key in live.into_iter().chain(dead) {
        let found: String = client.call(cmd("GET").key(key)).wait().unwrap();
        assert_eq!(found, *key);
        client.call::<()>(cmd("SET").key(key).arg("new")).wait().unwrap();
    }
    let all: Vec<String> = client.call(cmd("MGET").key(&keys)).wait().unwrap();
    assert!(all.len() == keys.len() && all.iter().all(|value| value == "new"), "{all:?}");
}

/// A counter that one caller uses.
struct Counter {
    key: String,
    /// What its caller was told last, and how often it was told something.
    last: AtomicI64,
    told: AtomicU64,
}

impl Counter {
    /// Counts until it is over. Returns how many requests were in doubt. If its primary dies, what was told between `copied` and then may be lost.
    fn count(&self, client: &Client, copied: &AtomicI64, is_over: &AtomicBool) -> i64 {
        let (mut in_doubt, mut may_jump) = (0, true);
        while !is_over.load(Ordering::Relaxed) {
            let last = self.last.load(Ordering::Relaxed);
            match client.call::<i64>(cmd("INCR").key(&self.key)).wait() {
                Ok(found) if found == last + 1 => self.last.store(found, Ordering::Relaxed),
                Ok(found) => {
                    let copied = copied.load(Ordering::Relaxed);
                    let may_be = copied + 1..=last + in_doubt + 1;
                    assert!(
                        may_jump && may_be.contains(&found),
                        "{}: {found} behind {last}, {copied} copied",
                        self.key
                    );
                    may_jump = false;
                    self.last.store(found, Ordering::Relaxed);
                }
                Err(error) => {
                    assert_eq!(error.outcome(), Outcome::MaybeExecuted, "{}: {error}", self.key);
                    in_doubt += 1;
                    continue;
                }
            }
            self.told.fetch_add(1, Ordering::Relaxed);
        }
        in_doubt
    }
}

#[test]
fn a_killed_primary_counts_nothing_twice_loses_uncopied_only() {
    let mut cluster = start_to_kill(3, 1);
    let client = client(&cluster);
    let is_over = AtomicBool::new(false);
    let counter = |number| Counter { key: key(number), last: AtomicI64::new(0), told: AtomicU64::new(0) };
    let counters: Vec<Counter> = (0..12).map(counter).collect();
    let copied: Vec<AtomicI64> = (0..12).map(|_| AtomicI64::new(i64::MAX - 1)).collect();
    let is_dead = |counter: &&Counter| owner(slot_of(counter.key.as_bytes()), 3) == 0;
    assert!(counters.iter().filter(is_dead).count() > 1);
    // How much more each is told.
    let await_more = |more: u64| {
        let aims: Vec<u64> = counters.iter().map(|counter| counter.told.load(Ordering::Relaxed) + more).collect();
        let is_told = |(counter, aim): (&Counter, &u64)| counter.told.load(Ordering::Relaxed) >= *aim;
        respool_testkit::wait_until("all counters go on", DEADLINE, || Ok(counters.iter().zip(&aims).all(is_told)))
    };
    let in_doubt: Vec<i64> = std::thread::scope(|scope| {
        let works = counters.iter().zip(&copied);
        let works = works.map(|(counter, copied)| scope.spawn(|| counter.count(&client, copied, &is_over)));
        let works: Vec<_> = works.collect();
        let ending = Ending(&is_over);
        await_more(50).unwrap();
        let mut replica = respool_testkit::Client::connect(&cluster.nodes[3].tcp()).unwrap();
        replica.command(&["READONLY"]).unwrap();
        for (counter, copied) in counters.iter().zip(&copied).filter(|(counter, _)| is_dead(counter)) {
            let told = counter.last.load(Ordering::Relaxed);
            respool_testkit::wait_until("the replica has it", DEADLINE, || {
                let found = String::from_utf8_lossy(&replica.command(&["GET", &counter.key])?).into_owned();
                Ok(found
                    .split("\r\n")
                    .nth(1)
                    .and_then(|found| found.parse().ok())
                    .is_some_and(|found: i64| found >= told))
            })
            .unwrap();
            copied.store(told, Ordering::Relaxed);
        }
        cluster.nodes[0].kill().unwrap();
        await_more(50).unwrap();
        drop(ending);
        works.into_iter().map(|work| work.join().unwrap()).collect()
    });
    for (counter, in_doubt) in counters.iter().zip(in_doubt) {
        // One request at a time: at most one was under way when the primary died.
        assert!(in_doubt <= i64::from(is_dead(&counter)), "{}: {in_doubt} in doubt", counter.key);
        let found: i64 = client.call(cmd("GET").key(&counter.key)).wait().unwrap();
        assert_eq!(found, counter.last.load(Ordering::Relaxed), "{}", counter.key);
    }
}

#[test]
fn a_dead_shard_makes_no_call_of_another_wait() {
    let mut cluster = start_to_kill(2, 0);
    // Reads of the rest are served although slots are not covered.
    for number in [0, 1] {
        cluster.ok(number, "CONFIG SET cluster-require-full-coverage no").unwrap();
    }
    let client = client(&cluster);
    let (mut dead, mut live) = (Vec::new(), Vec::new());
    for key in (0..40).map(key) {
        client.call::<()>(cmd("SET").key(&key).arg(&key)).wait().unwrap();
        if owner(slot_of(key.as_bytes()), 2) == 0 { dead.push(key) } else { live.push(key) }
    }
    cluster.nodes[0].kill().unwrap();
    runtime().block_on(async {
        let lost = client.call::<String>(cmd("GET").key(&dead[0]));
        tokio::select! {
            biased;
            found = lost => panic!("{found:?}"),
            () = async {
                for key in live.iter().cycle().take(400) {
                    let found: String = client.call(cmd("GET").key(key)).await.unwrap();
                    assert_eq!(found, *key);
                }
            } => {}
        }
    });
    let late = client.call::<String>(cmd("GET").key(&dead[0])).deadline(Duration::from_millis(300)).wait().unwrap_err();
    assert_eq!(late.outcome(), Outcome::NotSent, "{late}");
}

#[test]
fn a_transaction_follows_a_slot_that_is_on_its_way() {
    let cluster = start(2, 0);
    let client = client(&cluster);
    let slot = slot_of(b"foo");
    let from = owner(slot, 2);
    client.call::<()>(cmd("SET").key("foo").arg("stays")).wait().unwrap();
    cluster
        .move_slot(slot, from, 1 - from, || {
            // These keys are not there yet, so the node sends them on.
            let set = || cmd("SET").key("{foo}new").arg(1);
            let replies = client.transaction([set(), cmd("INCR").key("{foo}new")]).wait().unwrap();
            assert!(matches!(replies[1], Ok(Reply::Integer(2))), "{replies:?}");
            let replies =
                runtime().block_on(async { client.transaction([cmd("INCR").key("{foo}new")]).await.unwrap() });
            assert!(matches!(replies[0], Ok(Reply::Integer(3))), "{replies:?}");
            let batch = [
                cmd("GET").key("foo"),
                cmd("INCR").key("{foo}new"),
                cmd("INCR").key("{foo}new"),
                cmd("GET").key("foo"),
            ];
            let replies: Vec<String> =
                client.batch(batch).wait().unwrap().into_iter().map(|reply| text(reply.unwrap())).collect();
            assert_eq!(replies, ["stays", "4", "5", "stays"]);
        })
        .unwrap();
    let pair: Vec<String> = client.call(cmd("MGET").key(["foo", "{foo}new"])).wait().unwrap();
    assert_eq!(pair, ["stays", "5"]);
}

#[test]
fn a_request_for_keys_on_both_sides_waits_for_the_slot() {
    let cluster = start(2, 0);
    let client = client(&cluster);
    let slot = slot_of(b"foo");
    let from = owner(slot, 2);
    client.call::<()>(cmd("MSET").arg(["foo", "1", "{foo}2", "2"])).wait().unwrap();
    std::thread::scope(|scope| {
        let (moves, moved) = std::sync::mpsc::channel();
        let (client, cluster) = (&client, &cluster);
        cluster
            .move_slot(slot, from, 1 - from, || {
                let port = cluster.nodes[1 - from].port();
                cluster.ok(from, &format!("MIGRATE 127.0.0.1 {port} foo 0 5000")).unwrap();
                scope.spawn(move || {
                    let pair: Vec<String> = client.call(cmd("MGET").key(["foo", "{foo}2"])).wait().unwrap();
                    moves.send(pair).unwrap();
                });
            })
            .unwrap();
        assert_eq!(moved.recv().unwrap(), ["1", "2"]);
    });
}

#[test]
fn requests_are_split_and_their_replies_joined_in_order() {
    let cluster = start(3, 0);
    let client = client(&cluster);
    let keys: Vec<String> = (0..100).map(key).collect();
    let pairs: Vec<(String, usize)> = keys.iter().cloned().zip(0..).collect();
    client.call::<()>(cmd("MSET").arg(&pairs)).wait().unwrap();
    let found: Vec<usize> = client.call(cmd("MGET").key(&keys)).wait().unwrap();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    let found: Vec<usize> = runtime().block_on(async { client.call(cmd("MGET").key(&keys)).await }).unwrap();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    // Of a runtime that stands still meanwhile.
    let only = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let found: Vec<usize> = only.block_on(async { client.call(cmd("MGET").key(&keys)).wait() }).unwrap();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
    let count = |request: respool_client::Command| client.call::<i64>(request).wait().unwrap();
    assert_eq!(count(cmd("EXISTS").key(&keys)), 100);
    assert_eq!(count(cmd("TOUCH").key(&keys).key("none")), 100);
    assert_eq!(count(cmd("DBSIZE")), 100);
    let all: BTreeSet<String> = client.call::<Vec<String>>(cmd("KEYS").arg("*")).wait().unwrap().into_iter().collect();
    assert_eq!(all, keys.iter().cloned().collect());
    let scanned: BTreeSet<_> = client.scan_keys().count(7).map(Result::unwrap).collect();
    assert_eq!(scanned, keys.iter().cloned().map(bytes::Bytes::from).collect());
    let sizes = client.each_shard(cmd("DBSIZE")).wait().unwrap();
    let sizes: Vec<u64> = sizes.into_iter().map(|size| text(size.unwrap()).parse().unwrap()).collect();
    assert_eq!((sizes.len(), sizes.iter().sum::<u64>()), (3, 100));
    assert_eq!(count(cmd("DEL").key(&keys[..50])), 50);
    assert_eq!(count(cmd("UNLINK").key(&keys)), 50);
    assert_eq!(count(cmd("DBSIZE")), 0);
}

#[test]
fn what_cannot_be_split_is_refused_before_it_is_sent() {
    let cluster = start(2, 0);
    let client = client(&cluster);
    let refused = |error: Error| {
        assert_eq!(error.outcome(), Outcome::NotSent, "{error}");
        error
    };
    let error = refused(client.call::<Reply>(cmd("SINTER").key(["a", "b"])).wait().unwrap_err());
    assert!(matches!(error.kind(), ErrorKind::CrossSlot), "{error}");
    let both = [cmd("SET").key("a").arg(1), cmd("SET").key("b").arg(1)];
    let error = refused(client.transaction(both.clone()).wait().unwrap_err());
    assert!(matches!(error.kind(), ErrorKind::CrossSlot), "{error}");
    let error = refused(client.watch(["a", "b"]).wait().unwrap_err());
    assert!(matches!(error.kind(), ErrorKind::CrossSlot), "{error}");
    refused(client.batch([cmd("MGET").key(["a", "b"]), cmd("GET").key("a")]).wait().map(drop).unwrap_err());
    refused(client.call::<Reply>(cmd("SCAN").arg(0)).wait().unwrap_err());
    let behind = [cmd("PING"), cmd("SET").key("a").arg(0)];
    assert_eq!(client.transaction(behind.clone()).wait().unwrap().len(), 2, "it is of a connection");
    assert_eq!(client.batch(behind).dedicated().wait().unwrap().len(), 2);
    // One node alone would execute what is for all.
    client.call::<()>(cmd("SET").key("a").arg(1)).wait().unwrap();
    for command in [cmd("FLUSHALL"), cmd("DBSIZE"), cmd("KEYS").arg("*"), cmd("SCRIPT").arg("LOAD").arg("return 1")] {
        let behind = || [cmd("SET").key("a").arg(2), command.clone()];
        refused(client.transaction(behind()).wait().unwrap_err());
        refused(client.batch(behind()).dedicated().wait().unwrap_err());
        refused(client.batch([command.clone()]).dedicated().wait().unwrap_err());
        let watched = client.watch("a").wait().unwrap();
        refused(watched.call::<Reply>(command.clone()).wait().unwrap_err());
        assert_eq!(watched.call::<String>(cmd("PING")).wait().unwrap(), "PONG");
        refused(watched.exec(behind()).wait().unwrap_err());
    }
    assert_eq!(client.call::<u8>(cmd("GET").key("a")).wait().unwrap(), 1);
    assert_eq!(client.batch(both).wait().unwrap().len(), 2, "each has its own slot");
}

#[test]
fn scripts_are_known_to_all_shards() {
    let cluster = start(2, 0);
    let client = client(&cluster);
    let script = respool_client::Script::new("return {KEYS[1], ARGV[1]}");
    for key in (0..10).map(key) {
        let found: (String, u64) = client.script(&script).key(&key).arg(7).wait().unwrap();
        assert_eq!(found, (key, 7));
    }
    let digest: String = client.call(cmd("SCRIPT LOAD").arg("return 5")).wait().unwrap();
    for key in (0..10).map(key) {
        assert_eq!(client.call::<u64>(cmd("EVALSHA").arg(&digest).arg(1).key(key)).wait().unwrap(), 5);
    }
}

#[test]
fn replicas_answer_what_only_reads_if_they_may() {
    let cluster = start(1, 1);
    let url = format!("redis+cluster://{}", cluster.seeds(&[0]));
    let client = Client::with_config(Config::from_url(&url).unwrap().deadline(Some(DEADLINE)));
    let batch = [cmd("SET").key("k").arg("v"), cmd("WAIT").arg(1).arg(20_000)];
    client.batch(batch).dedicated().wait().unwrap();
    let calls = |number: usize| -> u64 {
        let text = cluster.text(number, "INFO commandstats").unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_get:calls="));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    };
    let read = || {
        for _ in 0..60 {
            assert_eq!(client.call::<String>(cmd("GET").key("k")).wait().unwrap(), "v");
        }
        client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    };
    read();
    assert_eq!((calls(0), calls(1)), (60, 0));
    for reads in [Reads::All, Reads::PreferReplicas, Reads::ForceAll, Reads::ForcePreferReplicas] {
        let before = calls(1);
        client.set_reads(reads);
        read();
        assert!(calls(1) > before, "{reads:?}");
    }
    let before = calls(1);
    client.set_reads(Reads::Primary);
    read();
    assert_eq!(calls(1), before);
}

#[test]
fn what_is_gone_through_step_by_step_is_at_one_node() {
    let cluster = start(1, 1);
    let url = format!("redis+cluster://{}", cluster.seeds(&[0]));
    let client = Client::with_config(Config::from_url(&url).unwrap().deadline(Some(DEADLINE)));
    let members: BTreeSet<i64> = (0..3_000).map(|number| number * 1_000_003 % 1_000_000_007).collect();
    let texts: Vec<String> = members.iter().map(|member| format!("m{member}")).collect();
    let pairs: Vec<(&String, i64)> = texts.iter().map(|text| (text, 1)).collect();
    let scored: Vec<(i64, &String)> = texts.iter().map(|text| (1, text)).collect();
    let batch = [
        cmd("SADD").key("{k}s").arg(&texts),
        cmd("HSET").key("{k}h").arg(pairs),
        cmd("ZADD").key("{k}z").arg(scored),
        cmd("WAIT").arg(1).arg(20_000),
    ];
    client.batch(batch).dedicated().wait().unwrap();
    let all: BTreeSet<bytes::Bytes> = texts.iter().cloned().map(bytes::Bytes::from).collect();
    for reads in [Reads::All, Reads::PreferReplicas, Reads::ForceAll] {
        client.set_reads(reads);
        let set: BTreeSet<_> = client.scan_set("{k}s").count(20).map(Result::unwrap).collect();
        let hash: BTreeSet<_> = client.scan_hash("{k}h").count(20).map(|pair| pair.unwrap().0).collect();
        let sorted: BTreeSet<_> = client.scan_sorted_set("{k}z").count(20).map(|pair| pair.unwrap().0).collect();
        assert!(set == all && hash == all && sorted == all, "{reads:?}: {} {} {}", set.len(), hash.len(), sorted.len());
        if reads == Reads::ForceAll {
            continue;
        }
        // By its row, for those who keep the cursor themselves.
        let (mut cursor, mut found) = (0, BTreeSet::new());
        loop {
            let page: (u64, Vec<bytes::Bytes>) =
                client.call(cmd("SSCAN").key("{k}s").arg(cursor).arg("COUNT").arg(20)).wait().unwrap();
            cursor = page.0;
            found.extend(page.1);
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(found.len(), all.len(), "{reads:?}");
    }
}

#[test]
fn blocking_calls_and_watches_are_at_the_node_of_their_slot() {
    let cluster = start(2, 0);
    let client = client(&cluster);
    let slot = slot_of(b"list");
    let from = owner(slot, 2);
    std::thread::scope(|scope| {
        let pops =
            scope.spawn(|| client.call::<(String, u64)>(cmd("BLPOP").key("list").arg(0)).deadline(DEADLINE).wait());
        cluster.await_one(from, "INFO clients", |text| text.contains("blocked_clients:1")).unwrap();
        // The node lets it go when the slot goes.
        cluster.move_slot(slot, from, 1 - from, || {}).unwrap();
        cluster.await_one(1 - from, "INFO clients", |text| text.contains("blocked_clients:1")).unwrap();
        client.call::<u64>(cmd("RPUSH").key("list").arg(5)).wait().unwrap();
        assert_eq!(pops.join().unwrap().unwrap(), ("list".to_owned(), 5));
    });
    for key in (0..6).map(key) {
        for expected in 1..3 {
            let add = |watched: &respool_client::Watched| {
                let found: Option<u64> = watched.call(cmd("GET").key(&key)).wait()?;
                Ok(vec![cmd("SET").key(&key).arg(found.unwrap_or(0) + 1)])
            };
            client.update_wait(&key, 3, add).unwrap();
            assert_eq!(client.call::<u64>(cmd("GET").key(&key)).wait().unwrap(), expected);
        }
    }
}

#[test]
fn messages_come_from_whichever_node_they_were_published_at() {
    let cluster = start(2, 0);
    let client = client(&cluster);
    let mut plain = client.subscribe("news").wait().unwrap();
    let mut patterns = client.subscribe_patterns("ne*").wait().unwrap();
    for number in [0, 1] {
        let sent = format!("from {number}");
        respool_testkit::Client::connect(&cluster.nodes[number].tcp())
            .unwrap()
            .command(&["PUBLISH", "news", &sent])
            .unwrap();
        for subscription in [&mut plain, &mut patterns] {
            let notice = subscription.recv_timeout(DEADLINE).unwrap().unwrap();
            assert!(matches!(&notice, Notice::Message(message) if message.payload == sent), "{notice:?}");
        }
    }
}

#[test]
fn sharded_channels_follow_their_slots_and_say_where_a_gap_is() {
    let cluster = start(2, 0);
    let client = client(&cluster);
    let names: Vec<String> = (0..8).map(|number| format!("channel:{number}")).collect();
    let mut all = client.subscribe_sharded(&names).wait().unwrap();
    let publish = |name: &str, payload: &str| {
        let heard: u64 = client.call(cmd("SPUBLISH").key(name).arg(payload)).wait().unwrap();
        assert_eq!(heard, 1, "{name}");
    };
    for name in &names {
        publish(name, "first");
        let notice = all.recv_timeout(DEADLINE).unwrap().unwrap();
        assert!(matches!(&notice, Notice::Message(message) if message.channel == *name), "{notice:?}");
    }
    let slot = slot_of(names[0].as_bytes());
    let home = owner(slot, 2);
    cluster.move_slot(slot, home, 1 - home, || {}).unwrap();
    let notice = all.recv_timeout(DEADLINE).unwrap().unwrap();
    assert_eq!(notice, Notice::Gap);
    publish(&names[0], "second");
    let notice = all.recv_timeout(DEADLINE).unwrap().unwrap();
    assert!(matches!(&notice, Notice::Message(message) if message.payload == "second"), "{notice:?}");
}
