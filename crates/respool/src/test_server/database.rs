//! What a test reads of its server's data, and writes into it, without a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use respool_wire::Value;

use super::engines::Engine;
use super::running::Running;

/// One database of a server.
///
/// To look at a key is no use of it: `OBJECT IDLETIME` and eviction do not notice. `keyspace_hits` and `keyspace_misses` of `INFO` do.
///
/// All calls panic if the server is stopped, or if a script of a client is under way that runs longer than `busy_reply_threshold`.
#[derive(Clone, Copy, Debug)]
pub struct Database<'a> {
    pub(super) server: &'a Running,
    pub(super) number: u32,
}

/// A value, by its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// A string, also one of bits or a HyperLogLog.
    String(Vec<u8>),
    /// A list, from its head.
    List(Vec<Vec<u8>>),
    /// A set.
    Set(BTreeSet<Vec<u8>>),
    /// A hash.
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    /// A sorted set, from the least score.
    SortedSet(Vec<(Vec<u8>, f64)>),
    /// A stream, from its first entry.
    Stream(Vec<StreamEntry>),
}

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its id, as `1526919030474-0`.
    pub id: String,
    /// Its fields and their values, in their order.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Database<'_> {
    /// All keys, in their order as bytes.
    #[must_use]
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let number = self.number;
        let of_engines = self.server.visit(move |engine| keys(engine, number));
        let mut keys: Vec<_> = of_engines.into_iter().flat_map(known).collect();
        keys.sort();
        keys
    }

    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys().len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is such a key.
    #[must_use]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.get(key).is_some()
    }

    /// A value. `None`: there is no such key.
    #[must_use]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Stored> {
        let (number, key) = (self.number, key.as_ref().to_vec());
        let of_engines = self.server.visit(move |engine| stored(engine, number, &key));
        of_engines.into_iter().find_map(known)
    }

    /// A string. `None`: there is no such key, or its value is no string.
    #[must_use]
    pub fn string(&self, key: impl AsRef<[u8]>) -> Option<String> {
        match self.get(key) {
            Some(Stored::String(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            _ => None,
        }
    }

    /// How much time is left to a key, in whole milliseconds: while the clock is not frozen, less each time. `None`: it does not expire, or is
    /// not there.
    #[must_use]
    pub fn ttl(&self, key: impl AsRef<[u8]>) -> Option<Duration> {
        self.expiry(key.as_ref(), "PTTL").map(Duration::from_millis)
    }

    /// When a key expires. `None`: it does not, or is not there.
    #[must_use]
    pub fn expires_at(&self, key: impl AsRef<[u8]>) -> Option<SystemTime> {
        self.expiry(key.as_ref(), "PEXPIRETIME").map(|ms| UNIX_EPOCH + Duration::from_millis(ms))
    }

    fn expiry(&self, key: &[u8], command: &'static str) -> Option<u64> {
        let (number, key) = (self.number, key.to_vec());
        let of_engines = self.server.visit(move |engine| {
            Ok(match seen(engine.look(number, [command.as_bytes(), &key]))? {
                Value::Integer(ms) => u64::try_from(ms).ok(),
                _ => None,
            })
        });
        of_engines.into_iter().find_map(known)
    }

    /// Has the engine execute a request, to prepare what a test needs: `.run(["HSET", "user:7", "name", "ann"])`. Who waits for what it
    /// adds is served. Commands about connections, messages, users and parameters, and scripts, need a connection; what may wait
    /// answers that there is nothing.
    ///
    /// With `engine_threads` above 1 it would not find the engine of its keys, and is an error.
    pub fn run<A: AsRef<[u8]>>(&self, request: impl IntoIterator<Item = A>) -> Value {
        let (number, request) = (self.number, request.into_iter().map(|arg| arg.as_ref().to_vec()).collect::<Vec<_>>());
        if self.server.engines() > 1 {
            return Value::Error(b"ERR with several engines this is asked over a connection".to_vec());
        }
        let mut replies = self.server.visit(move |engine| engine.run(number, &request));
        replies.pop().unwrap_or_else(|| Value::Error(b"ERR there is no engine".to_vec()))
    }
}

/// Why an engine shows nothing: a script is under way.
#[derive(Debug)]
pub(super) struct Busy(Vec<u8>);

fn seen(reply: Value) -> Result<Value, Busy> {
    match reply {
        Value::Error(words) => Err(Busy(words)),
        reply => Ok(reply),
    }
}

/// What was seen. The test fails where nothing was, and not the engine's thread.
fn known<T>(seen: Result<T, Busy>) -> T {
    seen.unwrap_or_else(|Busy(words)| {
        panic!("the test server cannot be looked at: {}", String::from_utf8_lossy(&words))
    })
}

/// Keys of a database in one engine.
pub(super) fn keys(engine: &mut Engine<'_>, database: u32) -> Result<Vec<Vec<u8>>, Busy> {
    seen(engine.look(database, ["KEYS", "*"])).map(list)
}

fn stored(engine: &mut Engine<'_>, database: u32, key: &[u8]) -> Result<Option<Stored>, Busy> {
    let kind = bytes(seen(engine.look(database, [&b"TYPE"[..], key]))?);
    let mut ask = |words: &[&str]| {
        let (name, rest) = words.split_first().expect("a request has a name");
        let request = [name.as_bytes(), key].into_iter().chain(rest.iter().map(|word| word.as_bytes()));
        seen(engine.look(database, request))
    };
    Ok(Some(match kind.as_slice() {
        b"string" => Stored::String(bytes(ask(&["GET"])?)),
        b"list" => Stored::List(list(ask(&["LRANGE", "0", "-1"])?)),
        b"set" => Stored::Set(list(ask(&["SMEMBERS"])?).into_iter().collect()),
        b"hash" => Stored::Hash(pairs(ask(&["HGETALL"])?).into_iter().map(|(k, v)| (bytes(k), bytes(v))).collect()),
        b"zset" => {
            let members = items(ask(&["ZRANGE", "0", "-1", "WITHSCORES"])?).into_iter().flat_map(pairs);
            Stored::SortedSet(members.map(|(member, score)| (bytes(member), number(&score))).collect())
        }
        b"stream" => Stored::Stream(items(ask(&["XRANGE", "-", "+"])?).into_iter().filter_map(entry).collect()),
        _ => return Ok(None),
    }))
}

fn entry(reply: Value) -> Option<StreamEntry> {
    let mut parts = items(reply).into_iter();
    let (id, fields) = (parts.next()?, parts.next()?);
    let fields = pairs(fields).into_iter().map(|(field, value)| (bytes(field), bytes(value))).collect();
    Some(StreamEntry { id: String::from_utf8_lossy(&bytes(id)).into_owned(), fields })
}

fn items(reply: Value) -> Vec<Value> {
    match reply {
        Value::Array(items) | Value::Set(items) | Value::Push(items) => items,
        Value::Map(pairs) => pairs.into_iter().flat_map(|(key, value)| [key, value]).collect(),
        _ => Vec::new(),
    }
}

/// The elements of a map, or of an array of names and values in turn.
fn pairs(reply: Value) -> Vec<(Value, Value)> {
    let mut items = items(reply).into_iter();
    std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect()
}

fn list(reply: Value) -> Vec<Vec<u8>> {
    items(reply).into_iter().map(bytes).collect()
}

pub(super) fn bytes(reply: Value) -> Vec<u8> {
    match reply {
        Value::Bulk(bytes) | Value::Simple(bytes) => bytes,
        Value::Integer(number) => number.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

fn number(reply: &Value) -> f64 {
    match reply {
        Value::Double(number) => *number,
        _ => f64::NAN,
    }
}

/// All that a server has, as text.
pub(super) fn dump(server: &Running) -> String {
    let Some(databases) = server.databases() else { return "the server is stopped\n".to_owned() };
    let mut text = String::new();
    for number in 0..databases {
        let database = Database { server, number };
        let keys = database.keys();
        if !keys.is_empty() {
            let _ = writeln!(text, "database {number}");
        }
        for key in keys {
            let Some(value) = database.get(&key) else { continue };
            let _ = write!(text, "  {} {value}", quoted(&key));
            let _ = match database.ttl(&key) {
                Some(left) => writeln!(text, ", expires in {left:?}"),
                None => writeln!(text),
            };
        }
    }
    if text.is_empty() { "there are no keys\n".to_owned() } else { text }
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn join<T>(f: &mut fmt::Formatter<'_>, items: &[T], show: impl Fn(&T) -> String) -> fmt::Result {
    f.write_str(&items.iter().map(show).collect::<Vec<_>>().join(", "))
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = |(field, value): &(Vec<u8>, Vec<u8>)| format!("{}: {}", quoted(field), quoted(value));
        match self {
            Self::String(bytes) => write!(f, "string {}", quoted(bytes)),
            Self::List(list) => {
                f.write_str("list ")?;
                join(f, list, |item| quoted(item))
            }
            Self::Set(set) => {
                f.write_str("set ")?;
                join(f, &set.iter().collect::<Vec<_>>(), |item| quoted(item))
            }
            Self::Hash(hash) => {
                f.write_str("hash ")?;
                join(f, &hash.iter().collect::<Vec<_>>(), |(field, value)| {
                    format!("{}: {}", quoted(field), quoted(value))
                })
            }
            Self::SortedSet(members) => {
                f.write_str("sorted set ")?;
                join(f, members, |(member, score)| format!("{}: {score}", quoted(member)))
            }
            Self::Stream(entries) => {
                f.write_str("stream ")?;
                join(f, entries, |entry| {
                    format!("{} {}", entry.id, entry.fields.iter().map(pair).collect::<Vec<_>>().join(" "))
                })
            }
        }
    }
}
