//! The books behind what nodes push: names with numbers and those who need them, what each node was told and has
//! acknowledged, and the frames that come. `pubsub` and `tracking` are built on it; it knows neither.

pub(crate) mod frame;
pub(crate) mod gathered;
pub(crate) mod id_map;
pub(crate) mod lane;
pub(crate) mod look_ahead;
mod name;
pub(crate) mod node_ledger;
pub(crate) mod places;
pub(crate) mod registry;
pub(crate) mod scope;
pub(crate) mod unsubscribing;
