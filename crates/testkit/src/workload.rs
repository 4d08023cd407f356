//! Random but repeatable scripts of commands, for comparing two servers reply by reply.
//!
//! Most requests follow a template, so that they mean something; the rest are drawn from the command table with
//! arguments at random, so that every command's errors are compared too. What differs between two servers by nature
//! (random picks, the time that is left, orders that hang on a hash seed) is left out or marked as unordered.

use respool_command::{Group, Lane, RequestPolicy, Row, all, resolve, top_level};
use respool_wire::ArgsBuf;

use crate::Rng;
use crate::differential::differences::{Difference, Likeness, difference_of, embedded_difference_of};
use crate::templates::{LIBRARY, SCRIPT_HASHES, SERIALISED, TABLE_TEMPLATES};

/// One generated request.
#[derive(Debug, Clone)]
pub struct Request {
    /// The arguments, the command's name first.
    pub arguments: Vec<Vec<u8>>,
    /// How much alike the replies of two servers have to be.
    pub likeness: Likeness,
}

/// What the servers under comparison can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subset {
    /// One node: every command means the same.
    OneNode,
    /// One node, and every command of the table, but for what the list of differences says is not sent.
    Table,
    /// Several nodes: only commands that mean the same wherever their keys are, keys with a common tag where a
    /// command needs them on one node.
    Spread,
    /// Strings, hashes, lists, sets, sorted sets, bitmaps, places, HyperLogLogs, streams and keys of any type: what the embedded server
    /// has so far.
    Embedded,
    /// The embedded server, and every command of the table, but for what its own list of differences says is not sent.
    EmbeddedTable,
    /// A server with one engine and one whose engines share its keys: every command of the table, keys mostly with a common tag.
    Engines,
}

impl Subset {
    /// Whether requests are drawn from the whole table, with transactions.
    fn is_of_table(self) -> bool {
        matches!(self, Subset::Table | Subset::EmbeddedTable | Subset::Engines)
    }

    /// Whether keys have tags.
    fn has_tags(self) -> bool {
        matches!(self, Subset::Spread | Subset::Engines)
    }

    /// What is listed of a row, if anything is.
    fn difference_of(self, name: &str) -> Option<&'static Difference> {
        let of_engine = (self == Subset::EmbeddedTable).then(|| embedded_difference_of(name)).flatten();
        of_engine.or_else(|| difference_of(name))
    }
}

/// An endless source of requests that follows from its seed.
pub struct Script {
    rng: Rng,
    subset: Subset,
    templates: Vec<&'static str>,
    one_node_templates: Vec<&'static str>,
    table_templates: Vec<&'static str>,
    rows: Vec<&'static Row>,
    /// A transaction that was begun.
    block: Option<Block>,
}

/// What is left of a transaction.
struct Block {
    left: usize,
    likeness: Likeness,
    /// The tag that its keys mostly have.
    tag: u8,
}

