//! Redis Cluster: which member has a slot, what a node's redirect asks for, and when members are asked again.
//!
//! ```text
//!   CLUSTER SLOTS, SHARDS, NODES --> Report, one for each node that was asked
//!                                       |  Refresh: which node to ask, when, and which report counts
//!                                       v
//!   request --> plan_slots --> slot --> SlotMap (immutable) --> a shard: primary, replicas
//!                                       ^
//!   error --> Redirect --> Attempt: sent where, or again when
//!                   '-- MOVED changes one slot at once
//! ```
//!
//! A member is known by its id; its address is only where it is now.

mod address;
mod attempt;
mod map;
mod nodes_text;
mod plan;
mod redirect;
mod refresh;
mod report;
mod round;
mod vote;

pub use address::Address;
pub use attempt::{Attempt, Next};
pub use map::{ReadFrom, Shard, ShardIndex, SlotMap};
pub use plan::{SlotPlan, plan_slots, slot_of};
pub use redirect::{Redirect, of_transaction};
pub use refresh::{Polled, Refresh, RefreshStep, RefreshTerms, Trigger};
pub use report::{Claim, Health, Mark, Member, Ports, Report, ReportError, Transfer};
