//! What is said to the engine and the model: requests by template, in bursts, with time passing between them.
//!
//! All choices come from one function that draws below a bound, so that a seed or the bytes of a fuzzer can make them.

/// A request, one letter per word: `k` a key, `m` a member, `v` a value, `n` a number, `7-n` an id of that number, `c` a small one, `t` milliseconds, `d` a
/// database; a word with bars is one of those between them.
const TEMPLATES: &[&str] = &[
    "SET k v",
    "SET k v",
    "SET k v PX t",
    "SET k m",
    "GET k",
    "GET k",
    "GETDEL k",
    "APPEND k v",
    "SETRANGE k c m",
    "DEL k",
    "DEL k k",
    "UNLINK k k k",
    "EXISTS k",
    "TYPE k",
    "PEXPIRE k t",
    "PEXPIRE k t",
    "PTTL k",
    "PERSIST k",
    "RENAME k k",
    "RENAMENX k k",
    "COPY k k",
    "COPY k k REPLACE",
    "COPY k k REPLACE DB d",
    "MOVE k d",
    "RANDOMKEY",
    "KEYS *",
    "SCAN 0 COUNT n",
    "HSET k m v",
    "HSET k m v",
    "HSET k m m m v",
    "HGET k m",
    "HGET k m",
    "HDEL k m",
    "HDEL k m m m",
    "HGETALL k",
    "HRANDFIELD k c",
    "HPEXPIRE k t FIELDS 3 m m m",
    "HSETEX k PX t FIELDS 2 m v m v",
    "HGETEX k PX t FIELDS 2 m m",
    "RPUSH k v m v",
    "LPUSH k m v",
    "LPOP k",
    "RPOP k",
    "LMOVE k k LEFT|RIGHT LEFT|RIGHT",
    "LRANGE k 0 -1",
    "LTRIM k c n",
    "LREM k 0 m",
    "LINSERT k BEFORE m v",
    "SORT k ALPHA STORE k",
    "SADD k m",
    "SADD k n",
    "SADD k n n n",
    "SREM k m",
    "SREM k n m n",
    "SISMEMBER k m",
    "SMEMBERS k",
    "SPOP k c",
    "SRANDMEMBER k c",
    "SUNIONSTORE|SINTERSTORE|SDIFFSTORE k k k",
    "ZADD k n m",
    "ZADD k n m",
    "ZADD k n m n m",
    "ZREM k m",
    "ZREM k m m",
    "ZSCORE k m",
    "ZRANK k m",
    "ZRANGE k n n",
    "ZCOUNT k n n",
    "ZREMRANGEBYSCORE k n n",
    "ZUNIONSTORE|ZINTERSTORE k 2 k k",
    "ZRANGESTORE k k c n",
    "XADD k 7-* m v",
    "XADD k 7-* f v",
    "XADD k MAXLEN n 7-* f v",
    "XLEN k",
    "XRANGE k - +",
    "XDEL k 7-n 7-n",
    "XTRIM k MAXLEN n",
    "XTRIM k MINID 7-n",
    "XADD k DELREF|ACKED MAXLEN n 7-* f v",
    "XTRIM k MAXLEN n DELREF|ACKED",
    "XTRIM k MINID 7-n DELREF|ACKED",
    "XDELEX k KEEPREF|DELREF|ACKED IDS 2 7-n 7-n",
    "XACKDEL k g KEEPREF|DELREF|ACKED IDS 2 7-n 7-n",
    "XGROUP CREATE k g 0 MKSTREAM",
    "XGROUP CREATE k g 0",
    "XGROUP DESTROY k g",
    "XREADGROUP GROUP g m COUNT c STREAMS k >",
    "XREADGROUP GROUP g m COUNT n STREAMS k >",
    "XACK k g 7-n 7-n",
    "XPENDING k g",
    "XCLAIM k g m 0 7-n JUSTID",
    "XAUTOCLAIM k g m 0 7-n JUSTID",
];
/// What empties the store or turns it over, and is said seldom.
const RARE: &[&str] = &["FLUSHDB", "FLUSHALL ASYNC", "SWAPDB d d", "SWAPDB d d"];
/// What is said many times in a row, so that values leave their compact encodings.
const GROWING: &[&str] = &[
    "HSET k m v",
    "HSETEX k PX t FIELDS 1 m v",
    "SADD k n",
    "SADD k m",
    "ZADD k n m",
    "RPUSH k v m v",
    "SET k v",
    "XADD k 7-* f v",
];
/// What is said many times in a row afterwards, so that tables shrink.
const SHRINKING: &[&str] =
    &["HDEL k m m m", "HPEXPIRE k t FIELDS 3 m m m", "SREM k n m n", "ZREM k m m", "LPOP k", "DEL k", "XDEL k 7-n 7-n"];