/// Requests by template, separated by `|`. `@x` is a key that mostly holds type x (`s`tring, `h`ash, `l`ist, se`t`,
/// sorted set `z`, `j` one with equal scores, stre`a`m, `g`eo, h`y`perloglog, `b`itmap), `#x` a value: `v` any bytes,
/// `V` many letters, `w` a word, `m` a member, `M` an integer member, `i` a small integer, `n` any integer, `f` a
/// number, `r` an index, `o` a score bound, `x` a lexicographical bound, `d` a stream id, `p` a pattern, `u` a bit
/// offset, `e` an absolute second far ahead or long ago, `E` one far ahead (what is set already expired may or may not
/// be counted).
const TEMPLATES: &str = "
    SET @s #v | SET @s #v | SET @s #n | SET @s #v NX | SET @s #v XX GET | SET @s #v GET | SET @s #v EXAT #E |
    SET @s #v KEEPTTL | SETNX @s #v | GET @s | GET @s | GETDEL @s | GETEX @s PERSIST | GETEX @s EXAT #e |
    GETSET @s #v | APPEND @s #v | STRLEN @s | GETRANGE @s #r #r | SUBSTR @s #r #r | SETRANGE @s #i #v |
    INCR @s | DECR @s | INCRBY @s #n | DECRBY @s #n | INCRBYFLOAT @s #f | MGET @s @s @s | MGET @s @h @s @s @s |
    MSET @s #v @s #v @s #v | MSET @s #v | MSETNX @s #v @s #v | LCS @s @s | LCS @s @s LEN | LCS @s @s IDX |
    DEL @s | DEL @s @l @h | UNLINK @s @z @s | EXISTS @s @s @l | EXISTS @h | TOUCH @s @s @t | TYPE @s | TYPE @z |
    PERSIST @s | EXPIREAT @s #e | PEXPIREAT @s #e | EXPIREAT @l #e GT | EXPIREAT @h #e NX | EXPIRETIME @s |
    PEXPIRETIME @s | EXPIRETIME @l | RENAME @s @s | RENAMENX @s @s | COPY @s @s | COPY @l @l REPLACE |
    COPY @z @z REPLACE | OBJECT ENCODING @s | OBJECT ENCODING @h | OBJECT ENCODING @l | OBJECT ENCODING @t |
    OBJECT ENCODING @z | OBJECT REFCOUNT @s | KEYS #p | DBSIZE | SORT @l | SORT @l ALPHA |
    SORT @l DESC ALPHA LIMIT #i #i | SORT @l ALPHA STORE @l | SORT_RO @l ALPHA | HSET @h #w #v |
    HSET @h #w #v #w #v #w #v | HMSET @h #w #v #w #n | HSETNX @h #w #v | HGET @h #w | HMGET @h #w #w #w |
    HDEL @h #w #w | HLEN @h | HEXISTS @h #w | HKEYS @h | HVALS @h | HGETALL @h | HSTRLEN @h #w |
    HINCRBY @h #w #n | HINCRBYFLOAT @h #w #f | LPUSH @l #v | RPUSH @l #v #n #v | LPUSHX @l #v |
    RPUSHX @l #v #v | LPOP @l | RPOP @l | LPOP @l #i | RPOP @l #i | LLEN @l | LRANGE @l #r #r | LRANGE @l 0 -1 |
    LINDEX @l #r | LSET @l #r #v | LREM @l #r #w | LINSERT @l BEFORE #w #v | LINSERT @l AFTER #w #v |
    LTRIM @l #r #r | LPOS @l #w | LPOS @l #w COUNT #i | LPOS @l #w RANK #r MAXLEN #i | RPOPLPUSH @l @l |
    LMOVE @l @l LEFT RIGHT | LMOVE @l @l RIGHT LEFT | LMPOP 2 @l @l LEFT | LMPOP 1 @l RIGHT COUNT #i |
    RPUSH @l #w #w #w | SADD @t #M #M #M | SADD @t #m #m | SREM @t #m #M | SISMEMBER @t #m |
    SMISMEMBER @t #m #M #m | SCARD @t | SMEMBERS @t | SMOVE @t @t #M | SINTER @t @t | SUNION @t @t @t |
    SDIFF @t @t | SINTERCARD 2 @t @t | SINTERCARD 2 @t @t LIMIT #i | SINTERSTORE @t @t @t |
    SUNIONSTORE @t @t @t | SDIFFSTORE @t @t @t | ZADD @z #f #m | ZADD @z #f #m #f #m #i #m | ZADD @z NX #f #m |
    ZADD @z XX CH #f #m | ZADD @z GT #f #m | ZADD @z INCR #f #m | ZINCRBY @z #f #m | ZSCORE @z #m |
    ZMSCORE @z #m #m | ZCARD @z | ZCOUNT @z #o #o | ZLEXCOUNT @j #x #x | ZRANK @z #m | ZREVRANK @z #m |
    ZRANGE @z #r #r | ZRANGE @z 0 -1 WITHSCORES | ZRANGE @z #o #o BYSCORE |
    ZRANGE @z #o #o BYSCORE REV LIMIT #i #i | ZRANGE @j #x #x BYLEX | ZADD @j 0 #m 0 #m | ZREM @j #m | ZREVRANGE @z #r #r WITHSCORES |
    ZRANGEBYSCORE @z #o #o WITHSCORES LIMIT #i #i | ZREVRANGEBYSCORE @z #o #o | ZRANGEBYLEX @j #x #x |
    ZREVRANGEBYLEX @j #x #x | ZRANGESTORE @z @z #r #r | ZREM @z #m #m | ZREMRANGEBYRANK @z #r #r |
    ZREMRANGEBYSCORE @z #o #o | ZREMRANGEBYLEX @j #x #x | ZPOPMIN @z | ZPOPMAX @z #i | ZMPOP 2 @z @z MIN |
    ZMPOP 1 @z MAX COUNT #i | ZUNION 2 @z @z WITHSCORES | ZINTER 2 @z @z | ZDIFF 2 @z @z WITHSCORES |
    ZINTERCARD 2 @z @z | ZUNIONSTORE @z 2 @z @z | ZUNIONSTORE @z 2 @z @t WEIGHTS 2 #i |
    ZINTERSTORE @z 2 @z @z AGGREGATE MAX | ZDIFFSTORE @z 2 @z @z | SETBIT @b #u 1 | SETBIT @b #u 0 |
    SET @b #V | GET @b | HSET @h #w #V |
    GETBIT @b #u | BITCOUNT @b | BITCOUNT @b #r #r | BITCOUNT @b #r #r BIT | BITPOS @b 1 | BITPOS @b 0 #r #r |
    BITOP AND @b @b @b | BITOP NOT @b @b | BITOP XOR @b @b @b @b | BITFIELD @b SET u8 #u #i GET u4 #u |
    BITFIELD @b INCRBY i5 #u #i OVERFLOW SAT INCRBY u2 #u #i | BITFIELD_RO @b GET u8 #u | PFADD @y #w #w #w |
    PFCOUNT @y | PFCOUNT @y @y | PFMERGE @y @y @y | GEOADD @g 13.36 38.11 #m 15.08 37.50 #m |
    GEOADD @g -0.1 51.5 #m | GEODIST @g #m #m km | GEOPOS @g #m #m | GEOHASH @g #m |
    GEOSEARCH @g FROMLONLAT 15 37 BYRADIUS 200 km ASC WITHCOORD WITHDIST |
    GEOSEARCHSTORE @g @g FROMLONLAT 15 37 BYBOX 400 400 km ASC | GEORADIUS @g 15 37 200 km ASC |
    XADD @a #d field #v | XADD @a #d f #v g #w | XLEN @a | XRANGE @a - + | XREVRANGE @a + - COUNT #i |
    XRANGE @a #d + | XDEL @a #d | XTRIM @a MAXLEN #i | XREAD COUNT 2 STREAMS @a #d | XSETID @a #d | ECHO #v |
    PING | PING #v | NOSUCHCOMMAND #w #w | GET | SET @s | OBJECT NOSUCH @s | SELECT 99 | SELECT nonsense |
    CLIENT SETNAME #w | CLIENT GETNAME | OBJECT HELP
