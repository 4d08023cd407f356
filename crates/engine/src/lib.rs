//! The embedded data store: what a Redis server does with keys and values, without a connection in sight.
#![forbid(unsafe_code)]

mod glob;
mod number;
mod store;
mod values;
