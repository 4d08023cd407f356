//! A fault that was injected: whether it has met requests, and its end.

use std::time::Duration;

use super::running::Running;

/// A fault of a server. Dropping this changes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Injected<'a> {
    pub(super) server: &'a Running,
    pub(super) number: usize,
}

impl Injected<'_> {
    /// How many requests it has met.
    #[must_use]
    pub fn met(&self) -> u64 {
        self.server.faults.met(self.number)
    }

    /// Waits until it has met so many. Whether it did `within` that time.
    #[must_use]
    pub fn wait_for(&self, requests: u64, within: Duration) -> bool {
        Running::wait_for(within, || self.met() >= requests)
    }

    /// Ends it. What hangs because of it goes on.
    pub fn lift(&self) {
        self.server.faults.lift(self.number);
        self.server.let_go_on();
    }
}