";

/// Templates for one node only: they move between databases, which is allowed but does not change what is compared.
const ONE_NODE_TEMPLATES: &str = "
    SELECT 1 | SELECT 0 | SELECT 0 | MOVE @s 1 | COPY @s @s DB 1 | SELECT 2
";

/// Commands that are not drawn from the table: relative expiry, whose rest depends on when it is asked for, clocks,
/// random picks, encodings that hang on a hash seed, and what changes the server rather than its data.
const NOT_DRAWN: &str = "
    EXPIRE PEXPIRE SETEX PSETEX TTL PTTL GETEX RANDOMKEY SRANDMEMBER HRANDFIELD ZRANDMEMBER ZLEXCOUNT
    ZRANGEBYLEX ZREVRANGEBYLEX ZREMRANGEBYLEX SPOP SCAN DUMP SSCAN HSCAN ZSCAN MIGRATE RESTORE OBJECT WAIT
    SWAPDB XGROUP XINFO XCLAIM XAUTOCLAIM XPENDING XREADGROUP XACK XADD
";

/// The same for [`Subset::Table`]: what would do something else on each server, or to others than the two.
const NOT_DRAWN_FROM_TABLE: &str = "
    EXPIRE PEXPIRE SETEX PSETEX GETEX SCAN SSCAN HSCAN ZSCAN SPOP MIGRATE REPLICAOF SLAVEOF MULTI FAILOVER
";

const GROUPS: &[Group] = &[
    Group::String,
    Group::Hash,
    Group::List,
    Group::Set,
    Group::SortedSet,
    Group::Generic,
    Group::Bitmap,
    Group::Hyperloglog,
    Group::Geo,
    Group::Stream,
    Group::Stream,
];

/// Groups of commands that the embedded server knows.
const EMBEDDED_GROUPS: &[Group] = &[
    Group::String,
    Group::Hash,
    Group::List,
    Group::Set,
    Group::SortedSet,
    Group::Generic,
    Group::Bitmap,
    Group::Hyperloglog,
    Group::Geo,
    Group::Connection,
];

/// Tags of keys.
const TAGS: &[u8] = b"abcd";

