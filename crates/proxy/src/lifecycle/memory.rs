//! When the process holds more bytes than it may: first no new client is accepted and nothing more is read, which is enough
//! for clients that take their replies; then the largest client of all workers is disconnected, and the next largest.
//!
//! Workers agree on who is largest without asking each other: in every interval each bids the bytes of its largest client,
//! and in the next one the highest bidder disconnects it.

use crate::limits::{PRESSURE_EXCESS_DIVISOR, PRESSURE_INTERVAL_US, PRESSURE_PATIENCE_US};
use crate::session::forced_disconnect::DisconnectReason;
use crate::session::id::ClientId;
use crate::session::{Pause, Session};
use crate::worker::Worker;
use respool_command::Execute;
use std::sync::atomic::{AtomicU64, Ordering};

/// The highest bid of an interval: its number in the upper bits, kibibytes in the lower.
#[derive(Debug, Default)]
pub(crate) struct EvictionVote {
    /// One for even intervals, one for odd ones, so that the last one's stands while the next is made.
    bids: [AtomicU64; 2],
}

const SIZE_BITS: u32 = 40;

impl EvictionVote {
    /// Bids in an interval.
    pub(crate) fn bid(&self, interval: u64, bytes: usize) {
        self.bids[interval as usize % 2].fetch_max(pack(interval, bytes), Ordering::Relaxed);
    }

    /// Whether a bid was the highest of an interval.
    pub(crate) fn is_highest(&self, interval: u64, bytes: usize) -> bool {
        self.bids[interval as usize % 2].load(Ordering::Relaxed) == pack(interval, bytes)
    }
}

fn pack(interval: u64, bytes: usize) -> u64 {
    let size = (bytes as u64 / 1024).min((1 << SIZE_BITS) - 1);
    (interval << SIZE_BITS) | size
}

/// What one worker knows of the pressure.
#[derive(Debug, Default)]
pub(crate) struct MemoryPressure {
    /// Since when too much has been held; 0 if it is not.
    since_us: u64,
    /// The last bid: interval and bytes.
    last: Option<(u64, usize)>,
}

impl<E: Execute> Worker<E> {
    /// Reads clients again that had to wait for memory, or disconnects the largest. Returns whether there is too little.
    pub(crate) fn relieve_pressure(&mut self) -> bool {
        let budget = self.env.config.budgets.process;
        if self.env.shared.ledger.held_bytes() > budget {
            // Spare buffers go first.
            self.env.clients.pool.empty();
            self.env.shared.last_words().forget();
            self.account_tables();
        }
        let held = self.env.shared.ledger.held_bytes();
        let now_us = self.env.now.mono_us;
        if held <= budget {
            self.pressure = MemoryPressure::default();
            let waiting = self.env.clients.sessions.iter().filter(|(_, s)| s.pause.has(Pause::PRESSURE));
            let waiting: Vec<ClientId> = waiting.map(|(index, _)| index).collect();
            waiting.into_iter().for_each(|index| self.env.clients.unpause(index, Pause::PRESSURE));
            return false;
        }
        if self.pressure.since_us == 0 {
            self.pressure.since_us = now_us;
        }
        let is_excessive = held - budget > budget / PRESSURE_EXCESS_DIVISOR;
        if is_excessive || now_us - self.pressure.since_us >= PRESSURE_PATIENCE_US {
            self.disconnect_largest();
        }
        true
    }

    fn disconnect_largest(&mut self) {
        let queues = self.env.queues_of_clients();
        let queue_of = |index| self.env.clients.sessions.handle(index).and_then(|handle| queues.get(&handle)).copied();
        let held_by = |(index, s): (ClientId, &Session)| (s.held_bytes() + queue_of(index).unwrap_or(0), index);
        // As in Redis, CLIENT NO-EVICT keeps a client connected however much is held for it.
        let may_go = |(_, session): &(ClientId, &Session)| !session.details.is_no_evict;
        let largest = self.env.clients.sessions.iter().filter(may_go).map(held_by).max();
        let Some((bytes, index)) = largest.filter(|(bytes, _)| *bytes > 0) else { return };
        // The monotonic clock is the same for all workers.
        let interval = self.env.now.mono_us / PRESSURE_INTERVAL_US % (1 << (64 - SIZE_BITS));
        if let Some((before, bid)) = self.pressure.last.filter(|(before, _)| *before != interval) {
            self.pressure.last = None;
            if before + 1 == interval && self.env.shared.ledger.auction.is_highest(before, bid) {
                self.env.cut_off(index, DisconnectReason::Memory);
                return;
            }
        }
        if self.pressure.last.is_none() {
            self.env.shared.ledger.auction.bid(interval, bytes);
            self.pressure.last = Some((interval, bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EvictionVote;

    #[test]
    fn the_highest_bidder_of_an_interval_wins_and_old_bids_do_not_count() {
        let auction = EvictionVote::default();
        auction.bid(7, 5_000_000);
        auction.bid(7, 9_000_000);
        auction.bid(7, 1_000);
        assert!(auction.is_highest(7, 9_000_000));
        assert!(!auction.is_highest(7, 5_000_000));
        auction.bid(8, 1_000);
        assert!(auction.is_highest(7, 9_000_000), "the next interval has a place of its own");
        auction.bid(9, 2_000);
        assert!(auction.is_highest(9, 2_000), "a later interval's small bid beats an earlier one's large bid");
        assert!(!auction.is_highest(7, 9_000_000));
    }
}
