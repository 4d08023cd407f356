//! Why clients are disconnected, and which of that is put into the log.

use crate::ids::ClientHandle;
use crate::limits::{CUT_OFF_LINES_MAX, CUT_OFF_LINES_US};

/// Why a client is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisconnectReason {
    /// It is owed more than it may be, and what it is owed cannot wait at its nodes.
    Output,
    /// It has been owed more than its soft limit for too long.
    SoftLimit,
    /// All clients hold too much, and it is one of those that hold most.
    ClientMemory,
    /// The process holds too much, and this client the most of it.
    Memory,
    /// It has not authenticated and leaves replies unread.
    Unauthenticated,
    /// It does not keep up with the messages it has subscribed to.
    Subscriber,
    /// It does not keep up with what it monitors, and replies have no limit.
    Monitor,
    /// It has sent half of a large request.
    Stalled,
    /// A node failed in the middle of a reply of which the client has the beginning.
    Broken,
    /// It follows all nodes, and their streams cannot be made one any more.
    Unmerged(&'static str),
}

impl DisconnectReason {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Output => "it is owed more than client_output_hard_bytes",
            Self::SoftLimit => "it is owed more than the soft limit of client-output-buffer-limit for too long",
            Self::ClientMemory => "all clients hold more than maxmemory-clients, and this one much of it",
            Self::Memory => "the process holds more than process_bytes, and this client the most of it",
            Self::Unauthenticated => "it has not authenticated and does not read its replies",
            Self::Subscriber => "it does not keep up with its messages (subscriber_output_bytes)",
            Self::Monitor => "it does not keep up with what it monitors",
            Self::Stalled => "it sent half of a large request and then nothing",
            Self::Broken => "a node failed in the middle of a reply",
            Self::Unmerged(why) => why,
        }
    }
}

/// A pending disconnect: it is carried out as soon as nothing is borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingDisconnect {
    pub(crate) client: ClientHandle,
    pub(crate) why: DisconnectReason,
    /// What it was owed.
    pub(crate) bytes: usize,
}

/// Lines of one worker about such clients.
#[derive(Debug, Default)]
pub(crate) struct DisconnectLog {
    since_us: u64,
    pub(crate) lines: u32,
    /// Clients that no line was about.
    pub(crate) untold: u64,
}

impl DisconnectLog {
    /// Whether there may be a line now, and how many clients were left out since the last.
    pub(crate) fn may_tell(&mut self, now_us: u64) -> Option<u64> {
        if now_us.saturating_sub(self.since_us) >= CUT_OFF_LINES_US {
            (self.since_us, self.lines) = (now_us, 0);
        }
        if self.lines >= CUT_OFF_LINES_MAX {
            self.untold += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_has_few_lines_and_the_next_says_how_many_there_were() {
        let mut lines = DisconnectLog::default();
        let told = (0..100).filter(|_| lines.may_tell(5 * CUT_OFF_LINES_US).is_some()).count();
        assert_eq!(told, CUT_OFF_LINES_MAX as usize);
        assert_eq!(lines.may_tell(6 * CUT_OFF_LINES_US), Some(100 - told as u64));
        assert_eq!(lines.may_tell(6 * CUT_OFF_LINES_US), Some(0));
    }
}
