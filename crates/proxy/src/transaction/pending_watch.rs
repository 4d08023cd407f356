//! A WATCH that waits for its nodes.

use crate::error_text;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::id::Asker;
use crate::session::table::Clients;
use respool_wire::replies;

/// A WATCH that waits for its nodes.
#[derive(Debug)]
pub(crate) struct PendingWatch {
    pub(crate) asker: Asker,
    pub(crate) is_wanted: bool,
    pub(crate) awaited: usize,
    pub(crate) error: Option<Vec<u8>>,
    /// Its client watched something before.
    pub(crate) has_watched: bool,
}

impl PendingWatch {
    fn take(&mut self, reply: &[u8], clients: &mut Clients) -> Progress {
        // No node answers WATCH with anything else: what comes on this connection is no reply to what is asked on it.
        let is_doubtful = reply != replies::OK && !reply.starts_with(b"-");
        if reply != replies::OK {
            if let Some(session) = clients.sessions.get_mut(self.asker.session) {
                session.pins_mut().failure.note(self.has_watched);
            }
            self.error.get_or_insert_with(|| if is_doubtful { error_text::pin_lost() } else { reply.to_vec() });
        }
        self.awaited -= 1;
        if self.awaited > 0 && !is_doubtful {
            return Progress::Waits;
        }
        let reply = match &self.error {
            _ if !self.is_wanted => &[][..],
            Some(error) => error,
            None => replies::OK,
        };
        clients.feed(self.asker.session, self.asker.seq, reply, true);
        if is_doubtful { Progress::OutOfStep } else { Progress::Through }
    }
}

impl InternalTask for PendingWatch {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.take(reply.bytes, clients)
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, clients: &mut Clients) -> Progress {
        self.take(lost.error, clients)
    }
}
