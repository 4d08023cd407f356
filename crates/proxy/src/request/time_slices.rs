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

#[cfg(test)]
mod tests {
    use crate::session::Pause;
    use crate::testing::env_with_node;

    #[test]
    fn a_client_whose_slice_is_used_up_goes_on_in_the_next_turn() {
        let mut env = env_with_node();
        let [first, gone] = [(), ()].map(|()| env.test_client());
        [first, gone].into_iter().for_each(|client| env.end_slice(client));
        assert!(!env.slices.is_empty() && env.test_session(first).pause.has(Pause::SLICE));
        env.drop_client(gone);
        env.begin_slices();
        assert!(env.slices.is_empty() && env.test_session(first).pause.is_none());
        assert_eq!(env.clients.resuming.iter().collect::<Vec<_>>(), [&first]);
    }
}
