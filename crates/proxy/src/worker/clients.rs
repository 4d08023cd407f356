//! Clients that are held back, and clients that close their side: what it means to each feature.

use crate::client_pause::functions::PausedCall;
use crate::command_log::timed::run_as;
use crate::ids::ClientId;
use crate::session::Flow;
use crate::worker::Worker;
use respool_command::{Execute, Row};
use respool_wire::Args;

impl<E: Execute> Worker<E> {
    /// A request during a pause. A request that ends the pause is always read, and so is the console.
    pub(crate) fn hold_for_client_pause(&mut self, index: ClientId, row: &'static Row, args: Args<'_>) -> Option<Flow> {
        match self.functions.hold(&mut self.env, index, row, args)? {
            PausedCall::Runs(call) => Some(run_as(self, index, row, &call, args)),
            PausedCall::Held(flow) => Some(flow),
        }
    }

    /// All that a client has sent has been read. What it has asked before it closed its side is still answered.
    pub(crate) fn note_ended(&mut self, index: ClientId) {
        let Some(session) = self.env.clients.sessions.at_mut(index) else { return };
        session.details.has_ended = true;
        if !session.is_waiting() {
            self.end_input(index);
        }
        self.blocking.handle_hung_up(&mut self.env, index);
        self.dedicated.handle_half_closed(&mut self.env, index);
    }
}
