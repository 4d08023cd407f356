//! A client's large replies and requests, and the connections that it has for them.

use crate::ids::{LaneHandle, NodeId};
use crate::pool::{LaneUse, Lanes};
use crate::request::streamed_request::StreamedHead;

/// The connections that a client has of its own, one to a node at most.
#[derive(Debug, Default)]
pub(crate) struct Large {
    pub(crate) ways: Vec<Way>,
    /// The request that is being passed on in pieces, see [`crate::session::large_request`], and the node that it goes to.
    pub(crate) sending: Option<Box<StreamedHead>>,
    pub(crate) sending_to: Option<NodeId>,
}

/// How a client's requests go to one node.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) node: NodeId,
    /// `None` until it is first needed.
    pub(crate) lane: Option<LaneHandle>,
    /// When something large last came or went there.
    pub(crate) at_us: u64,
    /// What has been asked since all was last answered has gone over shared connections.
    pub(crate) uses_shared: bool,
    /// The same of its own.
    pub(crate) uses_own: bool,
}

impl Large {
    pub(crate) fn way_to(&mut self, node: NodeId) -> Option<&mut Way> {
        self.ways.iter_mut().find(|way| way.node == node)
    }

    fn way_or_new(&mut self, node: NodeId, now_us: u64) -> &mut Way {
        let place = self.ways.iter().position(|way| way.node == node).unwrap_or_else(|| {
            self.ways.push(Way { node, lane: None, at_us: now_us, uses_shared: false, uses_own: false });
            self.ways.len() - 1
        });
        &mut self.ways[place]
    }

    /// The connection over which a request is being passed on.
    pub(crate) fn sending_lane(&self) -> Option<LaneHandle> {
        self.ways.iter().find(|way| Some(way.node) == self.sending_to)?.lane
    }

    /// Its connections, as far as it has them.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = LaneHandle> + '_ {
        self.ways.iter().filter_map(|way| way.lane)
    }

    /// Memory held for a request that is being passed on.
    pub(crate) fn held_bytes(&self) -> usize {
        self.sending.as_ref().map_or(0, |head| head.held_bytes())
    }

    /// How many nodes it is about.
    pub(crate) fn len(&self) -> usize {
        self.ways.len()
    }

    /// Whether a node's large replies come over a connection of the client's own already.
    pub(crate) fn has_lane_to(&self, node: NodeId, lanes: &Lanes) -> bool {
        let is_there = |lane: LaneHandle| lanes.find(lane).is_some();
        self.ways.iter().any(|way| way.node == node && way.lane.is_some_and(is_there))
    }

    /// The client's requests to a node have all gone over this connection, and it is the client's own from now on.
    pub(crate) fn claim(&mut self, node: NodeId, lane: LaneHandle, now_us: u64) {
        let way = self.way_or_new(node, now_us);
        *way = Way { node, lane: Some(lane), at_us: now_us, uses_shared: false, uses_own: true };
    }

    /// A node's large reply comes over a shared connection.
    pub(crate) fn note_shared(&mut self, node: NodeId, now_us: u64) {
        let way = self.way_or_new(node, now_us);
        way.at_us = now_us;
        way.uses_shared = true;
    }

    /// Nothing is outstanding, and something large is about to go to a node in pieces.
    pub(crate) fn begin_sending_to(&mut self, node: NodeId, now_us: u64) {
        self.settle();
        self.sending_to = Some(node);
        self.way_or_new(node, now_us).at_us = now_us;
    }

    /// A request to a node goes over a shared connection, whatever the client has of its own: what comes behind it waits.
    pub(crate) fn note_detour(&mut self, node: NodeId) {
        self.way_to(node).iter_mut().for_each(|way| way.uses_shared = true);
    }

    /// Something large has come from a node or gone to it.
    pub(crate) fn touch(&mut self, node: NodeId, now_us: u64) {
        self.way_to(node).iter_mut().for_each(|way| way.at_us = now_us);
    }

    pub(crate) fn settle(&mut self) {
        for way in &mut self.ways {
            (way.uses_shared, way.uses_own) = (false, false);
        }
    }

    /// A client's own lanes of pool mode `session` are given back: those of them that are among these.
    pub(crate) fn leave_own(&mut self, lanes: &Lanes) {
        let is_own = |lane: &LaneHandle| lanes.find(*lane).is_some_and(|place| lanes[place].purpose == LaneUse::Own);
        for way in &mut self.ways {
            way.lane = way.lane.filter(|lane| !is_own(lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Handle, LaneTable};

    fn lane() -> LaneHandle {
        Handle { index: LaneTable::<()>::default().next_id(), generation: 3 }
    }

    #[test]
    fn a_way_to_a_node_is_made_once_and_kept_with_its_connection() {
        let node = NodeId::nth(0);
        let mut large = Large::default();
        large.note_shared(node, 5);
        assert!(large.ways[0].uses_shared && large.lanes().next().is_none());
        large.claim(node, lane(), 7);
        assert_eq!((large.len(), large.lanes().collect::<Vec<_>>()), (1, vec![lane()]));
        assert!(large.ways[0].uses_own && !large.ways[0].uses_shared && large.ways[0].at_us == 7);
        large.note_detour(node);
        assert!(large.ways[0].uses_shared && large.ways[0].uses_own, "what comes behind a detour waits");
        large.touch(node, 9);
        large.touch(NodeId::nth(1), 9);
        assert_eq!((large.len(), large.ways[0].at_us), (1, 9), "a node without a way gets none");
        large.settle();
        assert!(!large.ways[0].uses_shared && !large.ways[0].uses_own);
    }

    #[test]
    fn the_connection_of_a_request_in_pieces_is_that_of_its_node() {
        let [first, second] = [0, 1].map(NodeId::nth);
        let mut large = Large::default();
        large.claim(first, lane(), 1);
        assert_eq!(large.sending_lane(), None);
        large.begin_sending_to(second, 2);
        assert_eq!((large.sending_lane(), large.len()), (None, 2));
        large.begin_sending_to(first, 3);
        assert_eq!(large.sending_lane(), Some(lane()));
        assert!(!large.ways[0].uses_own, "nothing was outstanding");
    }
}
