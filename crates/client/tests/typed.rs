//! Typed commands against a redis-server: what they write is understood, and what it answers is of the types they say.

use std::collections::HashMap;

use bytes::Bytes;
use respool_client::commands::{
    self, Aggregate, BeforeAfter, Exclusive, LeftRight, MinMax, Operator, Pairs, Strategy, Unit,
};
use respool_client::{Client, Reply};
use respool_testkit::RedisServer;

/// A client runs `test` on a server that speaks RESP3, and on one that refuses HELLO and is spoken to in RESP2.
fn in_both_dialects(test: impl Fn(&Client)) {
    for (server, has_maps) in
        [(RedisServer::start(), true), (RedisServer::start_with(&["--rename-command", "HELLO", ""]), false)]
    {
        let server = server.expect("a redis-server starts");
        let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).expect("the address is good");
        let map = client.hgetall("none").cast::<Reply>().wait().expect("it is answered");
        assert_eq!(matches!(map, Reply::Map(_)), has_maps, "{map:?}");
        test(&client);
    }
}

#[test]
fn strings_and_keys() {
    in_both_dialects(|client| {
        let () = client.set("k", "v").wait().unwrap();
        assert!(!client.set("k", 1).nx().wait().unwrap());
        assert!(client.set("k", 1.5).xx().ex(100).wait().unwrap());
        assert_eq!(client.set("k", 2).keepttl().get().wait().unwrap(), Some(Bytes::from("1.5")));
        assert_eq!(client.set("none", 2).get().xx().wait().unwrap(), None);
        assert_eq!(client.get("k").cast::<u64>().wait().unwrap(), 2);
        assert_eq!((client.incr("k").wait().unwrap(), client.incrbyfloat("k", 0.5).wait().unwrap()), (3, 3.5));
        let () = client.mset([("a", 1), ("b", 2)]).wait().unwrap();
        assert!(!client.msetnx([("a", 1), ("c", 2)]).wait().unwrap());
        let found = client.mget(["a", "c"]).wait().unwrap();
        assert_eq!(found, [Some(Bytes::from("1")), None]);
        assert_eq!(client.lcs("a", "b").wait().unwrap(), "");
        assert_eq!(client.lcs("a", "b").len().wait().unwrap(), 0);
        assert!(client.lcs("a", "b").idx().withmatchlen().wait().unwrap().contains_key(&b"len"[..]));
        assert!(client.expire("a", 100).nx().wait().unwrap() && client.ttl("a").wait().unwrap() > 0);
        assert!(client.copy("a", "a2").replace().wait().unwrap());
        assert_eq!(
            (client.type_("a").wait().unwrap(), client.exists(["a", "c"]).wait().unwrap()),
            ("string".into(), 1)
        );
        let (cursor, keys) = client.scan(0).match_("a*").count(100).type_("string").wait().unwrap();
        assert_eq!((cursor, keys.len()), (0, 2));
        assert_eq!(client.setbit("bits", 7, 1).wait().ok(), Some(false));
        assert_eq!(client.bitcount("bits").index(0, -1).bit().wait().unwrap(), 1);
        let fields = client.bitfield("bits").get("u8", 0).set("u8", 0, 3).wait().unwrap();
        assert_eq!(fields, [Some(1), Some(1)]);
        assert_eq!(client.object_encoding("none").wait().unwrap(), None);
        let payload = client.dump("a").wait().unwrap().expect("the key exists");
        let () = client.restore("restored", 0, payload).replace().wait().unwrap();
        assert!(client.move_("restored", 3).wait().unwrap());
        assert_eq!(client.del(["a", "b", "none"]).wait().unwrap(), 2);
    });
}

