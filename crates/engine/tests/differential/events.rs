//! Keyspace events: the same requests to both, and every event that is published has to be the same, in the same order.

use respool_command::{Change, EventClasses, Execute, Wanted};
use respool_testkit::{Client, RedisServer, elements};
use respool_wire::Protocol;

use super::generate::Generator;
use super::subject::{Request, Subject, number_from, shown};
use super::watching::{CASES, request};
use super::{redis_with, rules};

/// Requests unless the environment says otherwise.
const REQUESTS: usize = 6_000;
/// Requests between two flushes of both stores.
const ROUND: usize = 500;
/// Every class, two of which `A` does not stand for.
const CLASSES: &str = "EAmn";
/// Where the end of the events of one request is published.
const END: &str = "__keyevent@0__:-";

struct Listener {
    redis: Client,
    messages: Client,
    subject: Subject,
}

impl Listener {
    fn new(server: &RedisServer, redis: Client) -> Self {
        let mut messages = server.client().expect("the server takes clients");
        messages.ask("PSUBSCRIBE __keyevent@*").expect("the server answers");
        let mut subject = Subject::new(Protocol::Resp2);
        subject.engine.changes(wanted(), &mut |_| ());
        Self { redis, messages, subject }
    }

    /// Has both run a request: the replies of both, and the events of both.
    fn both(&mut self, request: &Request) -> ([Vec<u8>; 2], [Vec<String>; 2]) {
        let said = self.redis.command(request).expect("the server answers");
        let heard = self.subject.command(request);
        self.redis.command(&["PUBLISH", END, ""]).expect("the server answers");
        let mut expected = Vec::new();
        loop {
            let message = self.messages.reply().expect("the server publishes");
            let parts: Vec<String> = elements(&message).into_iter().map(content).collect();
            let [_, _, channel, key] = parts.as_slice() else { panic!("no message: {parts:?}") };
            if channel == END {
                break;
            }
            expected.push(format!("{channel} {key}"));
        }
        let mut events = Vec::new();
        self.subject.engine.changes(wanted(), &mut |change| match change {
            Change::Event { database, key, event } => {
                events.push(format!("__keyevent@{database}__:{event} {}", key.escape_ascii()));
            }
            other => panic!("not wanted: {other:?}"),
        });
        ([said, heard], [expected, events])
    }

    fn flush(&mut self) {
        self.both(&request("FLUSHALL"));
    }
}

fn wanted() -> Wanted {
    Wanted { keys: false, events: EventClasses::parse(CLASSES.as_bytes()).expect("these are classes") }
}

/// The events of a request as far as the order of a set's members does not decide: `SORT` looks keys up in that order, which follows
/// from a hash seed, and with `LIMIT` for any part of them.
fn without_chance(request: &Request, mut events: Vec<String>) -> Vec<String> {
    if request[0].to_ascii_uppercase().starts_with(b"SORT") {
        if request.iter().any(|word| word.eq_ignore_ascii_case(b"LIMIT")) {
            events.retain(|event| !event.contains("__:keymiss "));
        }
        events.sort();
    }
    events
}

/// The text of a bulk string.
fn content(bulk: &[u8]) -> String {
    let start = bulk.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    bulk[start..bulk.len() - 2].escape_ascii().to_string()
}

