//! What the workers of one process have in common, and what they tell each other.

pub(crate) mod node_stats;
pub(crate) mod operator_state;
pub(crate) mod query;
pub(crate) mod quiescence;
pub(crate) mod shared;
