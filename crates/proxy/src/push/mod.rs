//! What `pubsub` and `tracking` share of what nodes push, beside [`respool_connection::push`]: where channels are under routes, which
//! subscriptions are being given up, and whose messages are written a moment later. It knows neither of the two.

pub(crate) mod gathered;
pub(crate) mod lane;
pub(crate) mod places;
pub(crate) mod unsubscribing;
