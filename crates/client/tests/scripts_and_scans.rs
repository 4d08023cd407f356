//! Scripts by their digest, scans, and what observers are told, against a redis-server.

use futures_core::Stream;
use respool_client::{
    Caching, Client, Config, Done, Event, Observer, Outcome, Reply, Script, ServerError, cmd, commands,
};
use respool_testkit::{RedisServer, wait_until};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn config(server: &RedisServer) -> Config {
    Config::from_url(&format!("redis://127.0.0.1:{}", server.port())).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_script_is_sent_whole_once_to_a_server_without_it() {
    let server = RedisServer::start().unwrap();
    let client = Client::with_config(config(&server));
    let add = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    let evals = || {
        let info: String = client.call(cmd("INFO").arg("commandstats")).wait().unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("cmdstat_eval:calls=")).unwrap_or("0,");
        line.split(',').next().unwrap().parse::<u64>().unwrap()
    };
    for round in 1..=3 {
        assert_eq!(client.script(&add).key("sum").arg(5).wait::<i64>().unwrap(), 10 * round - 5);
        let sum = runtime().block_on(async { client.script(&add).key("sum").arg(5).call::<i64>().await });
        assert_eq!(sum.unwrap(), 10 * round);
        assert_eq!(evals(), 1);
    }
    client.call::<()>(cmd("SCRIPT FLUSH")).wait().unwrap();
    let read = Script::new("return {#KEYS, KEYS[2], ARGV[1]}");
    let found: (i64, String, String) = client.script(&read).key(["a", "b"]).arg("x").readonly().wait().unwrap();
    assert_eq!(found, (2, "b".to_owned(), "x".to_owned()));
    // Also where an error of the server's is a value.
    let reply = client.script(&Script::new("return 7")).wait::<Reply>().unwrap();
    assert!(matches!(reply, Reply::Integer(7)), "{reply:?}");
    let value = runtime().block_on(async { client.script(&Script::new("return 8")).call::<Result<i64, _>>().await });
    assert_eq!(value.unwrap(), Ok::<_, ServerError>(8));
    // An error of the script's own is no reason to call it again.
    let fail = Script::new("redis.call('INCR', 'calls') return redis.error_reply('NOSCRIPT of my own')");
    assert!(client.script(&fail).wait::<i64>().is_err());
    assert!(client.script(&fail).wait::<i64>().is_err());
    assert_eq!(client.call::<i64>(cmd("GET").key("calls")).wait().unwrap(), 2);
}

#[test]
fn scans_give_everything_page_by_page() {
    let server = RedisServer::start().unwrap();
    let client = Client::with_config(config(&server));
    let pairs: Vec<(String, usize)> = (0..700).map(|number| (format!("n:{number}"), number)).collect();
    client.call::<()>(cmd("MSET").arg(pairs.clone())).wait().unwrap();
    client.call::<()>(cmd("HSET").key("hash").arg(pairs.clone())).wait().unwrap();
    let scores: Vec<(usize, String)> = pairs.iter().map(|(name, score)| (*score, name.clone())).collect();
    client.call::<()>(cmd("ZADD").key("scores").arg(scores)).wait().unwrap();
    let expected: BTreeSet<String> = pairs.iter().map(|(name, _)| name.clone()).collect();
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let keys = || client.scan_keys().pattern("n:*").count(50).kind("string");
    assert_eq!(keys().map(|key| text(key.unwrap())).collect::<BTreeSet<_>>(), expected);
    let streamed = runtime().block_on(async {
        let (mut keys, mut found) = (keys(), BTreeSet::new());
        while let Some(key) = std::future::poll_fn(|cx| Pin::new(&mut keys).poll_next(cx)).await {
            found.insert(text(key.unwrap()));
        }
        assert!(keys.item().await.is_none());
        found
    });
    assert_eq!(streamed, expected);
    let fields: BTreeSet<_> = client.scan_hash("hash").map(|pair| text(pair.unwrap().0)).collect();
    assert_eq!(fields, expected);
    let sum: f64 = client.scan_sorted_set("scores").map(|pair| pair.unwrap().1).sum();
    assert_eq!(sum, (0..700).sum::<usize>() as f64);
    let mut wrong = client.scan_set("hash");
    assert!(wrong.next().unwrap().is_err());
    assert!(wrong.next().is_none());
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn done(&self, done: &Done<'_>) {
        let Done { command, requests, sent_bytes, received_bytes, outcome, is_error, .. } = done;
        assert_eq!(*outcome, Outcome::Replied);
        self.0.lock().unwrap().push(format!("{command} {requests} {sent_bytes} {received_bytes} {is_error}"));
    }

    fn event(&self, event: &Event<'_>) {
        let name = match event {
            Event::Connected { failures, .. } => format!("connected {failures}"),
            Event::Lost { unanswered, .. } => format!("lost {unanswered}"),
            _ => return,
        };
        self.0.lock().unwrap().push(name);
    }
}

#[test]
fn an_observer_is_told_of_calls_and_connections() {
    let mut server = RedisServer::start().unwrap();
    let notes = Arc::new(Notes::default());
    let client = Client::with_config(config(&server).observer(Arc::clone(&notes) as Arc<dyn Observer>));
    client.call::<()>(cmd("SET").key("k").arg("v")).wait().unwrap();
    client.call::<i64>(cmd("INCR").key("k")).wait().unwrap_err();
    server.restart().unwrap();
    let batch = [cmd("GET").key("k"), cmd("GET").key("l")];
    runtime().block_on(async { client.batch(batch).await }).unwrap();
    let notes = notes.0.lock().unwrap().clone();
    assert_eq!(notes[..3], ["connected 0", "SET 1 27 2 false", "INCR 1 21 43 true"]);
    assert!(notes[3].starts_with("lost "), "{notes:?}");
    assert!(notes[4].starts_with("connected "), "{notes:?}");
    assert_eq!(notes[5..], ["GET 2 40 0 false"]);
}

/// What a program does wrong when it is told something ends no thread of the library, and no call.
#[test]
fn an_observer_that_panics_makes_no_call_wait() {
    struct Panics;
    impl Observer for Panics {
        fn event(&self, event: &Event<'_>) {
            panic!("as a test wants at {event:?}");
        }
    }
    let mut server = RedisServer::start().unwrap();
    let client = Client::with_config(config(&server).observer(Arc::new(Panics)));
    let runtime = runtime();
    let ask = || {
        client.call::<()>(cmd("SET").key("k").arg("v").idempotent()).deadline(Duration::from_secs(20)).wait().unwrap();
        let limit = tokio::time::Duration::from_secs(20);
        let asked =
            runtime.block_on(async { tokio::time::timeout(limit, client.call::<Reply>(cmd("GET").key("k"))).await });
        asked.expect("it ends").unwrap();
    };
    ask();
    server.restart().unwrap();
    ask();
    let cache = client.cache(Caching::new()).unwrap();
    let read = || cache.call::<String>(commands::get("k")).deadline(Duration::from_secs(20)).wait().unwrap();
    assert_eq!(read(), "v");
    Client::open(&format!("redis://127.0.0.1:{}", server.port()))
        .unwrap()
        .call::<()>(cmd("SET").key("k").arg("w"))
        .wait()
        .unwrap();
    wait_until("the cache hears of it", Duration::from_secs(60), || Ok(read() == "w")).unwrap();
}
