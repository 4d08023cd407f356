//! What the time of a connection's next write depends on, and what is said of it.

/// When bytes for a node are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WritePolicy {
    /// At the end of every turn.
    EachTurn,
    /// While replies are outstanding on a fast link, with the next replies: what comes meanwhile shares one write. With
    /// nothing outstanding, at once. Bounded by bytes, age and round trip (see `limits`).
    #[default]
    ReplyClock,
}

/// Whether the replies of a connection are waited for before clients are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// No reply is outstanding.
    NothingOwed,
    /// Replies are due before then, on the monotonic clock.
    Until(u64),
    /// Replies are outstanding and may take their time.
    None,
}

/// What the time of the next write depends on.
#[derive(Debug, Default)]
pub(super) struct WriteTiming {
    pub(super) policy: WritePolicy,
    /// Replies came since the last write.
    pub(super) has_reply_come: bool,
    /// When the outbox last went from empty to not empty.
    pub(super) held_since_us: u64,
    /// Requests per write of late, in sixteenths.
    pub(super) usual_batch: usize,
}
