//! What waits for nodes, in the account of the process: the queues of all connections, whatever uses them, and the tables
//! that grow with them.
//!
//! A queue is looked at where it has just not been written, or not to its end, so requests that leave in their turn are
//! never counted; neither are few that are not answered. What waits on a client's own connection counts for that client when
//! the largest has to go. Tables are looked at whenever timers are.

use crate::env::Env;
use crate::ids::{ClientHandle, LaneId};
use crate::limits::{QUEUE_COUNTED_BYTES_MIN, QUEUE_COUNTED_TICKETS_MIN, SPARE_BUFFERS_BYTES_MAX};
use crate::pool::{Lane, Lanes};
use crate::workers::shared::Shared;
use respool_command::Execute;
use std::collections::HashMap;

impl Lane {
    /// Whether the account may not be what it should be.
    #[inline]
    pub(crate) fn is_queue_of_note(&self) -> bool {
        self.queue_accounted > 0 || self.has_long_queue()
    }

    #[inline]
    fn has_long_queue(&self) -> bool {
        self.up.queued_bytes() >= QUEUE_COUNTED_BYTES_MIN || self.up.tickets().len() >= QUEUE_COUNTED_TICKETS_MIN
    }
}

impl<E: Execute> Env<E> {
    /// Brings what the account has of queues that have been counted, and of tables, up to date. `held_bytes`: what tables of
    /// features hold.
    pub(crate) fn account_tables(&mut self, held_bytes: usize) {
        for lane in self.lanes.all.ids() {
            if self.lanes[lane].queue_accounted > 0 {
                self.lanes.account_queue(&self.shared, lane);
            }
        }
        if self.clients.pool.held_bytes() > SPARE_BUFFERS_BYTES_MAX {
            self.clients.pool.shrink();
        }
        let held = self.scatters.held_bytes() + held_bytes;
        self.shared.ledger.account(self.tables_accounted, held);
        self.tables_accounted = held;
    }

    /// Makes tables smaller of which most is unused.
    pub(crate) fn shrink_tables(&mut self) {
        self.clients.shrink();
        self.scatters.shrink();
        self.tasks.shrink();
    }
}

impl Lanes {
    /// Brings what the account has of a lane's queue up to date.
    #[cold]
    pub(crate) fn account_queue(&mut self, shared: &Shared, lane: LaneId) {
        let this = &mut self[lane];
        let counted = if this.has_long_queue() { this.up.held_bytes() } else { 0 };
        shared.ledger.account(this.queue_accounted, counted);
        this.queue_accounted = counted;
    }

    /// Bytes that wait for nodes on connections that clients have to themselves, by client.
    pub(crate) fn queues_of_clients(&self) -> HashMap<ClientHandle, usize> {
        let mut queues = HashMap::new();
        for lane in self.all.iter().filter(|lane| lane.queue_accounted > 0) {
            if let Some(reader) = lane.lease.reader() {
                *queues.entry(reader).or_default() += lane.queue_accounted;
            }
        }
        queues
    }
}
