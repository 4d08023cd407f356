//! Long requests of one client are executed in slices, one per turn, so that other clients are served in between.
//!
//! The client is not read meanwhile. The rest of the request is kept by the feature that executes it; this list has the clients
//! that continue in the next turn. A client whose replies are large goes on within the turn each time that it has taken some, as often as
//! there are rounds: of a pipeline of small requests it could otherwise be answered for as long as it reads.

use crate::ids::ClientHandle;
use crate::limits::ROUNDS_PER_TURN_MAX;
use crate::session::table::Clients;
use crate::workers::late_scripts::LateScript;

/// Clients whose request continues in the next turn.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    pub(crate) clients: Vec<ClientHandle>,
    /// The script that the engine of this process has left. It goes on in the next turn, whatever has become of its client.
    pub(crate) script: Option<LateScript>,
    /// A script with a debugger runs.
    pub(crate) debugs: bool,
    /// How often clients that had to wait have gone on in this turn.
    pub(crate) rounds: u32,
}

impl Slices {
    /// Whether nothing continues in the next turn.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.script.is_none() && !self.debugs && self.has_round()
    }

    /// Whether clients may go on in this turn.
    #[inline]
    pub(crate) fn has_round(&self) -> bool {
        self.rounds < ROUNDS_PER_TURN_MAX
    }

    /// Clients that had to wait go on, in their order, if they may. Returns whether any do.
    pub(crate) fn begin_round(&mut self, clients: &mut Clients) -> bool {
        let goes_on = self.has_round() && !clients.resuming.is_empty();
        self.rounds += u32::from(goes_on);
        clients.sort_resuming();
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use crate::limits::ROUNDS_PER_TURN_MAX;
    use crate::session::PauseReasons;
    use crate::testing::env_with_node;

    #[test]
    fn a_client_whose_slice_is_used_up_goes_on_in_the_next_turn() {
        let mut env = env_with_node();
        let [first, gone] = [(), ()].map(|()| env.test_client());
        [first, gone].into_iter().for_each(|client| env.end_slice(client));
        assert!(!env.slices.is_empty() && env.test_session(first).pause.has(PauseReasons::SLICE));
        env.drop_client(gone);
        env.begin_slices();
        assert!(env.slices.is_empty() && env.test_session(first).pause.is_none());
        assert_eq!(env.clients.resuming.iter().collect::<Vec<_>>(), [&first]);
    }

    #[test]
    fn clients_go_on_as_often_as_a_turn_has_rounds() {
        let mut env = env_with_node();
        let client = env.test_client();
        for round in 0..=ROUNDS_PER_TURN_MAX {
            env.test_session(client).pause.add(PauseReasons::OUTPUT);
            env.clients.unpause(client, PauseReasons::OUTPUT);
            let may_go_on = round < ROUNDS_PER_TURN_MAX;
            assert_eq!((env.has_come_up(), env.slices.begin_round(&mut env.clients)), (may_go_on, may_go_on));
            if may_go_on {
                assert!(env.clients.next_resuming().is_some());
            }
        }
        assert_eq!(env.next_due_us(), env.now.mono_us, "the next turn is at once");
        env.begin_turn(env.now);
        assert!(env.slices.begin_round(&mut env.clients));
    }
}
