//! PING of a RESP2 subscriber, on its way to a node.

use crate::ids::Asker;
use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskReply};
use crate::session::table::Clients;
use respool_wire::{Encoder, Protocol};

/// A PING that a RESP2 subscriber has sent, outstanding at the node: the reply has another form for such a client.
#[derive(Debug)]
pub(crate) struct SubscriberPing {
    pub(crate) asker: Asker,
    pub(crate) text: Box<[u8]>,
}

impl InternalTask for SubscriberPing {
    /// Passes on the node's reply.
    fn handle_reply(&mut self, reply: TaskReply<'_>, clients: &mut Clients) -> Progress {
        let Asker { session, seq, .. } = self.asker;
        match reply.kind.is_error() {
            true => clients.feed(session, seq, reply.bytes, true),
            false => {
                clients.finish(session, seq, |out| write_pong(&mut Encoder::new(out, Protocol::Resp2), &self.text));
            }
        }
        Progress::Through
    }

    fn asker(&self) -> Option<Asker> {
        Some(self.asker)
    }
}

pub(crate) fn write_pong(reply: &mut Encoder<'_>, text: &[u8]) {
    reply.array(2);
    reply.bulk(b"pong");
    reply.bulk(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;
    use respool_wire::ReplyKind;

    #[test]
    fn a_subscribers_ping_has_its_own_form_and_errors_as_they_came() {
        for (kind, reply, told) in [
            (ReplyKind::Simple, "+PONG\r\n", "*2\r\n$4\r\npong\r\n$2\r\nhi\r\n"),
            (ReplyKind::Error, "-LOADING x\r\n", "-LOADING x\r\n"),
        ] {
            let mut env = env_with_node();
            let client = env.test_client();
            let mut ping = SubscriberPing { asker: env.test_asker(client), text: b"hi"[..].into() };
            let reply = TaskReply { step: 0, kind, bytes: reply.as_bytes() };
            assert_eq!(ping.handle_reply(reply, &mut env.clients), Progress::Through);
            assert_eq!(env.take_output(client), told);
        }
    }
}
