//! Which node, and how answers join.
//!
//! Pure functions over immutable snapshots: no socket, no clock, no randomness. A [`Topology`] lists nodes and says by
//! its [`Placement`] where a key lives; [`plan`](plan()) reads a request's row and keys and says where it goes: to one node, in
//! [`Part`]s to those that have its keys, or to all. A [`Gather`] joins the replies of several nodes, a
//! [`Merge`](replication::Merge) their replication streams.
//!
//! | to add | touch |
//! |---|---|
//! | a placement rule | `placement/<name>.rs`, a variant of [`Rule`], golden vectors in `tests/data` |
//! | a way of splitting or joining a command | the policy words of its row |
//! | another way of telling what a cluster looks like | a function of [`cluster::Report`] |
//! | a policy | an arm in `plan.rs` or `gather.rs`, and in the tests that know all of them |
#![forbid(unsafe_code)]

mod channels;
pub mod cluster;
mod gather;
mod hash_tag;
pub mod limits;
mod node;
mod placement;
mod plan;
pub mod replication;
mod routed;
mod routes;
mod scan;
mod split;
mod topology;

pub use channels::Led;
pub use gather::Gather;
pub use hash_tag::{TagRule, UnknownTagRule};
pub use node::{Node, NodeIndex, NodePlace};
pub use placement::{
    KeyHash, Placement, PlacementError, Rule, SLOTS, Scheme, UnknownKeyHash, UnknownScheme, slot, slots_of,
};
pub use plan::{Plan, PlanError, plan, plan_at_once};
pub use routed::{KeyPlace, Place, RouteError, RouteScratch, Routed};
pub use routes::{Commands, DeadNode, Pool, PoolMode, Reads, Rewrite, Route, Routes, RoutesError, Subject, When};
pub use scan::ScanStep;
pub use split::{Part, Scratch};
pub use topology::Topology;
