//! Why a request that may wait is to wait no longer, as operators, clients and other features say to the feature whose requests wait.

/// Why a request is to wait no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    /// `CLIENT UNBLOCK id`: as if its time had run out.
    Timeout,
    /// `CLIENT UNBLOCK id ERROR`.
    Error,
    /// Its client has closed its side right behind it: what the node has at once is the client's, and if it has nothing the
    /// client is dropped.
    HalfClosed,
    /// Its client has left, or has closed its side while the request waited: nothing may be taken for it any more, and the
    /// client is dropped.
    Vanished,
    /// The worker ends: its client is closed, behind what has been taken for it.
    Drained,
    /// The settings name another place for it: it is asked again there, if nothing has been taken for it.
    Moved,
}

impl Release {
    /// Whether its client is closed without a reply if there is none.
    pub(crate) fn drops_client(self) -> bool {
        matches!(self, Self::HalfClosed | Self::Vanished | Self::Drained)
    }
}
