//! Requests that wait on the server and keys that are watched, on connections of their own, against a redis-server.

use respool_client::ReconnectTerms;
use respool_client::{Client, Config, Done, ErrorKind, Event, Observer, Outcome, Overload, Reply, Watched, cmd};
use respool_testkit::{RedisServer, Rng, wait_until};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

fn config(server: &RedisServer) -> Config {
    let terms =
        ReconnectTerms { backoff_min_us: 1_000, backoff_max_us: 5_000, dials_per_second: 1_000, dials_burst: 100 };
    let config = Config::from_url(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    config.reconnect(terms).release_limit(Duration::from_secs(60))
}

fn client(server: &RedisServer) -> Client {
    Client::with_config(config(server))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn blocked(client: &Client) -> usize {
    let info: String = client.call(cmd("INFO").arg("clients")).wait().unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("blocked_clients:")).unwrap();
    line.trim().parse().unwrap()
}

fn wait_for_blocked(client: &Client, count: usize) {
    wait_until("calls block", Duration::from_secs(20), || Ok(blocked(client) == count)).unwrap();
}

/// Connections of their own are all free.
fn wait_for_free(client: &Client) {
    let is_free = || Ok(client.stats().lanes == client.stats().lanes_free);
    wait_until("connections are free", Duration::from_secs(20), is_free).unwrap();
}

type Popped = Option<(String, String)>;

#[test]
fn a_blocking_call_makes_no_other_wait() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let popped = std::thread::spawn({
        let client = client.clone();
        move || client.call::<Popped>(cmd("BLPOP").key("list").arg(0)).wait()
    });
    runtime().block_on(async {
        let popped = tokio::spawn({
            let client = client.clone();
            async move { client.call::<Popped>(cmd("BLPOP").key("other").arg(0)).await }
        });
        let waiting = client.clone();
        tokio::task::spawn_blocking(move || wait_for_blocked(&waiting, 2)).await.unwrap();
        for _ in 0..50 {
            client.call::<()>(cmd("SET").key("k").arg("v")).await.unwrap();
        }
        client.call::<()>(cmd("RPUSH").key("other").arg("b")).await.unwrap();
        assert_eq!(popped.await.unwrap().unwrap(), Some(("other".to_owned(), "b".to_owned())));
    });
    client.call::<()>(cmd("RPUSH").key("list").arg("a")).wait().unwrap();
    assert_eq!(popped.join().unwrap().unwrap(), Some(("list".to_owned(), "a".to_owned())));
    let stats = client.stats();
    assert_eq!((stats.connections, stats.lanes, stats.lanes_free, stats.orphans), (1, 2, 2, 0), "{stats:?}");
}

#[derive(Default)]
struct Ends(Mutex<Vec<String>>);

impl Observer for Ends {
    fn done(&self, done: &Done<'_>) {
        let Done { command, requests, sent_bytes, received_bytes, outcome, is_error, took, .. } = done;
        let is_slow = *took >= Duration::from_millis(40);
        let told = format!("{command} {requests} {sent_bytes} {received_bytes} {outcome:?} {is_error} {is_slow}");
        self.0.lock().unwrap().push(told);
    }
}

