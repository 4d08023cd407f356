//! What is known of each node: whether it is of use, what it is, with which credentials it is dialled, and how often it is
//! dialled again. Connections are in `pool`.

pub(crate) mod address_change;
pub(crate) mod entry;
pub(crate) mod health_checks;
pub(crate) mod kind;
pub(crate) mod kinds;
pub(crate) mod moves;
pub(crate) mod multi;
pub(crate) mod probe;
pub(crate) mod retry_budget;
pub(crate) mod rollover;
pub(crate) mod stats;
