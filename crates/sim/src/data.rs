//! What a node holds, in an engine: requests of one database, and whole keys for replicas and for slots that move.
//!
//! Keys are copied without their times to live.

use respool_command::{Execute, Flags, Millis, Outcome, Row, SessionView, WaitId};
use respool_engine::{Engine, EngineConfig};
use respool_wire::{Args, ArgsBuf, Encoder, Protocol, Value};

use crate::node::row_of;

/// What executions have changed, for replicas: requests with their databases.
pub(crate) type Effects = Vec<(u32, ArgsBuf)>;

/// Who asks for something.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asker {
    pub(crate) database: u32,
    pub(crate) protocol: Protocol,
    pub(crate) client_id: u64,
    pub(crate) is_in_transaction: bool,
}

/// How a request was left.
pub(crate) enum Answer {
    Reply(Vec<u8>),
    /// It waits for an element.
    Waits(WaitId),
}

pub(crate) struct Data {
    engine: Engine,
    /// Counts the engines that there have been.
    generation: u64,
}

impl Data {
    pub(crate) fn new(seed: [u64; 2]) -> Self {
        let mut engine = Engine::new(EngineConfig::default(), seed);
        engine.watch_scripts(true);
        Self { engine, generation: 0 }
    }

    /// Forgets everything, with what is watched and waited for.
    pub(crate) fn wipe(&mut self, seed: [u64; 2]) {
        *self = Self { generation: self.generation + 1, ..Self::new(seed) };
    }

    /// Executes a request. What it changes is added to `effects`.
    pub(crate) fn run(&mut self, args: Args<'_>, asker: Asker, now_us: u64, effects: &mut Effects) -> Answer {
        let mut reply = Vec::new();
        let Some(row) = row_of(args) else { return Answer::Reply(b"-ERR unknown command\r\n".to_vec()) };
        if !row.accepts(args.len()) {
            return Answer::Reply(b"-ERR wrong number of arguments\r\n".to_vec());
        }
        let mut session = SessionView {
            database: asker.database,
            now: Millis(now_us / 1_000),
            client_id: asker.client_id,
            is_in_transaction: asker.is_in_transaction,
            ..SessionView::default()
        };
        loop {
            let mut encoder = Encoder::new(&mut reply, asker.protocol);
            match self.engine.execute(row, args, &mut session, &mut encoder) {
                Outcome::Done => break,
                Outcome::Parked(wait) => return Answer::Waits(wait),
                Outcome::Unfinished | Outcome::Stopped => {}
                Outcome::Asks => {
                    if self.engine.asked().is_some() {
                        self.engine.answer_asked(b"-ERR the command is not for scripts\r\n");
                    }
                }
            }
            session.has_waited = true;
        }
        if row.runs_scripts {
            let lines = self.engine.script_lines().into_iter();
            effects.extend(lines.filter(|(_, line)| writes(line.as_args())));
        } else {
            effects.extend(effect_of(row, args, &reply).map(|effect| (asker.database, effect)));
        }
        Answer::Reply(reply)
    }

    /// Executes a request that waits for nothing, in RESP3.
    pub(crate) fn apply(&mut self, database: u32, args: Args<'_>, now_us: u64) -> Vec<u8> {
        let asker = Asker { database, protocol: Protocol::Resp3, is_in_transaction: true, client_id: 0 };
        match self.run(args, asker, now_us, &mut Effects::new()) {
            Answer::Reply(reply) => reply,
            Answer::Waits(_) => unreachable!("within a transaction nothing waits"),
        }
    }

    /// The next request that has waited long enough, with its reply.
    pub(crate) fn poll_ready(&mut self, now_us: u64) -> Option<(WaitId, Vec<u8>)> {
        let mut reply = Vec::new();
        let wait = self.engine.poll_ready(Millis(now_us / 1_000), &mut reply)?;
        Some((wait, reply))
    }

    pub(crate) fn cancel(&mut self, wait: WaitId) {
        self.engine.cancel(wait);
    }

    /// Watches keys for a client, as WATCH does. Returns the generation of the data, which [`Self::is_dirty`] takes.
    pub(crate) fn watch(&mut self, asker: Asker, now_us: u64, keys: Args<'_>) -> u64 {
        self.engine.watch(asker.client_id, asker.database, Millis(now_us / 1_000), keys);
        self.generation
    }

    /// Whether a key has changed that the client has watched since this generation.
    pub(crate) fn is_dirty(&mut self, client_id: u64, generation: u64, now_us: u64) -> bool {
        generation != self.generation || self.engine.is_dirty(client_id, Millis(now_us / 1_000))
    }

    pub(crate) fn unwatch(&mut self, client_id: u64) {
        self.engine.unwatch(client_id);
    }

    /// The string at a key of the first database.
    pub(crate) fn value(&mut self, key: &[u8], now_us: u64) -> Option<Vec<u8>> {
        match Value::parse(&self.apply(0, request(&[b"GET", key]).as_args(), now_us)) {
            Ok(Value::Bulk(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn has(&mut self, database: u32, key: &[u8], now_us: u64) -> bool {
        self.apply(database, request(&[b"EXISTS", key]).as_args(), now_us) == b":1\r\n"
    }

    /// All keys of a database.
    pub(crate) fn keys(&mut self, database: u32, now_us: u64) -> Vec<Vec<u8>> {
        let found = self.apply(database, request(&[b"KEYS", b"*"]).as_args(), now_us);
        let Ok(Value::Array(keys)) = Value::parse(&found) else { return Vec::new() };
        keys.into_iter().filter_map(|key| if let Value::Bulk(key) = key { Some(key) } else { None }).collect()
    }

    /// Databases that are not empty.
    pub(crate) fn used_databases(&self) -> Vec<u32> {
        let is_used = |database: &usize| self.engine.keyspace_size(*database).keys > 0;
        (0..self.engine.databases()).filter(is_used).map(|database| database as u32).collect()
    }

    /// The request that puts a key elsewhere as it is here.
    pub(crate) fn copy_of(&mut self, database: u32, key: &[u8], now_us: u64) -> Option<ArgsBuf> {
        match Value::parse(&self.apply(database, request(&[b"DUMP", key]).as_args(), now_us)) {
            Ok(Value::Bulk(dump)) => Some(request(&[b"RESTORE", key, b"0", &dump, b"REPLACE"])),
            _ => None,
        }
    }
}

pub(crate) fn request(words: &[&[u8]]) -> ArgsBuf {
    words.iter().collect()
}

fn writes(args: Args<'_>) -> bool {
    row_of(args).is_some_and(|row| row.flags.has(Flags::WRITE))
}

/// What a request that was answered so has changed, as replicas are told. What waits for an element is told as what takes one.
pub(crate) fn effect_of(row: &Row, args: Args<'_>, reply: &[u8]) -> Option<ArgsBuf> {
    let took = || match Value::parse(reply) {
        Ok(Value::Array(taken)) => match taken.first() {
            Some(Value::Bulk(key)) => Some(key.clone()),
            _ => None,
        },
        _ => None,
    };
    match &args.name().to_ascii_uppercase()[..] {
        b"BLPOP" => Some(request(&[b"LPOP", &took()?])),
        b"BRPOP" => Some(request(&[b"RPOP", &took()?])),
        _ => (row.flags.has(Flags::WRITE) && !reply.starts_with(b"-")).then(|| args.iter().collect()),
    }
}