const WORDS: &[&str] = &["alpha", "beta", "gamma", "delta", "", "x", "10", "alphabet"];
const OPTIONS: &[&str] = &[
    "NX",
    "XX",
    "GET",
    "LIMIT",
    "WITHSCORES",
    "COUNT",
    "LEFT",
    "RIGHT",
    "0",
    "-1",
    "1",
    "3",
    "abc",
    "BYSCORE",
    "STORE",
];
const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "7",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "4294967296",
    "01",
    "+1",
    "1.0",
    "abc",
    "",
];
const NUMBERS: &[&str] = &["0", "1.5", "-2.25", "3.3", "1e10", "inf", "-inf", "nan", "10", "0.1", "1e-7", "abc"];
const SCORES: &[&str] = &["-inf", "+inf", "(1", "0", "2.5", "(3.3", "100", "inf", "abc"];
const LEXES: &[&str] = &["-", "+", "[alpha", "(beta", "[m3", "(m5", "abc"];
const STREAM_IDS: &[&str] = &["1-1", "2-1", "3-1", "3-2", "5", "10-0", "0-0", "abc"];
const PATTERNS: &[&str] = &["*", "s*", "*1", "[sl]?", "nothing*"];
const SECONDS: &[&str] = &["4102444800", "4200000000", "1000"];
const INDEXES: &[&str] = &["0", "1", "2", "5", "-1", "-2", "-100", "100", "abc"];
const BITS: &[&str] = &["0", "1", "7", "8", "100", "1000", "-1", "#2"];

