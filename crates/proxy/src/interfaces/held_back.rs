//! What the end of a pause, and the drain of a node, mean to requests that wait at nodes for keys.
//!
//! Operators, clients' pauses and other settings hold requests back; the feature whose requests wait on is told by this.

use crate::env::Env;
use crate::ids::NodeId;
use respool_command::Execute;

/// The feature whose requests wait at nodes.
pub(crate) trait WaitsAtNodes {
    /// A pause may be over: requests that have waited for that are sent on.
    fn go_on_waiting(&mut self, env: &mut Env<impl Execute>);

    /// A node is drained: requests that wait there end.
    fn recall_blocked_from(&mut self, env: &mut Env<impl Execute>, node: NodeId);
}
