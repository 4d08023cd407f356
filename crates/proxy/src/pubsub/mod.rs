//! SUBSCRIBE, PUBLISH and PUBSUB: what clients ask for. Who subscribes to what, and what nodes are told and say, is [`crate::push`].
//!
//! Read `commands` for subscriptions, `publish` and `inspect` for PUBLISH and PUBSUB.

mod commands;
mod inspect;
mod keyspace_events;
mod publish;
pub(crate) mod query;
