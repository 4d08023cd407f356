//! What a cache holds on to, by the allocator: as much as its bound says, however small the values are.
//!
//! One test, since the allocator counts for the whole process. The server is a process of its own.
#![cfg(feature = "cache")]

use respool_client::{Caching, Client, cmd, commands};
use respool_testkit::RedisServer;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What the allocator keeps for each piece beside it, which it does not count.
const PIECE: usize = 16;

/// Bytes in use, with those that pieces cost.
fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated + PIECE * (stats.allocations - stats.deallocations)
}

#[test]
fn many_small_values_take_no_more_than_the_bound() {
    // So that some 7,400 entries fit: the tables have just doubled then, and are emptiest.
    const BOUND: usize = 4_500_000;
    let server = RedisServer::start().unwrap();
    let client = Client::open(&format!("redis://127.0.0.1:{}", server.port())).unwrap();
    // Keys of their own, fields of one key, two fields of each key, and one field of each key that is read again and again while others come
    // and go.
    for (kind, count) in [("keys", 10_000), ("fields", 10_000), ("two of each", 12_000), ("one in use", 40_000)] {
        let cache = client.cache(Caching::new().bytes(BOUND)).unwrap();
        let read = |number: usize| match kind {
            "keys" => cache.call::<Option<i64>>(commands::get(format!("k{number}"))),
            "fields" => cache.call(cmd("HGET").key("hash").arg(format!("f{number}"))),
            "two of each" => cache.call(cmd("HGET").key(format!("h{}", number / 2)).arg(number % 2)),
            _ => cache.call(cmd("HGET").key(format!("h{}", number / 1_000)).arg(number % 1_000)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut before = 0;
        let mut most = 0;
        for first in (0..count).step_by(100) {
            let again = if kind == "one in use" { first } else { 0 };
            let reads = (0..again).step_by(1_000).chain(first..first + 100);
            let reads: Vec<_> = reads.map(|number| Box::pin(read(number))).collect();
            runtime.block_on(async {
                for mut read in reads {
                    read.as_mut().await.unwrap();
                }
            });
            if before == 0 {
                before = in_use();
            }
            most = most.max(in_use().saturating_sub(before));
        }
        let stats = cache.stats();
        // It is full. A table that is given back makes room for many at once.
        let room = if kind == "one in use" { 100_000 } else { 2_000 };
        assert!(stats.bytes > BOUND - room && stats.bytes <= BOUND, "{stats:?}");
        println!("{kind}: {} entries counted as {} bytes, in use {most}", stats.entries, stats.bytes);
        assert!(most <= BOUND, "{kind}: {} entries counted as {} bytes take {most}", stats.entries, stats.bytes);
    }
}
