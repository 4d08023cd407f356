//! A SELECT that waits for a node to say whether it has the database.

use crate::ids::{Asker, NodeId};

/// A `SELECT` that waits for a node to say whether it has the database.
#[derive(Debug)]
pub(crate) struct Selecting {
    pub(crate) asker: Asker,
    /// The nodes that have been asked.
    pub(crate) asked: Vec<NodeId>,
}
