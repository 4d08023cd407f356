//! The groups of commands.

// Written by `cargo xtask codegen` from the command table. Not to be edited.

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod pubsub;
mod scripting;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;
mod words;
pub use bitmap::*;
pub use cluster::*;
pub use connection::*;
pub use generic::*;
pub use geo::*;
pub use hash::*;
pub use hyperloglog::*;
pub use list::*;
pub use pubsub::*;
pub use scripting::*;
pub use server::*;
pub use set::*;
pub use sorted_set::*;
pub use stream::*;
pub use string::*;
pub use words::*;
