//! The naive model: databases of B-tree maps and vectors that do what the commands say, slow and obvious.
//!
//! What chance decides is taken over from the engine's reply, after a look whether it could have come.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use respool_testkit::elements;
use respool_wire::{Encoder, Protocol};

use super::hashes::Hash;
use super::streams::{Stream, without_stream};

const WRONGTYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// How many databases there are.
pub(crate) const DATABASES: usize = 3;

#[derive(Clone)]
enum Value {
    Text(Vec<u8>),
    Hash(Hash),
    List(VecDeque<String>),
    Set(BTreeSet<String>),
    Sorted(BTreeMap<String, i64>),
    Stream(Stream),
}

impl Value {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) | Self::Stream(_) => false,
            Self::Hash(hash) => hash.0.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::Sorted(sorted) => sorted.is_empty(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Sorted(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }
}

/// A reply, as the model says it.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Ok,
    Null,
    Integer(i64),
    Word(&'static str),
    Bulk(Vec<u8>),
    List(Vec<String>),
    /// In any order.
    Bag(Vec<String>),
    Error(&'static str),
    /// The encoding on the wire.
    Raw(Vec<u8>),
}

impl Said {
    /// Whether a reply in RESP2 says this.
    pub(crate) fn matches(&self, reply: &[u8]) -> bool {
        let mut expected = Vec::new();
        let mut encoder = Encoder::new(&mut expected, Protocol::Resp2);
        match self {
            Self::Ok => encoder.simple("OK"),
            Self::Null => encoder.null(),
            Self::Integer(value) => encoder.integer(*value),
            Self::Word(word) => encoder.simple(word),
            Self::Bulk(bytes) => encoder.bulk(bytes),
            Self::Error(text) => encoder.error(text.as_bytes()),
            Self::Raw(reply) => encoder.raw(reply),
            Self::List(words) | Self::Bag(words) => {
                encoder.array(words.len());
                words.iter().for_each(|word| encoder.bulk(word.as_bytes()));
            }
        }
        if matches!(self, Self::Bag(_)) {
            return bag(&expected) == bag(reply);
        }
        expected == reply
    }
}

fn bag(reply: &[u8]) -> Vec<&[u8]> {
    let mut parts = elements(reply);
    parts.sort_unstable();
    parts
}

/// The texts of bulk strings.
fn texts(parts: &[&[u8]]) -> Vec<String> {
    let text = |part: &&[u8]| {
        let head = part.iter().position(|&byte| byte == b'\n')?;
        String::from_utf8(part.get(head + 1..part.len().checked_sub(2)?)?.to_vec()).ok()
    };
    parts.iter().filter_map(text).collect()
}

/// A key's value and when it goes.
type Entry = (Value, Option<u64>);

/// All databases.
pub(crate) struct Model {
    databases: Vec<BTreeMap<String, Entry>>,
    /// The one that the session has selected.
    pub(crate) selected: usize,
    /// Milliseconds since the Unix epoch.
    pub(crate) now: u64,
}

/// Gives the value at a key as one type, made if it is missing; answers for another type.
macro_rules! value {
    ($model:expr, $key:expr, $type:ident, $empty:expr) => {
        match &mut $model.keys().entry($key.to_owned()).or_insert_with(|| (Value::$type($empty), None)).0 {
            Value::$type(value) => value,
            _ => return Said::Error(WRONGTYPE),
        }
    };
}

/// A copy of the value at a key as one type, empty if it is missing; answers for another type.
macro_rules! copied {
    ($model:expr, $key:expr, $type:ident, $empty:expr) => {
        match $model.keys().get($key) {
            None => $empty,
            Some((Value::$type(value), _)) => value.clone(),
            Some(_) => return Said::Error(WRONGTYPE),
        }
    };
}

impl Model {
    pub(crate) fn new(now: u64) -> Self {
        Self { databases: vec![BTreeMap::new(); DATABASES], selected: 0, now }
    }

    fn keys(&mut self) -> &mut BTreeMap<String, Entry> {
        &mut self.databases[self.selected]
    }

    /// How many keys each database has.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        self.databases.iter().map(BTreeMap::len).collect()
    }

    /// Removes keys and fields of hashes whose deadlines have passed.
    pub(crate) fn expire(&mut self) {
        let now = self.now;
        for keys in &mut self.databases {
            keys.retain(|_, (value, deadline)| {
                if let Value::Hash(hash) = value {
                    hash.expire(now);
                }
                !value.is_empty() && deadline.is_none_or(|deadline| now <= deadline)
            });
        }
    }

    /// Looks whether `reply` may be the answer to the request whose words are `w`, and does what it does.
    pub(crate) fn agrees(&mut self, w: &[&str], reply: &[u8]) -> Result<(), String> {
        self.expire();
        if reply.starts_with(b"-OOM ") {
            return Ok(());
        }
        let said = match self.chance(w, reply) {
            Some(is_possible) => return if is_possible { Ok(()) } else { Err("that cannot be".to_owned()) },
            None => self.execute(w),
        };
        let selected = self.selected;
        self.databases[selected].retain(|_, (value, _)| !value.is_empty());
        if said.matches(reply) { Ok(()) } else { Err(format!("{said:?}")) }
    }

    /// For what chance decides: whether it may have. `None`: the request is of another kind.
    fn chance(&mut self, w: &[&str], reply: &[u8]) -> Option<bool> {
        let parts = elements(reply);
        let is_null = reply == b"$-1\r\n";
        let keys = &mut self.databases[self.selected];
        Some(match w[0] {
            "RANDOMKEY" => {
                let drawn = texts(&[reply]);
                if is_null {
                    keys.is_empty()
                } else {
                    drawn.iter().all(|key| keys.contains_key(key)) && drawn.len() == 1
                }
            }
            "SCAN" => {
                let found = parts.get(1).map(|found| texts(&elements(found))).unwrap_or_default();
                found.iter().all(|key| keys.contains_key(key))
            }
            "SPOP" | "SRANDMEMBER" => {
                let Some((Value::Set(set), _)) = keys.get_mut(w[1]) else { return None };
                let drawn = texts(&parts);
                let wanted: usize = w[2].parse().expect("the script writes numbers");
                let is_possible = drawn.len() == wanted.min(set.len())
                    && drawn.iter().collect::<BTreeSet<_>>().len() == drawn.len()
                    && drawn.iter().all(|member| set.contains(member));
                if w[0] == "SPOP" {
                    drawn.iter().for_each(|member| _ = set.remove(member));
                    if set.is_empty() {
                        keys.remove(w[1]);
                    }
                }
                is_possible
            }
            "HRANDFIELD" => {
                let Some((Value::Hash(hash), _)) = keys.get(w[1]) else { return None };
                let drawn = texts(&parts);
                !drawn.is_empty() && drawn.iter().all(|field| hash.0.contains_key(field))
            }
            _ => return None,
        })
    }

    fn execute(&mut self, w: &[&str]) -> Said {
        let number = |index: usize| w[index].parse::<i64>().expect("the script writes numbers");
        let count = |is: bool| Said::Integer(is.into());
        let now = self.now;
        match w[0] {
            "SET" => {
                let deadline = w.get(4).map(|_| now + number(4) as u64);
                self.keys().insert(w[1].to_owned(), (Value::Text(w[2].into()), deadline));
                Said::Ok
            }
            "GET" | "GETDEL" => {
                let said = match self.keys().get(w[1]).map(|(value, _)| value) {
                    None => Said::Null,
                    Some(Value::Text(text)) => Said::Bulk(text.clone()),
                    Some(_) => return Said::Error(WRONGTYPE),
                };
                if w[0] == "GETDEL" {
                    self.keys().remove(w[1]);
                }
                said
            }
            "APPEND" => {
                let text = value!(self, w[1], Text, Vec::new());
                text.extend_from_slice(w[2].as_bytes());
                Said::Integer(text.len() as i64)
            }
            "SETRANGE" => {
                let text = value!(self, w[1], Text, Vec::new());
                let (at, new) = (number(2) as usize, w[3].as_bytes());
                text.resize(text.len().max(at + new.len()), 0);
                text[at..at + new.len()].copy_from_slice(new);
                Said::Integer(text.len() as i64)
            }
            "DEL" | "UNLINK" => {
                Said::Integer(w[1..].iter().filter(|key| self.keys().remove(**key).is_some()).count() as i64)
            }
            "EXISTS" => count(self.keys().contains_key(w[1])),
            "TYPE" => Said::Word(self.keys().get(w[1]).map_or("none", |(value, _)| value.kind())),
            "PEXPIRE" => match self.keys().get_mut(w[1]) {
                Some((_, deadline)) => {
                    *deadline = Some(now + number(2) as u64);
                    Said::Integer(1)
                }
                None => Said::Integer(0),
            },
            "PTTL" => Said::Integer(match self.keys().get(w[1]) {
                Some((_, Some(deadline))) => (deadline - now) as i64,
                Some((_, None)) => -1,
                None => -2,
            }),
            "PERSIST" => count(self.keys().get_mut(w[1]).is_some_and(|(_, deadline)| deadline.take().is_some())),
            "RENAME" | "RENAMENX" => {
                if !self.keys().contains_key(w[1]) {
                    return Said::Error("ERR no such key");
                }
                let is_moved = w[0] == "RENAME" || !self.keys().contains_key(w[2]);
                if is_moved && let Some(moved) = self.keys().remove(w[1]) {
                    self.keys().insert(w[2].to_owned(), moved);
                }
                if w[0] == "RENAME" { Said::Ok } else { count(is_moved) }
            }
            "COPY" => {
                let target = w.get(5).map_or(self.selected, |_| number(5) as usize);
                if target == self.selected && w[1] == w[2] {
                    return Said::Error("ERR source and destination objects are the same");
                }
                let copy = self.keys().get(w[1]).cloned();
                let replaces = w.contains(&"REPLACE");
                let is_copied = copy.is_some() && (replaces || !self.databases[target].contains_key(w[2]));
                if let Some(copy) = copy.filter(|_| is_copied) {
                    self.databases[target].insert(w[2].to_owned(), copy);
                }
                count(is_copied)
            }
            "MOVE" => {
                let target = number(2) as usize;
                if target == self.selected {
                    return Said::Error("ERR source and destination objects are the same");
                }
                if self.databases[target].contains_key(w[1]) {
                    return Said::Integer(0);
                }
                let moved = self.keys().remove(w[1]);
                let is_moved = moved.is_some();
                self.databases[target].extend(moved.map(|entry| (w[1].to_owned(), entry)));
                count(is_moved)
            }
            "SWAPDB" => {
                self.databases.swap(number(1) as usize, number(2) as usize);
                Said::Ok
            }
            "FLUSHDB" => {
                self.keys().clear();
                Said::Ok
            }
            "FLUSHALL" => {
                self.databases.iter_mut().for_each(BTreeMap::clear);
                Said::Ok
            }
            "KEYS" => Said::Bag(self.keys().keys().cloned().collect()),
            command if command.starts_with('H') => value!(self, w[1], Hash, Hash::default()).execute(w, now),
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
            "LMOVE" => {
                let mut source = copied!(self, w[1], List, VecDeque::new());
                if source.is_empty() {
                    return Said::Null;
                }
                copied!(self, w[2], List, VecDeque::new());
                let moved =
                    if w[3] == "LEFT" { source.pop_front() } else { source.pop_back() }.expect("it is not empty");
                *value!(self, w[1], List, VecDeque::new()) = source;
                if self.keys()[w[1]].0.is_empty() && w[1] != w[2] {
                    self.keys().remove(w[1]);
                }
                let target = value!(self, w[2], List, VecDeque::new());
                if w[4] == "LEFT" {
                    target.push_front(moved.clone())
                } else {
                    target.push_back(moved.clone())
                }
                Said::Bulk(moved.into())
            }
            "LRANGE" => Said::List(value!(self, w[1], List, VecDeque::new()).iter().cloned().collect()),
            "LTRIM" => {
                let list = value!(self, w[1], List, VecDeque::new());
                *list = list
                    .iter()
                    .skip(number(2) as usize)
                    .take((number(3) + 1 - number(2)).max(0) as usize)
                    .cloned()
                    .collect();
                Said::Ok
            }
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
            "SORT" => self.sort(w),
            "SADD" => {
                let set = value!(self, w[1], Set, BTreeSet::new());
                Said::Integer(w[2..].iter().filter(|member| set.insert((**member).into())).count() as i64)
            }
            "SREM" => {
                let set = value!(self, w[1], Set, BTreeSet::new());
                Said::Integer(w[2..].iter().filter(|member| set.remove(**member)).count() as i64)
            }
            "SISMEMBER" => count(value!(self, w[1], Set, BTreeSet::new()).contains(w[2])),
            "SMEMBERS" => Said::Bag(value!(self, w[1], Set, BTreeSet::new()).iter().cloned().collect()),
            "SPOP" | "SRANDMEMBER" => {
                value!(self, w[1], Set, BTreeSet::new());
                Said::List(Vec::new())
            }
            "SUNIONSTORE" | "SINTERSTORE" | "SDIFFSTORE" => {
                let (a, b) = (copied!(self, w[2], Set, BTreeSet::new()), copied!(self, w[3], Set, BTreeSet::new()));
                let stored: BTreeSet<String> = match w[0] {
                    "SUNIONSTORE" => a.union(&b).cloned().collect(),
                    "SINTERSTORE" => a.intersection(&b).cloned().collect(),
                    _ => a.difference(&b).cloned().collect(),
                };
                let len = stored.len();
                self.keys().insert(w[1].to_owned(), (Value::Set(stored), None));
                Said::Integer(len as i64)
            }
            "ZADD" => {
                let sorted = value!(self, w[1], Sorted, BTreeMap::new());
                let pairs = w[2..].chunks(2);
                let new = pairs.filter(|pair| {
                    let score = pair[0].parse().expect("the script writes numbers");
                    sorted.insert(pair[1].into(), score).is_none()
                });
                Said::Integer(new.count() as i64)
            }
            "ZREM" => {
                let sorted = value!(self, w[1], Sorted, BTreeMap::new());
                Said::Integer(w[2..].iter().filter(|member| sorted.remove(**member).is_some()).count() as i64)
            }
            "ZSCORE" => {
                let score = value!(self, w[1], Sorted, BTreeMap::new()).get(w[2]);
                score.map_or(Said::Null, |score| Said::Bulk(score.to_string().into()))
            }
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
            "ZUNIONSTORE" | "ZINTERSTORE" => {
                let (Some(a), Some(b)) = (self.scored(w[3]), self.scored(w[4])) else { return Said::Error(WRONGTYPE) };
                let mut stored = a.clone();
                for (member, score) in &b {
                    stored.entry(member.clone()).and_modify(|sum| *sum += score).or_insert(*score);
                }
                if w[0] == "ZINTERSTORE" {
                    stored.retain(|member, _| a.contains_key(member) && b.contains_key(member));
                }
                let len = stored.len();
                self.keys().insert(w[1].to_owned(), (Value::Sorted(stored), None));
                Said::Integer(len as i64)
            }
            "ZRANGESTORE" => {
                let source = copied!(self, w[2], Sorted, BTreeMap::new());
                let (start, end) = (number(3) as usize, number(4) as usize);
                let kept = in_order(&source).into_iter().skip(start).take((end + 1).saturating_sub(start));
                let stored: BTreeMap<String, i64> = kept.map(|member| (member.clone(), source[&member])).collect();
                let len = stored.len();
                self.keys().insert(w[1].to_owned(), (Value::Sorted(stored), None));
                Said::Integer(len as i64)
            }
            command if command.starts_with('X') => {
                let key = w[match command {
                    "XGROUP" => 2,
                    "XREADGROUP" => 7,
                    _ => 1,
                }];
                if !self.keys().contains_key(key)
                    && let Some(reply) = without_stream(w)
                {
                    return Said::Raw(reply);
                }
                Said::Raw(value!(self, key, Stream, Stream::default()).execute(w))
            }
            other => panic!("the model does not know {other}"),
        }
    }

    /// What a key brings into a union of sorted sets: members of a set score one. `None`: it is of another type.
    fn scored(&mut self, key: &str) -> Option<BTreeMap<String, i64>> {
        match self.keys().get(key).map(|(value, _)| value) {
            None => Some(BTreeMap::new()),
            Some(Value::Sorted(sorted)) => Some(sorted.clone()),
            Some(Value::Set(set)) => Some(set.iter().map(|member| (member.clone(), 1)).collect()),
            Some(_) => None,
        }
    }

    /// `SORT key ALPHA STORE target`.
    fn sort(&mut self, w: &[&str]) -> Said {
        let mut all: Vec<String> = match self.keys().get(w[1]).map(|(value, _)| value) {
            None => Vec::new(),
            Some(Value::List(list)) => list.iter().cloned().collect(),
            Some(Value::Set(set)) => set.iter().cloned().collect(),
            Some(Value::Sorted(sorted)) => sorted.keys().cloned().collect(),
            Some(_) => return Said::Error(WRONGTYPE),
        };
        all.sort();
        let len = all.len();
        self.keys().insert(w[4].to_owned(), (Value::List(all.into()), None));
        Said::Integer(len as i64)
    }
}

fn in_order(sorted: &BTreeMap<String, i64>) -> Vec<String> {
    let mut order: Vec<_> = sorted.iter().map(|(member, score)| (*score, member.clone())).collect();
    order.sort();
    order.into_iter().map(|(_, member)| member).collect()
}
