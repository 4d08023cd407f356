//! Cached reads against a redis-server: what is told of changes, what is not, and what may never be seen.
#![cfg(feature = "cache")]

use respool_client::ReconnectTerms;
use respool_client::{CacheStats, Caching, Client, Config, ErrorKind, Event, Observer, Reply, cmd, commands};
use respool_testkit::{RedisServer, Rng, wait_until};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Long enough for a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(server: &RedisServer) -> Config {
    let quick =
        ReconnectTerms { backoff_min_us: 1000, backoff_max_us: 1000, dials_per_second: 1000, dials_burst: 1000 };
    let config = Config::from_url(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    config.reconnect(quick).deadline(Some(PATIENCE))
}

fn client(server: &RedisServer) -> Client {
    Client::with_config(config(server))
}

/// A long time without a word from the server, so that a slow machine is not taken for a dead one.
fn caching() -> Caching {
    Caching::new().silence(Duration::from_secs(600)).ttl(Duration::from_secs(600))
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_until(what, PATIENCE, || Ok(is_so())).unwrap();
}

/// Hits, misses.
fn counts(stats: CacheStats) -> (u64, u64) {
    (stats.hits, stats.misses)
}

#[test]
fn a_value_is_asked_for_once_until_it_changes() {
    let server = RedisServer::start().unwrap();
    let (client, other) = (client(&server), client(&server));
    let cache = client.cache(caching()).unwrap();
    let get = || cache.call::<Option<String>>(commands::get("k")).wait().unwrap();
    assert_eq!((get(), get()), (None, None), "what is not there is known as well");
    other.call::<()>(cmd("SET").key("k").arg("a")).wait().unwrap();
    wait_for("the change is told", || cache.stats().invalidations == 1);
    assert_eq!((get(), get()), (Some("a".to_owned()), Some("a".to_owned())));
    assert_eq!(counts(cache.stats()), (2, 2));
    // Each request has its own reply.
    assert_eq!(cache.call::<usize>(cmd("STRLEN").key("k")).wait().unwrap(), 1);
    other.call::<()>(cmd("FLUSHALL")).wait().unwrap();
    wait_for("all is told", || cache.stats().flushes == 1);
    assert_eq!((get(), cache.stats().entries), (None, 1));
    other.call::<()>(cmd("LPUSH").key("l").arg("x")).wait().unwrap();
    // An error is given and not kept.
    for _ in 0..2 {
        let error = cache.call::<Option<String>>(commands::get("l")).wait().unwrap_err();
        assert_eq!(error.server().unwrap().code(), "WRONGTYPE");
    }
    assert_eq!(cache.stats().entries, 1);
}

#[test]
fn what_a_program_writes_it_reads_at_once() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let cache = client.cache(caching()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let get = || cache.call::<i64>(commands::get("k")).wait().unwrap();
    for round in 0..200 {
        let before = round * 4;
        client.call::<()>(cmd("SET").key("k").arg(before)).wait().unwrap();
        assert_eq!(get(), before);
        client.batch([cmd("INCR").key("k"), cmd("PING")]).wait().unwrap();
        assert_eq!(get(), before + 1);
        runtime.block_on(client.incr("k").into_future()).unwrap();
        assert_eq!(runtime.block_on(cache.call::<i64>(commands::get("k"))).unwrap(), before + 2);
        client.transaction([cmd("INCR").key("k")]).wait().unwrap();
        assert_eq!(get(), before + 3);
    }
}

#[test]
fn many_callers_send_one_request() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    let cache = client.cache(caching()).unwrap();
    cache.call::<Reply>(commands::get("other")).wait().unwrap();
    server.pause().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tasks: Vec<_> = (0..50).map(|_| runtime.spawn(cache.call::<String>(commands::get("k")))).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| cache.call::<String>(commands::get("k")).wait().unwrap())).collect();
        wait_for("all wait", || cache.stats().joined == 53);
        server.resume().unwrap();
        threads.into_iter().for_each(|thread| assert_eq!(thread.join().unwrap(), "v"));
    });
    for task in tasks {
        assert_eq!(runtime.block_on(task).unwrap().unwrap(), "v");
    }
    assert_eq!(cache.stats().misses, 2);
}

