//! A WATCH that waits for its nodes.

use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::Asker;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskReply};
use crate::session::table::Clients;
use respool_wire::replies;

/// A WATCH that waits for its nodes.
#[derive(Debug)]
pub(crate) struct PendingWatch {
    pub(crate) asker: Asker,
    pub(crate) awaited: usize,
    pub(crate) error: Option<ErrorReply>,
    /// Its client watched something before.
    pub(crate) has_watched: bool,
}

impl PendingWatch {
    fn take(&mut self, reply: &[u8], clients: &mut Clients) -> Progress {
        // No node answers WATCH with anything else: what comes on this connection is no reply to what is asked on it.
        let is_doubtful = reply != replies::OK && !reply.starts_with(b"-");
        if reply != replies::OK {
            if let Some(session) = clients.sessions.get_mut(self.asker.session) {
                session.pins_mut().watches.failure.note(self.has_watched);
            }
            let error = || if is_doubtful { error_text::PIN_LOST.into() } else { ErrorReply::of_reply(reply) };
            self.error.get_or_insert_with(error);
        }
        self.awaited -= 1;
        if self.awaited > 0 && !is_doubtful {
            return Progress::Waits;
        }
        clients.fill(self.asker, self.error.as_ref().map_or(replies::OK, ErrorReply::as_bytes));
        if is_doubtful { Progress::OutOfStep } else { Progress::Through }
    }
}

impl InternalTask for PendingWatch {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        self.take(reply.bytes, clients)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;

    /// What becomes of a WATCH at several nodes that reply this.
    fn watch(is_wanted: bool, said: &[&str]) -> (Vec<Progress>, String, bool) {
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = Asker { is_wanted, ..env.test_asker(client) };
        let mut watch = PendingWatch { asker, awaited: said.len(), error: None, has_watched: true };
        let progress = said.iter().map(|reply| watch.take(reply.as_bytes(), &mut env.clients)).collect();
        let has_failed = env.test_session(client).pins.is_some();
        (progress, env.take_output(client), has_failed)
    }

    #[test]
    fn a_client_is_answered_once_all_nodes_watch() {
        use Progress::{Through, Waits};
        assert_eq!(watch(true, &["+OK\r\n", "+OK\r\n"]), (vec![Waits, Through], "+OK\r\n".to_owned(), false));
        assert_eq!(watch(false, &["+OK\r\n"]), (vec![Through], String::new(), false));
    }

    #[test]
    fn the_first_refusal_is_the_reply_and_no_exec_may_succeed() {
        use Progress::{Through, Waits};
        let (progress, output, has_failed) = watch(true, &["-ERR a\r\n", "-ERR b\r\n"]);
        assert_eq!((progress, output.as_str(), has_failed), (vec![Waits, Through], "-ERR a\r\n", true));
    }

    #[test]
    fn what_no_node_replies_to_watch_is_anothers_reply() {
        let (progress, output, has_failed) = watch(true, &[":1\r\n", "+OK\r\n"]);
        assert_eq!((progress[0], has_failed), (Progress::OutOfStep, true));
        assert!(output.starts_with('-'), "{output}");
    }
}
