//! What the workers of one process have in common, and what they tell each other.

pub(crate) mod ask;
pub(crate) mod budget;
pub(crate) mod command_info;
pub(crate) mod info_cache;
pub(crate) mod late_scripts;
pub(crate) mod learnt;
pub(crate) mod node_stats;
pub(crate) mod operator_state;
pub(crate) mod query;
pub(crate) mod quiescence;
pub(crate) mod shared;
pub(crate) mod turns;
