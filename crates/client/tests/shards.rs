//! Keys that are spread over real servers: each where the rule says, requests in parts, replies joined.

use respool_client::{Caching, Client, Config, ErrorKind, Notice, Outcome, Reply, Script, Shard, cmd, commands};
use respool_route::{Node, Scheme, Topology};
use respool_testkit::{RedisServer, wait_until};
use std::collections::BTreeSet;
use std::time::Duration;

/// Every rule that the proxy has.
const RULES: [&str; 9] =
    ["rmux", "rmux-2013", "crc32", "slots", "ketama", "ketama:md5", "rendezvous", "jump", "jump+cluster"];

const NAMES: [&str; 3] = ["a", "b", "c"];

fn servers() -> Vec<RedisServer> {
    NAMES.iter().map(|_| RedisServer::start().unwrap()).collect()
}

fn shards(rule: &str, servers: &[RedisServer]) -> Client {
    let shard = |(name, server): (&&str, &RedisServer)| {
        Shard::open(name, &format!("redis://127.0.0.1:{}", server.port())).unwrap()
    };
    Client::with_config(Config::of_shards(rule, NAMES.iter().zip(servers).map(shard)).unwrap())
}

fn url(rule: &str, servers: &[RedisServer]) -> String {
    let hosts: Vec<String> = servers.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
    format!("redis+shards://{}?rule={rule}&names={}", hosts.join(","), NAMES.join(","))
}

/// The number of the server that has a key.
fn place(rule: &str, key: &str) -> usize {
    let scheme: Scheme = rule.parse().unwrap();
    Topology::new(scheme, NAMES.iter().map(|name| Node::new(*name)).collect()).unwrap().place(key.as_bytes()).get()
}

/// A key that this server has.
fn key_at(rule: &str, wanted: usize) -> String {
    (0..).map(|number| format!("k{number}")).find(|key| place(rule, key) == wanted).unwrap()
}

#[test]
fn keys_are_where_the_rule_of_the_proxy_says() {
    let servers = servers();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for rule in RULES {
        let shards = shards(rule, &servers);
        let keys: Vec<String> = (0..60).map(|key| format!("key:{{{}}}:{key}", key % 7 + key)).collect();
        for (at, key) in keys.iter().enumerate() {
            match at % 2 {
                0 => shards.set(key, at).cast::<()>().wait().unwrap(),
                _ => runtime.block_on(async { shards.set(key, at).cast::<()>().await }).unwrap(),
            }
            let expected = place(rule, key);
            for (node, client) in shards.servers().iter().enumerate() {
                let found: Option<usize> = client.call(cmd("GET").key(key)).wait().unwrap();
                assert_eq!(found, (node == expected).then_some(at), "{rule}: {key}");
            }
            assert_eq!(shards.server_of(key).call::<usize>(cmd("GET").key(key)).wait().unwrap(), at);
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
    let (k, l) = (key_at("slots", 0), key_at("slots", 1));
    for command in [
        cmd("RENAME").key(&k).key(&l),
        cmd("MSETNX").key(&k).arg(1).key(&l).arg(2),
        cmd("SORT").key(&k).arg("BY").arg("w*"),
        cmd("SCAN").arg(0),
        cmd("UNKNOWN").arg(&k),
        cmd("SUBSCRIBE").arg("c"),
    ] {
        let name = format!("{command:?}");
        match shards.call::<Reply>(command).wait() {
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::Unfit(_) | ErrorKind::CrossSlot), "{name}: {error}");
                assert_eq!(error.outcome(), Outcome::NotSent);
            }
            Ok(reply) => panic!("{name}: {reply:?}"),
        }
    }
    // On one server it may be done.
    shards.set(&k, 1).wait().unwrap();
    shards.call::<()>(cmd("RENAME").key(&k).key(&k)).wait().unwrap();
    // An error of one server is the reply.
    shards.call::<usize>(cmd("LPUSH").key(&l).arg(1)).wait().unwrap();
    let error = shards.call::<usize>(cmd("SINTERCARD").arg(2).key(&k).key(&k)).wait().unwrap_err();
    assert_eq!(error.server().unwrap().code(), "WRONGTYPE");
    // The server knows whether it knows a command of which the table does not.
    assert!(shards.call::<String>(cmd("UNKNOWN").key(&k)).wait().unwrap_err().server().is_some());
    assert!(Config::of_shards("none", [Shard::open("a", "localhost").unwrap()]).is_err());
    assert!(Config::of_shards("jump", []).is_err());
    assert!(Config::of_shards("jump", [Shard::open("a", "redis+cluster://localhost").unwrap()]).is_err());
}

