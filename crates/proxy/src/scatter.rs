//! Requests that were split over several nodes, and the joining of their replies.

use crate::clients::Clients;
use crate::session::Asker;
use crate::slab::{Handle, Slab};
use respool_route::Gather;
use respool_wire::ReplyKind;

/// One split request that waits for its parts.
#[derive(Debug)]
struct Scatter {
    asker: Asker,
    gather: Gather,
}

/// The split requests of one worker.
#[derive(Debug, Default)]
pub(crate) struct Scatters {
    waiting: Slab<Scatter>,
    /// Gathers that have done their work and keep their memory for the next.
    spare: Vec<Gather>,
}

/// Gathers kept for reuse: as many as a turn's batch is likely to need.
const SPARE_MAX: usize = 64;

impl Scatters {
    /// Begins to wait for the parts of a request; `begin` tells the gather which.
    pub(crate) fn begin(&mut self, asker: Asker, begin: impl FnOnce(&mut Gather)) -> Handle {
        let mut gather = self.spare.pop().unwrap_or_default();
        begin(&mut gather);
        self.waiting.insert(Scatter { asker, gather })
    }

    /// The whole reply of one part. With the last part the joint reply goes to the client.
    #[inline]
    pub(crate) fn feed(&mut self, to: Handle, part: u16, kind: ReplyKind, reply: &[u8], clients: &mut Clients) {
        let Some(scatter) = self.waiting.get_mut(to) else {
            clients.counters.replies_swallowed.add(1);
            return;
        };
        scatter.gather.accept(usize::from(part), kind, reply);
        if scatter.gather.is_complete() {
            self.finish(to, clients);
        }
    }

    /// One part will have no reply; `error` says why.
    pub(crate) fn fail(&mut self, to: Handle, part: u16, error: &[u8], clients: &mut Clients) {
        if self.waiting.get_mut(to).is_some() {
            self.feed(to, part, ReplyKind::Error, error, clients);
        }
    }

    fn finish(&mut self, of: Handle, clients: &mut Clients) {
        let Some(mut scatter) = self.waiting.remove(of.index) else { return };
        let asker = scatter.asker;
        clients.finish(asker.session, asker.seq, |out| scatter.gather.finish(out));
        if self.spare.len() < SPARE_MAX {
            self.spare.push(scatter.gather);
        }
    }
}
