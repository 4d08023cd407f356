//! Whether connections to nodes are left unread for a while, because memory is short and clients may be about to take what waits for them.
//!
//! What had been asked before memory was short still comes, as fast as nodes send it, and how large it is was not known. A client that reads
//! makes room for it soon; of one that does not, that is known only after a while. Meanwhile nodes are not read, and that time counts for no
//! deadline: replies may have come.
//!
//! Only what answers requests waits. Messages are bounded by what a subscriber may leave unread, and a node gives up who does not take them.

use crate::ids::LaneId;
use crate::pool::{Lane, LaneUse};

/// What one worker leaves unread.
#[derive(Debug, Default)]
pub(crate) struct NodeReads {
    stopped_us: Option<u64>,
    unread: Vec<LaneId>,
}

impl NodeReads {
    #[inline(always)]
    pub(crate) fn are_stopped(&self) -> bool {
        self.stopped_us.is_some()
    }

    /// Connections are left unread from now on. Returns whether they were read before.
    pub(crate) fn stop(&mut self, now_us: u64) -> bool {
        let were_read = !self.are_stopped();
        self.stopped_us.get_or_insert(now_us);
        were_read
    }

    /// Since when they are left unread, if that is so long; it is counted anew from now on.
    pub(crate) fn unread_since(&mut self, now_us: u64, at_least_us: u64) -> Option<u64> {
        let since_us = self.stopped_us.filter(|since_us| now_us.saturating_sub(*since_us) >= at_least_us)?;
        self.stopped_us.replace(now_us).map(|_| since_us)
    }

    /// They are read again. Returns the places of those on which something has come: a connection keeps its place with its next client,
    /// whose handle is another.
    pub(crate) fn go_on(&mut self) -> Vec<LaneId> {
        self.stopped_us = None;
        std::mem::take(&mut self.unread)
    }

    /// Something has come over a connection. Whether it is left there.
    #[inline(always)]
    pub(crate) fn leaves(&mut self, lane: LaneId, this: &mut Lane) -> bool {
        self.are_stopped() && self.leave(lane, this)
    }

    #[cold]
    fn leave(&mut self, lane: LaneId, this: &mut Lane) -> bool {
        let answers = matches!(this.purpose, LaneUse::Shared | LaneUse::Private | LaneUse::Own | LaneUse::Leaving);
        let is_left = answers && this.up.is_ready();
        if is_left && !std::mem::replace(&mut this.is_left, true) {
            self.unread.push(lane);
        }
        is_left
    }
}
