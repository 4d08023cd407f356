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
    /// The script that the engine of this process has left. It goes on in the next turn, whatever has become of its client.
    pub(crate) script: Option<LateScript>,
}

impl Slices {
    /// Whether nothing continues.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.script.is_none()
    }
}
