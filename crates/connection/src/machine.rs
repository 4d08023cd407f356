//! The seam between a pure machine and the loop that drives it.
//!
//! The loop owns sockets and clocks, the machine owns meaning. A turn of the loop is: [`Machine::begin_turn`] with the time,
//! one read for each ready connection, timers, [`Machine::end_turn`], then all actions and all outboxes. All bytes
//! for one connection that became ready during a turn leave in one write. The machine may hold bytes back for a later turn so
//! that more of them share a write: [`Machine::poll_output`] does not name their connection then, [`Machine::wait`] says what
//! the loop waits for, and [`Machine::next_wakeup_us`] when they leave at the latest.

use crate::Endpoint;
use std::sync::Arc;

/// The time at the beginning of a turn, read once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds of a monotonic clock with an arbitrary zero, which is the same for all workers of a process. Every
    /// deadline, rate and pause is made of it.
    pub mono_us: u64,
    /// Microseconds since the Unix epoch. It may be set back or forth at any time, so nothing but what is shown and when
    /// keys expire may depend on it.
    pub unix_us: u64,
    /// Microseconds of the clock by which requests of clients wait: the timeouts of BLPOP and its like, and CLIENT PAUSE. It is the
    /// monotonic one, unless the program has moved the time that its clients see. It never goes back.
    pub client_us: u64,
    /// The time that clients see stands still.
    pub is_frozen: bool,
}

impl Now {
    /// The time by clocks that are not moved.
    #[inline]
    pub fn of_clocks(mono_us: u64, unix_us: u64) -> Self {
        Self { mono_us, unix_us, client_us: mono_us, is_frozen: false }
    }

    /// So much time has passed since it was read.
    pub fn pass(&mut self, us: u64) {
        self.mono_us += us;
        if !self.is_frozen {
            self.unix_us += us;
            self.client_us += us;
        }
    }

    /// When a deadline of `client_us` comes, on the monotonic clock. A deadline that has come is one that has just come. `None`: not before
    /// the clock is moved.
    #[inline]
    pub fn due_us(&self, deadline_us: u64) -> Option<u64> {
        match deadline_us.checked_sub(self.client_us) {
            None | Some(0) => Some(self.mono_us),
            Some(_) if self.is_frozen => None,
            Some(left_us) => Some(self.mono_us.saturating_add(left_us)),
        }
    }
}

/// A connection of one worker. The machine chooses the numbers and the loop uses them as tokens; both ends of the proxy
/// have a number space of their own so that each can be a dense table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId(u32);

/// Which end of a machine a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It was accepted: a client is at the other end.
    Client,
    /// It was dialled: a node is at the other end.
    Node,
}

impl ConnId {
    const UPSTREAM: u32 = 1 << 31;

    /// The connection to the client in place `index` of the machine's table.
    pub const fn client(index: u32) -> Self {
        assert!(index < Self::UPSTREAM);
        Self(index)
    }

    /// The connection to a node in place `index` of the machine's table.
    pub const fn upstream(index: u32) -> Self {
        assert!(index < Self::UPSTREAM);
        Self(index | Self::UPSTREAM)
    }

    /// Whether the connection leads to a node rather than to a client.
    pub const fn is_upstream(self) -> bool {
        self.0 & Self::UPSTREAM != 0
    }

    /// Which end of the machine the connection is at.
    #[inline]
    pub const fn role(self) -> Role {
        if self.is_upstream() { Role::Node } else { Role::Client }
    }

    /// The place in the table of its kind.
    pub const fn index(self) -> usize {
        (self.0 & !Self::UPSTREAM) as usize
    }

    /// The number as a whole, for the loop's tokens.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The inverse of [`Self::to_bits`].
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// Why a dial came to nothing. Each is told to the clients that waited for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialFailure {
    /// The host name could not be resolved.
    Unresolvable(String),
    /// The kernel or the peer refused, with its words.
    Refused(String),
    /// Nothing happened within the time given.
    TimedOut,
    /// This process may have no more files open. That says nothing of the peer.
    NoDescriptor,
}

