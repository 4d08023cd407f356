//! The connections that a client has to itself so that it does not hear of its own changes ([`crate::tracking::noloop`]).

use crate::ids::{ClientHandle, Handle, LaneHandle, NodeId, PerNode};
use respool_wire::encode_request;
use std::sync::Arc;

/// The connection on which one node tells of changes for a RESP2 client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Listener {
    pub(super) lane: Option<LaneHandle>,
    /// The node's number for it.
    pub(super) id: Option<i64>,
}

/// What a client has to itself because it is not to hear of its own changes.
#[derive(Debug, Default)]
pub(crate) struct NoLoopLanes {
    /// The request to track that waits for all nodes.
    pub(crate) pending: Option<Handle>,
    /// By node, whether it has told what that waits for.
    pub(super) is_told: PerNode<bool>,
    /// Another client is told in its place.
    pub(super) is_redirected: bool,
    /// By node; none if it is told itself.
    pub(super) listeners: PerNode<Listener>,
    /// What nodes are asked for beside NOLOOP.
    pub(super) options: Vec<Box<[u8]>>,
}

/// A connection that has asked for its number.
#[derive(Debug)]
pub(crate) struct ListenerId {
    pub(super) session: ClientHandle,
    pub(super) node: NodeId,
    pub(super) lane: LaneHandle,
    pub(super) id: Option<i64>,
}

impl NoLoopLanes {
    /// The whole request by which a node is to tell of changes, to the connection of this number or to the one that asks.
    pub(super) fn request(&self, listener: Option<i64>) -> Arc<[u8]> {
        let id = listener.map(|id| id.to_string());
        let mut words: Vec<&[u8]> = vec![b"CLIENT", b"TRACKING", b"ON", b"NOLOOP"];
        if let Some(id) = &id {
            words.extend([b"REDIRECT".as_slice(), id.as_bytes()]);
        }
        words.extend(self.options.iter().map(|word| &**word));
        let mut request = Vec::new();
        encode_request(&mut request, words.into_iter());
        request.into()
    }
}

/// A connection on which a node has been told to speak another dialect.
#[derive(Debug)]
pub(crate) struct ProtocolSwitch;
