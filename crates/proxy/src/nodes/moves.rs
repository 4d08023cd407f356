//! Which node takes the place of which when other nodes are configured.

use crate::ids::{LaneHandle, NodeId, PerNode};
use std::collections::BTreeMap;

/// What has become of the nodes of before when other settings came.
#[derive(Debug)]
pub(crate) struct Moves {
    /// For each node before, where it stands now if it is still that server; one that has gone stands behind the others while
    /// something is owed by it, and then at `NodeId::NONE`.
    pub(crate) place: PerNode<NodeId>,
    /// For each node before, where the node of the same name stands now, wherever that is reached; `NodeId::NONE` if there is
    /// none.
    pub(crate) named: PerNode<NodeId>,
    /// The numbers of nodes whose credentials have changed.
    pub(crate) entered_anew: Vec<NodeId>,
    /// The node whose name resolves to another address; `None` if other settings are the reason.
    pub(crate) left: Option<NodeId>,
    /// The number of the node of each of its lanes: those to addresses among the answers stay with it.
    pub(crate) lanes: BTreeMap<LaneHandle, NodeId>,
    /// How many nodes are configured now.
    pub(crate) count: usize,
}

impl Moves {
    /// Where a node of before stands now, as the server that it was. `NodeId::NONE`: nowhere.
    pub(crate) fn place_of(&self, node: NodeId) -> NodeId {
        self.place.get(node).copied().unwrap_or(NodeId::NONE)
    }

    /// The same for what is bound to one lane to that node.
    pub(crate) fn place_on(&self, node: NodeId, lane: LaneHandle) -> NodeId {
        self.lanes.get(&lane).copied().unwrap_or_else(|| self.place_of(node))
    }

    /// The node that has the name now of one before.
    pub(crate) fn namesake_of(&self, node: NodeId) -> Option<NodeId> {
        self.named.get(node).copied().filter(|now| *now != NodeId::NONE)
    }

    /// Whether a node of before is not configured any more as the server that it was.
    pub(crate) fn has_left(&self, node: NodeId) -> bool {
        self.place_of(node).index() >= self.count
    }

    /// The same for what is bound to one lane to that node.
    pub(crate) fn has_left_on(&self, node: NodeId, lane: LaneHandle) -> bool {
        self.place_on(node, lane).index() >= self.count
    }

    /// Whether every node is the server that it was, in its place.
    pub(crate) fn is_none(&self) -> bool {
        self.place.len() == self.count && self.place.entries().all(|(before, now)| before == *now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Handle, LaneTable};

    fn at(place: usize) -> NodeId {
        NodeId::nth(place)
    }

    /// Three nodes before and two now: the first has gone, the second has its place, the third owes something and stands behind.
    fn moves() -> Moves {
        Moves {
            place: PerNode::new([NodeId::NONE, at(0), at(2)]),
            named: PerNode::new([at(1), at(0), NodeId::NONE]),
            entered_anew: Vec::new(),
            left: None,
            lanes: BTreeMap::new(),
            count: 2,
        }
    }

    #[test]
    fn a_node_that_owes_something_has_left_although_it_has_a_place() {
        let moves = moves();
        assert_eq!([0, 1, 2].map(|node| moves.has_left(at(node))), [true, false, true]);
        assert_eq!(moves.place_of(at(2)), at(2));
        assert!(moves.has_left(at(9)) && moves.has_left(NodeId::NONE), "there was no such node");
    }

    #[test]
    fn a_name_may_lead_to_another_server_and_the_server_have_gone() {
        let moves = moves();
        assert_eq!(moves.namesake_of(at(0)), Some(at(1)), "another server has its name");
        assert_eq!(moves.namesake_of(at(2)), None);
    }

    #[test]
    fn a_lane_may_stay_where_its_node_has_left() {
        let lane = Handle { index: LaneTable::<()>::default().next_id(), generation: 0 };
        let mut moves = moves();
        assert!(moves.has_left_on(at(0), lane));
        moves.lanes.insert(lane, at(1));
        assert_eq!(moves.place_on(at(0), lane), at(1));
        assert!(!moves.has_left_on(at(0), lane) && moves.has_left(at(0)));
    }

    #[test]
    fn nothing_has_moved_only_if_every_node_is_in_its_place() {
        let kept = |place: &[usize], count| Moves {
            place: PerNode::new(place.iter().map(|place| at(*place))),
            count,
            ..moves()
        };
        assert!(kept(&[0, 1], 2).is_none());
        assert!(!kept(&[1, 0], 2).is_none());
        assert!(!kept(&[0, 1], 3).is_none(), "there is one more");
        assert!(!kept(&[0, 1, 2], 2).is_none(), "there is one less");
    }
}
