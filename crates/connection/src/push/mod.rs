//! Subscriptions of many over one connection: which client wants which channel, what the server was told and has acknowledged, and what it
//! pushes.
//!
//! A [`Registry`](registry::Registry) knows subscribers by numbers and channels by names; a [`NodeLedger`](node_ledger::NodeLedger) says
//! what is written to the server for them and whose wait is over; a [`Frame`](frame::Frame) is what comes. None of them delivers: that
//! is for what they are built into.

pub mod frame;
pub mod id_map;
pub mod look_ahead;
mod name;
pub mod node_ledger;
pub mod registry;
pub mod scope;
