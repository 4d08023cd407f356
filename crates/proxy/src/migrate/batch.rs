//! Keys of one MIGRATE as they are sent, and what is left to do here once the other server has answered.
//!
//! A key is watched from the moment at which it is serialised, as a client's WATCH would, and also for changes that WATCH does not see. So
//! it is known of each key that the other server has acknowledged whether that is what there is here.

use crate::env::Env;
use crate::ids::{ClientHandle, ClientNumber};
use crate::interfaces::engine_calls::{EngineCall, EngineCalls};
use crate::limits::{MIGRATED_BYTES_MAX, MIGRATED_KEYS_MAX};
use crate::migrate::request::MigrateRequest;
use respool_command::{Execute, MOVERS_FROM, Outcome, SessionView, lookup};
use respool_wire::{ArgsBuf, Encoder, Protocol, Value, replies, request_bulk, request_head};
use std::collections::VecDeque;

/// A key by its place among the words of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) at: usize,
    /// The other server has it, and it was changed here since.
    pub(super) was_sent: bool,
}

/// A key that is on its way.
#[derive(Clone, Copy, Debug)]
struct SentKey {
    at: usize,
    watcher: Option<u64>,
    /// It has gone here since it was sent first, so the other server is told to delete it.
    is_gone: bool,
}

/// Keys that are sent together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) requests: Vec<u8>,
    pub(super) ends: Vec<usize>,
    sent: Vec<SentKey>,
    /// The first error of the engine, without its dash: a key that it does not serialise is there, and stays.
    pub(super) fault: Option<Vec<u8>>,
}

/// The engine's replies to DUMP and PTTL of a key that MIGRATE sends.
enum Serialised {
    Whole,
    /// The key does not exist.
    Absent,
    /// The key exists and DUMP or PTTL has returned this error, without its dash.
    Refused(Vec<u8>),
}

/// Numbers of watchers of keys.
#[derive(Debug, Default)]
pub(super) struct Watchers(u64);

impl Watchers {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        MOVERS_FROM | self.0
    }
}

/// On whose behalf the engine is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mover {
    pub(super) client: ClientHandle,
    pub(super) id: ClientNumber,
    pub(super) database: u32,
    /// The request is part of a transaction that is being executed.
    pub(super) is_in_transaction: bool,
}

impl Mover {
    fn view(&self, env: &Env<impl Execute>) -> SessionView {
        SessionView { is_in_transaction: self.is_in_transaction, ..env.view(self.database, self.id) }
    }

    /// Appends the engine's reply.
    fn ask(&self, side: &mut impl EngineCalls, words: &[&[u8]], reply: &mut Vec<u8>) {
        let args: ArgsBuf = words.iter().collect();
        let Some(row) = lookup(args.as_args().name()) else { return };
        let env = side.env();
        let by = env.clients.sessions.get(self.client).map(|_| self.client);
        let call = EngineCall { view: self.view(env), by, row, args: args.as_args() };
        let _: Option<Outcome> = side.execute_as(call, &mut Encoder::new(reply, Protocol::Resp2));
    }

    /// The time that a key has left in milliseconds, zero if it does not end. `Err`: it cannot be sent.
    fn time_left(&self, side: &mut impl EngineCalls, name: &[u8]) -> Result<i64, Serialised> {
        let mut reply = Vec::new();
        self.ask(side, &[&b"PTTL"[..], name], &mut reply);
        match Value::parse(&reply) {
            Ok(Value::Integer(-1)) => Ok(0),
            Ok(Value::Integer(ms)) if ms >= 0 => Ok(ms.max(1)),
            _ => Err(Serialised::without(&reply)),
        }
    }
}

impl Serialised {
    /// What a reply means that does not bring what was asked for.
    fn without(reply: &[u8]) -> Self {
        match Value::parse(reply) {
            Ok(Value::Error(words)) => Self::Refused(words),
            _ => Self::Absent,
        }
    }
}