/// What a machine asks of its loop. Bytes to write are not among them: they are taken from the outboxes.
#[derive(Debug)]
pub enum Action<ServiceAction> {
    /// Connect `conn` to `endpoint`, then call [`Machine::handle_connected`] or [`Machine::handle_dial_failed`].
    Dial {
        /// The number the connection will have.
        conn: ConnId,
        /// Where to.
        endpoint: Arc<Endpoint>,
    },
    /// Close `conn` at once. Unwritten bytes are lost; the machine calls nothing of it again.
    Close {
        /// Which connection.
        conn: ConnId,
    },
    /// Tell the client of `conn`, all of whose replies are written, that nothing more comes, and close when it has heard:
    /// what it still sends is thrown away, but does not cost it the replies that are on their way. The machine calls
    /// nothing of it again.
    Finish {
        /// Which connection.
        conn: ConnId,
    },
    /// Read `conn` again: it refused to be read earlier and no longer does.
    Resume {
        /// Which connection.
        conn: ConnId,
    },
    /// Try to write `conn` now, although its last write was cut short and nothing has said since that there is room: a kernel says so
    /// once a large part of its buffer is free, and takes less before. The loop calls [`Machine::handle_writable`], and
    /// [`Machine::handle_written`] with what was taken, which may be nothing.
    TryWrite {
        /// Which connection.
        conn: ConnId,
    },
    /// What this kind of machine asks of the process that it runs in.
    Service(ServiceAction),
}

/// What a loop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Whatever comes first.
    Anything,
    /// Bytes of nodes. What clients send need not be read before.
    Nodes {
        /// Not for longer, on the monotonic clock of [`Now`].
        until_us: u64,
    },
    /// First others may run once, so that clients on the same core can send; then bytes of nodes. If others did run, or the time
    /// has come, the loop looks at once. Where it cannot let others run, or they have run already, it calls
    /// [`Machine::flush_held`].
    Yielding {
        /// Not for longer, on the monotonic clock of [`Now`]. A time that has passed: not at all.
        until_us: u64,
    },
}

/// A component with connections that a loop drives: a pool of a client library needs no more. See the module's text for the order of
/// calls in a turn.
pub trait Machine {
    /// What it asks of its process: nothing ([`std::convert::Infallible`]) if it only dials, [`crate::ServiceAction`] if it is a
    /// [`crate::Service`].
    type ServiceAction;

    /// A turn begins; `now` holds for all of it.
    fn begin_turn(&mut self, now: Now);

    /// Where the next bytes of `conn` are to be read into, or `None` if it must not be read now. The loop then remembers
    /// that it may be readable and tries again after [`Action::Resume`].
    fn read_buffer(&mut self, conn: ConnId) -> Option<&mut [u8]>;

    /// `bytes` bytes were read into the buffer that [`Self::read_buffer`] just gave. Never 0.
    fn handle_read(&mut self, conn: ConnId, bytes: usize);

    /// The peer will send nothing more. The connection is still there, for replies that are on their way, until the machine
    /// has it closed; nothing more is read of it.
    fn handle_ended(&mut self, conn: ConnId);

    /// The peer has closed its side, as the kernel told; bytes of it may still be unread because the machine does not want
    /// them yet. [`Self::handle_ended`] follows once they have been read.
    fn handle_hung_up(&mut self, conn: ConnId) {
        let _ = conn;
    }

    /// The peer has closed both directions, or reset the connection: nothing written reaches it any more. Bytes of it may still
    /// be unread, and follow as after [`Self::handle_hung_up`].
    fn handle_gone(&mut self, conn: ConnId) {
        let _ = conn;
    }

    /// The connection broke, in the kernel's words; its number is free again.
    fn handle_broken(&mut self, conn: ConnId, error: &str);

