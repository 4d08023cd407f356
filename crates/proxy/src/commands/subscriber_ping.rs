//! PING of a RESP2 subscriber, on its way to a node.

use crate::reply::progress::Progress;
use crate::reply::task::{InternalTask, TaskLoss, TaskReply};
use crate::session::id::{Asker, ClientHandle};
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
        let Asker { session, seq } = self.asker;
        match reply.kind.is_error() {
            true => clients.feed(session, seq, reply.bytes, true),
            false => {
                clients.finish(session, seq, |out| write_pong(&mut Encoder::new(out, Protocol::Resp2), &self.text));
            }
        }
        Progress::Through
    }

    fn handle_loss(&mut self, lost: TaskLoss<'_>, clients: &mut Clients) -> Progress {
        clients.fail(self.asker.session, self.asker.seq, lost.error);
        Progress::Through
    }

    fn asker(&self) -> Option<ClientHandle> {
        Some(self.asker.session)
    }
}

pub(crate) fn write_pong(reply: &mut Encoder<'_>, text: &[u8]) {
    reply.array(2);
    reply.bulk(b"pong");
    reply.bulk(text);
}
