//! What the bytes that are held on all connections of a machine wait for together.

use super::wake_on::WakeOn;
use crate::machine::Wait;

/// The decisions of one turn.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// When the first of them is written at the latest.
    until_us: u64,
    /// The same for those that wait for requests to arrive.
    deadline_us: u64,
    is_for_clients: bool,
}

impl Default for Held {
    fn default() -> Self {
        Self { until_us: u64::MAX, deadline_us: u64::MAX, is_for_clients: false }
    }
}

impl Held {
    /// Bytes are held.
    #[inline]
    pub fn note(&mut self, until_us: u64, wake_on: WakeOn) {
        self.until_us = self.until_us.min(until_us);
        match wake_on {
            WakeOn::Clients => self.is_for_clients = true,
            WakeOn::Deadline => self.deadline_us = self.deadline_us.min(until_us),
            WakeOn::Replies | WakeOn::Anything => {}
        }
    }

    /// Nothing waits for clients any longer.
    pub fn forget_clients(&mut self) {
        self.is_for_clients = false;
    }

    /// Whether some wait for clients that are about to send.
    #[inline]
    pub fn is_for_clients(&self) -> bool {
        self.is_for_clients
    }

    /// Whether some wait for requests that are likely to arrive.
    #[inline]
    pub fn is_for_arrivals(&self) -> bool {
        self.deadline_us < u64::MAX
    }

    /// When a turn has to come at the latest, on the monotonic clock.
    #[inline]
    pub fn until_us(&self) -> u64 {
        self.until_us
    }

    /// Until when something else may wait for replies that are waited for until `replies_until_us`. Requests have an end of their own, and
    /// while they wait for arrivals nothing waits for nodes alone.
    #[inline]
    pub fn replies_until_us(&self, replies_until_us: impl FnOnce() -> Option<u64>) -> Option<u64> {
        if self.is_for_arrivals() { None } else { Some(replies_until_us()?.min(self.until_us)) }
    }

    /// What the loop waits for. `replies_until_us`: replies are worth waiting for until then, and clients need not be read.
    #[inline]
    pub fn wait(&self, replies_until_us: impl FnOnce() -> Option<u64>) -> Wait {
        if self.is_for_clients {
            Wait::Yielding { until_us: 0 }
        } else if self.is_for_arrivals() {
            Wait::Yielding { until_us: self.deadline_us }
        } else {
            replies_until_us().map_or(Wait::Anything, |until_us| Wait::Nodes { until_us })
        }
    }
}
