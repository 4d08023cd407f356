//! Subscriptions and tracking: what an engine in this process is told of them, and nodes at the end of a turn.

use crate::worker::Worker;
use respool_command::Execute;

impl<E: Execute> Worker<E> {
    /// The end of a turn: nodes are told what has changed.
    #[inline(always)]
    pub(super) fn tell_what_is_new(&mut self) {
        if self.subscriptions.has_anything_to_tell() {
            self.send_pending_updates();
        }
    }

    #[cold]
    fn send_pending_updates(&mut self) {
        self.subscriptions.strike_out_some(&mut self.env);
        if let Some(is_tracking) = self.subscriptions.take_pending_updates() {
            self.engine_side().want_changes(is_tracking);
            self.subscriptions.send_updates(&mut self.env);
        }
        self.subscriptions.tell_clients(&mut self.env);
    }
}
