//! PING of a RESP2 subscriber, on its way to a node.

use crate::reply::progress::Progress;
use crate::session::id::Asker;
use crate::session::table::Clients;
use respool_wire::{Encoder, Protocol, ReplyKind};

/// A PING that a RESP2 subscriber has sent, outstanding at the node: the reply has another form for such a client.
#[derive(Debug)]
pub(crate) struct SubscriberPing {
    pub(crate) asker: Asker,
    pub(crate) text: Box<[u8]>,
}

impl SubscriberPing {
    /// Passes on the node's reply.
    pub(crate) fn feed(&self, kind: ReplyKind, reply: &[u8], clients: &mut Clients) -> Progress {
        let Asker { session, seq } = self.asker;
        match kind.is_error() {
            true => clients.feed(session, seq, reply, true),
            false => {
                clients.finish(session, seq, |out| write_pong(&mut Encoder::new(out, Protocol::Resp2), &self.text));
            }
        }
        Progress::Through
    }

    pub(crate) fn fail(&self, error: &[u8], clients: &mut Clients) -> Progress {
        clients.fail(self.asker.session, self.asker.seq, error);
        Progress::Through
    }
}

pub(crate) fn write_pong(reply: &mut Encoder<'_>, text: &[u8]) {
    reply.array(2);
    reply.bulk(b"pong");
    reply.bulk(text);
}
