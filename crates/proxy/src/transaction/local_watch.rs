//! What a session watches in the engine of this process.

/// A session watches something in an embedded engine, which keeps what.
#[derive(Debug)]
pub(crate) struct LocalWatch {
    /// Bytes that the engine keeps for it.
    pub(crate) held_bytes: usize,
}

impl LocalWatch {
    /// Bytes held.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}