#[test]
fn in_broadcast_mode_keys_with_other_beginnings_are_not_kept() {
    let server = RedisServer::start().unwrap();
    let (client, other) = (client(&server), client(&server));
    let cache = client.cache(caching().broadcast(["user:"])).unwrap();
    let get = |key: &str| cache.call::<Option<String>>(commands::get(key)).wait().unwrap();
    for key in ["user:1", "else:1"] {
        assert_eq!((get(key), get(key)), (None, None));
    }
    assert_eq!((counts(cache.stats()), cache.stats().entries), ((1, 3), 1));
    // Of a key that was never read as well.
    other.call::<()>(cmd("SET").key("user:2").arg("b")).wait().unwrap();
    other.call::<()>(cmd("SET").key("user:1").arg("a")).wait().unwrap();
    wait_for("both are told", || cache.stats().invalidations == 2);
    assert_eq!(get("user:1").as_deref(), Some("a"));
}

#[test]
fn a_value_ends_with_its_key() {
    let server = RedisServer::start_with(&["--enable-debug-command", "yes"]).unwrap();
    let client = client(&server);
    // The server tells of the end only when it comes across the key.
    client.call::<()>(cmd("DEBUG SET-ACTIVE-EXPIRE").arg(0)).wait().unwrap();
    let cache = client.cache(caching()).unwrap();
    let get = || cache.call::<Option<String>>(commands::get("k")).wait().unwrap();
    wait_for("it is kept", || {
        client.call::<()>(cmd("SET").key("k").arg("v").arg("PX").arg(300)).wait().unwrap();
        get().is_some() && cache.stats().entries == 1
    });
    wait_for("it ends", || get().is_none());
}

#[test]
fn bytes_are_bounded() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let cache = client.cache(caching().bytes(100_000)).unwrap();
    for key in 0..200 {
        client.call::<()>(cmd("SET").key(key).arg("v".repeat(2_000))).wait().unwrap();
        cache.call::<String>(commands::get(key)).wait().unwrap();
        assert!(cache.stats().bytes <= 100_000);
    }
    let entries = cache.stats().entries;
    assert!((20..50).contains(&entries), "{entries}");
}

#[test]
fn a_lost_connection_forgets_everything() {
    let mut server = RedisServer::start().unwrap();
    let client = client(&server);
    client.call::<()>(cmd("SET").key("k").arg("before")).wait().unwrap();
    let cache = client.cache(caching()).unwrap();
    let get = || cache.call::<Option<String>>(commands::get("k")).wait().unwrap();
    assert_eq!(get().as_deref(), Some("before"));
    server.restart().unwrap();
    wait_for("the loss is noticed", || cache.stats().flushes > 0);
    assert_eq!(get(), None);
    // Killed by the server, which has changed the key meanwhile.
    let mut direct = server.client().unwrap();
    direct.ask("CLIENT KILL TYPE normal SKIPME yes").unwrap();
    direct.ask("SET k after").unwrap();
    wait_for("the new value is seen", || get().as_deref() == Some("after"));
}

#[test]
fn a_server_that_is_silent_is_not_trusted() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    let cache = client.cache(caching().silence(Duration::from_millis(200))).unwrap();
    let get = || cache.call::<String>(commands::get("k"));
    get().wait().unwrap();
    server.pause().unwrap();
    // Nothing of the connection can be known; what was kept is not given out.
    wait_for("it is asked for again", || get().deadline(Duration::from_millis(100)).wait().is_err());
    server.resume().unwrap();
    assert_eq!(get().wait().unwrap(), "v");
}

