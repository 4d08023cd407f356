//! The engine against a naive model: B-tree maps and vectors, with time passing and the active cycle running between
//! requests. The model is slow and obvious; the engine has to agree with it after every request.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use respool_command::{Execute, Millis, SessionView, lookup};
use respool_engine::{Engine, EngineConfig};
use respool_testkit::{Rng, elements};
use respool_wire::{ArgsBuf, Encoder, Protocol};

/// Requests per seed.
const REQUESTS: usize = 40_000;
/// Keys that they go to: few enough to meet again, of any type.
const KEYS: usize = 30;
/// Different members, fields and elements.
const MEMBERS: usize = 900;
const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

enum Value {
    Text(Vec<u8>),
    Hash(BTreeMap<String, String>),
    List(VecDeque<String>),
    Set(BTreeSet<String>),
    Sorted(BTreeMap<String, i64>),
}

impl Value {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Hash(hash) => hash.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::Sorted(sorted) => sorted.is_empty(),
        }
    }
}

/// A reply, as the model says it.
#[derive(Debug, PartialEq)]
enum Said {
    Ok,
    Null,
    Integer(i64),
    Bulk(Vec<u8>),
    List(Vec<String>),
    /// In any order.
    Bag(Vec<String>),
    WrongType,
    NoSuchKey,
}

impl Said {
    fn matches(&self, reply: &[u8]) -> bool {
        let mut expected = Vec::new();
        let mut encoder = Encoder::new(&mut expected, Protocol::Resp2);
        match self {
            Self::Ok => encoder.simple("OK"),
            Self::Null => encoder.null(),
            Self::Integer(value) => encoder.integer(*value),
            Self::Bulk(bytes) => encoder.bulk(bytes),
            Self::NoSuchKey => encoder.error(b"ERR no such key"),
            Self::WrongType => encoder.error(WRONGTYPE.as_bytes()),
            Self::List(words) | Self::Bag(words) => {
                encoder.array(words.len());
                words.iter().for_each(|word| encoder.bulk(word.as_bytes()));
            }
        }
        if matches!(self, Self::Bag(_)) {
            let (mut a, mut b) = (elements(&expected), elements(reply));
            a.sort_unstable();
            b.sort_unstable();
            return a == b;
        }
        expected == reply
    }
}

#[derive(Default)]
struct Model {
    keys: BTreeMap<String, (Value, Option<u64>)>,
    now: u64,
}

/// Gives the value at a key as one type, made if it is missing; answers for another type.
macro_rules! value {
    ($model:expr, $key:expr, $type:ident, $empty:expr) => {
        match &mut $model.keys.entry($key.to_owned()).or_insert_with(|| (Value::$type($empty), None)).0 {
            Value::$type(value) => value,
            _ => return Said::WrongType,
        }
    };
}

impl Model {
    /// What the request, whose words are `w`, answers.
    fn say(&mut self, w: &[&str]) -> Said {
        let now = self.now;
        self.keys.retain(|_, (_, deadline)| deadline.is_none_or(|deadline| now <= deadline));
        let said = self.execute(w);
        self.keys.retain(|_, (value, _)| !value.is_empty());
        said
    }