#[test]
fn an_observer_is_told_how_calls_on_own_connections_ended() {
    let server = RedisServer::start().unwrap();
    let ends = Arc::new(Ends::default());
    let client = Client::with_config(config(&server).observer(Arc::clone(&ends) as Arc<dyn Observer>));
    let take = || std::mem::take(&mut *ends.0.lock().unwrap());
    assert_eq!(client.call::<Popped>(cmd("BLPOP").key("l").arg(0.05)).wait().unwrap(), None);
    assert_eq!(take(), ["BLPOP 1 32 0 Replied false true"]);
    runtime().block_on(async {
        let late = client.call::<Popped>(cmd("BLPOP").key("l").arg(0)).deadline(Duration::from_millis(50)).await;
        assert!(late.unwrap_err().is_timeout());
        assert_eq!(take(), ["BLPOP 1 29 0 Replied true true"]);
        client.batch([cmd("SET").key("k").arg("v"), cmd("GET").key("k")]).dedicated().await.unwrap();
        assert_eq!(take(), ["SET 2 47 3 Replied false false"]);
        let watched = client.watch("k").await.unwrap();
        watched.call::<String>(cmd("GET").key("k")).await.unwrap();
        watched.exec([cmd("GET").key("k")]).await.unwrap();
    });
    let told = take();
    let names: Vec<&str> = told.iter().map(|told| told.split_once(" Replied").unwrap().0).collect();
    assert_eq!(names[..2], ["WATCH 1 22 2", "GET 1 20 1"]);
    assert!(names[2].starts_with("MULTI 3 49 "), "{told:?}");
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    client.call::<Popped>(cmd("BLPOP").key("k").arg(0)).wait().unwrap_err();
    assert!(take()[1].starts_with("BLPOP 1 29 ") && client.stats().lanes > 0);
}

#[test]
fn a_server_that_has_waited_in_vain_is_no_error() {
    let server = RedisServer::start().unwrap();
    let client = Client::with_config(config(&server).deadline(Some(Duration::from_secs(60))));
    let pop = || cmd("BLPOP").key("none").arg(0.01);
    assert_eq!(client.call::<Popped>(pop()).wait().unwrap(), None);
    assert_eq!(runtime().block_on(async { client.call::<Popped>(pop()).await }).unwrap(), None);
}

#[test]
fn a_blocking_call_that_is_late_has_taken_nothing() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let limit = Duration::from_millis(50);
    let pop = || client.call::<Popped>(cmd("BLPOP").key("list").arg(0)).deadline(limit);
    // The connection is there before a call has little time.
    client.call::<()>(cmd("RPUSH").key("list").arg("warm")).wait().unwrap();
    client.call::<Popped>(cmd("BLPOP").key("list").arg(0)).wait().unwrap();
    let runtime = runtime();
    for round in 0..4 {
        let error = if round % 2 == 0 { pop().wait() } else { runtime.block_on(async { pop().await }) }.unwrap_err();
        assert!(error.is_timeout() && error.outcome() == Outcome::Replied, "{error:?}");
        assert_eq!(blocked(&client), 0);
        client.call::<()>(cmd("RPUSH").key("list").arg(round)).wait().unwrap();
        assert_eq!(client.call::<String>(cmd("LPOP").key("list")).wait().unwrap(), round.to_string());
    }
    let stats = client.stats();
    assert_eq!((stats.lanes, stats.lanes_free), (1, 1), "{stats:?}");
}

/// What was taken for callers that had left.
#[derive(Default)]
struct Orphans(Mutex<Vec<String>>);

impl Observer for Orphans {
    fn event(&self, event: &Event<'_>) {
        if let Event::Orphan { command, reply } = event {
            assert_eq!(*command, "BLPOP");
            let Ok(mut elements) = (*reply).clone().into_elements() else { panic!("{reply:?}") };
            let Some(Reply::Bulk(value)) = elements.nth(1) else { panic!("{reply:?}") };
            self.0.lock().unwrap().push(String::from_utf8(value.to_vec()).unwrap());
        }
    }
}

