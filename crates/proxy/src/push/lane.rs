//! The push lane to a node, as far as subscriptions know it.

use crate::ids::LaneId;

/// A worker's push lane to one node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PushLane {
    pub(crate) lane: LaneId,
    /// When the PING was sent that has not been answered; 0 if none is out.
    pub(crate) pinged_us: u64,
}
