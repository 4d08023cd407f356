//! Which keys a request changes: every key is watched by a session of its own before each request, in both stores, and the
//! same transactions have to be stopped after it.

use respool_command::Execute;
use respool_testkit::{Client, RedisServer};
use respool_wire::{ArgsBuf, Protocol};

use super::generate::{self, Generator};
use super::redis;
use super::subject::{Request, Subject, now, number_from, shown};

/// Requests unless the environment says otherwise.
const REQUESTS: usize = 2_500;
/// Requests between two flushes of both stores.
const ROUND: usize = 500;

/// A request by the words of a line, `''` for an empty one.
pub(crate) fn request(line: &str) -> Request {
    line.split(' ').map(|word| if word == "''" { Vec::new() } else { word.as_bytes().to_vec() }).collect()
}

struct Watch {
    redis: Client,
    watchers: Vec<Client>,
    subject: Subject,
    keys: Vec<Vec<u8>>,
}

impl Watch {
    fn new(server: &RedisServer, redis: Client, keys: Vec<Vec<u8>>) -> Self {
        let watchers = keys.iter().map(|_| server.client().expect("the server takes clients")).collect();
        Self { redis, watchers, subject: Subject::new(Protocol::Resp2), keys }
    }

    /// Has both run a request.
    fn both(&mut self, request: &Request) -> (Vec<u8>, Vec<u8>) {
        let expected = self.redis.command(request).expect("the server answers");
        (expected, self.subject.command(request))
    }

    /// The keys that these requests change, by the server and by the engine.
    fn changed(&mut self, requests: &[Request]) -> [Vec<String>; 2] {
        for ((client, key), number) in self.watchers.iter_mut().zip(&self.keys).zip(1..) {
            let watch = vec![b"WATCH".to_vec(), key.clone()];
            client.send_command(&watch).expect("the server reads");
            let keys: ArgsBuf = [key].into_iter().collect();
            self.subject.engine.watch(number, self.subject.session.database, now(), keys.as_args());
        }
        for client in &mut self.watchers {
            assert_eq!(client.reply().expect("the server answers"), b"+OK\r\n");
        }
        requests.iter().for_each(|request| _ = self.both(request));
        let mut changed = [Vec::new(), Vec::new()];
        for client in &mut self.watchers {
            client.send(b"MULTI\r\nEXEC\r\n").expect("the server reads");
        }
        for ((client, key), number) in self.watchers.iter_mut().zip(&self.keys).zip(1..) {
            let key = key.escape_ascii().to_string();
            let said = client.replies(2).expect("the server answers").concat();
            if said.ends_with(b"*-1\r\n") {
                changed[0].push(key.clone());
            }
            if self.subject.engine.is_dirty(number, now()) {
                changed[1].push(key);
            }
            self.subject.engine.unwatch(number);
        }
        changed
    }
}

