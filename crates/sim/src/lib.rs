//! Seeded nodes with faults, in virtual time: a cluster, or servers with replicas that fail over. `client` is tested in it (its
//! `cluster/simulated`) as a client of a cluster, and the machine of `proxy` (its `tests/cluster`) in front of servers.
//!
//! Nodes hold their data in the embedded engine, with scripts, watched keys and requests that wait for an element. What is between nodes is
//! made here: replication that lags, failover, and in a cluster slots and redirects, epochs, slots that move key by key, and what each node
//! believes, which may be old. Messages take time on links that may be slow, cut, or open at one end only; each link is a stream, as TCP is.
//! A run follows from its seed.
//!
//! ```text
//!   caller --> World: send(connection, requests) --- link --> Node: slots, engine
//!                 ^                                              |
//!                 '----- poll: replies, ends ------- link -------'
//! ```
//!
//! The world says where a reply comes from and whether that node had the slot, so that a test knows which acknowledged writes a failover
//! may lose, and keeps a journal of what nodes were asked, for a test that asks whether that is what their clients were told.
//!
//! Keys have no times to live, messages of channels are not passed between nodes, and no client logs in.
#![forbid(unsafe_code)]

mod data;
mod harm;
mod links;
mod node;
mod session;
mod world;

pub use harm::{Harm, HarmTerms, HarmWindows};
pub use node::NodeIndex;
pub use world::{ConnectionId, Delivery, Execution, Fault, World, WorldTerms};
