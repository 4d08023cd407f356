//! Which node a key belongs to.
//!
//! A [`Scheme`] is what the settings said: a rule, its options, and which part of a key is hashed. A [`Placement`] is
//! what that means for one list of nodes: immutable, built once, asked for every key. One file a rule; each rule's output
//! is pinned by golden vectors made with the program that the rule comes from (`tests/data`).
//!
//! | rule | made for | weights | a node added or removed moves |
//! |---|---|---|---|
//! | `rmux` | data placed by rmux since 2014 | no | nearly all keys |
//! | `rmux-2013` | data placed by the first rmux | no | nearly all keys |
//! | `crc32` | data placed by redis-sharding | no | nearly all keys |
//! | `slots` | the same keys together as in Redis Cluster | no | about half of the keys |
//! | `ketama` | data placed by twemproxy or libketama | yes | its share, if all weights are equal |
//! | `rendezvous` | new data | yes | its share, at any place in the list |
//! | `jump` | new data, very many nodes | no | its share, at the end of the list |

mod crc32;
mod jump;
mod ketama;
mod key_hash;
mod rendezvous;
mod rmux;
mod rmux_2013;
mod scheme;
mod slots;

use std::fmt;

pub use key_hash::{KeyHash, UnknownKeyHash};
pub use scheme::{Rule, Scheme, UnknownScheme};
pub use slots::{SLOTS, slot, slots_of};

use crate::limits::{NODES_MAX, WEIGHT_MAX};
use crate::node::{Node, NodeIndex};

/// A scheme applied to a list of nodes.
#[derive(Clone, Debug)]
pub struct Placement {
    scheme: Scheme,
    table: Table,
}

#[derive(Clone, Debug)]
enum Table {
    Rmux(rmux::Rmux),
    Rmux2013(rmux_2013::Rmux2013),
    Crc32(crc32::Crc32),
    Slots(slots::Slots),
    Ketama(ketama::Ketama),
    Rendezvous(rendezvous::Rendezvous),
    Jump(jump::Jump),
}

impl Placement {
    /// Applies `scheme` to `nodes`, or says what the scheme cannot do with them.
    pub fn new(scheme: Scheme, nodes: &[Node]) -> Result<Self, PlacementError> {
        check(scheme.rule, nodes)?;
        let table = match scheme.rule {
            Rule::Rmux => Table::Rmux(rmux::Rmux::new(nodes.len())?),
            Rule::Rmux2013 => Table::Rmux2013(rmux_2013::Rmux2013::new(nodes.len())),
            Rule::Crc32 => Table::Crc32(crc32::Crc32::new(nodes.len())),
            Rule::Slots => Table::Slots(slots::Slots::new(nodes.len())),
            Rule::Ketama(key_hash) => Table::Ketama(ketama::Ketama::new(key_hash, nodes)),
            Rule::Rendezvous => Table::Rendezvous(rendezvous::Rendezvous::new(nodes)),
            Rule::Jump => Table::Jump(jump::Jump::new(nodes.len())),
        };
        Ok(Self { scheme, table })
    }

    /// The scheme that this placement was made from.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The node that `key` belongs to: always one of the list, always the same one.
    #[inline]
    pub fn place(&self, key: &[u8]) -> NodeIndex {
        let hashed = self.scheme.tag.hashed(key);
        match &self.table {
            Table::Slots(table) => table.place(hashed),
            table => table.place(hashed),
        }
    }
}

impl Table {
    /// Behind a call, so that the default rule, whose price is a few instructions, saves no registers for the others.
    #[inline(never)]
    fn place(&self, hashed: &[u8]) -> NodeIndex {
        match self {
            Self::Rmux(table) => table.place(hashed),
            Self::Rmux2013(table) => table.place(hashed),
            Self::Crc32(table) => table.place(hashed),
            Self::Slots(table) => table.place(hashed),
            Self::Ketama(table) => table.place(hashed),
            Self::Rendezvous(table) => table.place(hashed),
            Self::Jump(table) => table.place(hashed),
        }
    }
}

