//! `MEMORY`: what keys and the store take, from the same figures as `INFO memory`.
//!
//! The allocator belongs to the host of the engine: its own figures are not here.

use respool_command::text;

use super::super::{Answer, Call};
use crate::keyspace::Database;

/// Members of a value that `MEMORY USAGE` measures unless it is told how many.
const SAMPLES: usize = 5;
/// Bytes below which `MEMORY DOCTOR` looks for no issues, as in redis-server.
const LITTLE_BYTES: usize = 5 << 20;
const NO_STATS: &str = "Stats not supported for the current allocator";
const IS_EMPTY: &str = "The store holds very little memory: there is nothing to look for.\n";
const HAS_NO_ISSUE: &str = "No memory issue was found in the store.\n";

/// `MEMORY USAGE key [SAMPLES count]`. The key does not count as used.
pub(super) fn usage(call: &mut Call<'_, '_>) -> Answer {
    let mut samples = SAMPLES;
    let mut index = 3;
    while index < call.args.len() {
        if !call.is_word(index, "SAMPLES") || index + 1 >= call.args.len() {
            return Err(text::SYNTAX.into());
        }
        samples = match call.integer(index + 1)? {
            ..0 => return Err(text::SYNTAX.into()),
            0 => usize::MAX,
            count => usize::try_from(count).unwrap_or(usize::MAX),
        };
        index += 2;
    }
    match call.keyspace.peek(call.at, call.arg(2)) {
        Some(found) => call.reply_count(call.keyspace.usage_bytes(found, samples)),
        None => {
            call.reply.null();
            Ok(())
        }
    }
}

/// `MEMORY DOCTOR`.
pub(super) fn doctor(call: &mut Call<'_, '_>) -> Answer {
    let is_little = call.keyspace.memory_bytes() < LITTLE_BYTES;
    call.reply.verbatim("txt", if is_little { IS_EMPTY } else { HAS_NO_ISSUE }.as_bytes());
    Ok(())
}

/// `MEMORY MALLOC-STATS`, as of a server whose allocator has none.
pub(super) fn allocator(call: &mut Call<'_, '_>) -> Answer {
    call.reply.bulk(NO_STATS.as_bytes());
    Ok(())
}

/// `MEMORY PURGE`: the allocator of the host gives memory back by itself.
pub(super) fn purge(call: &mut Call<'_, '_>) -> Answer {
    call.reply_ok()
}

/// `MEMORY STATS`: those of redis-server's figures that the store knows.
pub(super) fn stats(call: &mut Call<'_, '_>) -> Answer {
    let keyspace = &*call.keyspace;
    let startup = keyspace.own_bytes();
    let total = startup + keyspace.memory_bytes();
    let scripts = keyspace.script_memory;
    let used: Vec<(usize, &Database)> =
        keyspace.databases.iter().enumerate().filter(|(_, database)| database.table.len() > 0).collect();
    let keys: usize = used.iter().map(|(_, database)| database.table.len()).sum();
    let tables: usize = used.iter().map(|(_, database)| database.memory_bytes()).sum();
    let overhead = startup + tables + scripts.bytes();
    let dataset = total.saturating_sub(overhead);
    let net = total - startup;
    let peak = keyspace.peak_bytes.max(total);
    let reply = &mut *call.reply;
    reply.map(15 + used.len());
    let mut count = |name: &str, value: usize| {
        reply.bulk(name.as_bytes());
        reply.integer(value as i64);
    };
    count("peak.allocated", peak);
    count("total.allocated", total);
    count("startup.allocated", startup);
    count("replication.backlog", 0);
    count("clients.slaves", 0);
    count("cluster.links", 0);
    count("aof.buffer", 0);
    count("lua.caches", scripts.cached_bytes);
    count("functions.caches", scripts.library_bytes);
    for (number, database) in used {
        reply.bulk(format!("db.{number}").as_bytes());
        reply.map(2);
        reply.bulk(b"overhead.hashtable.main");
        reply.integer(database.table.memory_bytes() as i64);
        reply.bulk(b"overhead.hashtable.expires");
        reply.integer((database.memory_bytes() - database.table.memory_bytes()) as i64);
    }
    let mut count = |name: &str, value: usize| {
        reply.bulk(name.as_bytes());
        reply.integer(value as i64);
    };
    count("overhead.total", overhead);
    count("keys.count", keys);
    count("keys.bytes-per-key", net.checked_div(keys).unwrap_or(0));
    count("dataset.bytes", dataset);
    for (name, part, whole) in [("dataset.percentage", dataset, net), ("peak.percentage", total, peak)] {
        reply.bulk(name.as_bytes());
        reply.double(if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 });
    }
    Ok(())
}