/// What is there, and requests whose events others do not show.
const MORE: &[(&str, &[&str])] = &[
    (
        "SET k 1 PXAT 1",
        &[
            "APPEND k 2",
            "BITFIELD k SET u8 0 1",
            "BITOP NOT other k",
            "COPY k other",
            "COPY other k REPLACE",
            "DECR k",
            "DUMP k",
            "EXISTS k",
            "GETDEL k",
            "GETEX k PERSIST",
            "GETSET k 2",
            "HSET k f v",
            "INCRBYFLOAT k 1",
            "LPUSH k a",
            "MGET k other",
            "MOVE k 1",
            "MOVE other 1",
            "MSET k 1",
            "MSETNX k 1 other 2",
            "OBJECT ENCODING k",
            "PEXPIRE k 1000",
            "PFADD k a",
            "PFMERGE k other",
            "RENAME other k",
            "RENAMENX other k",
            "RESTORE k 0 x",
            "SADD k a",
            "SCAN 0",
            "SET k 1 XX",
            "SETEX k 10 v",
            "SETRANGE k 0 a",
            "SINTERSTORE k other other",
            "SORT other STORE k",
            "STRLEN k",
            "SUNIONSTORE k other",
            "TOUCH k",
            "TTL k",
            "TYPE k",
            "UNLINK k",
            "XADD k 1-1 f v",
            "XGROUP CREATE k g $ MKSTREAM",
            "ZADD k 1 a",
            "ZUNIONSTORE k 1 other",
        ],
    ),
    (
        "",
        &[
            "MGET k other",
            "TTL k",
            "TYPE k",
            "DUMP k",
            "OBJECT FREQ k",
            "STRLEN k",
            "GETRANGE k 0 1",
            "LRANGE k 0 1",
            "SMEMBERS k",
            "SINTER k other",
            "ZRANGE k 0 1",
            "ZUNION 2 k other",
            "ZDIFFSTORE k 2 other none",
            "HGETALL k",
            "XLEN k",
            "XREAD STREAMS k 0",
            "XINFO STREAM k",
            "PFCOUNT k",
            "PFCOUNT k other",
            "GETBIT k 1",
            "BITFIELD_RO k GET u8 0",
            "GEOPOS k a",
            "GEOSEARCH k FROMMEMBER a BYRADIUS 1 m",
            "SORT k",
            "LCS k other",
            "TOUCH k other",
            "EXISTS k other",
            "MSET k 1 other 2",
            "MSETNX k 1 other 2",
            "SETEX k 10 v",
            "SET k v PX 10000",
            "SET k v GET",
            "GETEX k EX 10",
            "SMISMEMBER k a",
            "GEOADD k 1 1 a",
            "SWAPDB 0 1",
            "BITFIELD k OVERFLOW FAIL SET u8 0 300",
            "BITFIELD k OVERFLOW FAIL SET u8 8 300 GET u8 0 SET u8 0 0",
            "BITFIELD k OVERFLOW FAIL SET u8 8 300 GET u8 0 INCRBY u8 0 1",
        ],
    ),
    (
        "LPUSH k a",
        &["LMOVE k other LEFT RIGHT", "RPOPLPUSH k k", "LMPOP 1 k LEFT COUNT 5", "LTRIM k 5 6", "LREM k 0 a"],
    ),
    ("SADD k a", &["SMOVE k other a", "SMOVE k k a", "SPOP k 0", "SPOP k 5", "SREM k a b", "SDIFFSTORE other none k"]),
    ("HSET k f 1", &["HDEL k f g", "HINCRBY k f 0", "HSETNX k f 2", "HSETNX k g 2", "HINCRBYFLOAT k h 1.5"]),
    (
        "GEOADD k 13 38 a 15 37 b",
        &[
            "GEORADIUS k 14 37 500 km STORE other",
            "GEORADIUSBYMEMBER k a 1 m STOREDIST k",
            "GEORADIUS k 100 37 1 m STORE other",
            "GEOSEARCHSTORE other k FROMMEMBER a BYRADIUS 500 km",
            "GEOSEARCHSTORE other none FROMLONLAT 1 1 BYRADIUS 1 m",
            "ZRANGESTORE other k 5 6",
            "ZRANGESTORE other k 0 -1",
            "ZINTERSTORE other 2 k none",
            "ZADD k INCR 1 a",
            "ZINCRBY k 0 a",
            "ZINCRBY k 1 new",
            "ZMPOP 1 k MAX COUNT 9",
            "ZREMRANGEBYRANK k 0 -1",
            "ZREMRANGEBYSCORE k 0 1",
            "ZREMRANGEBYLEX k - +",
            "ZPOPMIN k 0",
            "ZPOPMAX k 2",
        ],
    ),
    ("XADD k 1-1 f v", &["XADD k MAXLEN 1 2-1 f v", "XADD k MINID 1 3-1 f v", "XADD k NOMKSTREAM 2-1 f v"]),
];

