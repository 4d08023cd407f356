//! SUBSCRIBE, PUBLISH and PUBSUB: what clients ask for. The subscriptions of clients and nodes are in [`crate::push`].
//!
//! Read `commands` for subscriptions, `publish` and `inspect` for PUBLISH and PUBSUB.

mod commands;
mod inspect;
mod keyspace_events;
mod publish;
pub(crate) mod query;
