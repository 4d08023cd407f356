//! What waits for nodes, in the account of the process: the queues of all connections, whoever uses them.
//!
//! A queue is looked at where it has just not been written, or not to its end, so requests that leave in their turn are
//! never counted. What waits on a client's own connection counts for that client when the largest has to go.

use crate::lanes::Lane;
use crate::limits::QUEUE_COUNTED_BYTES_MIN;
use crate::slab::Handle;
use crate::worker::Worker;
use respool_command::Execute;
use std::collections::HashMap;

impl Lane {
    /// Whether the account may not be what it should be.
    #[inline]
    pub(crate) fn is_queue_of_note(&self) -> bool {
        self.queue_accounted > 0 || self.up.queued_bytes() >= QUEUE_COUNTED_BYTES_MIN
    }
}

impl<E: Execute> Worker<E> {
    /// Brings what the account has of a lane's queue up to date.
    #[cold]
    pub(crate) fn account_queue(&mut self, lane: usize) {
        let this = &mut self.lanes.all[lane];
        let queued = this.up.queued_bytes();
        let counted = if queued >= QUEUE_COUNTED_BYTES_MIN { queued } else { 0 };
        self.shared.ledger.account(this.queue_accounted, counted);
        this.queue_accounted = counted;
    }

    /// Bytes that wait for nodes on connections that clients have to themselves, by client.
    pub(crate) fn queues_of_clients(&self) -> HashMap<Handle, usize> {
        let mut queues = HashMap::new();
        for lane in self.lanes.all.iter().filter(|lane| lane.queue_accounted > 0) {
            if let Some(reader) = lane.reader {
                *queues.entry(reader).or_default() += lane.queue_accounted;
            }
        }
        queues
    }
}