impl Batch {
    /// The next keys of `left`, as the engine has them now. Those that are not there, or that it refuses, are left out.
    pub(super) fn build(
        side: &mut impl EngineCalls,
        mover: Mover,
        request: &MigrateRequest,
        left: &mut VecDeque<Key>,
        watchers: &mut Watchers,
    ) -> Self {
        let mut batch = Self::default();
        while batch.requests.len() < MIGRATED_BYTES_MAX
            && batch.sent.len() < MIGRATED_KEYS_MAX
            && let Some(key) = left.pop_front()
        {
            batch.add(side, mover, request, key, watchers);
        }
        batch
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Bytes held until the other server has answered.
    pub(super) fn held_bytes(&self) -> usize {
        self.requests.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.sent.capacity() * size_of::<SentKey>()
    }

    fn add(
        &mut self,
        side: &mut impl EngineCalls,
        mover: Mover,
        request: &MigrateRequest,
        key: Key,
        watchers: &mut Watchers,
    ) {
        let name = request.key(key.at);
        let serialised = self.restore(side, mover, name, request.is_replacing || key.was_sent);
        let is_gone = match serialised {
            Serialised::Whole => false,
            Serialised::Absent if !key.was_sent => return,
            Serialised::Absent => true,
            Serialised::Refused(words) => {
                self.fault.get_or_insert(words);
                return;
            }
        };
        if is_gone {
            request_head(&mut self.requests, 2);
            request_bulk(&mut self.requests, b"DEL");
            request_bulk(&mut self.requests, name);
        }
        let watcher = (!request.is_copy).then(|| watchers.next());
        let env = side.env();
        let now = env.engine_now();
        if let Some((watcher, engine)) = watcher.zip(env.engine.as_mut()) {
            let names: ArgsBuf = [name].into_iter().collect();
            engine.watch(watcher, mover.database, now, names.as_args());
        }
        self.ends.push(self.requests.len());
        self.sent.push(SentKey { at: key.at, watcher, is_gone });
    }

    /// Appends RESTORE of a key with the time that it has left, if the engine gives the whole of it.
    fn restore(&mut self, side: &mut impl EngineCalls, mover: Mover, name: &[u8], is_replacing: bool) -> Serialised {
        let left_ms = match mover.time_left(side, name) {
            Ok(left_ms) => left_ms,
            Err(serialised) => return serialised,
        };
        let out = &mut self.requests;
        let before = out.len();
        request_head(out, 4 + usize::from(is_replacing));
        request_bulk(out, b"RESTORE");
        request_bulk(out, name);
        request_bulk(out, left_ms.to_string().as_bytes());
        let payload = out.len();
        // The reply is a bulk string, and so is the argument.
        mover.ask(side, &[&b"DUMP"[..], name], out);
        if out.get(payload) != Some(&b'$') || out[payload..] == *replies::NULL_BULK {
            let serialised = Serialised::without(&out[payload..]);
            out.truncate(before);
            return serialised;
        }
        if is_replacing {
            request_bulk(out, b"REPLACE");
        }
        Serialised::Whole
    }

    /// The other server has answered: `acknowledged` are its replies, as far as they have come. Keys that it has are deleted here, but
    /// for those that have changed since, which are given back. A key without an acknowledgement stays. With them, the engine's error if it
    /// does not delete, without its dash: the keys are at both servers then.
    pub(super) fn settle(
        self,
        side: &mut impl EngineCalls,
        mover: Mover,
        request: &MigrateRequest,
        acknowledged: &[bool],
    ) -> (Vec<Key>, Option<Vec<u8>>) {
        let env = side.env();
        let now = env.engine_now();
        let mut changed = Vec::new();
        let mut words = vec![&b"DEL"[..]];
        // All are looked at before any is deleted: the request may name a key twice.
        for (place, SentKey { at, watcher, is_gone }) in self.sent.into_iter().enumerate() {
            let Some((watcher, engine)) = watcher.zip(env.engine.as_mut()) else { continue };
            let has_changed = engine.is_dirty(watcher, now);
            engine.unwatch(watcher);
            match (acknowledged.get(place) == Some(&true), has_changed, is_gone) {
                (true, true, _) => changed.push(Key { at, was_sent: true }),
                (true, false, false) => words.push(request.key(at)),
                (true, false, true) | (false, ..) => {}
            }
        }
        let mut reply = Vec::new();
        if words.len() > 1 {
            mover.ask(side, &words, &mut reply);
        } else {
            // Keys that have expired may have been met.
            side.collect_expired();
        }
        match Value::parse(&reply) {
            Ok(Value::Error(words)) => (changed, Some(words)),
            _ => (changed, None),
        }
    }
}