#[test]
fn each_request_has_the_events_that_it_has_in_redis() {
    let Some((server, redis)) = redis_with(&["--notify-keyspace-events", CLASSES]) else { return };
    let mut listener = Listener::new(&server, redis);
    let mut told = Vec::new();
    for (setting, lines) in CASES.iter().chain(MORE) {
        for (line, is_other_there) in lines.iter().flat_map(|line| [(line, false), (line, true)]) {
            listener.flush();
            let other = setting.strip_prefix("SET k ").map_or("SADD other a", |_| "SET other 5");
            for setting in [*setting, other].into_iter().take(1 + usize::from(is_other_there)) {
                if !setting.is_empty() {
                    listener.both(&request(setting));
                }
            }
            let (_, [expected, subject]) = listener.both(&request(line));
            if expected != subject {
                told.push(format!(
                    "{setting} / {is_other_there} / {line}:\n  redis  {expected:?}\n  engine {subject:?}"
                ));
            }
        }
    }
    assert!(told.is_empty(), "{} differences\n{}", told.len(), told.join("\n"));
}

#[test]
fn generated_requests_have_the_events_of_redis() {
    let Some((server, redis)) = redis_with(&["--notify-keyspace-events", CLASSES]) else { return };
    let mut generator = Generator::new(number_from("RESPOOL_TEST_SEED", 1));
    let mut listener = Listener::new(&server, redis);
    let mut count = 0;
    for number in 0..number_from("RESPOOL_TEST_REQUESTS", REQUESTS as u64) {
        let request = generator.request();
        let ([said, heard], [expected, subject]) = listener.both(&request);
        count += expected.len();
        // Which expired keys they meet, and remove, is up to chance.
        let meets_any = [&b"RANDOMKEY"[..], b"SCAN"].iter().any(|name| request[0].eq_ignore_ascii_case(name));
        let have_met_others = meets_any && expected != subject;
        if !meets_any {
            let [expected, subject] = [expected, subject].map(|events| without_chance(&request, events));
            assert_eq!(expected, subject, "request {number}: {}", shown(&request));
        }
        // What chance has decided may be another key of each store by now.
        let may_go_apart = !matches!(rules::compare(&request, &said, &heard), rules::Verdict::Same);
        if may_go_apart || have_met_others || number as usize % ROUND == ROUND - 1 {
            listener.flush();
        }
    }
    assert!(count > 100, "{count} events are few");
}

/// Every set of letters, as the setting is read and shown.
#[test]
fn classes_are_read_and_shown_as_by_redis() {
    let Some((_server, mut redis)) = redis_with(&[]) else { return };
    for bits in 0..1_u32 << 14 {
        // Each letter in two of three sets, so that `A` is among them.
        let letters: String = "g$lshzxetdnKEm"
            .chars()
            .enumerate()
            .filter(|(at, _)| ((bits * 40_503) >> at) & 3 != 0)
            .map(|(_, l)| l)
            .collect();
        if bits % 16 != 0 {
            continue;
        }
        redis.ask(&format!("CONFIG SET notify-keyspace-events {letters}")).expect("the server answers");
        let shown = redis.command(&["CONFIG", "GET", "notify-keyspace-events"]).expect("the server answers");
        let shown = elements(&shown).last().map(|bulk| content(bulk));
        assert_eq!(EventClasses::parse(letters.as_bytes()).map(EventClasses::letters), shown, "{letters}");
    }
}
