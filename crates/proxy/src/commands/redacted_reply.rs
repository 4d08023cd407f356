//! A node's reply that may hold secrets, on its way to a client that is not shown them.

use crate::ids::Asker;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskReply};
use crate::session::table::Clients;
use respool_command::VisibleSettings;

/// A request for what may hold secrets, on its way.
#[derive(Debug)]
pub(crate) struct RedactedConfigGet {
    pub(crate) asker: Asker,
    pub(crate) terms: VisibleSettings,
}

impl InternalTask for RedactedConfigGet {
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        clients.feed(self.asker.session, self.asker.seq, &self.terms.redact(reply.bytes), true);
        Progress::Through
    }

    fn asker(&self) -> Option<Asker> {
        Some(self.asker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;
    use respool_wire::ReplyKind;

    #[test]
    fn a_client_is_given_the_reply_without_its_secret() {
        let mut env = env_with_node();
        let client = env.test_client();
        let terms = VisibleSettings { has_password: None, is_admin: true, are_modules: false };
        let mut task = RedactedConfigGet { asker: env.test_asker(client), terms };
        let bytes = b"*2\r\n$10\r\nmasterauth\r\n$6\r\ncanary\r\n";
        let reply = TaskReply { step: 0, kind: ReplyKind::Array, bytes };
        assert_eq!(task.handle_reply(reply, &mut env.clients), Progress::Through);
        assert_eq!(env.take_output(client), "*2\r\n$10\r\nmasterauth\r\n$8\r\n(hidden)\r\n");
    }
}
