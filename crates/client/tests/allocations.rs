//! What a call costs the allocator once its connection is warm: nothing for a request whose reply is a status or an integer, one piece
//! of memory for a value. A cluster may cost one more for each call.
//!
//! One test, since the allocator counts for the whole process. The server is a process of its own.

use bytes::Bytes;
use respool_client::{Client, cmd};
use respool_testkit::{RedisCluster, RedisServer};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::sync::{Arc, Barrier};
use tokio::sync::Barrier as TaskBarrier;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Calls of each kind that are counted, of each caller.
const CALLS: usize = 200;

/// Calls before, in which memory that is kept has been made.
const WARM_UP: usize = 100;

/// What may come in a run of a thing that is made now and then, as when a thread is woken for deadlines.
const NOW_AND_THEN: usize = 20;

fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Set,
    Incr,
    Get,
}

impl Kind {
    /// Allocations of one call.
    fn allowed(self) -> usize {
        match self {
            Self::Set | Self::Incr => 0,
            Self::Get => 1,
        }
    }

    async fn ask(self, client: &Client) {
        match self {
            Self::Set => client.call::<()>(cmd("SET").key("value").arg([b'v'; 64].as_slice())).await.unwrap(),
            Self::Incr => assert!(client.call::<i64>(cmd("INCR").key("counter")).await.unwrap() > 0),
            Self::Get => {
                let value: Option<Bytes> = client.call(cmd("GET").key("value")).await.unwrap();
                assert_eq!(value.as_deref(), Some(&[b'v'; 64][..]));
            }
        }
    }

    fn ask_in_thread(self, client: &Client) {
        match self {
            Self::Set => client.call::<()>(cmd("SET").key("value").arg([b'v'; 64].as_slice())).wait().unwrap(),
            Self::Incr => assert!(client.call::<i64>(cmd("INCR").key("counter")).wait().unwrap() > 0),
            Self::Get => {
                let value: Option<Bytes> = client.call(cmd("GET").key("value")).wait().unwrap();
                assert_eq!(value.as_deref(), Some(&[b'v'; 64][..]));
            }
        }
    }

    fn check(self, callers: usize, who: &str, allocated: usize, more: usize) {
        let allowed = (self.allowed() + more) * CALLS * callers + NOW_AND_THEN;
        println!("{who}, {self:?}: {:.3} a call", allocated as f64 / (CALLS * callers) as f64);
        assert!(allocated <= allowed, "{who}, {self:?}: {allocated} allocations, {allowed} allowed");
    }
}

/// So many tasks of one runtime; they begin together.
fn check_tasks(client: &Client, kind: Kind, tasks: usize, more: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let barrier = Arc::new(TaskBarrier::new(tasks + 1));
    let allocated = runtime.block_on(async {
        for _ in 0..tasks {
            let (client, barrier) = (client.clone(), Arc::clone(&barrier));
            tokio::spawn(async move {
                for calls in [WARM_UP, CALLS] {
                    for _ in 0..calls {
                        kind.ask(&client).await;
                    }
                    barrier.wait().await;
                    barrier.wait().await;
                }
            });
        }
        barrier.wait().await;
        let before = allocations();
        barrier.wait().await;
        barrier.wait().await;
        let allocated = allocations() - before;
        barrier.wait().await;
        allocated
    });
    // What waits at a barrier may cost something.
    kind.check(tasks, &format!("{tasks} tasks"), allocated.saturating_sub(4 * tasks), more);
}

fn check_threads(client: &Client, kind: Kind, threads: usize, more: usize) {
    let barrier = Barrier::new(threads + 1);
    let allocated = std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for calls in [WARM_UP, CALLS] {
                    for _ in 0..calls {
                        kind.ask_in_thread(client);
                    }
                    barrier.wait();
                    barrier.wait();
                }
            });
        }
        barrier.wait();
        let before = allocations();
        barrier.wait();
        barrier.wait();
        let allocated = allocations() - before;
        barrier.wait();
        allocated
    });
    kind.check(threads, &format!("{threads} threads"), allocated, more);
}

#[test]
fn a_call_allocates_nothing_but_its_value() {
    let server = RedisServer::start().unwrap();
    let cluster = RedisCluster::start(3, 0, &[]).unwrap();
    check_client(&format!("redis://127.0.0.1:{}", server.port()), 0);
    check_client(&format!("redis+cluster://{}", cluster.seeds(&[0])), 1);
}

/// `more`: allocations of each call that may come beyond its own.
fn check_client(url: &str, more: usize) {
    println!("{url}");
    for (tasks, threads) in [(1, 1), (32, 4)] {
        let (of_tasks, of_threads) = (Client::open(url).unwrap(), Client::open(url).unwrap());
        for kind in [Kind::Set, Kind::Incr, Kind::Get] {
            check_tasks(&of_tasks, kind, tasks, more);
            check_threads(&of_threads, kind, threads, more);
        }
    }
}
