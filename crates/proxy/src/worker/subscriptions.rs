//! Subscriptions and tracking: what an engine in this process is told of them, and nodes at the end of a turn.

use crate::worker::Worker;
use respool_command::Execute;

impl<E: Execute> Worker<E> {
    /// The end of a turn: nodes are told what has changed.
    #[inline(always)]
    pub(super) fn tell_what_is_new(&mut self) {
        if self.subscriptions.has_anything_to_tell() {
            self.tell_nodes_news();
        }
    }

    #[cold]
    fn tell_nodes_news(&mut self) {
        self.subscriptions.strike_out_some(&mut self.env);
        if let Some(is_tracking) = self.subscriptions.take_news() {
            self.engine_side().want_changes(is_tracking);
            self.subscriptions.tell_news(&mut self.env);
        }
        self.subscriptions.tell_clients(&mut self.env);
    }
}