    fn execute(&mut self, w: &[&str]) -> Said {
        let number = |index: usize| w[index].parse::<i64>().expect("the script writes numbers");
        let count = |is: bool| Said::Integer(is.into());
        match w[0] {
            "SET" => {
                let deadline = w.get(4).map(|_| self.now + number(4) as u64);
                self.keys.insert(w[1].to_owned(), (Value::Text(w[2].into()), deadline));
                Said::Ok
            }
            "GET" => match self.keys.get(w[1]).map(|(value, _)| value) {
                None => Said::Null,
                Some(Value::Text(text)) => Said::Bulk(text.clone()),
                Some(_) => Said::WrongType,
            },
            "APPEND" => {
                let text = value!(self, w[1], Text, Vec::new());
                text.extend_from_slice(w[2].as_bytes());
                Said::Integer(text.len() as i64)
            }
            "DEL" => count(self.keys.remove(w[1]).is_some()),
            "EXISTS" => count(self.keys.contains_key(w[1])),
            "PEXPIRE" => match self.keys.get_mut(w[1]) {
                Some((_, deadline)) => {
                    *deadline = Some(self.now + number(2) as u64);
                    Said::Integer(1)
                }
                None => Said::Integer(0),
            },
            "PTTL" => Said::Integer(match self.keys.get(w[1]) {
                Some((_, Some(deadline))) => (deadline - self.now) as i64,
                Some((_, None)) => -1,
                None => -2,
            }),
            "PERSIST" => count(self.keys.get_mut(w[1]).is_some_and(|(_, deadline)| deadline.take().is_some())),
            "RENAMENX" => {
                if !self.keys.contains_key(w[1]) {
                    return Said::NoSuchKey;
                }
                if !self.keys.contains_key(w[2]) {
                    let moved = self.keys.remove(w[1]).expect("it is there");
                    self.keys.insert(w[2].to_owned(), moved);
                    return Said::Integer(1);
                }
                Said::Integer(0)
            }
            "KEYS" => Said::Bag(self.keys.keys().cloned().collect()),
            "HSET" => count(value!(self, w[1], Hash, BTreeMap::new()).insert(w[2].into(), w[3].into()).is_none()),
            "HGET" => match value!(self, w[1], Hash, BTreeMap::new()).get(w[2]) {
                Some(value) => Said::Bulk(value.clone().into()),
                None => Said::Null,
            },
            "HDEL" => count(value!(self, w[1], Hash, BTreeMap::new()).remove(w[2]).is_some()),
            "HGETALL" => {
                let hash = value!(self, w[1], Hash, BTreeMap::new());
                Said::Bag(hash.iter().flat_map(|(field, value)| [field.clone(), value.clone()]).collect())
            }
            "RPUSH" | "LPUSH" => {
                let list = value!(self, w[1], List, VecDeque::new());
                for word in &w[2..] {
                    if w[0] == "RPUSH" { list.push_back((*word).into()) } else { list.push_front((*word).into()) }
                }
                Said::Integer(list.len() as i64)
            }
            "LPOP" | "RPOP" => {
                let list = value!(self, w[1], List, VecDeque::new());
                let popped = if w[0] == "LPOP" { list.pop_front() } else { list.pop_back() };
                popped.map_or(Said::Null, |word| Said::Bulk(word.into()))
            }
            "LRANGE" => Said::List(value!(self, w[1], List, VecDeque::new()).iter().cloned().collect()),
            "LREM" => {
                let list = value!(self, w[1], List, VecDeque::new());
                let before = list.len();
                list.retain(|word| word != w[3]);
                Said::Integer((before - list.len()) as i64)
            }
            "LINSERT" => {
                let list = value!(self, w[1], List, VecDeque::new());
                match list.iter().position(|word| word == w[3]) {
                    _ if list.is_empty() => Said::Integer(0),
                    None => Said::Integer(-1),
                    Some(at) => {
                        list.insert(at, w[4].into());
                        Said::Integer(list.len() as i64)
                    }
                }
            }
            "SADD" => count(value!(self, w[1], Set, BTreeSet::new()).insert(w[2].into())),
            "SREM" => count(value!(self, w[1], Set, BTreeSet::new()).remove(w[2])),
            "SISMEMBER" => count(value!(self, w[1], Set, BTreeSet::new()).contains(w[2])),
            "SMEMBERS" => Said::Bag(value!(self, w[1], Set, BTreeSet::new()).iter().cloned().collect()),
            "ZADD" => count(value!(self, w[1], Sorted, BTreeMap::new()).insert(w[3].into(), number(2)).is_none()),
            "ZREM" => count(value!(self, w[1], Sorted, BTreeMap::new()).remove(w[2]).is_some()),
            "ZRANK" => {
                let order = in_order(value!(self, w[1], Sorted, BTreeMap::new()));
                let rank = order.iter().position(|member| member == w[2]);
                rank.map_or(Said::Null, |rank| Said::Integer(rank as i64))
            }
            "ZRANGE" => {
                let order = in_order(value!(self, w[1], Sorted, BTreeMap::new()));
                let (start, end) = (number(2) as usize, number(3) as usize);
                Said::List(order.into_iter().skip(start).take((end + 1).saturating_sub(start)).collect())
            }
            "ZCOUNT" => {
                let sorted = value!(self, w[1], Sorted, BTreeMap::new());
                Said::Integer(sorted.values().filter(|score| (number(2)..=number(3)).contains(score)).count() as i64)
            }
            "ZREMRANGEBYSCORE" => {
                let sorted = value!(self, w[1], Sorted, BTreeMap::new());
                let before = sorted.len();
                sorted.retain(|_, score| !(number(2)..=number(3)).contains(score));
                Said::Integer((before - sorted.len()) as i64)
            }
            other => panic!("the model does not know {other}"),
        }
    }
}

fn in_order(sorted: &BTreeMap<String, i64>) -> Vec<String> {
    let mut order: Vec<_> = sorted.iter().map(|(member, score)| (*score, member.clone())).collect();
    order.sort();
    order.into_iter().map(|(_, member)| member).collect()
}

