//! Requests that were split over several nodes, and the joining of their replies.

use crate::clients::Clients;
use crate::limits::{GATHERED_BYTES_MIN, PART_LOOKED_AT_BYTES};
use crate::session::Asker;
use crate::slab::{Handle, Slab};
use crate::text;
use respool_connection::Owner;
use respool_route::Gather;
use respool_wire::ReplyKind;

/// One split request that waits for its parts.
#[derive(Debug)]
struct Scatter {
    asker: Asker,
    /// Its client has not switched replies off.
    is_wanted: bool,
    gather: Gather,
    /// What its client's account has of it.
    held: usize,
}

/// Who is owed the parts of a request that several nodes answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Due {
    /// A joint reply is made of them.
    Joint(Handle),
    /// This client wants no reply.
    Unanswered(Handle),
}

impl Due {
    /// Who is owed one part.
    pub(crate) fn owner(self, part: usize) -> Owner {
        match self {
            Self::Joint(Handle { index: gather, generation }) => Owner::Part { gather, generation, part: part as u16 },
            Self::Unanswered(Handle { index, generation }) => Owner::Unanswered { index, generation },
        }
    }

    /// What joins the parts, if anything does.
    pub(crate) fn joint(self) -> Option<Handle> {
        match self {
            Self::Joint(gather) => Some(gather),
            Self::Unanswered(_) => None,
        }
    }
}

/// The split requests of one worker.
#[derive(Debug, Default)]
pub(crate) struct Scatters {
    waiting: Slab<Scatter>,
    /// Gathers that have done their work and keep their memory for the next.
    spare: Vec<Gather>,
}

impl Scatter {
    /// Some parts have come and are kept until the others have: they count like replies that wait behind one that has not
    /// come. Where the client has gone nothing is kept.
    #[cold]
    fn keep(&mut self, clients: &mut Clients) {
        let held = self.gather.held_bytes();
        if clients.note_gathered(self.asker.session, self.held, held) {
            self.held = held;
        } else {
            self.gather.give_up();
        }
    }
}

/// Gathers kept for reuse: as many as a turn's batch is likely to need.
const SPARE_MAX: usize = 64;

impl Scatters {
    /// Begins to wait for the parts of a request; `begin` tells the gather which.
    pub(crate) fn begin(&mut self, asker: Asker, begin: impl FnOnce(&mut Gather)) -> Handle {
        let mut gather = self.spare.pop().unwrap_or_default();
        begin(&mut gather);
        self.waiting.insert(Scatter { asker, is_wanted: true, gather, held: 0 })
    }

    /// The parts are waited for, but their client wants no reply.
    pub(crate) fn mute(&mut self, of: Handle) {
        if let Some(scatter) = self.waiting.get_mut(of) {
            scatter.is_wanted = false;
        }
    }

    /// A request ends without a reply. Gives whose it was, once; nothing if that client has gone, as its place may be another's.
    pub(crate) fn abandon(&mut self, of: Handle, clients: &mut Clients) -> Option<Asker> {
        self.waiting.get_mut(of)?;
        let Scatter { asker, held, .. } = self.waiting.remove(of.index)?;
        clients.note_gathered(asker.session, held, 0);
        clients.feed(asker.session, asker.seq, &[], true);
        clients.sessions.get(asker.session).is_some().then_some(asker)
    }

    /// Memory for those that wait, beyond what has come for them.
    pub(crate) fn held_bytes(&self) -> usize {
        self.waiting.iter().map(|(_, scatter)| size_of::<Scatter>() + scatter.gather.frame_bytes()).sum()
    }

    /// Who waits for the joint reply.
    pub(crate) fn asker(&self, of: Handle) -> Option<Handle> {
        self.waiting.get(of).map(|scatter| scatter.asker.session)
    }

    /// Makes tables smaller of which most is unused. Of gathers half is given up, those who need more make them again.
    pub(crate) fn shrink(&mut self) {
        self.waiting.shrink();
        self.spare.truncate(self.spare.len() / 2);
    }

    /// How many requests wait for parts.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The whole reply of one part. With the last part the joint reply goes to the client.
    #[inline]
    pub(crate) fn feed(&mut self, to: Handle, part: u16, kind: ReplyKind, reply: &[u8], clients: &mut Clients) {
        let Some(scatter) = self.waiting.get_mut(to) else {
            clients.counters.replies_swallowed.add(1);
            return;
        };
        if reply.len() > PART_LOOKED_AT_BYTES && !clients.has_room(scatter.asker.session, reply.len()) {
            let error = text::reply_too_large(clients.output_hard);
            scatter.gather.accept(usize::from(part), ReplyKind::Error, &error);
        } else {
            scatter.gather.accept(usize::from(part), kind, reply);
        }
        if scatter.gather.is_complete() {
            self.finish(to, clients);
        } else if scatter.gather.held_bytes() > scatter.held + GATHERED_BYTES_MIN {
            scatter.keep(clients);
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
        clients.note_gathered(asker.session, scatter.held, 0);
        match scatter.is_wanted {
            true => clients.finish(asker.session, asker.seq, |out| scatter.gather.finish(out)),
            false => clients.feed(asker.session, asker.seq, &[], true),
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(scatter.gather);
        }
    }
}
