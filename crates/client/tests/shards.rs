//! Keys that are spread over real servers: each where the rule says, requests in parts, replies joined.
#![cfg(feature = "shards")]

use respool_client::{ErrorKind, Outcome, Reply, Shard, Shards, cmd, commands};
use respool_route::{Node, Scheme, Topology};
use respool_testkit::RedisServer;
use std::collections::BTreeSet;
use std::time::Duration;

/// Every rule that the proxy has.
const RULES: [&str; 9] =
    ["rmux", "rmux-2013", "crc32", "slots", "ketama", "ketama:md5", "rendezvous", "jump", "jump+cluster"];

const NAMES: [&str; 3] = ["a", "b", "c"];

fn servers() -> Vec<RedisServer> {
    NAMES.iter().map(|_| RedisServer::start().unwrap()).collect()
}

fn shards(rule: &str, servers: &[RedisServer]) -> Shards {
    let shard = |(name, server): (&&str, &RedisServer)| {
        Shard::open(name, &format!("redis://127.0.0.1:{}", server.port())).unwrap()
    };
    Shards::new(rule, NAMES.iter().zip(servers).map(shard)).unwrap()
}

#[test]
fn keys_are_where_the_rule_of_the_proxy_says() {
    let servers = servers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for rule in RULES {
        let shards = shards(rule, &servers);
        let scheme: Scheme = rule.parse().unwrap();
        let topology = Topology::new(scheme, NAMES.iter().map(|name| Node::new(*name)).collect()).unwrap();
        let keys: Vec<String> = (0..60).map(|key| format!("key:{{{}}}:{key}", key % 7 + key)).collect();
        for (at, key) in keys.iter().enumerate() {
            match at % 2 {
                0 => shards.call::<()>(commands::set(key, at)).wait().unwrap(),
                _ => runtime.block_on(shards.call::<()>(commands::set(key, at))).unwrap(),
            }
            let expected = topology.place(key.as_bytes()).get();
            for (node, client) in shards.clients().iter().enumerate() {
                let found: Option<usize> = client.call(cmd("GET").key(key)).wait().unwrap();
                assert_eq!(found, (node == expected).then_some(at), "{rule}: {key}");
            }
            assert_eq!(shards.of_key(key).call::<usize>(cmd("GET").key(key)).wait().unwrap(), at);
        }
        let wanted: Vec<Option<usize>> = (0..60).map(Some).chain([None]).collect();
        let mget = || shards.call::<Vec<Option<usize>>>(cmd("MGET").key(&keys).key("none"));
        assert_eq!(mget().wait().unwrap(), wanted, "{rule}");
        assert_eq!(runtime.block_on(mget()).unwrap(), wanted, "{rule}");
        assert_eq!(shards.call::<usize>(cmd("DBSIZE")).wait().unwrap(), 60);
        let all: BTreeSet<String> =
            shards.call::<Vec<String>>(cmd("KEYS").arg("*")).wait().unwrap().into_iter().collect();
        assert_eq!(all, keys.iter().cloned().collect());
        assert_eq!(shards.call::<usize>(cmd("EXISTS").key(&keys)).wait().unwrap(), 60);
        assert_eq!(shards.call::<usize>(cmd("DEL").key(&keys[..20])).wait().unwrap(), 20);
        let pairs: Vec<(&String, usize)> = keys.iter().map(|key| (key, 7)).collect();
        shards.call::<()>(cmd("MSET").arg(&pairs[..])).wait().unwrap();
        assert_eq!(shards.call::<usize>(cmd("DBSIZE")).wait().unwrap(), 60);
        shards.call::<()>(cmd("FLUSHALL")).wait().unwrap();
        assert_eq!(shards.call::<usize>(cmd("DBSIZE")).wait().unwrap(), 0);
        shards.close();
    }
}

#[test]
fn what_no_server_can_do_alone_is_refused_unsent() {
    let servers = servers();
    let shards = shards("slots", &servers);
    let of_node = |node: usize| {
        let is_there = |key: &String| std::ptr::eq(shards.of_key(key), &shards.clients()[node]);
        (0..).map(|number| format!("k{number}")).find(is_there).unwrap()
    };
    let (k, l) = (of_node(0), of_node(1));
    for command in [
        cmd("RENAME").key(&k).key(&l),
        cmd("MSETNX").key(&k).arg(1).key(&l).arg(2),
        cmd("SORT").key(&k).arg("BY").arg("w*"),
        cmd("SCAN").arg(0),
        cmd("UNKNOWN").key(&k),
        cmd("SUBSCRIBE").arg("c"),
    ] {
        let name = format!("{command:?}");
        match shards.call::<Reply>(command).wait() {
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Unfit(_)), "{name}: {error}");
            }
            Ok(reply) => panic!("{name}: {reply:?}"),
        }
    }
    // On one server it may be done.
    shards.call::<()>(commands::set(&k, 1)).wait().unwrap();
    shards.call::<()>(cmd("RENAME").key(&k).key(&k)).wait().unwrap();
    // An error of one server is the reply.
    shards.call::<usize>(cmd("LPUSH").key(&l).arg(1)).wait().unwrap();
    let error = shards.call::<usize>(cmd("SINTERCARD").arg(2).key(&k).key(&k)).wait().unwrap_err();
    assert_eq!(error.server().unwrap().code(), "WRONGTYPE");
    assert!(Shards::new("none", [Shard::open("a", "localhost").unwrap()]).is_err());
    assert!(Shards::new("jump", []).is_err());
}

#[test]
fn a_part_that_fails_says_that_others_may_have_been_executed() {
    let mut servers = servers();
    let shards = shards("slots", &servers);
    let keys: Vec<String> = (0..30).map(|key| format!("key:{key}")).collect();
    let pairs: Vec<(&String, usize)> = keys.iter().map(|key| (key, 7)).collect();
    shards.call::<()>(cmd("MSET").arg(&pairs[..])).wait().unwrap();
    servers[1].kill().unwrap();
    let error = shards.call::<Reply>(cmd("DEL").key(&keys)).deadline(Duration::from_millis(500)).wait().unwrap_err();
    assert_eq!(error.outcome(), Outcome::MaybeExecuted, "{error}");
    assert_eq!(error.command(), "DEL");
    // Those of other servers are answered.
    let other = keys.iter().find(|key| !std::ptr::eq(shards.of_key(key), &shards.clients()[1])).unwrap();
    assert_eq!(shards.call::<usize>(cmd("EXISTS").key(other)).wait().unwrap(), 0);
}

#[test]
fn parts_are_waited_for_on_the_thread_of_a_runtime() {
    let servers = servers();
    let shards = shards("slots", &servers);
    let pairs: Vec<(String, usize)> = (0..30).map(|key| (format!("key:{key}"), 7)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        shards.call::<()>(cmd("MSET").arg(&pairs[..])).wait().unwrap();
        for round in 0..20 {
            // Some rounds find the connections in use by tasks of the runtime, which stands still.
            let tasks = [(); 3].map(|()| {
                let shards = shards.clone();
                tokio::spawn(async move { shards.call::<usize>(cmd("DBSIZE")).await.unwrap() })
            });
            for _ in 0..round % 4 {
                tokio::task::yield_now().await;
            }
            assert_eq!(shards.call::<usize>(cmd("DBSIZE")).wait().unwrap(), 30);
            for task in tasks {
                assert_eq!(task.await.unwrap(), 30);
            }
        }
    });
}