#[test]
fn dropped_blocking_calls_lose_no_element() {
    let server = RedisServer::start().unwrap();
    let orphans = Arc::new(Orphans::default());
    let client = Client::with_config(config(&server).observer(Arc::clone(&orphans) as Arc<dyn Observer>));
    let mut found: Vec<String> = Vec::new();
    let pushed = 200;
    runtime().block_on(async {
        let pusher = tokio::spawn({
            let client = client.clone();
            async move {
                for element in 0..pushed {
                    client.call::<()>(cmd("RPUSH").key("list").arg(element)).await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        let poppers: Vec<_> = (0..4)
            .map(|seed| {
                let client = client.clone();
                tokio::spawn(async move {
                    let mut rng = Rng::new(seed);
                    let mut found = Vec::new();
                    for _ in 0..100 {
                        let polls = rng.below(6);
                        let mut call = Box::pin(client.call::<Popped>(cmd("BLPOP").key("list").arg(0)));
                        for _ in 0..polls {
                            let polled = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
                            if let Poll::Ready(popped) = polled {
                                found.extend(popped.unwrap().map(|(_, element)| element));
                                break;
                            }
                            tokio::task::yield_now().await;
                        }
                    }
                    found
                })
            })
            .collect();
        for popper in poppers {
            found.extend(popper.await.unwrap());
        }
        pusher.await.unwrap();
    });
    wait_for_free(&client);
    assert_eq!(blocked(&client), 0);
    let left: Vec<String> = client.call(cmd("LRANGE").key("list").arg(0).arg(-1)).wait().unwrap();
    let told = orphans.0.lock().unwrap().clone();
    assert_eq!(client.stats().orphans, told.len() as u64);
    let mut all: Vec<u32> = found.iter().chain(&told).chain(&left).map(|element| element.parse().unwrap()).collect();
    all.sort_unstable();
    assert_eq!(all, (0..pushed).collect::<Vec<_>>());
}

#[test]
fn so_many_connections_of_their_own_and_no_more() {
    let server = RedisServer::start().unwrap();
    let client = Client::with_config(config(&server).lanes(2).deadline(Some(Duration::from_secs(60))));
    std::thread::scope(|scope| {
        let pops: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| client.call::<Popped>(cmd("BLPOP").key("list").arg(0)).wait().unwrap()))
            .collect();
        wait_for_blocked(&client, 2);
        for element in 0..6 {
            client.call::<()>(cmd("RPUSH").key("list").arg(element)).wait().unwrap();
        }
        let mut found: Vec<String> = pops.into_iter().map(|pop| pop.join().unwrap().unwrap().1).collect();
        found.sort_unstable();
        assert_eq!(found, ["0", "1", "2", "3", "4", "5"]);
    });
    assert_eq!(client.stats().lanes, 2);
    let strict = Client::with_config(config(&server).lanes(1).overload(Overload::Fail));
    let patient = Client::with_config(config(&server).lanes(1));
    for client in [&strict, &patient] {
        let keys = client.watch("k").wait().unwrap();
        let pop = || client.call::<Popped>(cmd("BLPOP").key("none").arg(0)).deadline(Duration::from_millis(50));
        for error in [pop().wait().unwrap_err(), runtime().block_on(async { pop().await }).unwrap_err()] {
            assert!(matches!(error.kind(), ErrorKind::Overloaded), "{error:?}");
            assert_eq!(error.outcome(), Outcome::NotSent);
        }
        drop(keys);
    }
}

#[test]
fn what_counts_its_own_writes_is_sent_behind_them() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let error = client.call::<i64>(cmd("WAIT").arg(0).arg(10)).wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unfit(why) if why.contains("behind")), "{error:?}");
    let batch = || client.batch([cmd("SET").key("k").arg("v"), cmd("WAIT").arg(0).arg(10)]);
    assert!(batch().wait().is_err());
    for replies in
        [batch().dedicated().wait().unwrap(), runtime().block_on(async { batch().dedicated().await }).unwrap()]
    {
        assert_eq!((replies.len(), replies[1].clone()), (2, Ok(Reply::Integer(0))));
    }
    let error = client.batch([cmd("MULTI")]).dedicated().wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unfit(_)), "{error:?}");
    wait_for_free(&client);
}

#[test]
fn a_transaction_is_executed_if_nothing_has_changed() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let watched = client.watch("k").wait().unwrap();
    assert_eq!(watched.call::<Option<i64>>(cmd("GET").key("k")).wait().unwrap(), None);
    let replies = watched.exec([cmd("INCR").key("k"), cmd("GET").key("k")]).wait().unwrap();
    assert_eq!(replies[0], Ok(Reply::Integer(1)));
    let watched = client.watch(["k", "l"]).wait().unwrap();
    client.call::<()>(cmd("SET").key("l").arg(1)).wait().unwrap();
    let error = watched.exec([cmd("INCR").key("k")]).wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Conflict), "{error:?}");
    assert_eq!(client.stats().lanes_free, 1);
    // What is dropped executes nothing, and what it watched is watched no longer.
    drop(client.watch("k").wait().unwrap());
    assert_eq!(client.stats().lanes, 0);
    assert_eq!(client.call::<i64>(cmd("GET").key("k")).wait().unwrap(), 1);
}