#[test]
fn what_depends_on_more_than_one_key_is_refused() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let cache = client.cache(caching()).unwrap();
    for request in [
        "SET k v",
        "MGET a b",
        "PING",
        "TTL k",
        "SRANDMEMBER k",
        "BLPOP k 0",
        "SORT_RO k BY w*",
        "EVAL_RO s 1 k",
        "UNKNOWN k",
        "OBJECT FREQ k",
        "SUBSCRIBE k",
    ] {
        let mut words = request.split(' ');
        let command = cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
        let error = cache.call::<Reply>(command).wait().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unfit(_)), "{request}: {error}");
    }
    for request in [
        "XLEN s",
        "XRANGE s - +",
        "GET k",
        "HGETALL h",
        "HMGET h a b",
        "ZRANGE z 0 -1",
        "SMEMBERS s",
        "LRANGE l 0 -1",
        "GETRANGE k 0 1",
    ] {
        let mut words = request.split(' ');
        let command = cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
        cache.call::<Reply>(command).wait().unwrap();
    }
}

#[test]
fn what_changes_without_a_word_of_the_server_is_refused() {
    let server = RedisServer::start().unwrap();
    let cache = client(&server).cache(caching()).unwrap();
    // What is done with the groups of a stream is told to no connection that tracks it.
    for request in [
        "XINFO GROUPS s",
        "xinfo stream s FULL",
        "XINFO CONSUMERS s g",
        "XPENDING s g",
        "MEMORY USAGE k",
        "HPTTL h FIELDS 1 f",
    ] {
        let mut words = request.split(' ');
        let command = cmd(words.next().unwrap()).arg(words.collect::<Vec<_>>());
        let error = cache.call::<Reply>(command).wait().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unfit(_)), "{request}: {error}");
    }
}

#[test]
fn a_server_without_resp3_is_refused() {
    let server = RedisServer::start_without_hello().unwrap();
    let client = client(&server);
    let cache = client.cache(caching()).unwrap();
    let error = cache.call::<Reply>(commands::get("k")).wait().unwrap_err();
    assert!(error.to_string().contains("RESP3"), "{error}");
}

#[test]
fn an_observer_is_told_of_hits_and_changes() {
    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);
    impl Observer for Heard {
        fn event(&self, event: &Event<'_>) {
            let words = match event {
                Event::CachedRead { command, is_hit } => format!("{command} {is_hit}"),
                Event::Invalidated { keys } => format!("{keys:?}"),
                _ => return,
            };
            self.0.lock().unwrap().push(words);
        }
    }
    let server = RedisServer::start().unwrap();
    let heard = Arc::new(Heard::default());
    let watched = Client::with_config(config(&server).observer(heard.clone()));
    let cache = watched.cache(caching()).unwrap();
    cache.call::<Reply>(commands::get("k")).wait().unwrap();
    cache.call::<Reply>(commands::get("k")).wait().unwrap();
    client(&server).call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    wait_for("it is told", || heard.0.lock().unwrap().len() == 3);
    assert_eq!(*heard.0.lock().unwrap(), ["GET false", "GET true", "Some(1)"]);
}

#[test]
fn a_closed_client_ends_cached_reads() {
    let server = RedisServer::start().unwrap();
    let client = client(&server);
    let cache = client.cache(caching()).unwrap();
    cache.call::<Reply>(commands::get("k")).wait().unwrap();
    server.pause().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| cache.call::<Reply>(commands::get("l")).wait().unwrap_err());
        wait_for("it waits", || cache.stats().misses == 2);
        client.close();
        assert!(matches!(waits.join().unwrap().kind(), ErrorKind::Closed));
    });
    assert!(matches!(cache.call::<Reply>(commands::get("k")).wait().unwrap_err().kind(), ErrorKind::Closed));
}