impl Script {
    /// The script of this seed.
    pub fn new(seed: u64, subset: Subset) -> Script {
        let is_drawn_of_table = |row: &&'static Row| {
            !row.is_container()
                && !row.is_later()
                && !NOT_DRAWN_FROM_TABLE.split_whitespace().any(|name| name == row.name)
                && subset.difference_of(row.name).is_none_or(|one| one.likeness != Likeness::NotSent)
        };
        let is_drawn = |row: &&'static Row| {
            GROUPS.contains(&row.group)
                && !NOT_DRAWN.split_whitespace().any(|name| name == row.name)
                && !row.is_container()
                && !row.is_later()
                && !row.is_internal
                && !row.tips.contains(&"nondeterministic_output")
        };
        Script {
            rng: Rng::new(seed),
            subset,
            templates: templates(TEMPLATES).collect(),
            one_node_templates: templates(ONE_NODE_TEMPLATES).collect(),
            table_templates: templates(TABLE_TEMPLATES).collect(),
            block: None,
            rows: match subset {
                Subset::Table | Subset::EmbeddedTable => all().filter(is_drawn_of_table).collect(),
                _ => top_level().filter(is_drawn).collect(),
            },
        }
    }

    /// The next request.
    pub fn next_request(&mut self) -> Request {
        match &mut self.block {
            None if self.subset.is_of_table() && self.rng.once_in(100) => {
                let tag = *self.rng.pick(TAGS);
                self.block = Some(Block { left: self.rng.between(0, 5), likeness: Likeness::Same, tag });
                return plain("MULTI", Likeness::Same);
            }
            Some(Block { left: 0, likeness, .. }) => {
                let likeness = *likeness;
                self.block = None;
                let end = if self.rng.once_in(5) { "DISCARD" } else { "EXEC" };
                return plain(end, likeness);
            }
            _ => {}
        }
        let mut request = self.any_request();
        if request.arguments[0].eq_ignore_ascii_case(b"EXEC")
            && let Some(block) = self.block.take()
        {
            // The draw has ended the transaction before its time.
            request.likeness = request.likeness.of_both(block.likeness);
        } else if let Some(block) = &mut self.block {
            // What is queued is answered by the EXEC, with as much likeness as the least of it has.
            block.left -= 1;
            block.likeness = block.likeness.of_both(request.likeness);
        }
        request
    }

    fn any_request(&mut self) -> Request {
        loop {
            let arguments = if self.rng.once_in(5) { self.drawn() } else { self.by_template() };
            if let Some(request) = self.accept(arguments) {
                return request;
            }
        }
    }

    /// Sorts out what would not mean the same to both servers.
    fn accept(&mut self, arguments: Vec<Vec<u8>>) -> Option<Request> {
        let args: ArgsBuf = arguments.iter().map(Vec::as_slice).collect();
        let Ok(row) = resolve(args.as_args()) else {
            return Some(Request { arguments, likeness: Likeness::Same });
        };
        if self.subset.is_of_table() {
            // A script of a transaction that is not executed is remembered by a worker, and by no server.
            let brings_script =
                matches!(row.name, "EVAL" | "EVAL_RO" | "SCRIPT LOAD") && self.subset == Subset::Engines;
            let is_fit = self.block.is_none() || row.name != "HELLO" && !brings_script;
            return accept_of_table(self.subset, row, arguments).filter(|_| is_fit);
        }
        let is_well_formed = row.accepts(arguments.len());
        if is_well_formed && row.lane(args.as_args()) == Lane::Blocking {
            return None;
        }
        // Help is in the server's own words, and which values are shared is its own business.
        let is_known = EMBEDDED_GROUPS.contains(&row.group) && !matches!(row.word(), "HELP" | "REFCOUNT");
        if self.subset == Subset::Embedded && !is_known {
            return None;
        }
        let is_everywhere = matches!(row.request_policy, RequestPolicy::AllShards | RequestPolicy::AllNodes);
        if self.subset == Subset::Spread && is_everywhere && !matches!(row.name, "DBSIZE" | "KEYS") {
            return None;
        }
        let is_unordered = row.name == "KEYS" || row.tips.contains(&"nondeterministic_output_order");
        let likeness = if is_unordered { Likeness::Unordered } else { Likeness::Same };
        Some(Request { arguments, likeness })
    }

    fn by_template(&mut self) -> Vec<Vec<u8>> {
        let is_rare = self.subset != Subset::Spread && self.rng.once_in(50);
        let is_of_table = self.subset.is_of_table() && self.rng.once_in(2);
        let template = *self.rng.pick(match (is_rare, is_of_table) {
            (true, _) => &self.one_node_templates,
            (false, true) => &self.table_templates,
            (false, false) => &self.templates,
        });
        let mut words = template.split(' ');
        let name = words.next().unwrap_or_default();
        let tag = self.tag(name);
        let mut arguments = vec![self.in_some_case(name)];
        for word in words {
            let argument = match word.as_bytes() {
                [b'@', kind] => self.key(*kind, tag),
                [b'#', kind] => self.value(*kind),
                literal => literal.iter().map(|byte| if *byte == b'~' { b' ' } else { *byte }).collect(),
            };
            arguments.push(argument);
        }
        arguments
    }

    /// Any command with as many arguments as it may have, most of them nonsense.
    fn drawn(&mut self) -> Vec<Vec<u8>> {
        let row = *self.rng.pick(&self.rows);
        let tag = self.tag(row.name);
        let least = row.arity.unsigned_abs() as usize;
        let count = if row.arity < 0 { least + self.rng.below(4) } else { least };
        let name = self.in_some_case(row.name);
        let mut arguments: Vec<Vec<u8>> = name.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect();
        for _ in arguments.len()..count {
            let argument = match self.rng.below(3) {
                0 => self.any_key(tag),
                1 => self.rng.pick(OPTIONS).as_bytes().to_vec(),
                _ => {
                    let kind = *self.rng.pick(b"vwinr");
                    self.value(kind)
                }
            };
            arguments.push(argument);
        }
        // Wherever the row finds keys, put keys: elsewhere they would make the command's meaning hang on placement.
        let args: ArgsBuf = arguments.iter().map(Vec::as_slice).collect();
        let mut positions = respool_command::KeyPositions::default();
        if row.keys.positions(args.as_args(), &mut positions).is_ok() {
            for position in positions.iter() {
                arguments[position.index as usize] = self.any_key(tag);
            }
        }
        arguments
    }

    /// One tag for all keys of a command that needs them on one node.
    fn tag(&mut self, name: &str) -> Option<u8> {
        let args: ArgsBuf = std::iter::once(name.as_bytes()).collect();
        let is_split = resolve(args.as_args()).is_ok_and(|row| row.request_policy == RequestPolicy::SplitByKey);
        let tag = *self.rng.pick(TAGS);
        match (self.subset, &self.block) {
            (Subset::Spread, _) => (!is_split).then_some(tag),
            // Now and then keys are apart, which may be refused.
            (Subset::Engines, Some(block)) => Some(block.tag).filter(|_| !self.rng.once_in(20)),
            (Subset::Engines, None) => Some(tag).filter(|_| !is_split && !self.rng.once_in(20)),
            _ => None,
        }
    }

    /// What a key has behind its name.
    fn behind_name(&mut self, tag: Option<u8>) -> String {
        match self.subset.has_tags() {
            true => format!("{{{}}}", tag.unwrap_or_else(|| *self.rng.pick(TAGS)) as char),
            false => String::new(),
        }
    }

    /// A key of the wanted type, sometimes of another.
    fn key(&mut self, kind: u8, tag: Option<u8>) -> Vec<u8> {
        // Orders by name mean nothing among different scores: their keys hold nothing else.
        if kind != b'j' && self.rng.once_in(15) {
            return self.any_key(tag);
        }
        let number = self.rng.below(4);
        let tag = self.behind_name(tag);
        format!("{}{number}{tag}", kind as char).into_bytes()
    }

    fn any_key(&mut self, tag: Option<u8>) -> Vec<u8> {
        let kind = *self.rng.pick(b"shltzagyb");
        let number = self.rng.below(4);
        let tag = self.behind_name(tag);
        format!("{}{number}{tag}", kind as char).into_bytes()
    }

    fn value(&mut self, kind: u8) -> Vec<u8> {
        let list = match kind {
            b'v' => return self.bytes(),
            b'V' => {
                let length = self.rng.between(1_000, 40_000);
                return self.letters(length);
            }
            b'k' => return SERIALISED.to_vec(),
            b'l' => return LIBRARY.as_bytes().to_vec(),
            b'h' => SCRIPT_HASHES,
            b'm' => return format!("m{}", self.rng.below(8)).into_bytes(),
            b'M' => return self.rng.below(12).to_string().into_bytes(),
            b'i' => return self.rng.below(12).to_string().into_bytes(),
            b'w' => WORDS,
            b'n' => INTEGERS,
            b'f' => NUMBERS,
            b'r' => INDEXES,
            b'o' => SCORES,
            b'x' => LEXES,
            b'd' => STREAM_IDS,
            b'p' => PATTERNS,
            b'u' => BITS,
            b'e' => SECONDS,
            b'E' => &SECONDS[..2],
            other => unreachable!("no kind of value is called {:?}", other as char),
        };
        self.rng.pick(list).as_bytes().to_vec()
    }

    /// Short or long, text or anything, now and then a number.
    fn bytes(&mut self) -> Vec<u8> {
        let length = match self.rng.below(20) {
            0 => 0,
            1 => self.rng.between(60, 70),
            2 => self.rng.between(100, 600),
            _ => self.rng.between(1, 12),
        };
        match self.rng.below(4) {
            0 => self.rng.pick(WORDS).as_bytes().to_vec(),
            1 => (0..length).map(|_| self.rng.below(256) as u8).collect(),
            2 => self.rng.below(1_000).to_string().into_bytes(),
            _ => self.letters(length),
        }
    }

    fn letters(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| b'a' + self.rng.below(26) as u8).collect()
    }

    fn in_some_case(&mut self, name: &str) -> Vec<u8> {
        match self.rng.below(4) {
            0 => name.to_lowercase().into_bytes(),
            _ => name.as_bytes().to_vec(),
        }
    }
}

