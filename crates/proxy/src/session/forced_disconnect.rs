//! Clients that are disconnected because of what they leave unread or unsaid: each is counted, and told of in the log.
//!
//! A crowd that is cut off at once must not fill the log: beyond a rate the lines are left out, and the next one says how
//! many were.

use crate::env::Env;
use crate::hooks::Event;
use crate::limits::{CUT_OFF_LINES_MAX, CUT_OFF_LINES_US};
use crate::session::id::{ClientHandle, ClientId};
use respool_command::Execute;

/// Why a client is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DisconnectReason {
    /// It is owed more than it may be, and what it is owed cannot wait at its nodes.
    Output,
    /// The process holds too much, and this client the most of it.
    Memory,
    /// It has not authenticated and leaves replies unread.
    Unauthenticated,
    /// It does not keep up with the messages it has subscribed to.
    Subscriber,
    /// It has sent half of a large request.
    Stalled,
    /// A node failed in the middle of a reply of which the client has the beginning.
    Broken,
    /// It follows all nodes, and their streams cannot be made one any more.
    Unmerged(&'static str),
}

impl DisconnectReason {
    fn words(self) -> &'static str {
        match self {
            Self::Output => "it is owed more than client_output_hard_bytes",
            Self::Memory => "the process holds more than process_bytes, and this client the most of it",
            Self::Unauthenticated => "it has not authenticated and does not read its replies",
            Self::Subscriber => "it does not keep up with its messages (subscriber_output_bytes)",
            Self::Stalled => "it sent half of a large request and then nothing",
            Self::Broken => "a node failed in the middle of a reply",
            Self::Unmerged(why) => why,
        }
    }
}

/// A client that is to be disconnected as soon as nothing is borrowed.
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
    lines: u32,
    /// Clients that no line was about.
    untold: u64,
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

impl<E: Execute> Env<E> {
    /// Disconnects a client.
    #[cold]
    pub(crate) fn cut_off(&mut self, index: ClientId, why: DisconnectReason) {
        let Some(client) = self.clients.sessions.handle(index) else { return };
        let bytes = self.clients.sessions.get(client).map_or(0, |session| session.held_bytes());
        self.cut_off_doomed(PendingDisconnect { client, why, bytes });
    }

    /// Disconnects a client that was to be.
    #[cold]
    pub(crate) fn cut_off_doomed(&mut self, doomed: PendingDisconnect) {
        let PendingDisconnect { client, why, bytes } = doomed;
        let Some(session) = self.clients.sessions.get(client) else { return };
        match why {
            DisconnectReason::Output | DisconnectReason::Unauthenticated => self.counters.clients_cut_off.add(1),
            DisconnectReason::Memory => {
                self.counters.clients_cut_off.add(1);
                self.counters.clients_cut_off_for_memory.add(1);
            }
            DisconnectReason::Subscriber => self.counters.subscribers_cut_off.add(1),
            DisconnectReason::Stalled => self.counters.clients_stalled.add(1),
            DisconnectReason::Broken | DisconnectReason::Unmerged(_) => self.counters.clients_broken_off.add(1),
        }
        if let Some(untold) = self.cut_off_lines.may_tell(self.now.mono_us) {
            self.shared.hooks.tell(&Event::ClientCutOff {
                client: session.id,
                address: session.details.peer.address.clone(),
                user: String::from_utf8_lossy(session.user_name()).into_owned(),
                bytes,
                why: why.words(),
                untold,
            });
        }
        self.close_client(client.index);
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
