//! Against a redis-server: threads, tasks and both on one connection, cancelled calls, restarts.

use bytes::Bytes;
use respool_client::ReconnectTerms;
use respool_client::{Client, Config, ErrorKind, Outcome, Reply, cmd};
use respool_testkit::{RedisServer, Rng, wait_until};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

fn url(server: &RedisServer) -> String {
    format!("redis://127.0.0.1:{}", server.port())
}

fn client(server: &RedisServer) -> Client {
    Client::open(&url(server)).unwrap()
}

/// A value that says which request it answers, of a size that goes with it.
fn value(key: usize) -> String {
    let size = [10, 60, 300, 5_000][key % 4];
    format!("{key}:{}", "v".repeat(size))
}

/// Every key's value is read and must be its own.
fn check_thread(client: &Client, first: usize, rounds: usize) {
    for round in 0..rounds {
        let key = (first * 31 + round) % 64;
        let name = format!("key:{key}");
        client.call::<()>(cmd("SET").key(&name).arg(value(key))).wait().unwrap();
        let found: String = client.call(cmd("GET").key(&name)).wait().unwrap();
        assert_eq!(found, value(key));
    }
}

async fn check_task(client: Client, first: usize, rounds: usize) {
    for round in 0..rounds {
        let key = (first * 31 + round) % 64;
        let name = format!("key:{key}");
        client.call::<()>(cmd("SET").key(&name).arg(value(key))).await.unwrap();
        let found: String = client.call(cmd("GET").key(&name)).await.unwrap();
        assert_eq!(found, value(key));
    }
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    match threads {
        0 => tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
        threads => tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap(),
    }
}

/// Nothing waits and no place is taken.
#[track_caller]
fn check_idle(client: &Client) {
    let stats = client.stats();
    assert_eq!((stats.in_flight, stats.callers), (0, 0), "{stats:?}");
}

#[test]
fn a_lone_thread_writes_and_reads_by_itself() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    check_thread(&client, 0, 50);
    let stats = client.stats();
    assert_eq!((stats.requests, stats.writes, stats.connections), (100, 100, 1));
    assert!(stats.reads <= 110, "{stats:?}");
    check_idle(&client);
}

#[test]
fn threads_share_one_connection() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let client = &client;
            scope.spawn(move || check_thread(client, thread, 50));
        }
    });
    assert_eq!(client.stats().connections, 1);
    check_idle(&client);
}

#[test]
fn tasks_share_one_connection_and_its_writes() {
    for threads in [0, 2] {
        let server = RedisServer::start().unwrap();
        let client = client(&server);
        runtime(threads).block_on(async {
            let tasks: Vec<_> = (0..100).map(|task| tokio::spawn(check_task(client.clone(), task, 20))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        let stats = client.stats();
        assert_eq!((stats.requests, stats.connections), (4_000, 1));
        assert!(stats.writes < 2_000, "{stats:?}");
        check_idle(&client);
    }
}

#[test]
fn threads_and_tasks_share_one_connection() {
    for threads in [0, 2] {
        let server = RedisServer::start().unwrap();
        let client = client(&server);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let client = &client;
                scope.spawn(move || check_thread(client, thread, 50));
            }
            runtime(threads).block_on(async {
                let tasks: Vec<_> = (0..20).map(|task| tokio::spawn(check_task(client.clone(), task, 20))).collect();
                for task in tasks {
                    task.await.unwrap();
                }
            });
        });
        assert_eq!(client.stats().connections, 1);
        check_idle(&client);
    }
}

