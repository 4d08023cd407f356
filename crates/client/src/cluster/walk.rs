//! A walk over all keys of a cluster: shard by shard, until every slot was gone through at a node that had it all the time.
//!
//! A cursor means something to the node that gave it alone. When the slots of a shard go elsewhere meanwhile they are gone through again, so
//! what is there from the beginning to the end comes at least once.

use super::{Cluster, Table};
use crate::limits::CLUSTER_WALKS_MAX;
use crate::topology::Node;
use crate::{Error, ErrorKind, Outcome};
use respool_route::SLOTS;
use std::sync::Arc;

/// What has been gone through.
#[derive(Debug)]
pub(crate) struct Walk {
    cluster: Arc<Cluster>,
    /// By slot.
    covered: Box<[bool]>,
    current: Option<Current>,
    walks: usize,
}

/// The shard that is gone through.
#[derive(Debug)]
struct Current {
    /// One of its slots.
    slot: u16,
    /// `None` if the table was not known when it began.
    node: Option<Arc<Node>>,
    /// By slot, those that the node had in the beginning.
    had: Vec<bool>,
}

fn owner(table: &Table, slot: u16) -> Option<&Arc<Node>> {
    table.shard_of(slot).map(|shard| &shard.primary)
}

impl Walk {
    pub(crate) fn new(cluster: &Arc<Cluster>) -> Self {
        let covered = vec![false; usize::from(SLOTS)].into();
        Self { cluster: Arc::clone(cluster), covered, current: None, walks: 0 }
    }

    /// The slot at whose node the next page is, and whether the walk over that node begins with it. `None` when all is gone through.
    pub(crate) fn slot(&mut self) -> Option<(u16, bool)> {
        if let Some(current) = &self.current {
            return Some((current.slot, false));
        }
        let slot = self.covered.iter().position(|is_covered| !is_covered)? as u16;
        let table = self.cluster.table();
        let node = owner(&table, slot).cloned();
        let has =
            |slot: u16| owner(&table, slot).zip(node.as_ref()).is_some_and(|(owner, node)| Arc::ptr_eq(owner, node));
        let had = (0..SLOTS).map(has).collect();
        self.walks += 1;
        self.current = Some(Current { slot, node, had });
        Some((slot, true))
    }

    /// A page has come with this cursor. Returns the cursor of the next one, `None` when there is none.
    pub(crate) fn turn(&mut self, cursor: u64) -> Result<Option<u64>, Error> {
        let table = self.cluster.table();
        let Some(current) = &self.current else { return Ok(None) };
        let is_there = |slot| match (owner(&table, slot), &current.node) {
            (Some(owner), Some(node)) => Arc::ptr_eq(owner, node),
            _ => false,
        };
        if is_there(current.slot) && cursor != 0 {
            return Ok(Some(cursor));
        }
        if is_there(current.slot) {
            for (slot, had) in (0..SLOTS).zip(&current.had) {
                self.covered[usize::from(slot)] |= *had && is_there(slot);
            }
        }
        self.current = None;
        if self.walks >= CLUSTER_WALKS_MAX {
            let why = "the cluster changes faster than it is gone through";
            return Err(Error::new(ErrorKind::Lost(why.into()), Outcome::Replied));
        }
        Ok(self.covered.contains(&false).then_some(0))
    }
}
