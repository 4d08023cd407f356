//! The nodes that a pool of sessions works with, and where each key lives: an immutable snapshot.
//!
//! A change of nodes makes a new snapshot; a request under way keeps the one it started with.

use crate::node::{Node, NodeIndex};
use crate::placement::{Placement, PlacementError, Scheme};
use crate::scan::{ScanStep, Walk};
use respool_wire::Args;

/// A list of nodes, the placement of keys on them, and the node for requests without keys.
#[derive(Clone, Debug)]
pub struct Topology {
    nodes: Box<[Node]>,
    placement: Placement,
    default_node: NodeIndex,
    walk: Walk,
    splits: bool,
}

/// Two are equal if every request goes to the node of the same name and number under both.
impl PartialEq for Topology {
    fn eq(&self, other: &Self) -> bool {
        // The placement and the walk follow from these.
        let is_placed_alike = self.nodes == other.nodes && self.scheme() == other.scheme();
        is_placed_alike && self.default_node == other.default_node && self.splits == other.splits
    }
}

impl Eq for Topology {}

impl Topology {
    /// Places keys on `nodes` by `scheme`. Requests without keys go to the first node.
    pub fn new(scheme: Scheme, nodes: Vec<Node>) -> Result<Self, PlacementError> {
        let placement = Placement::new(scheme, &nodes)?;
        let walk = Walk::new(&nodes);
        Ok(Self { nodes: nodes.into(), placement, default_node: NodeIndex::FIRST, walk, splits: true })
    }

    /// The same snapshot with another node for requests without keys. Panics if there is no such node.
    pub fn with_default_node(self, default_node: NodeIndex) -> Self {
        assert!(default_node.get() < self.nodes.len(), "the default node is one of the list");
        Self { default_node, ..self }
    }

    /// The same snapshot with requests split whose keys are on several nodes, or refused like those that cannot be split.
    pub fn with_splits(self, splits: bool) -> Self {
        Self { splits, ..self }
    }

    /// Whether a request that can be split is, if its keys are on several nodes.
    pub fn splits(&self) -> bool {
        self.splits
    }

    /// The nodes in the order listed. Never empty.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many nodes there are: at least one.
    #[inline]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is one node only, to which then everything goes.
    #[inline]
    pub fn is_single(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Every node's position.
    pub fn indexes(&self) -> impl ExactSizeIterator<Item = NodeIndex> + use<> {
        (0..self.nodes.len()).map(NodeIndex::new)
    }

    /// The node called `name`.
    pub fn find(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.name == name).map(NodeIndex::new)
    }

    /// How keys are placed.
    pub fn scheme(&self) -> Scheme {
        self.placement.scheme()
    }

    /// The node for requests without keys.
    #[inline]
    pub fn default_node(&self) -> NodeIndex {
        self.default_node
    }

    /// The step of a walk over all nodes that a request for one asks for; `None` if its cursor is none.
    pub(crate) fn scan_step(&self, args: Args<'_>) -> Option<ScanStep> {
        self.walk.step_of(args)
    }

    /// The node that `key` belongs to.
    #[inline]
    pub fn place(&self, key: &[u8]) -> NodeIndex {
        if self.is_single() { NodeIndex::FIRST } else { self.placement.place(key) }
    }
}