/// A request, one letter per word: `k` a key, `m` a member, `v` a value, `n` a number, `t` milliseconds.
const TEMPLATES: &[&str] = &[
    "SET k v",
    "SET k v",
    "SET k v PX t",
    "SET k m",
    "GET k",
    "GET k",
    "APPEND k v",
    "DEL k",
    "EXISTS k",
    "PEXPIRE k t",
    "PTTL k",
    "PERSIST k",
    "RENAMENX k k",
    "KEYS *",
    "HSET k m v",
    "HSET k m v",
    "HSET k m m",
    "HGET k m",
    "HDEL k m",
    "HGETALL k",
    "RPUSH k v m v",
    "LPUSH k m v",
    "LPOP k",
    "RPOP k",
    "LRANGE k 0 -1",
    "LREM k 0 m",
    "LINSERT k BEFORE m v",
    "SADD k m",
    "SADD k n",
    "SADD k n",
    "SREM k m",
    "SISMEMBER k m",
    "SMEMBERS k",
    "ZADD k n m",
    "ZADD k n m",
    "ZADD k n m",
    "ZREM k m",
    "ZRANK k m",
    "ZRANGE k n n",
    "ZCOUNT k n n",
    "ZREMRANGEBYSCORE k n n",
];

/// How often the same key is grown in a row, so that values leave their compact encodings.
const BURST: usize = 60;

fn request(rng: &mut Rng, template: &str, key: &str) -> Vec<String> {
    let mut fill = |word: &str| match word {
        "k" => key.to_owned(),
        "m" => format!("m{}", rng.below(MEMBERS)),
        "n" => rng.below(MEMBERS).to_string(),
        "t" => rng.between(1, 400).to_string(),
        "v" if rng.once_in(20) => "long".repeat(rng.below(400)),
        "v" => format!("value {}", rng.below(1_000)),
        word => word.to_owned(),
    };
    template.split(' ').map(&mut fill).collect()
}

/// Lets the engine finish what it does at its own pace.
fn rest(engine: &mut Engine, now: Millis) {
    let mut turns = 0;
    while engine.tick(now) <= Some(Millis(now.0 + 1)) {
        turns += 1;
        assert!(turns < 1_000, "the engine comes to rest");
    }
}

fn play(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut model = Model { now: 1_700_000_000_000, ..Model::default() };
    let mut engine = Engine::new(EngineConfig::default(), [seed, !seed]);
    let mut session = SessionView::default();
    let mut left = 0;
    let (mut template, mut key): (&'static str, String) = ("", String::new());
    for number in 0..REQUESTS {
        if left == 0 || !["HSET k m v", "SADD k n", "ZADD k n m", "RPUSH k v m v"].contains(&template) {
            template = *rng.pick(TEMPLATES);
            key = format!("k{}", rng.below(KEYS));
            left = if rng.once_in(6) { BURST } else { 1 };
        }
        left -= 1;
        model.now += rng.below(4) as u64;
        session.now = Millis(model.now);
        if rng.once_in(50) {
            _ = engine.tick(session.now);
        }
        let words = request(&mut rng, template, &key);
        let args: ArgsBuf = words.iter().collect();
        let mut reply = Vec::new();
        let row = lookup(words[0].as_bytes()).expect("the script uses commands that exist");
        _ = engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut reply, Protocol::Resp2));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = model.say(&words);
        assert!(said.matches(&reply), "seed {seed}, request {number}: {words:?}\n{said:?}\n{}", reply.escape_ascii());
    }
    // Time ends for every key that has a deadline, by the active cycle alone.
    session.now = Millis(model.now + 1_000);
    rest(&mut engine, session.now);
    model.now = session.now.0;
    model.say(&["KEYS", "*"]);
    let size = engine.keyspace_size(0);
    assert_eq!((size.keys, size.expires), (model.keys.len(), 0), "seed {seed}");
    // What nobody holds is given back.
    for key in model.keys.keys() {
        let args: ArgsBuf = ["DEL", key].into_iter().collect();
        let row = lookup(b"DEL").expect("it exists");
        _ = engine.execute(row, args.as_args(), &mut session, &mut Encoder::new(&mut Vec::new(), Protocol::Resp2));
    }
    rest(&mut engine, session.now);
    let bytes = engine.memory_bytes();
    assert!(bytes < 4 << 20, "seed {seed}: {bytes} bytes are held by an empty store");
}

#[test]
fn the_engine_equals_the_model() {
    (1..=6).for_each(play);
}