/// What is said many times in a row to one hash, so that its fields often have deadlines.
const FIELDS: &[&str] = &[
    "HSET k m v",
    "HGETALL k",
    "HRANDFIELD k c",
    "HDEL k m m",
    "COPY k k REPLACE",
    "HLEN k",
    "HSETNX k m v",
    "HINCRBY k m n",
    "HSET k m n",
    "HPEXPIRE k t FIELDS 1 m",
    "HPEXPIRE k t FIELDS 3 m m m",
    "HPEXPIRE k t NX|XX|GT|LT FIELDS 2 m m",
    "HPEXPIRE k 0 FIELDS 2 m m",
    "HPTTL k FIELDS 2 m m",
    "HPERSIST k FIELDS 2 m m",
    "HGETEX k PX t FIELDS 2 m m",
    "HGETEX k PERSIST FIELDS 1 m",
    "HGETEX k FIELDS 2 m m",
    "HGETDEL k FIELDS 2 m m",
    "HSETEX k PX t FIELDS 2 m v m v",
    "HSETEX k KEEPTTL FIELDS 2 m v m m",
    "HSETEX k FNX|FXX PX t FIELDS 1 m v",
    "HSETEX k PX 0 FIELDS 1 m v",
];

/// What is said many times in a row to one stream, so that entries are pending and acknowledged.
const ENTRIES: &[&str] = &[
    "XADD k 7-* f v",
    "XADD k 7-* f v",
    "XADD k DELREF|ACKED MAXLEN n 7-* f v",
    "XGROUP CREATE k g 0 MKSTREAM",
    "XGROUP CREATE k h 0 MKSTREAM",
    "XREADGROUP GROUP g|h m COUNT c STREAMS k >",
    "XREADGROUP GROUP g|h m COUNT c STREAMS k >",
    "XACK k g|h 7-n 7-n",
    "XRANGE k - +",
    "XTRIM k MAXLEN n DELREF|ACKED",
    "XTRIM k MINID 7-n DELREF|ACKED",
    "XDELEX k KEEPREF|DELREF|ACKED IDS 2 7-n 7-n",
    "XACKDEL k g|h KEEPREF|DELREF|ACKED IDS 2 7-n 7-n",
    "XPENDING k g|h",
];

/// How many different names there are: few meet often, many make tables large.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) keys: usize,
    pub(crate) members: usize,
}

/// What comes next.
pub(crate) enum Step {
    Say(Vec<String>),
    /// So many milliseconds pass.
    Pass(u64),
    /// The active cycle has a turn.
    Tick,
    /// The session selects a database.
    Select(usize),
}

/// Where a script is.
#[derive(Default)]
pub(crate) struct Script {
    /// The templates of a burst, its key, and how many requests of it are left.
    burst: Option<(&'static [&'static str], usize, usize)>,
}

impl Script {
    /// The next step, by choices of `draw`, which gives a number below the one that it is given.
    pub(crate) fn step(&mut self, names: Names, databases: usize, draw: &mut dyn FnMut(usize) -> usize) -> Step {
        match draw(64) {
            0..6 => return Step::Pass(1 + draw(3) as u64),
            6 if draw(6) == 0 => return Step::Tick,
            7 if draw(4) == 0 => return Step::Select(draw(databases)),
            _ => {}
        }
        let template = match self.burst.take() {
            Some((templates, key, left)) => {
                self.burst = (left > 1).then_some((templates, key, left - 1));
                return Step::Say(fill(templates[draw(templates.len())], names, databases, Some(key), draw));
            }
            None => match draw(200) {
                0 => RARE[draw(RARE.len())],
                1..20 => {
                    let templates = if draw(2) == 0 { GROWING } else { SHRINKING };
                    let one = draw(templates.len());
                    self.burst = Some((&templates[one..=one], draw(names.keys), 1 + draw(names.members)));
                    "EXISTS k"
                }
                20..24 => {
                    let key = draw(names.keys);
                    let templates = if draw(3) == 0 { ENTRIES } else { FIELDS };
                    self.burst = Some((templates, key, 1 + draw(100)));
                    return Step::Say(vec!["DEL".to_owned(), format!("k{key}")]);
                }
                _ => TEMPLATES[draw(TEMPLATES.len())],
            },
        };
        Step::Say(fill(template, names, databases, None, draw))
    }
}

fn fill(
    template: &str,
    names: Names,
    databases: usize,
    key: Option<usize>,
    draw: &mut dyn FnMut(usize) -> usize,
) -> Vec<String> {
    let mut word = |word: &str| match word {
        "k" => format!("k{}", key.unwrap_or_else(|| draw(names.keys))),
        "m" => format!("m{}", draw(names.members)),
        "n" => draw(names.members).to_string(),
        "c" => (1 + draw(6)).to_string(),
        "t" => {
            let most = if draw(4) == 0 { 400 } else { 20 };
            (1 + draw(most)).to_string()
        }
        "d" => draw(databases).to_string(),
        "v" => match draw(24) {
            0 => "long".repeat(draw(200)),
            1..4 => "short".repeat(draw(30)),
            _ => format!("value {}", draw(1_000)),
        },
        "7-n" => format!("7-{}", draw(names.members)),
        word if word.contains('|') => {
            let words: Vec<&str> = word.split('|').collect();
            words[draw(words.len())].to_owned()
        }
        word => word.to_owned(),
    };
    template.split(' ').map(&mut word).collect()
}