/// Calls are cancelled at all points of their way; whatever is answered must be its own, and nothing may be left.
#[test]
fn cancelled_calls_leave_no_reply_and_no_place_behind() {
    for threads in [0, 2] {
        let server = RedisServer::start().unwrap();
        let client = client(&server);
        let (mut asked, mut counted) = (0, 0);
        runtime(threads).block_on(async {
            let tasks: Vec<_> = (0..64)
                .map(|task| {
                    let client = client.clone();
                    tokio::spawn(async move {
                        let mut rng = Rng::new(task);
                        let (mut asked, mut counted) = (0, 0);
                        for round in 0..150 {
                            let key = format!("key:{}", (task * 31 + round) % 64);
                            let expected = format!("{key}={}", "v".repeat((task % 7) as usize * 40));
                            let name = format!("{key}:{task}");
                            client.call::<()>(cmd("SET").key(&name).arg(&expected)).await.unwrap();
                            // Polled a few times or not at all, and dropped; or awaited.
                            let polls = if rng.below(10) < 3 { rng.below(4) as u64 } else { u64::MAX };
                            let get = client.call::<String>(cmd("GET").key(&name));
                            if let Some(found) = Limited::new(get, polls).await {
                                assert_eq!(found.unwrap(), expected);
                            }
                            asked += 1;
                            let polls = if rng.below(10) < 3 { rng.below(4) as u64 } else { u64::MAX };
                            let incr = client.call::<i64>(cmd("INCR").key("count"));
                            counted += i64::from(Limited::new(incr, polls).await.is_some());
                        }
                        (asked, counted)
                    })
                })
                .collect();
            for task in tasks {
                let (more_asked, more_counted) = task.await.unwrap();
                asked += more_asked;
                counted += more_counted;
            }
            client.call::<()>(cmd("PING")).await.unwrap();
        });
        let total: i64 = client.call(cmd("GET").key("count")).wait().unwrap();
        assert!(counted <= total && total <= asked, "{counted} answered, {total} executed, {asked} asked");
        check_idle(&client);
    }
}

/// A future that is polled so often and then given up.
struct Limited<F> {
    future: Option<std::pin::Pin<Box<F>>>,
    polls: u64,
}

impl<F: Future> Limited<F> {
    fn new(future: F, polls: u64) -> Self {
        Self { future: Some(Box::pin(future)), polls }
    }
}

impl<F: Future> Future for Limited<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        if self.polls == 0 {
            self.future = None;
            return std::task::Poll::Ready(None);
        }
        self.polls -= 1;
        let left = self.polls;
        let polled = self.future.as_mut().unwrap().as_mut().poll(cx);
        if polled.is_pending() && left < 4 {
            // It does not wait until it is woken, but only until others have run.
            cx.waker().wake_by_ref();
        }
        polled.map(Some)
    }
}

