//! A large request that a connection is being sent while it arrives.

use crate::ids::ClientHandle;
use respool_connection::Seq;

/// What a lane knows of the request that is being passed on over it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamedRequest {
    pub(crate) client: ClientHandle,
    /// The place of its reply among the client's.
    pub(crate) seq: Seq,
    /// What waited when it was looked at last, in bytes.
    pub(crate) seen_bytes: usize,
    /// When that last changed.
    pub(crate) moved_us: u64,
}
