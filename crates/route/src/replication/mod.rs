//! Replication streams of several nodes joined into one, for a replica that follows all of them as if they were one server.
//!
//! [`Merge`] is given the bytes of each node as they arrive and the time, and says what the follower is given. It knows no connection;
//! of what has arrived and cannot be passed on yet it holds a window of each node.

mod fault;
mod merge;
mod snapshot;
mod source;
#[cfg(test)]
mod tests;

pub use fault::Fault;
pub use merge::{Merge, Outcome, Terms};