/// Every value that is read was written for its key, whatever happens to the server in between.
#[test]
fn twenty_restarts_bring_no_wrong_reply() {
    let mut server = RedisServer::start().unwrap();
    let terms =
        ReconnectTerms { backoff_min_us: 1_000, backoff_max_us: 20_000, dials_per_second: 500, dials_burst: 50 };
    let config = Config::from_url(&url(&server)).unwrap().reconnect(terms).deadline(Some(Duration::from_secs(60)));
    let client = Client::with_config(config);
    let is_over = AtomicBool::new(false);
    let (read, lost) = (AtomicU64::new(0), AtomicU64::new(0));
    let note = |error: respool_client::Error| {
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error:?}");
        assert_eq!(error.outcome(), Outcome::MaybeExecuted, "what was not sent is sent again: {error:?}");
        lost.fetch_add(1, Ordering::Relaxed);
    };
    let check = |key: usize, found: Result<Option<String>, respool_client::Error>| match found {
        Ok(Some(found)) => {
            assert_eq!(found, value(key));
            read.fetch_add(1, Ordering::Relaxed);
        }
        Ok(None) => {}
        Err(error) => panic!("GET is sent again: {error:?}"),
    };
    std::thread::scope(|scope| {
        let (client, is_over, note, check) = (&client, &is_over, &note, &check);
        for thread in 0..2 {
            scope.spawn(move || {
                for round in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let key = (thread * 17 + round) % 64;
                    let set = cmd("APPEND").key("log").arg("x");
                    client.call::<()>(set).wait().unwrap_or_else(note);
                    client.call::<()>(cmd("SET").key(key).arg(value(key)).idempotent()).wait().unwrap();
                    check(key, client.call(cmd("GET").key(key)).wait());
                }
            });
        }
        scope.spawn(move || {
            runtime(0).block_on(async {
                let tasks = (0..16).map(|task| async move {
                    for round in 0.. {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let key = (task * 13 + round) % 64;
                        client.call::<()>(cmd("APPEND").key("log").arg("x")).await.unwrap_or_else(note);
                        client.call::<()>(cmd("SET").key(key).arg(value(key)).idempotent()).await.unwrap();
                        check(key, client.call(cmd("GET").key(key)).await);
                    }
                });
                futures_join(tasks).await;
            });
        });
        for _ in 0..20 {
            let before = read.load(Ordering::Relaxed);
            while read.load(Ordering::Relaxed) < before + 200 {
                std::thread::yield_now();
            }
            server.restart().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let stats = client.stats();
    assert!(stats.connections >= 21 && lost.load(Ordering::Relaxed) > 0, "{stats:?}");
    check_idle(&client);
}

/// All futures, in one task.
async fn futures_join<F: Future<Output = ()>>(futures: impl Iterator<Item = F>) {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

#[test]
fn a_batch_is_contiguous_and_a_transaction_whole() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let client = &client;
            scope.spawn(move || {
                for _ in 0..50 {
                    let replies = client.batch((0..10).map(|_| cmd("INCR").key("n"))).wait().unwrap();
                    let numbers: Vec<i64> = replies
                        .into_iter()
                        .map(|reply| respool_client::FromReply::from_reply(reply.unwrap()).unwrap())
                        .collect();
                    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
                    let replies =
                        client.transaction([cmd("INCR").key("m"), cmd("LPUSH").key("m").arg(1)]).wait().unwrap();
                    assert!(replies[0].is_ok() && replies[1].is_err(), "{replies:?}");
                }
            });
        }
    });
    let refused = client.transaction([cmd("INCR").key("m"), cmd("GET")]).wait().unwrap_err();
    assert!(refused.server().unwrap().text().contains("wrong number"), "{refused}");
    assert_eq!(client.call::<i64>(cmd("GET").key("m")).wait().unwrap(), 400);
    check_idle(&client);
}

#[test]
fn a_large_reply_comes_whole_beside_small_ones() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let large = Bytes::from((0..8 << 20).map(|at: u32| (at % 251) as u8).collect::<Vec<_>>());
    client.call::<()>(cmd("SET").key("large").arg(&large)).wait().unwrap();
    runtime(0).block_on(async {
        let small: Vec<_> = (0..20).map(|task| tokio::spawn(check_task(client.clone(), task, 50))).collect();
        for _ in 0..5 {
            let found: Bytes = client.call(cmd("GET").key("large")).await.unwrap();
            assert!(found == large);
            // Given up in the middle.
            let get = client.call::<Bytes>(cmd("GET").key("large"));
            Limited::new(get, 3).await;
        }
        for task in small {
            task.await.unwrap();
        }
        client.call::<()>(cmd("PING")).await.unwrap();
    });
    // What was given up is read to its end without a call.
    wait_until("all is read", Duration::from_secs(20), || Ok(client.stats().in_flight == 0)).unwrap();
    check_idle(&client);
}

#[test]
fn a_connection_that_the_server_closed_while_idle_costs_nothing() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    client.call::<()>(cmd("PING")).wait().unwrap();
    server.client().unwrap().ask("CLIENT KILL TYPE normal").unwrap();
    std::thread::sleep(Duration::from_millis(150));
    // Sent on a new connection and never on the old.
    assert_eq!(client.call::<i64>(cmd("INCR").key("n")).wait().unwrap(), 1);
    assert_eq!(client.stats().connections, 2);
}

#[test]
fn a_unix_socket_and_a_database_are_reached_by_their_address() {
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("unix://{}?db=3", server.socket_path().display())).unwrap();
    check_thread(&client, 0, 10);
    runtime(0).block_on(async { tokio::spawn(check_task(client.clone(), 1, 10)).await.unwrap() });
    let shown: String = client.call(cmd("CLIENT INFO")).wait().unwrap();
    assert!(shown.contains(" db=3 ") && shown.contains(" resp=3"), "{shown}");
}