/// What is there, and what is said then. `k` is watched, and so is `other`.
pub(crate) const CASES: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "DEL k",
            "UNLINK k",
            "GETEX k",
            "GETDEL k",
            "LPUSHX k a",
            "RPUSHX k a",
            "LPOP k",
            "LPOP k 0",
            "EXPIRE k 10",
            "PERSIST k",
            "BLPOP k 0.01",
            "SREM k a",
            "SPOP k",
            "ZREM k a",
            "HDEL k a",
            "LREM k 0 a",
            "LTRIM k 0 0",
            "LINSERT k BEFORE a b",
            "SETRANGE k 0 ''",
            "APPEND k ''",
            "SETBIT k 7 0",
            "BITFIELD k SET u8 0 0",
            "BITFIELD k GET u8 0",
            "INCRBY k 0",
            "RENAME k other",
            "COPY k other",
            "MOVE k 1",
            "SORT k STORE other",
            "SUNIONSTORE other k",
            "ZUNIONSTORE other 1 k",
            "ZRANGESTORE other k 0 -1",
            "BITOP NOT other k",
            "FLUSHALL",
            "FLUSHDB",
            "SWAPDB 0 1",
            "SWAPDB 3 4",
            "ZADD k XX 1 a",
            "ZADD k NX 1 a",
            "MSETNX k a other b",
            "SET k 1 XX",
            "SET k 1 EXAT 1",
            "SET k 1 XX GET",
            "PFADD k",
            "PFADD k a",
            "PFCOUNT k",
            "PFMERGE k other",
            "PFMERGE other k",
            "GEOADD k XX 1 1 a",
            "GEOADD k 1 1 a",
            "GEOSEARCHSTORE k other FROMLONLAT 1 1 BYRADIUS 1 m",
            "GEORADIUS k 1 1 1 m STORE other",
        ],
    ),
    (
        "PFADD k a b",
        &[
            "PFADD k a",
            "PFADD k c",
            "PFADD k",
            "PFCOUNT k",
            "PFCOUNT k other",
            "PFMERGE k",
            "PFMERGE k other",
            "PFMERGE other k",
            "PFDEBUG TODENSE k",
            "PFDEBUG GETREG k",
            "PFDEBUG DECODE k",
        ],
    ),
    (
        "GEOADD k 1 1 a 2 2 b",
        &[
            "GEOADD k 1 1 a",
            "GEOADD k 3 3 a",
            "GEOADD k NX 3 3 a",
            "GEOADD k XX CH 3 3 c",
            "GEOPOS k a",
            "GEOSEARCH k FROMLONLAT 1 1 BYRADIUS 1 m",
            "GEOSEARCHSTORE k k FROMLONLAT 1 1 BYRADIUS 1 km",
            "GEOSEARCHSTORE k other FROMLONLAT 1 1 BYRADIUS 1 m",
            "GEOSEARCHSTORE other k FROMMEMBER a BYRADIUS 1 m",
            "GEORADIUS k 9 9 1 m STORE k",
            "GEORADIUSBYMEMBER k a 1 m STOREDIST other",
        ],
    ),
    (
        "SET k abc",
        &[
            "SET k abc",
            "SET k abc NX",
            "SET k abc NX GET",
            "SET k abc GET",
            "SETNX k v",
            "MSETNX k a other b",
            "GETSET k abc",
            "GETEX k",
            "GETEX k PERSIST",
            "GETEX k EX 100",
            "GETEX k EXAT 1",
            "GETDEL k",
            "SETRANGE k 0 ''",
            "SETRANGE k 0 a",
            "APPEND k ''",
            "SETBIT k 0 0",
            "SETBIT k 0 1",
            "SETBIT k 100 0",
            "BITFIELD k GET u8 0",
            "BITFIELD k SET u8 0 97",
            "BITFIELD k INCRBY u8 0 0",
            "BITFIELD k OVERFLOW FAIL INCRBY u8 0 300",
            "INCR k",
            "INCRBYFLOAT k 1",
            "PERSIST k",
            "EXPIRE k 100",
            "EXPIRE k 100 XX",
            "EXPIRE k -1",
            "EXPIRE k 0 XX",
            "COPY k other",
            "COPY k k",
            "COPY other k",
            "RENAME k k",
            "RENAMENX k k",
            "RENAME k other",
            "RENAMENX k other",
            "RENAME other k",
            "MOVE k 1",
            "MOVE k 0",
            "OBJECT ENCODING k",
            "TOUCH k",
            "LPUSH k a",
            "SADD k a",
            "FLUSHALL",
            "FLUSHDB",
            "SWAPDB 0 1",
            "SWAPDB 1 0",
            "SWAPDB 0 0",
            "SWAPDB 3 4",
            "BITOP AND k k k",
            "BITOP AND k other",
        ],
    ),
    (
        "SADD k a b",
        &[
            "SADD k a",
            "SADD k c",
            "SREM k x",
            "SREM k a",
            "SREM k a b",
            "SPOP k",
            "SPOP k 0",
            "SMOVE k other x",
            "SMOVE k other a",
            "SMOVE k k a",
            "SMOVE other k a",
            "SUNIONSTORE k k",
            "SINTERSTORE k k other",
            "SDIFFSTORE other k k",
            "SORT k ALPHA",
            "SORT k ALPHA STORE k",
            "SORT k ALPHA LIMIT 9 9 STORE other",
        ],
    ),
    (
        "HSET k f v n 1",
        &[
            "HSET k f v",
            "HSETNX k f v",
            "HSETNX k g v",
            "HDEL k x",
            "HDEL k f",
            "HINCRBY k n 0",
            "HINCRBY k f 1",
            "HINCRBYFLOAT k n 0",
            "HINCRBYFLOAT k f 1",
        ],
    ),
    (
        "ZADD k 1 a 2 b",
        &[
            "ZADD k NX 2 a",
            "ZADD k 1 a",
            "ZADD k XX 1 c",
            "ZADD k GT 0 a",
            "ZADD k LT 0 a",
            "ZADD k CH 1 a 3 b",
            "ZADD k INCR 0 a",
            "ZADD k NX INCR 1 a",
            "ZINCRBY k 0 a",
            "ZINCRBY k 1 a",
            "ZREM k x",
            "ZREM k a",
            "ZPOPMIN k 0",
            "ZPOPMIN k",
            "ZMPOP 1 k MIN",
            "BZPOPMIN k 0.01",
            "ZREMRANGEBYRANK k 5 6",
            "ZREMRANGEBYSCORE k 5 6",
            "ZREMRANGEBYRANK k 0 0",
            "ZREMRANGEBYLEX k [x [z",
            "ZUNIONSTORE k 1 k",
            "ZINTERSTORE other 2 k other",
            "ZRANGESTORE other k 5 6",
            "ZRANGESTORE k k 0 -1",
            "ZDIFFSTORE other 2 k k",
        ],
    ),
    (
        "RPUSH k a b",
        &[
            "LTRIM k 0 -1",
            "LTRIM k 1 1",
            "LREM k 0 x",
            "LREM k 0 a",
            "LINSERT k BEFORE x y",
            "LINSERT k BEFORE a y",
            "LSET k 0 a",
            "LSET k 9 a",
            "LPOP k",
            "LPOP k 0",
            "LPUSHX k z",
            "LMOVE k k LEFT LEFT",
            "LMOVE k other LEFT LEFT",
            "LMPOP 1 k LEFT",
            "BLPOP other k 0.01",
            "BLMOVE k other LEFT LEFT 0.01",
            "RPOPLPUSH other k",
            "SORT k ALPHA",
            "SORT k ALPHA STORE k",
            "EXPIRE k 0",
        ],
    ),
    (
        "XADD k 5-1 f v",
        &[
            "XADD k 5-1 f v",
            "XADD k 6-1 f v",
            "XADD other NOMKSTREAM 6-1 f v",
            "XADD other 6-1 f v",
            "XADD k MAXLEN 0 6-1 f v",
            "XDEL k 4-1",
            "XDEL k 5-1",
            "XTRIM k MAXLEN 5",
            "XTRIM k MAXLEN 0",
            "XSETID k 9-1",
            "XGROUP CREATE k g 0",
            "XGROUP CREATE other g 0 MKSTREAM",
            "COPY k other",
            "RENAME k other",
            "DEL k",
        ],
    ),
    (
        "XGROUP CREATE k g 0 MKSTREAM",
        &[
            "XGROUP CREATECONSUMER k g c",
            "XGROUP DELCONSUMER k g c",
            "XGROUP SETID k g 5",
            "XGROUP DESTROY k g",
            "XADD k 5-1 f v",
            "XREADGROUP GROUP g c STREAMS k >",
            "XREADGROUP GROUP g c STREAMS k 0",
            "XREADGROUP GROUP g c BLOCK 10 STREAMS k >",
            "XACK k g 5-1",
            "XCLAIM k g c 0 5-1 FORCE",
            "XAUTOCLAIM k g c 0 0",
        ],
    ),
    (
        "SET k 1 EXAT 1",
        &["GET k", "DEL k", "SET k 1", "FLUSHALL", "SWAPDB 0 1", "EXPIRE k 10", "SETNX k 1", "PERSIST k"],
    ),
    ("SET k 1 EX 100", &["PERSIST k", "GETEX k PERSIST", "EXPIRE k 1000 LT", "EXPIRE k 100 NX", "SET k 1 KEEPTTL"]),
];

