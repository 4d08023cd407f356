//! From a decoded request to the node that answers it: the checks it passes, which node has its keys, and what is split.
//!
//! [`dispatch`] is the way of every request. [`fast_path`] is the same way for the common ones, without what cannot matter to
//! them; [`filters`] is what requests of sessions in a rare state pass first.

pub(crate) mod client_pause;
mod dispatch;
mod fan_out;
mod fast_path;
mod filters;
mod forward;
pub(crate) mod gathers;
pub(crate) mod held_requests;
pub(crate) mod target;
pub(crate) mod time_slices;
pub(crate) mod unknown_command;
