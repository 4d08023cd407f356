//! What is told of connections on which nodes tell clients of changed keys, to the feature that has asked them to.

use crate::config::Config;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientHandle, NodeId};

/// Where something was heard: a node, by which of its connections, and under which routes.
#[derive(Clone, Copy)]
pub(crate) struct ChangeSource<'a> {
    pub(crate) reader: ClientHandle,
    pub(crate) node: NodeId,
    pub(crate) config: &'a Config,
}

/// A client that is told of changes on a lane.
pub(crate) struct LostListener {
    pub(crate) reader: ClientHandle,
    pub(crate) is_listener: bool,
    /// The node did not want to.
    pub(crate) refusal: Option<ErrorReply>,
}