#[test]
fn lists_hashes_and_sets() {
    in_both_dialects(|client| {
        assert_eq!(client.rpush("l", ["a", "b", "c", "d"]).wait().unwrap(), 4);
        assert_eq!(client.lpop("l").wait().unwrap(), Some(Bytes::from("a")));
        assert_eq!(client.lpop("l").count(1).wait().unwrap(), Some(vec![Bytes::from("b")]));
        assert_eq!(client.lpop("none").count(1).wait().unwrap(), None);
        assert_eq!(client.linsert("l", BeforeAfter::Before, "d", "x").wait().unwrap(), 3);
        assert_eq!(client.lmove("l", "m", LeftRight::Left, LeftRight::Right).wait().unwrap(), Some(Bytes::from("c")));
        assert_eq!(client.lpos("l", "d").wait().unwrap(), Some(1));
        assert_eq!(client.lpos("l", "d").count(0).wait().unwrap(), [1]);
        let popped = client.lmpop(["none", "m"], LeftRight::Left).count(2).wait().unwrap();
        assert_eq!(popped, Some((Bytes::from("m"), vec![Bytes::from("c")])));
        assert_eq!(client.sort("l").alpha().desc().limit(0, 1).wait().unwrap(), [Some(Bytes::from("x"))]);
        assert_eq!(client.sort("l").alpha().store("sorted").wait().unwrap(), 2);

        assert_eq!(client.hset("h", [("f", "1"), ("g", "2")]).wait().unwrap(), 2);
        assert_eq!(client.hgetall("h").wait().unwrap().get(&b"f"[..]), Some(&Bytes::from("1")));
        assert_eq!(client.hgetall("h").cast::<HashMap<String, u8>>().wait().unwrap()["g"], 2);
        assert_eq!(client.hmget("h", ["f", "x"]).wait().unwrap(), [Some(Bytes::from("1")), None]);
        assert_eq!(client.hrandfield("none").wait().unwrap(), None);
        assert_eq!(client.hrandfield("h").count(2).wait().unwrap().len(), 2);
        assert_eq!(client.hrandfield("h").count(2).withvalues().wait().unwrap().len(), 2);
        assert_eq!(client.hscan("h", 0).wait().unwrap().1.len(), 2);
        assert_eq!(client.hincrbyfloat("h", "f", 0.5).wait().unwrap(), 1.5);

        assert_eq!(client.sadd("s", [1, 2, 3]).wait().unwrap(), 3);
        assert_eq!(client.smismember("s", [1, 9]).wait().unwrap(), [true, false]);
        assert_eq!(client.smembers("s").cast::<std::collections::BTreeSet<u8>>().wait().unwrap(), [1, 2, 3].into());
        assert!(client.spop("s").wait().unwrap().is_some());
        assert_eq!(client.spop("s").count(5).wait().unwrap().len(), 2);
        assert_eq!(client.sintercard(["s", "s"]).limit(1).wait().unwrap(), 0);
        assert_eq!(client.sscan("s", 0).wait().unwrap(), (0, vec![]));
    });
}

#[test]
fn sorted_sets_and_places() {
    in_both_dialects(|client| {
        let scores = [(1.0, "a"), (2.0, "b"), (3.5, "c"), (4.0, "d"), (5.0, "e")];
        assert_eq!(client.zadd("z", scores).nx().ch().wait().unwrap(), 5);
        assert_eq!(client.zadd("z", (1.5, "a")).incr().xx().wait().unwrap(), Some(2.5));
        assert_eq!(client.zincrby("z", 0.25, "a").wait().unwrap(), 2.75);
        let expected = Pairs(vec![(Bytes::from("b"), 2.0), (Bytes::from("a"), 2.75)]);
        assert_eq!(client.zrange("z", 0, 1).withscores().wait().unwrap(), expected);
        assert_eq!(client.zrange("z", 10, 0).byscore().rev().limit(0, 1).wait().unwrap(), ["e"]);
        assert_eq!(client.zcount("z", Exclusive(2), f64::INFINITY).wait().unwrap(), 4);
        assert_eq!(client.zscore("z", "none").wait().unwrap(), None);
        assert_eq!(client.zmscore("z", ["b", "none"]).wait().unwrap(), [Some(2.0), None]);
        let both = client.zunion(["z", "none"]).weights([2, 1]).aggregate(Aggregate::Max).withscores().wait().unwrap();
        assert_eq!(both.len(), 5);
        assert_eq!(client.zpopmin("z").wait().unwrap(), Pairs(vec![(Bytes::from("b"), 2.0)]));
        assert_eq!(client.zpopmax("z").count(1).wait().unwrap(), Pairs(vec![(Bytes::from("e"), 5.0)]));
        assert_eq!(client.zpopmax("none").wait().unwrap(), Pairs(vec![]));
        let popped = client.zmpop("z", MinMax::Min).count(1).wait().unwrap();
        assert_eq!(popped, Some((Bytes::from("z"), vec![(Bytes::from("a"), 2.75)])));
        assert_eq!(client.zmpop("none", MinMax::Min).wait().unwrap(), None);
        assert_eq!(client.zrandmember("z").count(1).withscores().wait().unwrap().len(), 1);
        assert_eq!(client.zscan("z", 0).wait().unwrap().1.len(), 2);
        assert_eq!(client.zrank("z", "none").wait().unwrap(), None);

        let places = [(13.361389, 38.115556, "Palermo"), (15.087269, 37.502669, "Catania")];
        assert_eq!(client.geoadd("g", places).wait().unwrap(), 2);
        assert_eq!(client.geodist("g", "Palermo", "none").km().wait().unwrap(), None);
        assert!(client.geodist("g", "Palermo", "Catania").km().wait().unwrap().unwrap() > 100.0);
        let found = client.geopos("g", ["Palermo", "none"]).wait().unwrap();
        assert!(found[0].is_some() && found[1].is_none());
        let near = client.geosearch("g").frommember("Palermo").byradius(50, Unit::Km).asc().count(1).any();
        assert_eq!(near.clone().wait().unwrap(), ["Palermo"]);
        assert!(matches!(near.withcoord().withdist().wait().unwrap()[0], Reply::Array(_)));
        assert_eq!(client.georadius("g", 15, 37, 200, Unit::Km).store("near").wait().unwrap(), 2);
    });
}

