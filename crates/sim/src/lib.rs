//! A seeded cluster with faults, in virtual time: what clients and proxies of a cluster are tested against.
//!
//! Nodes hold their data in the embedded engine. What concerns the cluster is made here: slots and redirects, replication that lags, failover by
//! epochs, slots that move key by key, and what each node believes, which may be old. Messages take time on links that may be slow, cut, or open at
//! one end only. A run follows from its seed.
//!
//! ```text
//!   caller --> World: send(connection, requests) --- link --> Node: slots, engine
//!                 ^                                              |
//!                 '----- poll: replies, ends ------- link -------'
//! ```
//!
//! The world says where a reply comes from and whether that node had the slot, so that a test knows which acknowledged writes a failover
//! may lose.
#![forbid(unsafe_code)]

mod harm;
mod node;
mod world;

pub use harm::{Harm, HarmWindows};
pub use node::{NodeIndex, Session};
pub use world::{ConnectionId, Delivery, Fault, World, WorldTerms};
