//! What makes something a local node: one verb, a clock, and a word on what has changed. Nothing else; a fourth method would mean
//! that it is a command, or none of a node's business.
//!
//! What a session watches is a matter of commands. A node keeps it, by the session's number, from `WATCH` on until `EXEC`,
//! `DISCARD` or `UNWATCH`. `EXEC` is asked before the first command of a transaction, which the caller then runs one by one:
//! it is answered with a null array if something has changed that is watched, and with nothing if the transaction may run.

use respool_wire::{Args, Encoder};

use crate::Row;

/// Something that executes requests in this process.
pub trait Execute {
    /// Runs one request and writes its reply, unless it is parked. The caller has resolved the row and checked the arity.
    ///
    /// The request is borrowed: whatever is kept of it is copied. A session that has parked a request sends no other one
    /// before the parked one is answered.
    fn execute(
        &mut self,
        row: &'static Row,
        args: Args<'_>,
        session: &mut SessionView,
        reply: &mut Encoder<'_>,
    ) -> Outcome;

    /// Lets time pass: wakes who waits, expires what has expired. Returns when it wants to be called next, or `None` if
    /// only a request can make it necessary.
    fn tick(&mut self, now: Millis) -> Option<Millis>;

    /// Gives to `see` the keys that have changed, come or gone since it was last asked, `None` for all keys; more than have changed
    /// is never wrong. Whether it keeps them from now on, until it is asked again, is what `is_wanted` says.
    fn changes(&mut self, _is_wanted: bool, _see: &mut dyn FnMut(Option<&[u8]>)) {}
}

/// A point in time in milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(pub u64);

/// What a local node may know of the session that asks, and may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionView {
    /// The database that the session has selected.
    pub database: u32,
    /// The time of the request.
    pub now: Millis,
    /// The number under which the session is known to clients (`CLIENT ID`).
    pub client_id: u64,
    /// Bytes that the node keeps of what the session watches, as it has said when it was last asked to watch.
    pub watched_bytes: usize,
    /// A parked request is executed again, for one key, because that key has changed.
    pub has_waited: bool,
}

/// How a local node left a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The reply was written.
    Done,
    /// The request is blocked; its reply comes later. The reply buffer holds no reply but the request to re-execute, with ids in
    /// the place of `$`; it is empty if the original request is re-executed unchanged.
    Parked,
}
