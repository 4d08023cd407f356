//! Subscriptions: which client wants what, how nodes are told of it, and how messages come back.
//!
//! ```text
//!   client 1 --SUBSCRIBE news--\                        0 -> 1: SUBSCRIBE news
//!   client 2 --SUBSCRIBE news---> [registry] -- [book] -----------------------> node   one push lane per node
//!   client 3 --PSUBSCRIBE n*---/  who, what     told?  <----------------------- node
//!                                     |                 acknowledged: the waits behind it are over
//!      [outbox] <-- [backlog] <-------'                 message: to all subscribers, as it came
//! ```
//!
//! A channel lives where a key of its name would, a pattern on every node, and so do the channels by which nodes speak of
//! their own keys; under routes, of the pools that those lead to ([`routing`]). A client hears that it is subscribed once every node concerned has said so: what is published after that
//! reaches it. A subscription belongs to the client until it leaves; a node that comes back is told everything again.
//!
//! Read `pending` for how requests are answered, `push_lane` for what nodes are told and say, `delivery` for the way of a message. What
//! clients ask for is in `pubsub`, and in `tracking` for keys that are tracked: both are told over these connections, and they do not know
//! each other.

pub(crate) mod delivery;
pub(crate) mod gathered;
pub(crate) mod lane;
pub(crate) mod pending;
pub(crate) mod pending_changes;
pub(crate) mod places;
pub(crate) mod push_lane;
mod reload;
pub(crate) mod routing;
pub(crate) mod subscriber;
pub(crate) mod subscriptions;
pub(crate) mod unsubscribing;
