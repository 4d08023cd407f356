//! Whether connections to nodes are left unread for a while, because memory is short and clients may be about to take what waits for them.
//!
//! What had been asked before memory was short still comes, as fast as nodes send it, and how large it is was not known. A client that reads
//! makes room for it soon; of one that does not, that is known only after a while. Meanwhile nodes are not read, and that time counts for no
//! deadline: replies may have come.
//!
//! Only what answers requests waits. Messages are bounded by what a subscriber may leave unread, and a node disconnects a subscriber that does not take them.

use crate::ids::LaneId;
use crate::pool::{Lane, LaneUse};

/// What one worker leaves unread.
#[derive(Debug, Default)]
pub(crate) struct NodeReads {
    stopped_us: Option<u64>,
    /// For how long they had been left unread before, as far as that was not taken.
    unread_us: u64,
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

    /// For how long they have been left unread, in many short times or in one, if that is so long; it is counted anew from now on.
    pub(crate) fn take_unread_time(&mut self, now_us: u64, at_least_us: u64) -> Option<u64> {
        let passed_us = self.stopped_us.map_or(0, |since_us| now_us.saturating_sub(since_us));
        let unread_us = self.unread_us + passed_us;
        if unread_us == 0 || unread_us < at_least_us {
            return None;
        }
        self.unread_us = 0;
        self.stopped_us = self.stopped_us.map(|_| now_us);
        Some(unread_us)
    }

    /// They are read again. Returns the places of those on which something has come: a connection keeps its place with its next client,
    /// whose handle is another.
    pub(crate) fn go_on(&mut self, now_us: u64) -> Vec<LaneId> {
        self.unread_us += self.stopped_us.take().map_or(0, |since_us| now_us.saturating_sub(since_us));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_short_times_unread_add_up() {
        let mut reads = NodeReads::default();
        for start_us in [1_000, 2_000, 3_000] {
            assert!(reads.stop(start_us));
            assert_eq!(reads.take_unread_time(start_us + 900, 3_000), None);
            reads.go_on(start_us + 900);
        }
        assert_eq!(reads.take_unread_time(10_000, 2_700), Some(2_700));
        assert_eq!(reads.take_unread_time(10_000, 0), None, "it is counted once");
        reads.stop(20_000);
        assert_eq!(reads.take_unread_time(20_500, 400), Some(500));
        assert_eq!(reads.take_unread_time(20_900, 400), Some(400), "and from then on");
    }
}