/// A request of one word.
fn plain(word: &str, likeness: Likeness) -> Request {
    Request { arguments: vec![word.as_bytes().to_vec()], likeness }
}

/// What is compared of a request of the whole table, if it is sent.
fn accept_of_table(subset: Subset, row: &'static Row, arguments: Vec<Vec<u8>>) -> Option<Request> {
    let args: ArgsBuf = arguments.iter().map(Vec::as_slice).collect();
    let is_waiting = row.accepts(arguments.len()) && row.lane(args.as_args()) == Lane::Blocking;
    let likeness = subset.difference_of(row.name).map_or(Likeness::Same, |one| one.likeness);
    (!is_waiting && likeness != Likeness::NotSent).then_some(Request { arguments, likeness })
}

/// A template per `|`.
fn templates(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split('|').map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_follows_from_its_seed() {
        let take = |seed| {
            let mut script = Script::new(seed, Subset::Spread);
            (0..200).map(|_| script.next_request().arguments).collect::<Vec<_>>()
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn templates_name_commands_that_exist() {
        for template in templates(TEMPLATES).chain(templates(ONE_NODE_TEMPLATES)).chain(templates(TABLE_TEMPLATES)) {
            let words: Vec<&[u8]> = template.split(' ').map(str::as_bytes).collect();
            let args: ArgsBuf = words.iter().copied().collect();
            assert!(resolve(args.as_args()).is_ok() || template.contains("NOSUCH"), "{template}");
        }
    }
}