/// Counters that writers raise, and readers by way of the cache. What a reader sees never goes back, a writer of the same client sees what
/// it has written, and all see the last value in the end.
fn check_readers(caching: Caching, kills: bool) {
    let server = RedisServer::start().unwrap();
    let (writes, reads) = (client(&server), client(&server));
    let cache = reads.cache(caching).unwrap();
    let (is_over, seen) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (cache, is_over, seen) = (&cache, &is_over, &seen);
            scope.spawn(move || {
                let mut rng = Rng::new(reader);
                let mut last = [0_u64; 4];
                while !is_over.load(Ordering::Acquire) {
                    let key = rng.below(4);
                    let value: Option<u64> = cache.call(commands::get(format!("c{key}"))).wait().unwrap();
                    let value = value.unwrap_or(0);
                    assert!(value >= last[key], "c{key} goes back from {} to {value}", last[key]);
                    last[key] = value;
                    seen.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut rng = Rng::new(99);
        let mut killer = server.client().unwrap();
        for round in 0..2_000 {
            let key = format!("c{}", rng.below(4));
            let by = if rng.below(2) == 0 { &writes } else { &reads };
            let value: u64 = by.call(cmd("INCR").key(&key)).wait().unwrap();
            if std::ptr::eq(by, &reads) {
                let read: u64 = cache.call(commands::get(&key)).wait().unwrap();
                assert!(read >= value, "{key}: {read} is older than the own {value}");
            }
            if kills && round % 200 == 0 {
                let clients = killer.ask("CLIENT LIST").unwrap();
                // Connections that track have the flag t.
                for line in clients.lines().filter(|line| line.contains(" flags=t ")) {
                    let id = line.split("id=").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
                    killer.ask(&format!("CLIENT KILL ID {id}")).unwrap();
                }
            }
        }
        is_over.store(true, Ordering::Release);
    });
    for key in 0..4 {
        let name = format!("c{key}");
        let last: u64 = writes.call(cmd("GET").key(&name)).wait().unwrap();
        wait_for("the last value is seen", || cache.call::<u64>(commands::get(&name)).wait().unwrap() == last);
    }
    let stats = cache.stats();
    assert!(stats.hits > 0 && seen.load(Ordering::Relaxed) > 0, "{stats:?}");
}

#[test]
fn a_reader_never_sees_a_value_go_back() {
    check_readers(caching(), false);
}

#[test]
fn a_reader_never_sees_a_value_go_back_in_broadcast_mode() {
    check_readers(caching().broadcast(["c"]), false);
}

#[test]
fn a_reader_never_sees_a_value_go_back_over_lost_connections() {
    check_readers(caching(), true);
}

/// A server that takes connections and says nothing.
fn silent_server() -> (TcpListener, Config) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let config = Config::from_url(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
    (listener, config.deadline(Some(PATIENCE)))
}

#[test]
fn a_task_ends_in_time_while_a_connection_is_made() {
    let (_listener, config) = silent_server();
    let client = Client::with_config(config.connect_limit(Duration::from_secs(3600)));
    let cache = client.cache(caching()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let task = runtime.spawn(cache.call::<Reply>(commands::get("k")).deadline(Duration::from_millis(50)));
    wait_for("the task ends", || task.is_finished());
    runtime.block_on(task).unwrap().unwrap_err();
    // One that comes while the connection is made, and whose time is over before that of the first.
    let late = runtime.spawn(cache.call::<Reply>(commands::get("k")));
    let soon = runtime.spawn(cache.call::<Reply>(commands::get("l")).deadline(Duration::from_millis(50)));
    wait_for("the second task ends", || soon.is_finished());
    client.close();
    assert!(matches!(runtime.block_on(late).unwrap().unwrap_err().kind(), ErrorKind::Closed));
}

#[test]
fn the_pause_behind_a_slow_failure_is_whole() {
    struct Failed(Mutex<Option<Instant>>);
    impl Observer for Failed {
        fn event(&self, event: &Event<'_>) {
            if let Event::NotConnected { .. } = event {
                self.0.lock().unwrap().get_or_insert(Instant::now());
            }
        }
    }
    let (listener, config) = silent_server();
    let terms =
        ReconnectTerms { backoff_min_us: 200_000, backoff_max_us: 200_000, dials_per_second: 1000, dials_burst: 1000 };
    let failed = Arc::new(Failed(Mutex::new(None)));
    let config = config.reconnect(terms).connect_limit(Duration::from_millis(500)).observer(failed.clone());
    let client = Client::with_config(config);
    let cache = client.cache(caching()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| cache.call::<Reply>(commands::get("k")).wait().unwrap_err());
        let (_first, _) = listener.accept().unwrap();
        let (_second, _) = listener.accept().unwrap();
        let tried_again = Instant::now();
        // Half of the pause is by chance.
        let pause = tried_again - failed.0.lock().unwrap().expect("the first attempt has failed");
        client.close();
        assert!(pause >= Duration::from_millis(99), "{pause:?}");
    });
}
