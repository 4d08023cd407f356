//! Giving back the memory of tables that a crowd has made large, once it has left.
//!
//! Nothing of it is on the way of a request: it is looked at once a second whether most of a table is unused.

use crate::limits::TIDY_US;
use crate::worker::Worker;
use respool_command::Execute;

/// When tables are looked at.
#[derive(Debug, Default)]
pub(crate) struct TableShrink {
    at_us: u64,
}

impl<E: Execute> Worker<E> {
    /// Makes tables smaller of which most is unused, if their time has come.
    pub(crate) fn tidy_tables(&mut self) {
        if self.env.now.mono_us < self.tidying.at_us {
            return;
        }
        self.tidying.at_us = self.env.now.mono_us + TIDY_US;
        self.env.clients.shrink();
        self.env.scatters.shrink();
        self.env.tasks.shrink();
        self.blocking.requests.shrink();
        self.subscriptions.shrink();
    }
}
