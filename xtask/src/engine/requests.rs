//! Processor time per request: `respool bench` asks both servers in turn.

use std::io;
use std::path::Path;

use respool_testkit::{Client, RedisServer, proc_stats, request};

use super::items::fill;
use super::{Options, Pair, Row};
use crate::bench::load;
use crate::bench::row::median;

/// Distinct keys, fields and members.
const NAMES: usize = 100_000;
const CLIENTS: usize = 50;

/// One kind of request.
struct Kind {
    name: &'static str,
    /// `__rand_int__` stands for a number of twelve digits.
    words: &'static [&'static str],
    pipeline: usize,
    /// In one round.
    requests: usize,
    /// What the embedded server may take at most, of what redis-server takes.
    ratio_max: f64,
}

const GET: &[&str] = &["GET", "key:__rand_int__"];
const SET: &[&str] = &["SET", "key:__rand_int__", "xxx"];
const INCR_100: &str = "for i = 1, 100 do redis.call('incr', KEYS[1]) end return 1";

const fn kind(name: &'static str, words: &'static [&'static str]) -> Kind {
    Kind { name, words, pipeline: 100, requests: 200_000, ratio_max: 1.0 }
}

const KINDS: [Kind; 20] = [
    Kind { pipeline: 1, requests: 50_000, ratio_max: 0.85, ..kind("GET P1", GET) },
    Kind { pipeline: 1, requests: 50_000, ratio_max: 0.85, ..kind("SET P1", SET) },
    Kind { requests: 500_000, ratio_max: 0.5, ..kind("GET P100", GET) },
    Kind { requests: 500_000, ratio_max: 0.5, ..kind("SET P100", SET) },
    kind("ZADD P100", &["ZADD", "zset", "__rand_int__", "element:__rand_int__"]),
    kind("LPUSH P100", &["LPUSH", "pushed", "xxx"]),
    kind("HSET P100", &["HSET", "hash", "element:__rand_int__", "xxx"]),
    kind("SADD P100", &["SADD", "set", "element:__rand_int__"]),
    kind("XADD P100", &["XADD", "stream", "*", "sensor", "__rand_int__", "state", "ok", "at", "1700000000"]),
    Kind { requests: 40_000, ..kind("LRANGE_100 P100", &["LRANGE", "list", "0", "99"]) },
    Kind { requests: 40_000, ..kind("ZRANGE 100 P100", &["ZRANGE", "ranks", "0", "99"]) },
    Kind { requests: 40_000, ..kind("ZRANGE 100 WITHSCORES P100", &["ZRANGE", "ranks", "0", "99", "WITHSCORES"]) },
    Kind { requests: 20_000, ..kind("XRANGE 100 P100", &["XRANGE", "log", "-", "+", "COUNT", "100"]) },
    Kind { requests: 100_000, ..kind("HGETALL of ten P100", &["HGETALL", "small"]) },
    Kind { requests: 100_000, ..kind("EVAL return 1 P100", &["EVAL", "return 1", "0"]) },
    Kind {
        requests: 100_000,
        ..kind(
            "EVAL of a SET P100",
            &["EVAL", "return redis.call('set', KEYS[1], ARGV[1])", "1", "key:__rand_int__", "xxx"],
        )
    },
    Kind { requests: 4_000, ..kind("EVAL of 100 INCR P100", &["EVAL", INCR_100, "1", "counter"]) },
    Kind {
        requests: 50_000,
        ..kind("EVAL of an HGETALL P100", &["EVAL", "return redis.call('hgetall', KEYS[1])", "1", "small"])
    },
    Kind {
        requests: 50_000,
        ..kind(
            "EVAL of cjson P100",
            &[
                "EVAL",
                "return cjson.encode(cjson.decode(ARGV[1]))",
                "0",
                r#"{"id":1,"name":"item","tags":["a","b"],"price":1.25}"#,
            ],
        )
    },
    Kind { requests: 100_000, ..kind("FCALL of a SET P100", &["FCALL", "set", "1", "key:__rand_int__", "xxx"]) },
];

const LIBRARY: &str =
    "#!lua name=l\nredis.register_function('set', function(k, a) return redis.call('set', k[1], a[1]) end)";

pub(super) fn measure(options: &Options, respool: &Path, add: &mut dyn FnMut(Row)) -> io::Result<()> {
    let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| options.matches(kind.name)).collect();
    if kinds.is_empty() {
        return Ok(());
    }
    let pair = Pair::start(respool)?;
    prepare(&pair.redis)?;
    prepare(&pair.embedded)?;
    for kind in kinds {
        let mut micros = [Vec::new(), Vec::new()];
        for round in 0..=usize::from(options.rounds) {
            for (which, server) in pair.in_turn(round) {
                let before = proc_stats::processor_time(server.pid())?;
                load::ask_many(respool, &server.tcp(), kind.words, [CLIENTS, kind.pipeline, NAMES], kind.requests)?;
                let used = proc_stats::processor_time(server.pid())?.saturating_sub(before);
                // The first round is to warm up.
                if round > 0 {
                    micros[which].push(used.as_secs_f64() * 1e6 / kind.requests as f64);
                }
            }
        }
        let [redis, embedded] = micros.map(|micros| median(micros).unwrap_or(f64::NAN));
        add(Row { name: kind.name.into(), unit: "us CPU", redis, embedded, ratio_max: kind.ratio_max });
    }
    Ok(())
}

/// Puts in what is asked for.
fn prepare(server: &RedisServer) -> io::Result<()> {
    let mut client = Client::connect(&server.tcp())?;
    fill(&mut client, 0..NAMES, |n| request(&["SET", &format!("key:{n:012}"), "xxx"]))?;
    fill(&mut client, 0..1_000, |_| request(&["RPUSH", "list", "xxx"]))?;
    fill(&mut client, 0..1_000, |n| request(&["ZADD", "ranks", &n.to_string(), &format!("element:{n:012}")]))?;
    fill(&mut client, 0..1_000, |n| request(&["XADD", "log", "*", "sensor", &n.to_string(), "state", "ok"]))?;
    fill(&mut client, 0..10, |n| request(&["HSET", "small", &format!("field:{n}"), "value"]))?;
    fill(&mut client, 0..1, |_| request(&["FUNCTION", "LOAD", LIBRARY]))
}
