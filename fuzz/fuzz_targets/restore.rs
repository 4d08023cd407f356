//! RESTORE of any bytes, and of dumps in which a few bytes are others. What is refused leaves nothing behind; what is accepted can be
//! read, is dumped and restored as the same value, takes changes, and takes no more memory than its bytes can stand for.
//!
//! The first byte says what the rest is: the bytes of a value, or changes to a dump and the elements of the value that is dumped.
#![no_main]

mod dump;

use libfuzzer_sys::fuzz_target;
use respool_command::{Execute, Millis, Outcome, SessionView, resolve};
use respool_engine::{Engine, EngineConfig};
use respool_testkit::{elements, reply_length};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// Bytes of memory for each of a payload: a compressed run of three bytes stands for 264, and an integer of one byte is a record.
const EXPANSION_MAX: usize = 400;
/// What an engine takes beside its values: pages of records, tables.
const OVERHEAD_BYTES: usize = 2 << 20;

/// What reads each type, `k` being the key: the first two have as many elements as the third says.
const READS: [(&str, &[&str]); 6] = [
    ("string", &["STRLEN k", "GETRANGE k 0 -1", "BITCOUNT k", "BITPOS k 1", "PFCOUNT k", "GET k"]),
    ("list", &["LRANGE k 0 -1", "SORT k BY nosort", "LLEN k", "LINDEX k -1", "LPOS k 1 RANK -1", "SORT k ALPHA"]),
    ("set", &["SMEMBERS k", "SORT k ALPHA", "SCARD k", "SRANDMEMBER k -5", "SMISMEMBER k 1 a", "SSCAN k 0"]),
    (
        "hash",
        &["HKEYS k", "HVALS k", "HLEN k", "HGETALL k", "HRANDFIELD k -5 WITHVALUES", "HSCAN k 0", "HTTL k FIELDS 1 a"],
    ),
    (
        "zset",
        &[
            "ZRANGE k 0 -1",
            "ZREVRANGEBYSCORE k +inf -inf",
            "ZCARD k",
            "ZRANGEBYLEX k - +",
            "ZRANK k a",
            "ZSCAN k 0",
            "ZRANDMEMBER k -5 WITHSCORES",
            "GEOPOS k a",
        ],
    ),
    (
        "stream",
        &[
            "XRANGE k - +",
            "XREVRANGE k + -",
            "XLEN k",
            "XINFO STREAM k FULL COUNT 0",
            "XINFO GROUPS k",
            "XINFO CONSUMERS k g",
            "XPENDING k g",
            "XPENDING k g - + 10",
        ],
    ),
];

/// What changes each type.
const CHANGES: [(&str, &[&str]); 6] = [
    ("string", &["APPEND k x", "SETRANGE k 3 abc", "SETBIT k 7 1", "PFADD k a", "BITFIELD k INCRBY u8 0 1"]),
    (
        "list",
        &["LPUSH k a", "LINSERT k AFTER a b", "LSET k -1 xyz", "LREM k 0 1", "RPOP k", "LTRIM k 1 -2", "LPOP k 3"],
    ),
    ("set", &["SADD k a 1 xyz", "SREM k 1", "SPOP k 2", "SUNIONSTORE k2 k k", "SMOVE k k3 a", "SPOP k 100"]),
    (
        "hash",
        &["HSET k a 1", "HINCRBY k a 1", "HPEXPIRE k 5000 FIELDS 1 a", "HPERSIST k FIELDS 1 a", "HGETDEL k FIELDS 1 a"],
    ),
    (
        "zset",
        &[
            "ZADD k 1 a",
            "ZINCRBY k 1.5 a",
            "ZREM k a",
            "ZPOPMIN k",
            "ZUNIONSTORE k2 2 k k",
            "ZREMRANGEBYRANK k 0 1",
            "ZREMRANGEBYSCORE k 0 1",
        ],
    ),
    (
        "stream",
        &[
            "XADD k * f v",
            "XREADGROUP GROUP g c STREAMS k >",
            "XAUTOCLAIM k g d 0 0",
            "XACK k g 1-1",
            "XDEL k 1-1 2-1",
            "XTRIM k MAXLEN 1",
            "XGROUP DELCONSUMER k g c",
            "XGROUP DESTROY k g",
        ],
    ),
];

struct Subject {
    engine: Engine,
    protocol: Protocol,
}

