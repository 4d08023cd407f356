//! Commands that the proxy answers or changes itself, and that belong to no feature with a folder of its own.

pub(crate) mod client;
pub(crate) mod client_pause;
pub(crate) mod client_query;
pub(crate) mod config_get;
pub(crate) mod connection;
pub(crate) mod info;
pub(crate) mod node_info;
pub(crate) mod ping;
pub(crate) mod redaction;
pub(crate) mod select;
pub(crate) mod selecting;
pub(crate) mod subscriber_ping;