/// What the server of watched keys does not have is not executed there, whatever way it takes to that connection.
#[test]
fn a_connection_that_watches_is_sent_what_its_server_has_alone() {
    let servers = servers();
    let client = Client::open(&url("slots", &servers)).unwrap();
    // The server of the watched key is not the one to which requests without keys go.
    let (watched_key, other) = (key_at("slots", 1), key_at("slots", 0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    client.mset([(&watched_key, "w"), (&other, "o")]).wait().unwrap();
    let is_crossed = |error: respool_client::Error| {
        assert!(matches!(error.kind(), ErrorKind::CrossSlot), "{error}");
        assert_eq!(error.outcome(), Outcome::NotSent, "{error}");
    };

    let watched = client.watch(&watched_key).wait().unwrap();
    is_crossed(watched.call::<Reply>(cmd("GET").key(&other)).wait().unwrap_err());
    is_crossed(watched.call::<Reply>(cmd("GET")).arg(&other).wait().unwrap_err());
    is_crossed(runtime.block_on(async { watched.call::<Reply>(cmd("GET").key(&other)).await }).unwrap_err());
    is_crossed(watched.call::<Reply>(cmd("MGET").key([&watched_key, &other])).wait().unwrap_err());
    is_crossed(watched.call::<Reply>(cmd("DEBUG").arg("DIGEST-VALUE").key(&other)).wait().unwrap_err());
    is_crossed(watched.call::<Reply>(cmd("BLPOP").key(&other).arg(1)).wait().unwrap_err());
    is_crossed(watched.call::<Reply>(cmd("EVAL").arg("return 1").arg(1).key(&other)).wait().unwrap_err());
    for command in [cmd("DBSIZE"), cmd("KEYS").arg("*"), cmd("FLUSHALL"), cmd("RANDOMKEY"), cmd("SCAN").arg(0)] {
        let error = watched.call::<Reply>(command).wait().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unfit(_)) && error.outcome() == Outcome::NotSent, "{error}");
    }
    // The connection is as good as before.
    assert_eq!(watched.call::<String>(cmd("GET")).arg(&watched_key).wait().unwrap(), "w");
    assert_eq!(runtime.block_on(async { watched.call::<String>(cmd("PING")).await }).unwrap(), "PONG");
    let script = cmd("EVAL").arg("return redis.call('GET', KEYS[1])").arg(1).key(&watched_key);
    assert_eq!(watched.call::<String>(script.clone()).wait().unwrap(), "w");
    assert_eq!(watched.call::<i64>(cmd("EVAL").arg("return 7").arg(0)).wait().unwrap(), 7);
    let popped = watched.call::<Reply>(cmd("BLPOP").key(format!("{{{watched_key}}}none")).arg(0.01)).wait();
    assert_eq!(popped.unwrap(), Reply::Null);
    let done = watched.exec([cmd("PING"), script, cmd("SET").key(&watched_key).arg("x")]).wait().unwrap();
    assert_eq!(done.len(), 3);

    let set = || cmd("SET").key(&other).arg("lost");
    let watch = || client.watch(&watched_key).wait().unwrap();
    is_crossed(watch().exec([set()]).wait().unwrap_err());
    is_crossed(runtime.block_on(async { watch().exec([cmd("PING"), set()]).await }).unwrap_err());
    is_crossed(watch().exec([cmd("SET").key(&watched_key).arg("lost"), set()]).wait().unwrap_err());
    is_crossed(client.update_wait(&watched_key, 3, |_| Ok(vec![set()])).unwrap_err());
    is_crossed(runtime.block_on(client.update(&watched_key, 3, async |_| Ok(vec![set()]))).unwrap_err());
    is_crossed(client.watch([&watched_key, &other]).wait().map(drop).unwrap_err());
    let script = Script::new("return redis.call('SET', KEYS[1], 'lost')");
    is_crossed(client.script(&script).key([&watched_key, &other]).wait::<Reply>().unwrap_err());
    let found = |client: &Client, key: &String| client.call::<Option<String>>(cmd("GET").key(key)).wait().unwrap();
    let at = client.servers();
    assert_eq!((found(&at[1], &watched_key).as_deref(), found(&at[1], &other)), (Some("x"), None));
    assert_eq!(found(&at[0], &other).as_deref(), Some("o"));
    // A client of one server knows of no others.
    let watched = client.server_of(&watched_key).watch(&watched_key).wait().unwrap();
    assert_eq!(watched.call::<Option<String>>(cmd("GET").key(&other)).wait().unwrap(), None);
    watched.exec([cmd("DBSIZE"), cmd("GET").key(&other)]).wait().unwrap();
}

