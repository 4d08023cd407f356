//! What the proxy counts and samples, for metrics, INFO and the console.

pub(crate) mod calls;
pub mod counters;
pub mod histogram;
pub(crate) mod rates;
pub(crate) mod samples;
pub mod sampling;
pub(crate) mod slow_log;
pub mod terms;
pub(crate) mod top_keys;
