//! The embedded data store: what a Redis server does with keys and values, without a connection in sight.
//!
//! Owns databases, keys with their deadlines, and values of every type, in Redis's encodings and with Redis's replies
//! (7.0.15, byte for byte). It is reached through [`respool_command::Execute`] alone and copies what it keeps. It never
//! asks for the time or for chance: both are arguments.
//!
//! Three floors: `store` (records in a pool, a hash table, an ordered index, compact runs), `values` and `keyspace` over
//! it, and `commands` on top. `rdb` writes values as bytes and reads them.
#![forbid(unsafe_code)]

mod commands;
mod debugging;
mod engine;
mod keyspace;
mod limits;
mod number;
mod parameters;
mod rdb;
mod reload;
#[cfg(feature = "scripting")]
mod script;
mod script_memory;
mod snapshot;
mod store;
#[cfg(test)]
mod transcript;
mod values;

pub use engine::{Engine, EngineConfig, KeyspaceSize};
pub use keyspace::{Counters, EvictionPolicy};
#[cfg(feature = "scripting")]
pub use script::ScriptLogLevel;
pub use store::heap::EncodingLimits;
