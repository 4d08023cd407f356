//! Long requests of one client are executed in slices, one per turn, so that other clients are served in between.
//!
//! The client is not read meanwhile. The rest of the request is kept by the feature that executes it; this list has the clients
//! that continue in the next turn.

use crate::scripts::late_script::LateScript;
use crate::session::id::ClientHandle;

/// Clients whose request continues in the next turn.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    pub(crate) clients: Vec<ClientHandle>,
    /// The script that the engine of this process has left.
    pub(crate) script: Option<LateScript>,
    /// Its client has left too: it goes on in the next turn all the same.
    pub(crate) is_orphaned: bool,
}

impl Slices {
    /// Whether no client does.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty() && !self.is_orphaned
    }
}