#[test]
fn tasks_that_change_one_value_lose_no_change() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    runtime().block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move {
                    let add = async |watched: &Watched| {
                        let value: Option<i64> = watched.call(cmd("GET").key("sum")).await?;
                        Ok(vec![cmd("SET").key("sum").arg(value.unwrap_or(0) + 1)])
                    };
                    for _ in 0..10 {
                        client.update("sum", 10_000, add).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let add = |watched: &Watched| {
        let value: i64 = watched.call(cmd("GET").key("sum")).wait()?;
        Ok(vec![cmd("SET").key("sum").arg(value + 1)])
    };
    client.update_wait("sum", 1, add).unwrap();
    assert_eq!(client.call::<i64>(cmd("GET").key("sum")).wait().unwrap(), 81);
}

#[test]
fn a_connection_that_watched_and_was_lost_executes_nothing() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let kill = || {
        let all: i64 =
            client.call(cmd("CLIENT KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes")).wait().unwrap();
        assert_eq!(all, 1);
        client.call::<()>(cmd("SET").key("k").arg("other")).wait().unwrap();
    };
    for reads in [false, true] {
        client.call::<()>(cmd("SET").key("k").arg("old")).wait().unwrap();
        let watched = client.watch("k").wait().unwrap();
        kill();
        if reads {
            let error = watched.call::<String>(cmd("GET").key("k")).wait().unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error:?}");
        }
        let error = watched.exec([cmd("SET").key("k").arg("new")]).wait().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error:?}");
        assert_eq!(client.call::<String>(cmd("GET").key("k")).wait().unwrap(), "other");
        assert_eq!(client.stats().lanes, 0);
    }
}

#[test]
fn a_closed_client_ends_calls_that_wait_for_a_lane() {
    let server = RedisServer::start().unwrap();
    let other = client(&server);
    let url = format!("127.0.0.1:{}", server.port());
    let client = Client::with_config(Config::from_url(&url).unwrap().lanes(1).deadline(None));
    let pop = || client.call::<Popped>(cmd("BLPOP").key("list").arg(0));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| pop().wait());
        wait_for_blocked(&other, 1);
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| pop().wait())).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut tasks: Vec<_> = (0..4).map(|_| Box::pin(pop())).collect();
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        runtime.block_on(async {
            for task in &mut tasks {
                assert!(task.as_mut().poll(&mut cx).is_pending());
            }
        });
        client.close();
        assert!(matches!(first.join().unwrap().unwrap_err().kind(), ErrorKind::Closed));
        let threads = threads.into_iter().map(|thread| thread.join().unwrap());
        let tasks: Vec<_> = runtime.block_on(async {
            let mut ended = Vec::new();
            for task in tasks {
                ended.push(task.await);
            }
            ended
        });
        for error in threads.chain(tasks).map(Result::unwrap_err) {
            assert!(matches!(error.kind(), ErrorKind::Closed), "{error:?}");
            assert_eq!(error.outcome(), Outcome::NotSent, "{error:?}");
        }
    });
    wait_for_blocked(&other, 0);
}

#[test]
fn a_closed_client_ends_blocking_calls() {
    let server = RedisServer::start().unwrap();
    let (client, other) = (client(&server), client(&server));
    std::thread::scope(|scope| {
        let pop = scope.spawn(|| client.call::<Popped>(cmd("BLPOP").key("list").arg(0)).wait());
        wait_for_blocked(&other, 1);
        client.close();
        let error = pop.join().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Closed), "{error:?}");
    });
    let error = client.watch("k").wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed), "{error:?}");
    wait_for_blocked(&other, 0);
}
