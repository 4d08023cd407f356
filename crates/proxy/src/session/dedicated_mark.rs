//! What a session remembers of connections that serve its client for good. They are in [`crate::dedicated`], which alone
//! writes this.

/// A client has such connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DedicatedMark {
    pub(crate) role: DedicatedRole,
    /// Bytes held.
    pub(crate) bytes: usize,
}

/// What such connections make of their client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DedicatedRole {
    /// Nothing yet.
    None,
    /// It is shown what nodes are asked.
    Monitors,
    /// It follows a node.
    Follows,
}