/// A socket is watched by one runtime. Whatever has become of that one, a call of another is woken.
#[test]
fn a_client_is_used_by_one_runtime_after_the_other() {
    for (first, second) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
        let server = RedisServer::start().unwrap();
        let client = client(&server);
        let many = async |from: usize| {
            let tasks: Vec<_> =
                (from..from + 20).map(|task| tokio::spawn(check_task(client.clone(), task, 5))).collect();
            for task in tasks {
                task.await.unwrap();
            }
        };
        // Each is gone when the next begins: what a lone caller has left, and what several have.
        runtime(first).block_on(check_task(client.clone(), 0, 5));
        runtime(second).block_on(check_task(client.clone(), 1, 5));
        runtime(first).block_on(many(10));
        runtime(second).block_on(check_task(client.clone(), 2, 5));
        runtime(second).block_on(many(40));
        runtime(first).block_on(many(70));
        // Each is there still, and stands still.
        let (one, other) = (runtime(first), runtime(second));
        for round in 0..3 {
            one.block_on(check_task(client.clone(), 3, 2));
            other.block_on(check_task(client.clone(), 4, 2));
            one.block_on(many(100 + round));
            other.block_on(many(200 + round));
        }
        // Both run.
        std::thread::scope(|scope| {
            for (runtime, task) in [(&one, 5), (&other, 6)] {
                let client = client.clone();
                scope.spawn(move || runtime.block_on(check_task(client, task, 50)));
            }
        });
        assert_eq!(client.stats().connections, 1);
        check_idle(&client);
    }
}

/// Takes 50 ms, and gives its argument.
const SLOW: &str = "local function now() local time = redis.call('TIME') return time[1] * 1e6 + time[2] end \
    local over = now() + 5e4 while now() < over do end return ARGV[1]";

/// A call that has begun to wait in one runtime goes on in another.
#[test]
fn a_call_goes_on_in_another_runtime_than_it_has_begun_in() {
    for (first, second) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
        let server = RedisServer::start().unwrap();
        let client = client(&server);
        let other = runtime(second);
        other.block_on(check_task(client.clone(), 0, 1));
        for calls in [1, 3] {
            let slow = |call| Box::pin(client.call::<usize>(cmd("EVAL").arg(SLOW).arg(0).arg(call)));
            let mut waiting: Vec<_> = (0..calls).map(slow).collect();
            let one = runtime(first);
            one.block_on(async {
                for call in &mut waiting {
                    assert!(std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await.is_pending());
                }
            });
            drop(one);
            for (call, waits) in waiting.into_iter().enumerate() {
                assert_eq!(other.block_on(waits).unwrap(), call);
            }
            check_idle(&client);
        }
    }
}

/// Its snapshots fail: it takes no writes, answers PING with the same error, and serves reads.
#[test]
fn a_server_that_cannot_save_is_connected_to() {
    let server = RedisServer::start().unwrap();
    // There is something else under the name of the file.
    std::fs::create_dir(server.directory().join("dump.rdb")).unwrap();
    let before = client(&server);
    before.call::<()>(cmd("CONFIG").arg("SET").arg("save").arg("3600 1")).wait().unwrap();
    before.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    before.call::<Reply>(cmd("BGSAVE")).wait().unwrap();
    wait_until("the snapshot has failed", Duration::from_secs(20), || {
        Ok(matches!(before.call::<Reply>(cmd("PING")).wait().unwrap(), Reply::Error(error) if error.code() == "MISCONF"))
    })
    .unwrap();
    let client = Client::connect_wait(&url(&server)).unwrap();
    assert_eq!(client.call::<String>(cmd("GET").key("k")).wait().unwrap(), "v");
    assert!(matches!(
        client.call::<()>(cmd("SET").key("k").arg("w")).wait().unwrap_err().kind(),
        ErrorKind::Server(error) if error.code() == "MISCONF"
    ));
}
