//! The life of a worker beside requests: timers, memory, other settings, and its end.

pub(crate) mod client_limits;
mod client_memory;
pub(crate) mod drain;
pub(crate) mod eviction_vote;
pub(crate) mod loop_lag;
pub(crate) mod memory;
pub(crate) mod node_reads;
mod queue_memory;
pub(crate) mod reload;
mod soft_limits;
pub(crate) mod table_shrink;
pub(crate) mod timers;
