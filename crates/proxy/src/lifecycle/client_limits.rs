//! What one worker remembers of clients that hold more than a server with an engine lets them.

use crate::ids::ClientHandle;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct ClientLimits {
    /// When the clients' memory is added up again: the account that is looked at in every turn has more in it than what clients hold.
    pub(super) summed_again_us: u64,
    /// What clients held when it was added up last, and what was in that account then.
    pub(super) summed: (usize, usize),
    /// The clients that are beyond a soft limit, and since when.
    pub(super) over_soft: BTreeMap<ClientHandle, u64>,
}
