//! What a request costs inside the engine, without a connection: time and instructions per request, bytes per key.
//!
//! ```text
//! cargo run --release -p respool-engine --example hot_path -- time [KIND]
//! cargo run --release -p respool-engine --example hot_path -- growth
//! cargo run --release -p respool-engine --example hot_path -- memory
//! valgrind --tool=callgrind target/release/examples/hot_path run get 100000
//! ```
//!
//! Scripts are measured with `--features scripting`.
//!
//! `run` does one kind of request so many times over a store of a thousand keys and prints nothing: run it under callgrind
//! with two counts and divide the difference of the instructions by the difference of the counts.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a bench measures time and memory")]

use std::time::Instant;

use respool_command::{Execute, Millis, Row, SessionView, lookup, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// Keys that the timed requests go to.
const KEYS: usize = 1_000;
/// Timed requests of each kind, and how often; the best round counts.
const REQUESTS: usize = 400_000;
const ROUNDS: usize = 7;

/// One kind of request: its name, and what the request for a number is.
type Kind = (&'static str, fn(usize) -> ArgsBuf);

const KINDS: &[Kind] = &[
    ("get", |number| words(&["GET", &key(number)])),
    ("get-ttl", |number| words(&["GET", &format!("t{number}")])),
    ("get-missing", |number| words(&["GET", &format!("missing:{number}")])),
    ("set", |number| words(&["SET", &key(number), "xxx"])),
    ("set-64", |number| words(&["SET", &key(number), &"x".repeat(64)])),
    ("incr", |number| words(&["INCR", &format!("counter:{}", number % 10)])),
    ("mget-10", |number| {
        let keys: Vec<String> = (0..10).map(|offset| key((number + offset) % KEYS)).collect();
        std::iter::once("MGET").chain(keys.iter().map(String::as_str)).collect()
    }),
    ("hget", |number| words(&["HGET", "hash", &format!("field:{number}")])),
    ("hset", |number| words(&["HSET", "hash", &format!("field:{number}"), "value"])),
    ("hget-ttl", |number| words(&["HGET", "volatile", &format!("field:{number}")])),
    ("hsetex", |number| {
        words(&["HSETEX", "volatile", "EX", "1000", "FIELDS", "1", &format!("field:{number}"), "value"])
    }),
    ("sadd", |number| words(&["SADD", "set", &format!("member:{number}")])),
    ("zadd", |number| words(&["ZADD", "sorted", &(number * 7 % KEYS).to_string(), &format!("member:{number}")])),
    ("zadd-near", |number| words(&["ZINCRBY", "sorted", "0.25", &format!("member:{number}")])),
    ("zadd-far", |number| words(&["ZINCRBY", "sorted", "700", &format!("member:{number}")])),
    ("zrange-100", |number| {
        words(&["ZRANGE", "sorted", &(number % 900).to_string(), &(number % 900 + 99).to_string()])
    }),
    ("zcount", |number| words(&["ZCOUNT", "sorted", &(number % 500).to_string(), "800"])),
    ("zrank", |number| words(&["ZRANK", "sorted", &format!("member:{number}")])),
    (
        "rpush-lpop",
        |number| if number % 2 == 0 { words(&["RPUSH", "list", "element"]) } else { words(&["LPOP", "list"]) },
    ),
    ("xadd", |number| {
        let value = number.to_string();
        words(&[
            "XADD",
            "stream",
            "*",
            "sensor",
            &value,
            "state",
            "ok",
            "at",
            "1700000000",
            "room",
            "kitchen",
            "unit",
            "C",
        ])
    }),
    #[cfg(feature = "scripting")]
    ("eval-1", |_| words(&["EVAL", "return 1", "0"])),
    #[cfg(feature = "scripting")]
    ("eval-set", |number| words(&["EVAL", SET, "1", &key(number), "xxx"])),
    #[cfg(feature = "scripting")]
    ("eval-incr-100", |number| {
        words(&["EVAL", "for i = 1, 100 do redis.call('incr', KEYS[1]) end", "1", &format!("counter:{}", number % 10)])
    }),
    #[cfg(feature = "scripting")]
    ("eval-cjson", |_| words(&["EVAL", "return cjson.encode(cjson.decode(ARGV[1]))", "0", &document()])),
    #[cfg(feature = "scripting")]
    ("eval-cjson-small", |_| {
        let document = r#"{"id":1,"name":"item","tags":["a","b"],"price":1.25}"#;
        words(&["EVAL", "return cjson.encode(cjson.decode(ARGV[1]))", "0", document])
    }),
    #[cfg(feature = "scripting")]
    ("fcall-set", |number| words(&["FCALL", "set", "1", &key(number), "xxx"])),
    #[cfg(feature = "scripting")]
    ("eval-hgetall", |_| words(&["EVAL", "return redis.call('hgetall', KEYS[1])", "1", "small"])),
];

#[cfg(feature = "scripting")]
const SET: &str = "return redis.call('set', KEYS[1], ARGV[1])";

/// A JSON document of a kilobyte.
#[cfg(feature = "scripting")]
fn document() -> String {
    let items: Vec<String> = (0..12)
        .map(|number| {
            let (price, name) = (number as f64 * 1.25, format!("item {number}"));
            format!(r#"{{"id":{number},"name":"{name}","price":{price},"tags":["a","b"],"is_sold":false}}"#)
        })
        .collect();
    format!(r#"{{"items":[{}],"total":{}}}"#, items.join(","), items.len())
}

fn words(words: &[&str]) -> ArgsBuf {
    words.iter().collect()
}

fn key(number: usize) -> String {
    format!("key:{number:012}")
}

struct Bench {
    engine: Engine,
    session: SessionView,
    out: Vec<u8>,
}

impl Bench {
    fn new() -> Self {
        let engine = Engine::new(EngineConfig::default(), [0x5eed, 0xfeed]);
        let session = SessionView { now: Millis(1_700_000_000_000), ..SessionView::default() };
        Self { engine, session, out: Vec::with_capacity(1 << 16) }
    }

    fn filled() -> Self {
        let mut bench = Self::new();
        for number in 0..KEYS {
            bench.say(&words(&["SET", &key(number), "xxx"]));
            bench.say(&words(&["SET", &format!("t{number}"), "xxx", "EX", "1000"]));
            bench.say(&words(&["HSET", "hash", &format!("field:{number}"), "value"]));
            bench.say(&words(&["SADD", "set", &format!("member:{number}")]));
            bench.say(&words(&["ZADD", "sorted", &number.to_string(), &format!("member:{number}")]));
        }
        if cfg!(feature = "scripting") {
            let library =
                "#!lua name=l\nredis.register_function('set', function(k, a) return redis.call('set', k[1], a[1]) end)";
            bench.execute(
                resolve(words(&["FUNCTION", "LOAD"]).as_args()).expect("it exists"),
                &words(&["FUNCTION", "LOAD", library]),
            );
        }
        bench.say(&words(&["HSET", "small", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5"]));
        bench
    }

    /// As [`Bench::filled`], with a hash of fields with deadlines for the requests that have one: other requests are cheaper without.
    fn filled_for(kind: &Kind) -> Self {
        let mut bench = Self::filled();
        let of_first = kind.1(0);
        for number in (0..KEYS).filter(|_| of_first.as_args().get(1) == Some(b"volatile")) {
            let field = format!("field:{number}");
            bench.say(&words(&["HSETEX", "volatile", "EX", "1000", "FIELDS", "1", &field, "value"]));
        }
        bench
    }

    fn say(&mut self, request: &ArgsBuf) {
        let row = lookup(request.as_args().name()).expect("the bench uses commands that exist");
        self.execute(row, request);
    }

    #[inline]
    fn execute(&mut self, row: &'static Row, request: &ArgsBuf) {
        self.out.clear();
        let mut reply = Encoder::new(&mut self.out, Protocol::Resp2);
        _ = self.engine.execute(row, request.as_args(), &mut self.session, &mut reply);
    }
}

/// Requests ready to be executed, so that making them is not measured.
fn prepared(kind: &Kind) -> Vec<(&'static Row, ArgsBuf)> {
    let requests = (0..KEYS).map(kind.1);
    requests.map(|request| (lookup(request.as_args().name()).expect("it exists"), request)).collect()
}

fn run(kind: &Kind, count: usize) {
    let mut bench = Bench::filled_for(kind);
    let requests = prepared(kind);
    for (row, request) in requests.iter().cycle().take(count) {
        bench.execute(row, request);
    }
}

fn time(kind: &Kind) {
    let mut bench = Bench::filled_for(kind);
    let requests = prepared(kind);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for (row, request) in requests.iter().cycle().take(REQUESTS) {
            bench.execute(row, request);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / REQUESTS as f64);
    }
    println!("{:<12} {best:>8.1} ns", kind.0);
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// What an engine is filled with: a name, how many items, and the request for each.
type Filling = (&'static str, usize, fn(usize) -> ArgsBuf);

const FILLINGS: &[Filling] = &[
    ("1 M strings, key:N, 16 B value", 1_000_000, |n| words(&["SET", &format!("key:{n}"), "0123456789abcdef"])),
    ("1 M strings, key:N, 64 B value", 1_000_000, |n| words(&["SET", &format!("key:{n}"), &"x".repeat(64)])),
    ("200 k short strings", 200_000, |n| words(&["SET", &format!("k:{n}"), "value"])),
    ("200 k short strings with TTL", 200_000, |n| words(&["SET", &format!("k:{n}"), "value", "EX", "1000"])),
    ("200 k integer values", 200_000, |n| words(&["SET", &format!("k:{n}"), &n.to_string()])),
    ("one hash, 200 k fields", 200_000, |n| words(&["HSET", "h", &format!("f:{n}"), "value"])),
    ("one hash, 200 k fields with TTL", 200_000, |n| {
        let ttl = (1_000 + n * 7919 % 100_000).to_string();
        words(&["HSETEX", "h", "EX", &ttl, "FIELDS", "1", &format!("f:{n}"), "value"])
    }),
    ("one sorted set, 200 k members", 200_000, |n| {
        words(&["ZADD", "z", &(n * 7919 % 200_000).to_string(), &format!("m:{n}")])
    }),
    ("one set, 200 k members", 200_000, |n| words(&["SADD", "s", &format!("m:{n}")])),
    ("one list, 200 k elements", 200_000, |n| words(&["RPUSH", "l", &format!("element{n}")])),
    ("one stream, 200 k entries of one field", 200_000, |n| words(&["XADD", "s", "*", "f", &n.to_string()])),
    ("one stream, 1 M entries of five fields", 1_000_000, |n| {
        let value = n.to_string();
        words(&["XADD", "s", "*", "sensor", &value, "state", "ok", "at", "1700000000", "room", "kitchen", "unit", "C"])
    }),
    ("10-field small hash, 100 k of them", 100_000, |n| {
        let mut request = words(&["HSET", &format!("h:{n}")]);
        for field in 0..10 {
            request.push(format!("f{field}").as_bytes()).push(b"value");
        }
        request
    }),
    ("one sorted set, 1 M members of 11 B", 1_000_000, |n| {
        words(&["ZADD", "z", &(n * 7_919 % 1_000_000).to_string(), &format!("key:{n:07}")])
    }),
];

/// Fills an engine and tells what one item costs, by the engine's own count and by what the process has grown.
fn memory((name, count, request): &Filling) {
    let before = resident_bytes();
    let mut bench = Bench::new();
    for number in 0..*count {
        bench.say(&request(number));
    }
    let own = bench.engine.memory_bytes() as f64 / *count as f64;
    let resident = resident_bytes().saturating_sub(before) as f64 / *count as f64;
    println!("{name:<40} {own:>6.1} B counted, {resident:>6.1} B resident");
}

/// How long single requests take while a store grows to four million keys: growth must not delay any request.
fn growth() {
    const KEYS: usize = 4_000_000;
    let mut bench = Bench::new();
    let row = lookup(b"SET").expect("it exists");
    let mut taken: Vec<u32> = Vec::with_capacity(KEYS);
    for number in 0..KEYS {
        let request = words(&["SET", &key(number), "xxx"]);
        let start = Instant::now();
        bench.execute(row, &request);
        taken.push(start.elapsed().as_nanos() as u32);
    }
    taken.sort_unstable();
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("p99.999", 0.99999), ("max", 1.0)] {
        let index = ((KEYS - 1) as f64 * share) as usize;
        println!("{name:<8} {:>9.1} us", f64::from(taken[index]) / 1_000.0);
    }
}

/// Every filling in a process of its own, so that none finds memory that another has left.
fn memory_of_all() {
    let program = std::env::current_exe().expect("a program knows where it is");
    for (index, filling) in FILLINGS.iter().enumerate() {
        let status = std::process::Command::new(&program).args(["memory", &index.to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "{} failed", filling.0);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["time"] => KINDS.iter().for_each(time),
        ["time", name] => KINDS.iter().filter(|kind| kind.0.starts_with(name)).for_each(time),
        ["run", name, count] => {
            let kind = KINDS.iter().find(|kind| kind.0 == name).expect("a kind of request");
            run(kind, count.parse().expect("a count"));
        }
        ["growth"] => growth(),
        ["memory"] => memory_of_all(),
        ["memory", index] => memory(&FILLINGS[index.parse::<usize>().expect("a number")]),
        _ => eprintln!("hot_path time [KIND] | growth | memory | run KIND COUNT"),
    }
}