impl Subject {
    fn ask(&mut self, words: &[&[u8]]) -> Vec<u8> {
        let args: ArgsBuf = words.iter().collect();
        let row = resolve(args.as_args()).expect("it has a row");
        assert!(row.accepts(args.as_args().len()), "{words:?}");
        let mut session = SessionView { now: Millis(1_700_000_000_000), ..SessionView::default() };
        let mut out = Vec::new();
        let outcome =
            self.engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut out, self.protocol));
        assert_eq!(outcome, Outcome::Done, "{words:?}");
        let length = reply_length(&out).ok().flatten();
        assert_eq!(length, Some(out.len()), "{words:?}: {}", out.escape_ascii());
        out
    }

    fn say(&mut self, line: &str) -> Vec<u8> {
        self.ask(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>())
    }

    /// The content of a reply that is one bulk string.
    fn bulk(&mut self, line: &str) -> Vec<u8> {
        let reply = self.say(line);
        let head = reply.iter().position(|&byte| byte == b'\n').expect("a head");
        reply[head + 1..reply.len() - 2].to_vec()
    }

    fn digest(&mut self, key: &str) -> Vec<u8> {
        self.say(&format!("DEBUG DIGEST-VALUE {key}"))
    }

    /// Makes a value of these elements.
    fn fill(&mut self, kind: u8, parts: &[&[u8]]) {
        for (number, part) in parts.iter().enumerate() {
            let number = number.to_string();
            let id = format!("{}-1", number.parse::<usize>().map_or(1, |number| number + 1));
            match kind % 8 {
                0 => self.ask(&[b"SET", b"k", part]),
                1 => self.ask(&[b"RPUSH", b"k", part]),
                2 => self.ask(&[b"SADD", b"k", part]),
                3 => self.ask(&[b"SADD", b"k", format!("{number}{}", part.len()).as_bytes()]),
                4 => self.ask(&[b"HSET", b"k", number.as_bytes(), part]),
                5 => self.ask(&[b"ZADD", b"k", number.as_bytes(), part]),
                6 => self.ask(&[b"XADD", b"k", id.as_bytes(), b"f", part]),
                _ => {
                    self.ask(&[b"HSET", b"k", number.as_bytes(), part]);
                    self.ask(&[b"HPEXPIRE", b"k", b"100000", b"FIELDS", b"1", number.as_bytes()])
                }
            };
        }
        if kind % 8 == 6 {
            self.say("XGROUP CREATE k g 0");
            self.say("XREADGROUP GROUP g c COUNT 2 STREAMS k >");
        }
    }
}

/// A dump of a value that `rest` gives the elements of, with some of its bytes changed.
fn changed_dump(subject: &mut Subject, kind: u8, rest: &[u8]) -> Option<Vec<u8>> {
    let (&count, rest) = rest.split_first()?;
    let (changes, parts) = rest.split_at_checked(usize::from(count % 16) * 3)?;
    subject.fill(kind, &parts.split(|byte| *byte == b'|').collect::<Vec<_>>());
    let mut content = subject.bulk("DUMP k");
    subject.say("DEL k");
    let version = content.len().checked_sub(dump::FOOTER_BYTES)?;
    let version = u16::from_le_bytes([content[version], *content.get(version + 1)?]);
    content.truncate(content.len() - dump::FOOTER_BYTES);
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) % content.len().max(1);
        content.get_mut(place).into_iter().for_each(|byte| *byte = change[2]);
    }
    Some(dump::sealed(&content, version))
}

fn rows<'a>(table: &'a [(&str, &'a [&'a str])], kind: &str) -> &'a [&'a str] {
    table.iter().find(|(name, _)| *name == kind).expect("every type has its row").1
}

fuzz_target!(|input: &[u8]| {
    let Some((&mode, rest)) = input.split_first() else { return };
    let protocol = if mode & 0x80 == 0 { Protocol::Resp2 } else { Protocol::Resp3 };
    let mut subject = Subject { engine: Engine::new(EngineConfig::default(), [1, 2]), protocol };
    let payload = match mode & 0x7f {
        0 => dump::sealed(rest, 10),
        1 => dump::sealed(rest, 80),
        kind => match changed_dump(&mut subject, kind, rest) {
            Some(payload) => payload,
            None => return,
        },
    };
    let before = subject.engine.memory_bytes();
    let restored = subject.ask(&[b"RESTORE", b"k", b"0", &payload]);
    let taken = subject.engine.memory_bytes().saturating_sub(before);
    assert!(taken <= payload.len() * EXPANSION_MAX + OVERHEAD_BYTES, "{taken} bytes of {}", payload.len());
    if restored != b"+OK\r\n" {
        assert!(restored.starts_with(b"-ERR "), "{}", restored.escape_ascii());
        assert_eq!(subject.say("DBSIZE"), b":0\r\n");
        return;
    }
    let kind = String::from_utf8(subject.say("TYPE k")[1..].trim_ascii_end().to_vec()).expect("a word");
    if kind == "none" {
        // All that it had is past its deadline.
        return;
    }
    let replies: Vec<Vec<u8>> = rows(&READS, &kind).iter().map(|read| subject.say(read)).collect();
    if kind != "string" {
        let count = format!(":{}\r\n", elements(&replies[0]).len()).into_bytes();
        assert_eq!((elements(&replies[1]).len(), &replies[2]), (elements(&replies[0]).len(), &count), "{kind}");
    }
    ["OBJECT ENCODING k", "MEMORY USAGE k SAMPLES 0", "COPY k copy"].iter().for_each(|line| _ = subject.say(line));
    let digest = subject.digest("k");
    assert_eq!(subject.digest("copy"), digest, "{kind}");
    let dumped = subject.bulk("DUMP k");
    let again = subject.ask(&[b"RESTORE", b"again", b"0", &dumped]);
    assert_eq!(again, b"+OK\r\n", "{kind}: {}", dumped.escape_ascii());
    assert_eq!(subject.digest("again"), digest, "{kind}: {}", dumped.escape_ascii());
    rows(&CHANGES, &kind).iter().for_each(|change| _ = subject.say(change));
    assert_eq!(subject.digest("copy"), digest, "{kind}: a change of one is no change of the other");
    subject.say("FLUSHALL");
    let left = subject.engine.memory_bytes();
    assert!(left <= before + OVERHEAD_BYTES, "{left} bytes are left of {before}");
});