#[test]
fn what_changes_nothing_stops_no_transaction() {
    let Some((server, redis)) = redis() else { return };
    let mut watch = Watch::new(&server, redis, vec![b"k".to_vec(), b"other".to_vec()]);
    let mut told = Vec::new();
    for (setting, lines) in CASES {
        for line in *lines {
            for is_other_there in [false, true] {
                let mut settings = vec!["FLUSHALL", setting];
                if is_other_there {
                    settings.push(setting.strip_prefix("SET k ").map_or("SADD other a", |_| "SET other 5"));
                }
                for setting in settings.into_iter().filter(|setting| !setting.is_empty()) {
                    watch.both(&request(setting));
                }
                let [expected, subject] = watch.changed(&[request(line)]);
                if expected != subject {
                    told.push(format!("{setting} / {is_other_there} / {line}: {expected:?}, here {subject:?}"));
                }
            }
        }
    }
    assert!(told.is_empty(), "{} differences\n{}", told.len(), told.join("\n"));
}

#[test]
fn requests_change_the_keys_that_they_change_in_redis() {
    let Some((server, redis)) = redis() else { return };
    let mut generator = Generator::new(number_from("RESPOOL_TEST_SEED", 1));
    let mut watch = Watch::new(&server, redis, generate::keys().collect());
    for number in 0..number_from("RESPOOL_TEST_REQUESTS", REQUESTS as u64) {
        let request = generator.request();
        let [expected, subject] = watch.changed(std::slice::from_ref(&request));
        let has = |wanted: &[u8]| request.iter().any(|word| word.eq_ignore_ascii_case(wanted));
        if has(b"BITFIELD") && has(b"FAIL") && expected.is_empty() {
            // Redis does not tell that a field which refuses its value has made the string longer. It is a change here.
            continue;
        }
        assert_eq!(expected, subject, "request {number}: {}", shown(&request));
        // What chance has decided may be another key of each store by now.
        let name = request[0].to_ascii_uppercase();
        let by_chance = name == b"SPOP" || has(b"STORE") || has(b"*");
        if by_chance || number as usize % ROUND == ROUND - 1 {
            watch.both(&vec![b"FLUSHALL".to_vec()]);
        }
    }
}
