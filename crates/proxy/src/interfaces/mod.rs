//! What one feature tells another without naming it: traits that the feature that is told implements, and what is said by them.

pub(crate) mod call;
pub(crate) mod changed_keys;
pub(crate) mod client_query;
pub(crate) mod engine_calls;
pub(crate) mod engine_changes;
pub(crate) mod held_back;
pub(crate) mod help;
pub(crate) mod known_scripts;
pub(crate) mod read_tracker;
pub(crate) mod release;
pub(crate) mod requests;
pub(crate) mod transfer;
