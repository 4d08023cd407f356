//! What a client of the seeded world waits for, and what else is right if a node fails it.

/// What a client waits for, in order.
#[derive(Debug, PartialEq)]
pub(super) enum Expected {
    /// Exactly this, or an error about a node.
    Reply(Vec<u8>),
    /// Exactly this: it is made by the proxy itself.
    Own(Vec<u8>),
    /// As the first; and a database is selected by it, or, if it fails, none is any more.
    Selects(Vec<u8>),
    /// The end of a transaction for which keys are watched: as the first, or as the one before (`true`).
    Watched(Vec<u8>, bool),
    /// To a WATCH: as the first. Where it fails nothing is watched, and its client may know that: then this is right as well for
    /// the end of the transaction.
    Watches(Vec<u8>),
}

impl Expected {
    /// What is right if nothing comes between.
    pub(super) fn right(&self) -> &[u8] {
        match self {
            Self::Reply(right) | Self::Own(right) | Self::Selects(right) | Self::Watched(right, _) => right,
            Self::Watches(_) => b"+OK\r\n",
        }
    }

    /// What is right once it is known what became of the WATCH before it. `unwatched` is what the next transaction is answered
    /// if nothing is watched.
    pub(super) fn heed_watch(self, reply: &[u8], unwatched: &mut Option<Vec<u8>>) -> Self {
        match self {
            Self::Watches(all) => {
                *unwatched = (reply != b"+OK\r\n").then_some(all);
                Self::Reply(b"+OK\r\n".to_vec())
            }
            Self::Watched(right, selects) => {
                let unwatched = unwatched.take().filter(|all| all == reply);
                Self::Watched(unwatched.unwrap_or(right), selects)
            }
            other => other,
        }
    }
}
