//! Random but repeatable requests to every command of the engine.
//!
//! Most follow a template, so that they mean something; some are then bent: an argument too many or too few, an option
//! twice, a number at the edge of what fits, a key of another type.

#[path = "generate/streams.rs"]
mod streams;

use crc::{CRC_64_REDIS, Crc};
use respool_testkit::Rng;

use super::Request;

/// Keys per type; the first letter of a key says what it mostly holds.
const KEYS_PER_TYPE: usize = 4;
/// Strings, hashes, lists, sets, sorted sets, places, counters of distinct elements, streams, sorted sets whose members all score zero.
const TYPES: &str = "shltzgyax";

/// Requests by template, one per line. A word in braces is drawn:
/// `{s}` a key that mostly holds a string, `{h}` a hash, `{l}` a list, `{t}` a set, `{z}` a sorted set, `{x}` one with equal
/// scores, `{g}` places, `{y}` a HyperLogLog; `{v}` a value, `{m}` a member or field, `{i}` an integer, `{c}` a small count, `{r}` a small index, `{f}` a number,
/// `{b}` a bound of scores, `{n}` a bound of members, `{L}` a longitude, `{B}` a latitude, `{R}` a distance, `{U}` a unit,
/// `{Y}` registers of a HyperLogLog that may be broken, `{k}` a serialised value that may be broken, `{p}` a pattern, `{o}` a bit offset, `{w}` a bit field type,
/// `{e}` seconds and `{E}` milliseconds of an absolute time, `{d}` seconds from now, `{D}` the same at the edge of what fits. None is
/// so near that it comes between a request to the one store and that to the other.
/// `[A|B c]` is a word list of which one alternative is taken; `(A|B|C)` any of them in any order. `+n` repeats the rest.
const TEMPLATES: &str = "
SET {s} {v}
SET {s} {v}
SET {s} {i}
SET {s} {v} (NX|XX|GET|KEEPTTL|EX {d}|PX {d}000|EXAT {e}|PXAT {E})
SET {s} {v} ([NX|XX]|GET|[KEEPTTL|EX {d}|PX {d}000|EXAT {e}|PXAT {E}])
SETEX {s} {d} {v}
PSETEX {s} {d}000 {v}
SETNX {s} {v}
GET {s}
GET {s}
GETDEL {s}
GETEX {s} (PERSIST|EX {d}|PX {d}000|EXAT {e}|PXAT {E})
GETEX {s}
GETSET {s} {v}
APPEND {s} {v}
STRLEN {s}
GETRANGE {s} {r} {r}
SUBSTR {s} {i} {i}
SETRANGE {s} {c} {v}
SETRANGE {s} {r} {v}
INCR {s}
DECR {s}
INCRBY {s} {i}
DECRBY {s} {i}
INCRBYFLOAT {s} {f}
INCRBYFLOAT {s} {f}
MGET +4 {s}
MGET {s} {h} {l}
MSET +4 {s} {v}
MSETNX +2 {s} {v}
LCS {s} {s} (LEN|IDX|MINMATCHLEN {c}|WITHMATCHLEN)
LCS {s} {s}
LCS {s} {s} IDX WITHMATCHLEN
SETBIT {s} {o} [0|1]
GETBIT {s} {o}
BITCOUNT {s}
BITCOUNT {s} {r} {r} [BIT|BYTE|BYTE]
BITPOS {s} [0|1] {r} {r} [BIT|BYTE]
BITPOS {s} [0|1]
BITPOS {s} [0|1] {r}
BITOP [AND|OR|XOR] {s} +3 {s}
BITOP NOT {s} {s}
BITFIELD {s} (OVERFLOW [WRAP|SAT|FAIL]|GET {w} {o}|SET {w} {o} {i}|INCRBY {w} {o} {i}|INCRBY {w} #{c} {i})
BITFIELD {s} OVERFLOW [WRAP|SAT|FAIL] INCRBY {w} {o} {i} SET {w} {o} {i} INCRBY {w} {o} {i}
BITFIELD_RO {s} GET {w} {o} GET {w} #{c}
DEL +2 {s}
DEL {l} {h} {t} {z}
UNLINK {z} {x}
EXISTS {s} {s} {h} {l}
TOUCH {s} {t}
TYPE {s}
TYPE {z}
TYPE {l}
KEYS {p}
DBSIZE
RANDOMKEY
RENAME {s} {s}
RENAME {l} {l}
RENAMENX {h} {h}
RENAME {z} {z}
COPY {s} {s} (REPLACE|DB [0|0|99|x])
COPY {h} {h} REPLACE
COPY {t} {t} REPLACE
COPY {z} {z} REPLACE
COPY {l} {l} REPLACE
COPY {l} {l} DB 0 REPLACE
MOVE {s} [0|99|x|{i}]
SWAPDB [0|x|{i}] [0|y|99]
EXPIRE [{s}|{h}|{z}] {d} (NX|XX|GT|LT)
EXPIRE {l} {d}
PEXPIRE {s} {d}000 (NX|XX|GT|LT)
EXPIREAT [{s}|{t}] {e} [NX|XX|GT|LT]
EXPIREAT {s} {e}
PEXPIREAT {l} {E}
EXPIRE {s} {D}
PEXPIRE {h} {D}
TTL [{s}|{h}|{l}]
PTTL [{s}|{z}|{t}]
EXPIRETIME {s}
PEXPIRETIME {s}
PERSIST [{s}|{l}|{h}]
OBJECT ENCODING [{s}|{h}|{l}|{t}|{z}]
OBJECT REFCOUNT [{s}|{h}]
OBJECT IDLETIME {s}
OBJECT FREQ {s}
SCAN {c} (COUNT {i}|MATCH {p}|TYPE [string|list|zset|none])
SORT {l} (ASC|DESC|ALPHA|LIMIT {r} {r}|BY s*|BY nosort|GET #|GET s*|GET h*->a|STORE {l})
SORT {t} (DESC|ALPHA|LIMIT {r} {r}|BY {p}|GET #|STORE {l})
SORT [{z}|{x}] (DESC|ALPHA|LIMIT {c} {c}|BY nosort|GET #|GET s*)
SORT {l} ALPHA
SORT_RO {l} ALPHA DESC
SORT_RO {t} (ALPHA|LIMIT {c} {c}|STORE {l})
SORT [{t}|{l}] BY nosort STORE {l}
HSET {h} +3 {m} {v}
HSET {h} {m} {v}
HMSET {h} +2 {m} {v}
HSETNX {h} {m} {v}
HGET {h} {m}
HMGET {h} +3 {m}
HDEL {h} +2 {m}
HLEN {h}
HEXISTS {h} {m}
HSTRLEN {h} {m}
HKEYS {h}
HVALS {h}
HGETALL {h}
HINCRBY {h} {m} {i}
HINCRBYFLOAT {h} {m} {f}
HRANDFIELD {h} {r}
HRANDFIELD {h} {r} WITHVALUES
HRANDFIELD {h}
HSCAN {h} 0 (COUNT {i}|MATCH {p})
HSCAN {h} {i}
LPUSH {l} +3 {v}
RPUSH {l} +3 {v}
RPUSH {l} +3 {i}
LPUSHX {l} {v}
RPUSHX {l} {v} {v}
LPOP {l}
RPOP {l}
LPOP {l} {i}
RPOP {l} {c}
LLEN {l}
LRANGE {l} {r} {r}
LRANGE {l} {i} {i}
LINDEX {l} {r}
LINDEX {l} {i}
LSET {l} {r} {v}
LINSERT {l} [BEFORE|AFTER|x] {v} {v}
LREM {l} {r} {v}
LREM {l} {i} {v}
LTRIM {l} {r} {r}
LTRIM {l} {r} -1
LPOS {l} {v} (RANK {r}|COUNT {c}|MAXLEN {c}|RANK {i})
LPOS {l} {v} COUNT {c}
LPOS {l} {m} RANK {r} COUNT {c}
LMOVE {l} {l} [LEFT|RIGHT] [LEFT|RIGHT|x]
RPOPLPUSH {l} {l}
LMPOP 2 {l} {l} [LEFT|RIGHT] (COUNT {c})
LMPOP {c} {l} {l} [LEFT|RIGHT] COUNT {c}
BLPOP {l} {l} [0.005|x|-1]
BRPOP {l} [0.005|1e300|nan]
BLMOVE {l} {l} [LEFT|x] RIGHT 0.005
BRPOPLPUSH {l} {l} 0.005
BLMPOP 0.005 2 {l} {l} [LEFT|RIGHT] COUNT {c}
SADD {t} +3 {m}
SADD {t} +4 {i}
SREM {t} +2 {m}
SREM {t} {i}
SMEMBERS {t}
SCARD {t}
SISMEMBER {t} {m}
SMISMEMBER {t} {m} {i}
SMOVE {t} {t} {m}
SMOVE {t} {t} {i}
SPOP {t}
SPOP {t} {c}
SRANDMEMBER {t} {r}
SRANDMEMBER {t}
SINTER +2 {t}
SUNION +3 {t}
SDIFF +3 {t}
SINTERSTORE {t} +2 {t}
SUNIONSTORE {t} +2 {t}
SDIFFSTORE {t} +2 {t}
SINTERCARD 2 {t} {t} (LIMIT {c})
SINTERCARD {c} {t} {t} LIMIT {i}
SSCAN {t} 0 (COUNT {i}|MATCH {p})
ZADD {z} +3 {f} {m}
ZADD {z} {f} {m}
ZADD {z} (NX|XX|GT|LT|CH|INCR) {f} {m}
ZADD {z} [NX|XX|XX GT|LT|GT CH] (CH) +2 {c} {m}
ZADD {x} +4 0 {m}
ZINCRBY {z} {f} {m}
ZREM {z} +2 {m}
ZREM {x} {m}
ZCARD {z}
ZSCORE {z} {m}
ZMSCORE {z} +3 {m}
ZRANK {z} {m}
ZREVRANK {z} {m}
ZRANK {x} {m}
ZCOUNT {z} {b} {b}
ZLEXCOUNT {x} {n} {n}
ZRANGE {z} {r} {r} (WITHSCORES|REV)
ZRANGE {z} {r} {r} (WITHSCORES|REV|LIMIT {r} {r})
ZRANGE {z} {b} {b} BYSCORE (WITHSCORES|REV|LIMIT {r} {r})
ZRANGE {x} {n} {n} BYLEX (REV|LIMIT {r} {r})
ZRANGE {x} {n} {n} BYLEX (WITHSCORES|BYSCORE)
ZRANGEBYSCORE {z} {b} {b} (WITHSCORES|LIMIT {r} {r})
ZREVRANGEBYSCORE {z} {b} {b} (WITHSCORES|LIMIT {r} {r})
ZREVRANGE {z} {r} {r} (WITHSCORES)
ZRANGEBYLEX {x} {n} {n} (LIMIT {r} {r}|WITHSCORES)
ZREVRANGEBYLEX {x} {n} {n} (LIMIT {c} {r})
ZRANGESTORE {z} {z} {r} {r} (REV)
ZRANGESTORE {z} {z} {b} {b} BYSCORE (REV|LIMIT {r} {r}|WITHSCORES)
ZRANGESTORE {x} {x} {n} {n} BYLEX (LIMIT {c} {c})
ZREMRANGEBYRANK {z} {r} {r}
ZREMRANGEBYSCORE {z} {b} {b}
ZREMRANGEBYLEX {x} {n} {n}
ZPOPMIN {z}
ZPOPMAX {z} {c}
ZPOPMIN {x} {i}
ZMPOP 2 {z} {z} [MIN|MAX] (COUNT {c})
ZMPOP {c} {z} {x} [MIN|MAX|x] COUNT {c}
BZPOPMIN {z} {x} 0.005
BZPOPMAX {z} [0.005|x|-1]
BZMPOP 0.005 1 {z} [MIN|MAX] COUNT {c}
ZRANDMEMBER {z} {r} (WITHSCORES)
ZRANDMEMBER {z}
ZUNION 2 {z} {z} (WITHSCORES|WEIGHTS {f} {f}|AGGREGATE [SUM|MIN|MAX|x])
ZINTER 2 {z} {z} (WITHSCORES|WEIGHTS {f} {f} WITHSCORES|AGGREGATE [SUM|MIN|MAX])
ZINTER 2 {z} {z} WEIGHTS [0|-0|1] [0|-0|-1] WITHSCORES
ZUNION 3 {z} {t} {x} (WITHSCORES|AGGREGATE [MIN|MAX])
ZINTER 2 {z} {t} WITHSCORES
ZDIFF 2 {z} {z} (WITHSCORES|WEIGHTS 1 2)
ZDIFF {c} {z} {t} WITHSCORES
ZUNIONSTORE {z} 2 {z} {z} (WEIGHTS {f} {f}|AGGREGATE [SUM|MIN|MAX]|WITHSCORES)
ZINTERSTORE {z} {c} {z} {t} (WEIGHTS {f} {f}|AGGREGATE [SUM|MIN|MAX])
ZINTERSTORE {z} 2 {z} {z}
ZDIFFSTORE {z} 2 {z} {t}
ZINTERCARD 2 {z} {z} (LIMIT {c})
ZINTERCARD 2 {z} {t} LIMIT {i}
ZSCAN {z} 0 (COUNT {i}|MATCH {p})
PFADD {y} +4 {m}
PFADD {y} +6 {v}
PFADD {y}
PFADD {y} +3 {i}
PFCOUNT {y}
PFCOUNT {y}
PFCOUNT +3 {y}
PFMERGE {y} +2 {y}
PFMERGE {y}
PFDEBUG [ENCODING|DECODE|TODENSE|GETREG|decode|x] {y}
GET {y}
GET {y}
OBJECT ENCODING {y}
COPY {y} {y} REPLACE
SET {y} {Y}
SETRANGE {y} [4|8|15|16|17|20|100|12303|12304] {Y}
DUMP [{s}|{l}|{h}|{t}|{z}|{y}]
RESTORE {s} 0 {k} REPLACE
RESTORE [{s}|{h}|{z}] [0|{d}|{e}|{i}] {k} (REPLACE|ABSTTL|IDLETIME {c}|IDLETIME {i}|FREQ {c}|FREQ {i})
RESTORE {s} 0 {k} REPLACE IDLETIME [100|1000000|100000000000]
GEOADD {g} (NX|XX|CH) +4 {L} {B} {m}
GEOADD {g} +4 {L} {B} {m}
GEOADD {g} {L} {B} {m} {L}
GEODIST {g} {m} {m}
GEODIST {g} {m} {m} {U}
GEOHASH {g} +3 {m}
GEOPOS {g} +3 {m}
GEOPOS {z} +3 {m}
GEOHASH {z} +3 {m}
GEODIST {z} {m} {m}
GEOSEARCH {g} [FROMMEMBER {m}|FROMLONLAT {L} {B}] [BYRADIUS {R} {U}|BYBOX {R} {R} {U}] (ASC|DESC|COUNT {c}|COUNT {c} ANY|WITHDIST|WITHCOORD|WITHHASH)
GEOSEARCH {g} [FROMMEMBER {m}|FROMLONLAT {L} {B}] [BYRADIUS {R} {U}|BYBOX {R} {R} {U}] WITHDIST WITHHASH (ASC|DESC|COUNT {c}|COUNT {c} ANY)
GEOSEARCH {g} [BYRADIUS 500 km|BYBOX 800 900 km] (ASC|FROMMEMBER {m}|FROMLONLAT {L} {B}|ANY|STORE {g}|BYRADIUS {R} {U})
GEOSEARCHSTORE {g} {g} [FROMMEMBER {m}|FROMLONLAT {L} {B}] [BYRADIUS {R} {U}|BYBOX {R} {R} {U}] (ASC|DESC|COUNT {c}|STOREDIST|WITHDIST)
GEOSEARCHSTORE {z} {g} FROMLONLAT {L} {B} BYRADIUS {R} {U} STOREDIST
GEORADIUS {g} {L} {B} {R} {U} (ASC|DESC|COUNT {c}|COUNT {c} ANY|WITHDIST|WITHCOORD|WITHHASH)
GEORADIUS {g} {L} {B} {R} {U} (ASC|STORE {g}|STOREDIST {g}|COUNT {c}|WITHHASH)
GEORADIUSBYMEMBER {g} {m} {R} {U} (ASC|DESC|COUNT {c}|STORE {g}|STOREDIST {z}|WITHDIST)
GEORADIUS_RO {g} {L} {B} {R} {U} (ASC|DESC|COUNT {c}|WITHDIST|STORE {g})
GEORADIUSBYMEMBER_RO {g} {m} {R} {U} (ASC|DESC|COUNT {c}|WITHDIST|WITHCOORD)
";

/// Requests that make a value leave its compact encoding, by number of elements.
const GROWTH: &[(&str, &str, usize)] = &[
    ("HSET {h}", "f# v#", 513),
    ("HSET {h}", "f# #", 512),
    ("SADD {t}", "#", 513),
    ("SADD {t}", "m#", 40),
    ("ZADD {z}", "# m#", 129),
    ("ZADD {z}", "#.5 m#", 128),
    ("ZADD {x}", "0 m#", 140),
    ("RPUSH {l}", "element-number-#", 900),
    ("SADD {t}", "70000#", 20),
    ("PFADD {y}", "element-#", 150),
    ("PFADD {y}", "other-#", 1_500),
    ("GEOADD {g}", "13.# 38.# m#", 130),
    ("GEOADD {g}", "-0.# -80.# m#", 60),
];

const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "-2",
    "5",
    "10",
    "100",
    "127",
    "128",
    "255",
    "256",
    "-128",
    "32767",
    "32768",
    "-32769",
    "65535",
    "2147483646",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9223372036854775806",
    "9223372036854775807",
    "-9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "1.5",
    "abc",
    "",
    " 1",
    "01",
    "+1",
    "-0",
];
const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "1.5",
    "-2.25",
    "3.3",
    "0.1",
    "0.2",
    "1e3",
    "1e-3",
    "100",
    "1e17",
    "123456789.123456789",
    "-0",
    "inf",
    "-inf",
    "+inf",
    "Infinity",
    "nan",
    "1e308",
    "1e400",
    "1e-400",
    "5e-324",
    "0x10",
    "0x1p4",
    "abc",
    "",
    " 1",
    "1 ",
    "1e",
    ".5",
    "5.",
    "+7",
    "3.0000000000000004",
    "12345678901234567890",
    "-1e18",
];
const BOUNDS: &[&str] = &[
    "-inf", "+inf", "inf", "0", "1", "(1", "(0", "2", "(2.5", "-1", "(-inf", "(+inf", "100", "abc", "(", "", "1e400",
    "nan", "3.3",
];
const MEMBER_BOUNDS: &[&str] =
    &["-", "+", "[a", "(a", "[b", "(c", "[m1", "(m5", "[", "(", "[zzz", "a", "", "++", "-x", "[m130", "(foo"];
const PATTERNS: &[&str] = &[
    "*", "s*", "[hl]*", "?0", "*a*", "[^s]*", "z[0-2]", "\\*", "m1*", "", "nosort", "**", "[a-", "*->a", "s*->x", "#",
];
const LONGITUDES: &[&str] =
    &["13.361389", "15", "-180", "180", "0", "180.1", "-0.1278", "179.9999", "x", "1e-7", "139.69"];
const LATITUDES: &[&str] =
    &["38.115556", "37", "85.05112878", "-85.05112878", "0", "85.06", "51.5072", "-66.5", "81", "inf", "35.68"];
const DISTANCES: &[&str] = &["0", "1", "100", "200.5", "1000", "5000", "25000", "-1", "x", "inf", "1e-3", "1e300"];
const UNITS: &[&str] = &["m", "km", "km", "KM", "ft", "mi", "parsec"];
/// What a HyperLogLog may begin with: a header with an old count, one with a new one, and other encodings.
const COUNTER_HEADS: &[&[u8]] = &[
    b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80",
    b"HYLL\x01\0\0\0\x07\0\0\0\0\0\0\0",
    b"HYLL\0\0\0\0\0\0\0\0\0\0\0\x80",
    b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\x80",
    b"",
];
/// The registers: all, too few, too many, and values at the limits. No run ends outside of the string: Redis would read the
/// byte there.
const COUNTER_RUNS: &[&[u8]] = &[
    b"\x7f\xff",
    b"\x80\x7f\xfe",
    b"\x87\x7f\xfb",
    b"\xff\xff\x7f\xf7",
    b"\x7f\xff\x00",
    b"\x00",
    b"\x80\x80\x80\x80\x7f\xfb",
    b"\x84\x84\x00\x84\x7f\xfb",
    b"\x3f\x3f\x7f\x7f",
];
/// Values of several types without version and checksum, some of them broken.
const SERIALISED: &[&[u8]] = &[
    b"\0\x05hello",
    b"\0\xc0\x7b",
    b"\0\xc2\0\0\0\x80",
    b"\0\xc3\x09\x1e\x01xx\xe0\x12\x00\x01xx",
    b"\x01\x02\x01a\xc0\x05",
    b"\x02\x03\xc0\x01\xc0\x02\x01b",
    b"\x02\x02\x01a\x01a",
    b"\x04\x01\x01a\x01b",
    b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x3f",
    b"\x0b\x0a\x02\0\0\0\x01\0\0\0\x05\0",
    b"\x10\x0f\x0f\0\0\0\x02\0\x81a\x02\x81b\x02\xff\0",
    b"\x12\x01\x02\x0d\x0d\0\0\0\x02\0\x81a\x02\x01\x01\xff",
    b"\x04\0",
    b"\x07",
    b"",
];
const WORDS: &[&str] =
    &["a", "b", "c", "foo", "bar", "hello", "A", "1", "2", "3", "10", "m1", "m5", "m100", "f1", "f77"];
const FIELD_TYPES: &[&str] = &["u8", "i8", "u1", "i5", "u63", "i64", "u32", "i16", "u64", "i65", "x8", "u0", "u", "i3"];
const BIT_OFFSETS: &[&str] =
    &["0", "1", "7", "8", "9", "63", "100", "1000", "20000", "4294967296", "-1", "x", "15", "31"];

/// A serialised value with its version and checksum.
pub(crate) fn sealed(mut value: Vec<u8>) -> Vec<u8> {
    value.extend_from_slice(&10_u16.to_le_bytes());
    let sum = Crc::<u64>::new(&CRC_64_REDIS).checksum(&value);
    value.extend_from_slice(&sum.to_le_bytes());
    value
}

/// Every key that a template can name.
pub(crate) fn keys() -> impl Iterator<Item = Vec<u8>> {
    TYPES.chars().flat_map(|kind| (0..KEYS_PER_TYPE).map(move |number| format!("{kind}{number}").into_bytes()))
}

/// An endless source of requests that follows from its seed.
pub(crate) struct Generator {
    rng: Rng,
    templates: Vec<&'static str>,
    stream_templates: Vec<&'static str>,
    ids: streams::Ids,
    /// The number of entries left to add to one stream in a row, so that it has several listpacks.
    entries: Option<(Vec<u8>, usize)>,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        let lines = TEMPLATES.lines().chain(streams::TEMPLATES.lines());
        let templates = lines.filter(|line| !line.is_empty()).collect();
        let stream_templates = streams::TEMPLATES.lines().filter(|line| !line.is_empty()).collect();
        Self { rng: Rng::new(seed), templates, stream_templates, ids: streams::Ids::default(), entries: None }
    }

    /// The next request.
    pub(crate) fn request(&mut self) -> Request {
        if let Some((key, left)) = self.entries.take() {
            let mut request = vec![b"XADD".to_vec(), key.clone()];
            // Small ones, so that a listpack is full of entries before it is full of bytes; but for a few.
            let entry = if self.rng.once_in(60) { "{I} {q}" } else { "{I} field {c} 7 {c}" };
            self.expand(entry, &mut request);
            self.entries = (left > 1).then_some((key, left - 1));
            return request;
        }
        if self.rng.once_in(500) {
            self.entries = Some((self.key("a"), self.rng.between(20, 260)));
        }
        if self.rng.once_in(60) {
            return self.growth();
        }
        if self.rng.once_in(400) {
            self.ids.focus = 150;
        }
        self.ids.focus = self.ids.focus.saturating_sub(1);
        let template = match self.ids.focus {
            0 => *self.rng.pick(&self.templates),
            _ => *self.rng.pick(&self.stream_templates),
        };
        let mut request = Vec::new();
        self.expand(template, &mut request);
        if self.rng.once_in(12) && !is_delicate(&request) {
            self.bend(&mut request);
        }
        request
    }

    fn growth(&mut self) -> Request {
        let &(head, element, count) = self.rng.pick(GROWTH);
        let mut request = Vec::new();
        self.expand(head, &mut request);
        for number in 0..count {
            let words = element.replace('#', &number.to_string());
            request.extend(words.split(' ').map(|word| word.as_bytes().to_vec()));
        }
        request
    }

    /// Makes a request a little wrong.
    fn bend(&mut self, request: &mut Request) {
        let at = self.rng.between(1, request.len());
        match self.rng.below(5) {
            0 if at < request.len() => drop(request.remove(at)),
            1 => request.insert(at, self.rng.pick(INTEGERS).as_bytes().to_vec()),
            2 if at < request.len() => {
                let again = request[at].clone();
                request.insert(at, again);
            }
            3 if at < request.len() => request[at] = self.rng.pick(FLOATS).as_bytes().to_vec(),
            _ if request.len() > 1 => request[1] = self.any_key(),
            _ => {}
        }
    }

    /// Writes the words of a template out.
    fn expand(&mut self, template: &str, request: &mut Request) {
        let mut rest = template.trim();
        while !rest.is_empty() {
            let (piece, after) = piece(rest);
            rest = after.trim_start();
            if let Some(count) = piece.strip_prefix('+').filter(|count| !count.is_empty()) {
                let count = count.parse().expect("a repetition says how often at most");
                for _ in 0..self.rng.between(1, count) {
                    self.expand(rest, request);
                }
                return;
            }
            if let Some(inner) = piece.strip_prefix('(') {
                let mut options = alternatives(&inner[..inner.len() - 1]);
                while !options.is_empty() && !self.rng.once_in(3) {
                    let option = options.swap_remove(self.rng.below(options.len()));
                    self.expand(option, request);
                }
            } else if piece.starts_with('[') && piece.ends_with(']') {
                let options = alternatives(&piece[1..piece.len() - 1]);
                let option = *self.rng.pick(&options);
                self.expand(option, request);
            } else {
                match piece {
                    // Two fields that entries often have, so that a listpack keeps them once.
                    "{q}" => {
                        let value = self.value();
                        request.extend([b"field".to_vec(), self.slot("i"), b"7".to_vec(), value]);
                    }
                    piece => request.push(self.word(piece)),
                }
            }
        }
    }

    /// Fills the braces of one word.
    fn word(&mut self, piece: &str) -> Vec<u8> {
        let mut word = Vec::new();
        let mut rest = piece;
        while let Some((before, slot)) = rest.split_once('{') {
            let (slot, after) = slot.split_once('}').expect("a brace is closed");
            word.extend_from_slice(before.as_bytes());
            word.extend(self.slot(slot));
            rest = after;
        }
        word.extend_from_slice(rest.as_bytes());
        word
    }

    fn slot(&mut self, slot: &str) -> Vec<u8> {
        let pick = |rng: &mut Rng, words: &[&str]| rng.pick(words).as_bytes().to_vec();
        if let Some(word) = self.ids.slot(&mut self.rng, slot) {
            return word;
        }
        match slot {
            "v" => self.value(),
            "m" => match self.rng.below(12) {
                0 => self.value(),
                1..4 => format!("m{}", self.rng.below(140)).into_bytes(),
                _ => pick(&mut self.rng, WORDS),
            },
            "i" => pick(&mut self.rng, INTEGERS),
            "c" => self.rng.below(6).to_string().into_bytes(),
            "r" => (self.rng.below(14) as i64 - 6).to_string().into_bytes(),
            "f" if self.rng.once_in(3) => pick(&mut self.rng, FLOATS),
            "f" => (self.rng.below(200) as f64 / 8.0 - 5.0).to_string().into_bytes(),
            "b" => pick(&mut self.rng, BOUNDS),
            "n" => pick(&mut self.rng, MEMBER_BOUNDS),
            "L" if self.rng.once_in(2) => pick(&mut self.rng, LONGITUDES),
            "L" => (self.rng.below(360_000) as f64 / 1000.0 - 180.0).to_string().into_bytes(),
            "B" if self.rng.once_in(2) => pick(&mut self.rng, LATITUDES),
            "B" => (self.rng.below(170_000) as f64 / 1000.0 - 85.0).to_string().into_bytes(),
            "R" => pick(&mut self.rng, DISTANCES),
            "U" => pick(&mut self.rng, UNITS),
            "k" => self.serialised(),
            "Y" => [*self.rng.pick(COUNTER_HEADS), *self.rng.pick(COUNTER_RUNS)].concat(),
            "p" => pick(&mut self.rng, PATTERNS),
            "o" => pick(&mut self.rng, BIT_OFFSETS),
            "w" => pick(&mut self.rng, FIELD_TYPES),
            "e" => pick(&mut self.rng, &["1", "9000000000", "0", "-1", "9223372036854775", "9223372036854776", "x"]),
            "E" => pick(&mut self.rng, &["1", "9000000000000", "0", "-5", "9223372036854775807", "x"]),
            "D" => pick(
                &mut self.rng,
                &["0", "-1", "9223372036854775807", "-9223372036854775808", "9999999999999", "1.5", ""],
            ),
            // Days, so that not even a leap of the clock, as of a machine that has slept, has a key expire between the
            // request to the one store and that to the other.
            "d" => pick(&mut self.rng, &["1000000", "5000000", "100000000", "0", "-1", "2000000", "x"]),
            kind => self.key(kind),
        }
    }

    fn serialised(&mut self) -> Vec<u8> {
        let mut sealed = sealed(self.rng.pick(SERIALISED).to_vec());
        if self.rng.once_in(10) {
            let at = self.rng.below(sealed.len());
            sealed[at] ^= 1;
        }
        sealed
    }

    /// A key that mostly holds a certain type.
    fn key(&mut self, kind: &str) -> Vec<u8> {
        if kind == "a" && self.ids.focus > 0 {
            return b"a0".to_vec();
        }
        // Members of a sorted set asked for by member must have equal scores, or the answer means nothing.
        if kind != "x" && self.rng.once_in(25) {
            return self.any_key();
        }
        format!("{kind}{}", self.rng.below(KEYS_PER_TYPE)).into_bytes()
    }

    /// A key of any type but that of equal scores.
    fn any_key(&mut self) -> Vec<u8> {
        let kind = TYPES.as_bytes()[self.rng.below(TYPES.len() - 1)] as char;
        format!("{kind}{}", self.rng.below(KEYS_PER_TYPE)).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        match self.rng.below(14) {
            0 => Vec::new(),
            1 => vec![b'x'; *self.rng.pick(&[44, 45, 63, 64, 65])],
            2 => vec![b'y'; *self.rng.pick(&[200, 255, 256, 600, 5_000, 9_000])],
            3 => self.rng.pick(FLOATS).as_bytes().to_vec(),
            4 => b"binary\0\r\n\xff\xfe".to_vec(),
            5..8 => self.rng.pick(INTEGERS).as_bytes().to_vec(),
            _ => self.rng.pick(WORDS).as_bytes().to_vec(),
        }
    }
}

/// Commands whose bent forms would wait for ever, expire a key in a moment, ask for an endless reply, mean nothing that can be
/// compared, or leave unequal scores where they have to be equal.
fn is_delicate(request: &Request) -> bool {
    let name = request[0].as_slice();
    let has_lex = request.iter().any(|word| word.windows(3).any(|three| three == b"LEX"));
    let has_block = request.iter().any(|word| word == b"BLOCK");
    let waits = has_block || (name.starts_with(b"B") && !name.starts_with(b"BIT"));
    // A count in between is refused or not, as the machine has memory.
    let claims = name == b"XAUTOCLAIM";
    let expires =
        [&b"SET"[..], b"GETEX", b"SETEX", b"PSETEX"].contains(&name) || name.windows(6).any(|six| six == b"EXPIRE");
    let scores = name == b"ZADD" && request.get(1).is_some_and(|key| key.starts_with(b"x"));
    waits || claims || expires || has_lex || scores || name.ends_with(b"RANDMEMBER") || name == b"HRANDFIELD"
}

/// The first piece of a template and what follows it. Groups hang together, whatever is inside.
fn piece(template: &str) -> (&str, &str) {
    let mut depth = 0;
    for (at, character) in template.char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ' ' if depth == 0 => return template.split_at(at),
            _ => {}
        }
    }
    (template, "")
}

/// The alternatives inside a group.
fn alternatives(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '|' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&group[start..]);
    found
}
