//! A Redis and Valkey client: implicit pipelining that costs a lone caller nothing.
//!
//! Any number of threads and tasks share one connection through a [`Client`]. A lone caller writes its request and reads its reply
//! itself, with the same system calls as a program with a socket. Several callers share writes and reads. No timer decides which
//! it is.
//!
//! ```
//! # mod on { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/server.rs")); }
//! # on::a_server(async |url| {
//! use respool_client::{Client, cmd};
//!
//! let client = Client::connect(&url).await?;   // "redis://localhost", "redis+cluster://a:7000,b:7000" ...
//! client.set("greeting", "hello").ex(60).await?;
//! let greeting = client.get("greeting").cast::<String>().await?;
//! let visits = client.incr("visits").wait()?;                     // in a thread, without any runtime
//! let length: u64 = client.call(cmd("STRLEN").key("greeting")).await?;   // any command, and any type of reply
//! let replies = client.transaction([cmd("INCR").key("a"), cmd("INCR").key("b")]).await?;
//! assert_eq!((&*greeting, visits, length, replies.len()), ("hello", 1, 5, 2));
//! # Ok(()) });
//! ```
//!
//! | wanted | where |
//! |---|---|
//! | a method for each command, with its options | [`commands`], [`Client::set`], [`Client::zrange`] ... |
//! | any other command | [`cmd`], [`Client::call`] |
//! | several requests, atomic or not | [`Client::transaction`], [`Client::batch`] |
//! | check and set | [`Client::update`], [`Client::watch`] |
//! | messages | [`Client::subscribe`], [`Client::subscribe_sharded`] |
//! | scripts | [`Script`] |
//! | all keys | [`Client::scan_keys`] |
//! | a time for one call, for all | [`Call::deadline`], [`Config::deadline`] |
//! | whether a request that failed was executed | [`Error::outcome`] |
//! | connections, calls and times told | [`Config::observer`], feature `tracing` |
//!
//! # Features
//!
//! | feature | what it brings |
//! |---|---|
//! | `tokio`, on by default | tasks wait by the reactor of their runtime; without it a thread reads for them |
//! | `cluster`, on by default | `redis+cluster://`: Redis Cluster |
//! | `tls` | `rediss://`, by rustls |
//! | `cache` | replies that are kept until the server tells of a change |
//! | `bb8`, `deadpool` | `pool::Manager`: clients in the place of a pool's connections |
//! | `derive` | `FromReply` and `ToArgs` for structs and enums |
//! | `serde` | values as JSON, and replies as whatever implements `Deserialize` |
//! | `tracing` | a span for each call, by OpenTelemetry's conventions |
//!
//! Sentinel, shards and unix sockets need no feature. It builds with Rust 1.88 and later; that version is raised to none younger than a
//! year.
//!
//! # Structs and enums
//!
//! With the feature `derive`, a program's own types are arguments and replies; what the derives know is said in the
//! documentation of the crate `respool-client-derive`.
//!
#![cfg_attr(feature = "derive", doc = "```")]
#![cfg_attr(not(feature = "derive"), doc = "```ignore")]
//! use respool_client::{Command, FromReply, ToArgs, commands};
//!
//! #[derive(FromReply, ToArgs)]
//! #[respool(rename_all = "kebab-case")]
//! struct Account {
//!     full_name: String,
//!     logins: u32,
//!     mail: Option<String>,
//! }
//!
//! let ann = Account { full_name: "Ann".into(), logins: 3, mail: None };
//! // HSET account:1 full-name Ann logins 3
//! assert_eq!(Command::from(commands::hset("account:1", ann)).arguments(), 6);
//! // let ann: Option<Account> = client.hgetall("account:1").cast().await?;
//! ```
//!
//! With the feature `serde`, `Json` is a value that is kept as JSON, and `Structured` reads a reply as whatever implements
//! `Deserialize`.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// What a node of a cluster does beside what a server does stands with the rest of it. Without clusters nothing calls it, nothing comes behind
// a cluster that there is not, and both are left out.
#![cfg_attr(not(feature = "cluster"), allow(dead_code, unreachable_code))]

#[cfg(feature = "cache")]
mod cache;
mod call;
mod client;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(not(feature = "cluster"))]
#[path = "without_cluster.rs"]
mod cluster;
mod command;
pub mod commands;
mod config;
mod core;
#[doc(hidden)]
pub mod derived;
mod error;
mod events;
mod fitness;
mod from_reply;
mod lanes;
pub mod limits;
mod parts;
#[cfg(any(feature = "bb8", feature = "deadpool"))]
pub mod pool;
mod pubsub;
mod reply;
mod run;
mod scan;
mod script;
mod sentinel;
#[cfg(feature = "serde")]
mod serde;
mod shards;
mod sizes;
mod stats;
#[cfg(feature = "tls")]
mod tls;
mod to_args;
mod told;
mod topology;
mod trace;
mod url;

// Derived code names this crate, also within it.
extern crate self as respool_client;

#[cfg(feature = "cache")]
pub use cache::{Cache, CacheStats, CachedCall, Caching};
pub use call::{Batch, Call, Transaction};
pub use client::Client;
#[cfg(feature = "cluster")]
pub use cluster::Reads;
pub use command::{Command, cmd};
pub use config::{Config, Overload};
pub use error::{DecodeError, Error, ErrorKind, Outcome, Redirect, RequestAhead, ServerError, Waited};
pub use events::{Done, Event, Observer};
pub use from_reply::FromReply;
pub use lanes::{DedicatedBatch, Exec, Watch, Watched};
pub use pubsub::{Message, Notice, Overflow, Subscribe, Subscription};
pub use reply::{Elements, Reply};
#[cfg(feature = "derive")]
pub use respool_client_derive::{FromReply, ToArgs};
pub use respool_connection::{Credentials, Endpoint, ReconnectTerms};
pub use respool_wire::Protocol;
pub use scan::Scanner;
pub use script::{Invocation, Script};
pub use sentinel::Role;
#[cfg(feature = "serde")]
pub use serde::{Json, Structured};
pub use shards::Shard;
pub use stats::Stats;
#[cfg(feature = "tls")]
pub use tls::Tls;
pub use to_args::ToArgs;
pub use url::Address;
