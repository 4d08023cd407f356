//! The clock of a test server. What follows it is what clients see; what the server waits for by itself follows the kernel.

use std::time::{Duration, SystemTime};

use super::running::Running;

/// The clock of a server.
///
/// It moves all that clients see of time: deadlines of keys and of fields of hashes, with their events and invalidations, `TIME`, the ids
/// of `XADD`, `OBJECT IDLETIME` and `OBJECT FREQ`, `LASTSAVE`, the times in `SLOWLOG`, `LATENCY`, `ACL LOG` and `MONITOR`, what scripts see of
/// these, the timeouts of `BLPOP`, `XREAD BLOCK` and `WAIT`, and the end of `CLIENT PAUSE`.
///
/// Not moved is what is about this process and its sockets: how long a client has been connected or idle (`CLIENT LIST`, `timeout`),
/// `uptime_in_seconds`, how long a command or a script takes, and rates that a user is allowed.
///
/// A script and a transaction see one time from beginning to end, as in Redis, and what a slow script holds up is held up though the
/// clock is moved.
#[derive(Clone, Copy, Debug)]
pub struct TestClock<'a> {
    pub(super) server: &'a Running,
}

impl TestClock<'_> {
    /// What time it is.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        self.server.clock.time()
    }

    /// Has so much time pass at once. When this returns, keys whose time has come are gone, with their events on their way before the
    /// reply to any later request, and clients whose timeouts are over have been answered. What a client sends from then on is seen later.
    ///
    /// A clock is moved to the end of the year 9999 at most.
    pub fn advance(&self, by: Duration) {
        self.server.clock.advance(by);
        self.server.settle();
    }

    /// Sets it. To a later time it is as [`TestClock::advance`]. To an earlier one it is as if an administrator had set the clock of a server
    /// back: keys live longer, and timeouts, which are no times of day, are what is left of them.
    pub fn set(&self, time: SystemTime) {
        self.server.clock.set(time);
        self.server.settle();
    }

    /// Stops it: no time passes but by the calls above.
    pub fn freeze(&self) {
        self.server.clock.set_frozen(true);
        self.server.settle();
    }

    /// Has it go on from where it is.
    pub fn run(&self) {
        self.server.clock.set_frozen(false);
        self.server.settle();
    }

    /// Whether it stands still.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.server.clock.is_frozen()
    }
}
