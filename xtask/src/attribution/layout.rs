//! The nodes that clients ask: how many there are, what each is for, and keys of each.

/// Numbers of clients in one phase of the run and in the next are so far apart.
pub(super) const PHASE: u64 = 1_000_000;
pub(super) const NODES: usize = 4;
/// The node that another server takes the place of, now and then.
pub(super) const MOVED: usize = NODES - 1;
/// The number of the node that has a replica, which has the next one.
pub(super) const COPIES: usize = NODES;

/// A set of nodes, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nodes(pub(super) u16);

impl Nodes {
    pub(super) const NONE: Nodes = Nodes(0);
    pub(super) const ALL: Nodes = Nodes(u16::MAX);

    pub(super) fn one(node: usize) -> Nodes {
        Nodes(1 << node)
    }

    pub(super) fn and(self, other: Nodes) -> Nodes {
        Nodes(self.0 | other.0)
    }

    pub(super) fn meets(self, other: Nodes) -> bool {
        self.0 & other.0 != 0
    }
}

/// What all clients know of the nodes.
#[derive(Debug)]
pub(super) struct Layout {
    /// A tag for each node whose keys are there.
    pub(super) tags: Vec<String>,
}

impl Layout {
    #[cfg(test)]
    pub(super) fn for_tests() -> Layout {
        let tags = (0..=NODES).map(|node| format!("t{node}")).collect();
        Layout { tags }
    }
}