    /// The address at which a dial of a host name succeeded. Called before [`Self::handle_connected`].
    fn handle_address(&mut self, conn: ConnId, address: &str) {
        let _ = (conn, address);
    }

    /// The host name by which a connection was dialled has resolved to these addresses, without the connection's own, several times
    /// in a row. Called for each such connection before anything else happens, and again while that goes on. They stay open.
    fn handle_moved(&mut self, conn: ConnId, addresses: &str) {
        let _ = (conn, addresses);
    }

    /// A dial succeeded.
    fn handle_connected(&mut self, conn: ConnId);

    /// A dial failed; the number is free again.
    fn handle_dial_failed(&mut self, conn: ConnId, failure: DialFailure);

    /// Everything that was ready has been read. Timers run here.
    fn end_turn(&mut self);

    /// The next thing to do, until there is none.
    fn poll_action(&mut self) -> Option<Action<Self::ServiceAction>>;

    /// The next connection with bytes to write, until there is none: then there is none before something else has been done. A
    /// connection comes again in the same turn only if all that it showed was written, and it has more.
    fn poll_output(&mut self) -> Option<ConnId>;

    /// The bytes that `conn` wants written first. What it has shown once it goes on showing, until it was told that the
    /// bytes were written: a loop that encrypts may have encrypted them already.
    fn output(&self, conn: ConnId) -> &[u8];

    /// The first `bytes` bytes of [`Self::output`] were written. If that was not all, the loop calls
    /// [`Self::handle_writable`] when there is room again.
    fn handle_written(&mut self, conn: ConnId, bytes: usize);

    /// `conn` can take bytes again after a short write. The machine lists it in [`Self::poll_output`] if it still wants.
    fn handle_writable(&mut self, conn: ConnId);

    /// What the loop waits for before the next turn.
    fn wait(&self) -> Wait {
        Wait::Anything
    }

    /// Others have run, or cannot: what is held for requests of clients is written in the next turn.
    fn flush_held(&mut self) {}

    /// Whether the loop tells by [`Self::handle_waited`] how long it waits, which costs it one look at the clock a turn.
    fn measures_waits(&self) -> bool {
        false
    }

    /// The loop has waited for so long, before it begins a turn; 0 if it had something left to do.
    fn handle_waited(&mut self, waited_us: u64) {
        let _ = waited_us;
    }

    /// When [`Self::end_turn`] wants to run next even if nothing happens, on the monotonic clock of [`Now`].
    fn next_wakeup_us(&self) -> Option<u64>;
}

#[cfg(test)]
mod tests {
    use super::{ConnId, Now};

    #[test]
    fn deadlines_of_clients_come_when_their_clock_says_so() {
        let now = Now { mono_us: 1_000, unix_us: 7, client_us: 50_000, is_frozen: false };
        assert_eq!([49_999, 50_000, 50_010].map(|at| now.due_us(at)), [Some(1_000), Some(1_000), Some(1_010)]);
        let frozen = Now { is_frozen: true, ..now };
        assert_eq!([49_999, 50_000, 50_010].map(|at| frozen.due_us(at)), [Some(1_000), Some(1_000), None]);
        let (mut later, mut still) = (now, frozen);
        later.pass(5);
        still.pass(5);
        assert_eq!(later, Now { mono_us: 1_005, unix_us: 12, client_us: 50_005, is_frozen: false });
        assert_eq!(still, Now { mono_us: 1_005, ..frozen });
    }

    #[test]
    fn both_number_spaces_survive_the_token() {
        for index in [0, 1, 77, (1 << 31) - 1] {
            let client = ConnId::from_bits(ConnId::client(index).to_bits());
            assert!(!client.is_upstream());
            assert_eq!(client.index(), index as usize);
            let upstream = ConnId::from_bits(ConnId::upstream(index).to_bits());
            assert!(upstream.is_upstream());
            assert_eq!(upstream.index(), index as usize);
        }
    }
}
