//! The end of a worker: at once when the process is told to end, later when another process goes on with its listeners.
//!
//! ```text
//!   serving --Retire--> retiring: none is accepted, those that are there are served as ever
//!      |                   |  no client is there any more, or the drain's time is over
//!      +-----Drain---------+--> draining: none is read; a client that is owed nothing is closed, between two replies
//!                                  |  no client is there any more, and nodes have answered all that they were sent;
//!                                  |  or the drain's time is over (again)
//!                                  +--> the worker ends
//! ```
//!
//! A request that has been read is sent and its answer waited for, whether its client wants that or is still there at all: a
//! node drops what it has not read of a connection that is closed. What the drain's time cuts off is counted and told.

use crate::env::Env;
use crate::pool::{Lane, LaneUse};
use respool_command::Execute;

/// What there is of a worker's end so far, in microseconds of the monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DrainProgress {
    pub(crate) since_us: u64,
    pub(crate) until_us: Option<u64>,
}

impl<E: Execute> Env<E> {
    /// How many requests nodes have been sent, or will be, and have not answered. A PING of our own is none.
    pub(crate) fn unanswered_requests(&self) -> usize {
        let asks = |lane: &&Lane| {
            !lane.is_retired && !matches!(lane.purpose, LaneUse::Push | LaneUse::Listen | LaneUse::Dedicated)
        };
        let owed = |lane: &Lane| lane.up.tickets().len().saturating_sub(usize::from(lane.probed_us > 0));
        self.lanes.all.iter().filter(asks).map(owed).sum()
    }
}