fn check(rule: Rule, nodes: &[Node]) -> Result<(), PlacementError> {
    if nodes.is_empty() {
        return Err(PlacementError::NoNodes);
    }
    if nodes.len() > NODES_MAX {
        return Err(PlacementError::TooManyNodes { nodes: nodes.len(), nodes_max: NODES_MAX });
    }
    for (index, node) in nodes.iter().enumerate() {
        if node.weight == 0 || node.weight > WEIGHT_MAX || (node.weight != 1 && !rule.knows_weights()) {
            return Err(PlacementError::Weight { index: NodeIndex::new(index), weight: node.weight });
        }
    }
    if rule.hashes_names() {
        let mut names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).enumerate().collect();
        names.sort_by_key(|(_, name)| *name);
        if let Some(twins) = names.windows(2).find(|pair| pair[0].1 == pair[1].1) {
            return Err(PlacementError::SameName { index: NodeIndex::new(twins[1].0) });
        }
    }
    Ok(())
}

/// Why a scheme does not fit a list of nodes: a mistake in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// The list is empty.
    NoNodes,
    /// The list is longer than the scheme, or Respool, can hold.
    TooManyNodes {
        /// Length of the list.
        nodes: usize,
        /// Most nodes that are possible.
        nodes_max: usize,
    },
    /// The weight is zero, beyond [`WEIGHT_MAX`], or not one under a rule that knows no weights.
    Weight {
        /// The node that has it.
        index: NodeIndex,
        /// The weight.
        weight: u32,
    },
    /// An earlier node has the same name, and the rule tells nodes apart by their names.
    SameName {
        /// The later node.
        index: NodeIndex,
    },
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNodes => f.write_str("there is no node to place keys on"),
            Self::TooManyNodes { nodes, nodes_max } => {
                write!(f, "there are {nodes} nodes, but this placement takes at most {nodes_max}")
            }
            Self::Weight { index, weight } if !(1..=WEIGHT_MAX).contains(weight) => {
                write!(f, "node {} has weight {weight}; weights go from 1 to {WEIGHT_MAX}", index.get() + 1)
            }
            Self::Weight { index, weight } => {
                write!(f, "node {} has weight {weight}, but this placement knows no weights", index.get() + 1)
            }
            Self::SameName { index } => write!(f, "node {} has the name of an earlier one", index.get() + 1),
        }
    }
}

impl std::error::Error for PlacementError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(count: usize) -> Vec<Node> {
        (0..count).map(|index| Node::new(format!("node-{index}"))).collect()
    }

    #[test]
    fn unfit_lists_are_refused() {
        let refusal = |rule: Rule, nodes: &[Node]| Placement::new(rule.into(), nodes).expect_err("unfit");
        for rule in Rule::ALL {
            assert_eq!(refusal(rule, &[]), PlacementError::NoNodes);
            let many = nodes(NODES_MAX + 1);
            assert_eq!(refusal(rule, &many), PlacementError::TooManyNodes { nodes: 1_001, nodes_max: 1_000 });
            let unweighted = [Node::new("a"), Node::new("b").with_weight(0)];
            assert_eq!(refusal(rule, &unweighted), PlacementError::Weight { index: NodeIndex::new(1), weight: 0 });
        }
        assert_eq!(
            refusal(Rule::Rmux, &nodes(102)),
            PlacementError::TooManyNodes { nodes: 102, nodes_max: RMUX_NODES }
        );
        for weight in [2, WEIGHT_MAX] {
            assert_eq!(
                refusal(Rule::Slots, &[Node::new("a").with_weight(weight)]).to_string(),
                format!("node 1 has weight {weight}, but this placement knows no weights")
            );
        }
        let heavy = refusal(Rule::Jump, &[Node::new("a").with_weight(WEIGHT_MAX + 1)]).to_string();
        assert!(heavy.ends_with("weights go from 1 to 65535"), "{heavy}");
        assert_eq!(
            refusal(Rule::Rendezvous, &[Node::new("a"), Node::new("b"), Node::new("a")]).to_string(),
            "node 3 has the name of an earlier one"
        );
        Placement::new(Rule::Jump.into(), &[Node::new("a"), Node::new("a")]).expect("jump reads no names");
    }

    const RMUX_NODES: usize = crate::limits::RMUX_NODES_MAX;
}
