//! What one feature tells another without naming it: traits that the feature that is told implements.

pub(crate) mod call;
pub(crate) mod engine_changes;
pub(crate) mod held_back;
pub(crate) mod read_tracker;
pub(crate) mod requests;
