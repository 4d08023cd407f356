//! Test peers for Respool: real servers as child processes, a raw blocking client, and what is needed to watch them.
//!
//! Everything here blocks and uses plain threads: a test reads like the conversation it is about. Nothing in this
//! crate is used by what is shipped, and nothing here trusts the code under test: the client finds the end of a reply
//! by its own few lines ([`reply_length`]), so that one mistake cannot hide in both.

#![forbid(unsafe_code)]

mod address;
#[cfg(feature = "certificates")]
mod authority;
mod client;
mod differential;
mod faulty_node;
pub mod linear;
mod lock_step;
pub mod proc_stats;
mod process;
mod redis;
mod redis_cluster;
mod redis_sentinel;
mod reference;
mod reply;
mod respool;
mod rng;
mod slow_link;
mod temp;
mod templates;
mod twemproxy;
mod workload;

pub use address::{Address, ClosedPort, Stream, Transport, free_port};
#[cfg(feature = "certificates")]
pub use authority::{Authority, Identity};
pub use client::{Client, figure};
pub use differential::differences::{
    DIFFERENCES, Difference, EMBEDDED_DIFFERENCES, Likeness, difference_of, embedded_difference_of,
};
pub use differential::{Compared, Comparison, Disagreement, are_alike, compare, compare_all, compare_engines};
pub use faulty_node::{Act, FakeBackend, Gate, Received, usual_reply};
pub use lock_step::{Theme, play_in_lock_step};
pub use process::{PATIENCE, Process, kill_running, wait_until};
pub use redis::RedisServer;
pub use redis_cluster::RedisCluster;
pub use redis_sentinel::RedisSentinel;
pub use reference::{ask_all, reference_server, test_scale};
pub use reply::{elements, reply_length, request};
pub use respool::Respool;
pub use rng::Rng;
pub use slow_link::SlowLink;
pub use temp::TempDir;
pub use twemproxy::Nutcracker;
pub use workload::{Request, Script, Subset};
