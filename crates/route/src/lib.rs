//! Which node, and how answers join.
//!
//! Pure functions over immutable snapshots: no socket, no clock, no randomness. [`Placement`] says which node a key
//! belongs to.
#![forbid(unsafe_code)]

pub mod limits;
mod node;
mod placement;
mod tag;

pub use node::{Node, NodeIndex};
pub use placement::{
    KeyHash, Placement, PlacementError, Rule, SLOTS, Scheme, UnknownKeyHash, UnknownScheme, slot, slots_of,
};
pub use tag::{TagRule, UnknownTagRule};