/// On a connection of one server, what is for all of them would be executed by that one alone.
#[test]
fn what_is_for_all_servers_is_not_executed_by_one() {
    let servers = servers();
    let client = shards("slots", &servers);
    let keys: Vec<String> = (0..30).map(|key| format!("key:{key}")).collect();
    client.mset(keys.iter().map(|key| (key, 7)).collect::<Vec<_>>()).wait().unwrap();
    let key = key_at("slots", 1);
    for command in [
        cmd("FLUSHALL"),
        cmd("FLUSHDB"),
        cmd("DBSIZE"),
        cmd("KEYS").arg("*"),
        cmd("SCRIPT").arg("LOAD").arg("return 1"),
        cmd("INFO"),
    ] {
        let both = || [cmd("SET").key(&key).arg(1), command.clone()];
        for result in [
            client.transaction([command.clone()]).wait(),
            client.transaction(both()).wait(),
            client.batch([command.clone()]).dedicated().wait(),
            client.batch(both()).dedicated().wait(),
            client.watch(&key).wait().unwrap().exec(both()).wait(),
        ] {
            let error = result.expect_err(&format!("{command:?}"));
            assert!(matches!(error.kind(), ErrorKind::Unfit(_)), "{error}");
            assert_eq!(error.outcome(), Outcome::NotSent, "{error}");
        }
    }
    assert_eq!(client.dbsize().wait().unwrap(), 30);
    // What counts the writes of its connection is sent behind them. The server may not know it.
    for waits in [cmd("WAIT").arg(0).arg(10), cmd("WAITAOF").arg(0).arg(0).arg(10)] {
        let replies = client.batch([cmd("SET").key(&key).arg(1), waits]).dedicated().wait().unwrap();
        assert_eq!((replies.len(), replies[0].is_ok()), (2, true));
    }
    let is_there = client.server_of(&key).call::<bool>(cmd("EXISTS").key(&key)).wait().unwrap();
    assert!(is_there);
    // Of one server, the one does what is for all.
    let one =
        Config::of_shards("slots", [Shard::open("a", &format!("redis://127.0.0.1:{}", servers[0].port())).unwrap()]);
    let one = Client::with_config(one.unwrap());
    assert_eq!(one.transaction([cmd("FLUSHALL"), cmd("DBSIZE")]).wait().unwrap()[1], Ok(Reply::Integer(0)));
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
    let other = keys.iter().find(|key| place("slots", key) != 1).unwrap();
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

/// What a client of one server does, a client of several does: by an address, in threads and in tasks.
#[test]
fn a_client_of_several_servers_is_a_client() {
    let servers = servers();
    let client = Client::open(&url("ketama:md5", &servers)).unwrap();
    let [a, b, c] = [0, 1, 2].map(|node| key_at("ketama:md5", node));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();

    // Batches: the requests for one server follow each other there, and results are in the order of the requests.
    let batch = || [&a, &b, &a, &c, &b].map(|key| cmd("INCR").key(key));
    let numbers = |replies: Vec<Result<Reply, _>>| -> Vec<Reply> { replies.into_iter().map(Result::unwrap).collect() };
    let expected = |from: i64| [1, 1, 2, 1, 2].map(|number| Reply::Integer(from + number)).to_vec();
    let first = numbers(client.batch(batch()).wait().unwrap());
    assert_eq!(first, expected(0));
    let rest: Vec<Reply> = numbers(runtime.block_on(async { client.batch(batch()).await }).unwrap());
    assert_eq!(rest, [3, 3, 4, 2, 4].map(Reply::Integer));
    let refused = client.batch([cmd("GET").key(&a), cmd("MGET").key([&a, &b])]).wait().unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Unfit(_)) && refused.outcome() == Outcome::NotSent);

    // Transactions, watches and scripts, where the keys are.
    let done = client.transaction([cmd("PING"), cmd("INCR").key(&b), cmd("GET").key(&b)]).wait().unwrap();
    assert_eq!(numbers(done)[1], Reply::Integer(5));
    let apart = client.transaction([cmd("INCR").key(&a), cmd("INCR").key(&b)]).wait().unwrap_err();
    assert!(matches!(apart.kind(), ErrorKind::CrossSlot) && apart.outcome() == Outcome::NotSent);
    client
        .update_wait(&c, 3, |watched| {
            let count: i64 = watched.call(cmd("GET").key(&c)).wait()?;
            Ok(vec![cmd("SET").key(&c).arg(count * 10)])
        })
        .unwrap();
    assert_eq!(client.get(&c).cast::<i64>().wait().unwrap(), 20);
    let script = Script::new("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    for key in [&a, &b, &c] {
        client.script(&script).key(key).arg(1).wait::<i64>().unwrap();
    }

    // What waits on a server, and `WAIT` behind a write.
    client.lpush(format!("{{{b}}}"), 7).wait().unwrap();
    let list = format!("{{{b}}}");
    let popped: (String, i64) = client.call(cmd("BLPOP").key(&list).arg(1)).wait().unwrap();
    assert_eq!(popped, (list, 7));
    let error = client.call::<Reply>(cmd("BLPOP").key([&a, &b]).arg(1)).wait().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::CrossSlot), "{error}");
    let waited = client.batch([cmd("SET").key(&c).arg(1), cmd("WAIT").arg(0).arg(10)]).dedicated().wait().unwrap();
    assert_eq!(waited.len(), 2);

    // All servers.
    client.mset((0..300).map(|key| (format!("n:{key}"), key)).collect::<Vec<_>>()).wait().unwrap();
    let keys: BTreeSet<_> = client.scan_keys().pattern("n:*").count(20).map(Result::unwrap).collect();
    assert_eq!(keys.len(), 300);
    let sizes: Vec<i64> = client
        .each_shard(cmd("DBSIZE"))
        .wait()
        .unwrap()
        .into_iter()
        .map(|size| match size.unwrap() {
            Reply::Integer(size) => size,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((sizes.len(), sizes.iter().sum()), (3, client.dbsize().wait().unwrap()));
    let refused = client.each_shard(cmd("PING")).dedicated().wait().unwrap_err();
    assert!(matches!(refused.kind(), ErrorKind::Unfit(_)) && refused.outcome() == Outcome::NotSent, "{refused}");
    assert!(refused.to_string().contains("make a dedicated batch for each"), "{refused}");
    // A key is at one of them: at the others it would be written where it is not looked for.
    for command in [cmd("SET").key("once").arg(1), cmd("SET").arg("once").arg(1), cmd("NEW.ONE").key("once")] {
        for one in [&client, &client.server_of(&a)] {
            let refused = one.each_shard(command.clone()).wait().unwrap_err();
            assert!(
                matches!(refused.kind(), ErrorKind::Unfit(_)) && refused.outcome() == Outcome::NotSent,
                "{refused}"
            );
            assert!(one.each_shard(command.clone()).dedicated().wait().is_err());
        }
    }
    assert_eq!(client.each_shard(cmd("EXISTS")).wait().unwrap().len(), 3, "without a key it is the servers' to refuse");
    assert!(client.scan_keys().pattern("once").next().is_none());
    // What several servers have read of one is forgotten by its cache, and by that of all, when they write it.
    let (cache, all) = (client.server_of(&a).cache(Caching::new()).unwrap(), client.cache(Caching::new()).unwrap());
    for round in 0..20 {
        client.mset([(&a, round), (&b, round), (&c, round)]).wait().unwrap();
        assert_eq!(cache.call::<i64>(commands::get(&a)).wait().unwrap(), round);
        for key in [&a, &b, &c, &a, &b, &c] {
            assert_eq!(all.call::<i64>(commands::get(key)).wait().unwrap(), round);
        }
    }
    let stats = all.stats();
    assert!(stats.misses >= 60 && stats.hits + stats.misses == 120, "{stats:?}");
    // What others write is told by each of them.
    let other = Client::open(&url("ketama:md5", &servers)).unwrap();
    for key in [&a, &b, &c] {
        other.set(key, -1).wait().unwrap();
        let is_told = || Ok(all.call::<i64>(commands::get(key)).wait().map_err(std::io::Error::other)? == -1);
        wait_until("the change is told", Duration::from_secs(60), is_told).unwrap();
    }
    all.forget(a.as_bytes());
    assert!(all.stats().entries <= 2);
    client.close();
    assert!(matches!(client.get(&a).wait().unwrap_err().kind(), ErrorKind::Closed));
}

#[test]
fn channels_are_where_keys_of_their_names_are() {
    let servers = servers();
    let client = Client::open(&url("jump", &servers)).unwrap();
    let channels = [0, 1, 2].map(|node| key_at("jump", node));
    let next =
        |subscription: &mut respool_client::Subscription| match subscription.recv_timeout(Duration::from_secs(20)) {
            Ok(Some(Notice::Message(message))) => String::from_utf8(message.payload.to_vec()).unwrap(),
            other => panic!("{other:?}"),
        };
    let mut all = client.subscribe(&channels[..]).wait().unwrap();
    let mut patterns = client.subscribe_patterns("k*").wait().unwrap();
    let mut sharded = client.subscribe_sharded(&channels[..]).wait().unwrap();
    for channel in &channels {
        // It is at one server, and counted once for the channel and once for the pattern.
        assert_eq!(client.publish(channel, channel).wait().unwrap(), 2);
        assert_eq!((next(&mut all), next(&mut patterns)), (channel.clone(), channel.clone()));
        assert_eq!(client.spublish(channel, "s").wait().unwrap(), 1);
        assert_eq!(next(&mut sharded), "s");
    }
    drop((all, patterns, sharded));
    for channel in &channels {
        let gone = || Ok(client.publish(channel, "none").wait().map_err(std::io::Error::other)? == 0);
        wait_until("nothing is subscribed to", Duration::from_secs(60), gone).unwrap();
    }
}
