//! What a client counts.

/// What a client has done, and what waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests that wait for replies, those whose callers have left among them.
    pub in_flight: usize,
    /// Places of callers that are taken.
    pub callers: usize,
    /// Requests that were queued.
    pub requests: u64,
    /// Writes to the socket.
    pub writes: u64,
    /// Reads from the socket.
    pub reads: u64,
    /// Connections that were made for all callers; those of their own do not count.
    pub connections: u64,
    /// Of them, those that were made in the place of one that was lost.
    pub reconnects: u64,
    /// Redirects of a cluster that were followed (`MOVED`, `ASK`).
    pub redirects: u64,
    /// Of the requests, those that went by connections for large ones, see [`Config::large`](crate::Config::large).
    pub large: u64,
    /// Connections of their own, of blocking requests and watched keys.
    pub lanes: usize,
    /// Of them, those that are free.
    pub lanes_free: usize,
    /// Replies by which a server has taken something for a blocking request whose caller had left, see
    /// [`Event::Orphan`](crate::Event::Orphan).
    pub orphans: u64,
}