#[test]
fn streams_and_scripts() {
    in_both_dialects(|client| {
        assert_eq!(client.xadd("x", "1-1", [("f", 1)]).wait().unwrap(), "1-1");
        let added =
            client.xadd("x", "*", ("f", 2)).trim(Strategy::Maxlen, Some(Operator::Approximately), 100).limit(10);
        assert!(!added.wait().unwrap().is_empty());
        assert_eq!(client.xadd("none", "*", ("f", 2)).nomkstream().wait().unwrap(), None);
        let entries = client.xrange("x", "-", "+").count(1).wait().unwrap();
        assert_eq!(entries, [(Bytes::from("1-1"), Pairs(vec![(Bytes::from("f"), Bytes::from("1"))]))]);
        let () = client.xgroup_create("x", "g", "0").mkstream().wait().unwrap();
        let read = client.xread(["x"], ["0"]).count(1).wait().unwrap().unwrap();
        assert_eq!(read[&b"x"[..]].len(), 1);
        assert!(client.xread("x", "$").wait().unwrap().is_none());
        let read = client.xreadgroup("g", "c", "x", ">").count(1).noack().wait().unwrap().unwrap();
        assert_eq!(read[&b"x"[..]].len(), 1);
        assert!(client.xreadgroup("g", "c", "x", ">").wait().unwrap().is_some());
        let (count, first, _, consumers) = client.xpending("x", "g").wait().unwrap();
        assert_eq!((count, first.is_some(), consumers.unwrap()), (1, true, vec![(Bytes::from("c"), 1)]));
        assert_eq!(client.xpending("x", "g").filters(Some(0), "-", "+", 10).consumer("c").wait().unwrap().len(), 1);
        let (_, claimed, _) = client.xautoclaim("x", "g", "c2", 0, "0").justid().wait().unwrap();
        assert_eq!(client.xack("x", "g", &claimed).wait().unwrap(), 1);
        assert!(client.xinfo_stream("x").full().count(1).wait().unwrap().contains_key(&b"groups"[..]));
        assert_eq!(client.xinfo_groups("x").wait().unwrap().len(), 1);
        assert_eq!(client.xtrim("x", Strategy::Maxlen, None, 0).wait().unwrap(), 2);

        let sum = client.eval("return ARGV[1] + ARGV[2] + #KEYS", ["k"]).arg([1, 2]).cast::<i64>().wait().unwrap();
        assert_eq!(sum, 4);
        let sha = client.script_load("return 7").wait().unwrap();
        assert_eq!(client.evalsha(&sha, ()).cast::<i64>().wait().unwrap(), 7);
        assert_eq!(client.script_exists([sha, Bytes::from("0".repeat(40))]).wait().unwrap(), [true, false]);
        let code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
        assert_eq!(client.function_load(code).replace().wait().unwrap(), "lib");
        assert_eq!(client.function_list().libraryname("lib").withcode().wait().unwrap().len(), 1);
        assert_eq!(client.fcall("f", ()).cast::<i64>().wait().unwrap(), 1);
    });
}

#[test]
fn questions_about_the_server() {
    in_both_dialects(|client| {
        assert_eq!(client.ping().wait().unwrap(), "PONG");
        assert_eq!(client.ping().message("x").wait().unwrap(), "x");
        assert!(client.info().section("server").wait().unwrap().contains("redis_version"));
        assert_eq!(client.config_get(["maxmemory", "maxclients"]).wait().unwrap().len(), 2);
        let () = client.config_set([("maxmemory", 0)]).wait().unwrap();
        assert!(client.client_list().wait().unwrap().contains("id="));
        assert_eq!(client.client_kill().id(999_999).wait().unwrap(), 0);
        assert!(client.client_id().wait().unwrap() > 0);
        assert!(client.time().wait().unwrap().0 > 0);
        assert_eq!(client.dbsize().wait().unwrap(), 0);
        assert!(client.memory_usage("none").samples(0).wait().unwrap().is_none());
        assert!(client.acl_getuser("none").wait().unwrap().is_none());
        assert_eq!(client.acl_log().reset().wait().ok(), Some(()));
        assert!(client.slowlog_get().count(1).wait().is_ok());
        assert!(client.latency_latest().wait().unwrap().is_empty());
        assert_eq!(client.command_info().command_name(["get", "none"]).wait().unwrap().len(), 2);
        assert_eq!(client.pubsub_numsub().channel(["a", "b"]).wait().unwrap().len(), 2);
        assert_eq!(client.publish("a", "m").wait().unwrap(), 0);
        let () = client.flushall().sync().wait().unwrap();
    });
}

#[test]
fn typed_requests_go_into_batches_and_tasks() {
    in_both_dialects(|client| {
        let requests = [commands::set("k", 1).ex(10).into(), commands::incr("k").into(), commands::get("k").into()];
        let replies = client.batch(requests).wait().expect("the batch is answered");
        assert!(replies.iter().all(Result::is_ok) && replies.len() == 3);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let found = runtime.block_on(async { client.getex("k").persist().await });
        assert_eq!(found.unwrap(), Some(Bytes::from("2")));
    });
}
