//! Requests that were split over several nodes, and the joining of their replies.

use crate::error_reply::ErrorReply;
use crate::error_text;
use crate::ids::{Asker, ClientHandle, Handle};
use crate::limits::{GATHERED_BYTES_MIN, INFO_KEPT_BYTES_MAX, PART_LOOKED_AT_BYTES};
use crate::reply::owner::Owner;
use crate::session::table::Clients;
use crate::slab::Slab;
use crate::workers::info_cache::{InfoCache, InfoKey};
use respool_route::Gather;
use respool_wire::ReplyKind;
use std::sync::{Arc, Mutex, PoisonError};

/// One split request that waits for its parts.
#[derive(Debug)]
struct Scatter {
    asker: Asker,
    gather: Box<Gather>,
    /// What its client's account has of it.
    held: usize,
    /// Set for INFO, where remembered replies may stand for those of nodes.
    words: Option<Box<InfoReplies>>,
}

/// The state of one INFO: what was requested of each node, and which replies are outstanding.
#[derive(Debug)]
pub(crate) struct InfoReplies {
    pub(crate) asked: Vec<InfoKey>,
    is_due: Vec<bool>,
    asked_us: u64,
    /// Replies are remembered for other clients.
    is_noted: bool,
    /// Its client has got the joint reply; late replies are only remembered.
    is_answered: bool,
}

impl InfoReplies {
    /// `is_due`: the nodes whose replies are outstanding.
    pub(crate) fn new(asked: Vec<InfoKey>, is_due: Vec<bool>, asked_us: u64, is_noted: bool) -> Self {
        Self { asked, is_due, asked_us, is_noted, is_answered: false }
    }
}

/// The owner of the parts of a request that several nodes answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PartOwner {
    /// A joint reply is made of them.
    Joint(Handle),
    /// This client wants no reply.
    Unanswered(ClientHandle),
}

impl PartOwner {
    /// The owner of one part.
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
    #[expect(
        clippy::vec_box,
        reason = "each request moves one out of here and back, which would copy 300 bytes each time"
    )]
    spare: Vec<Box<Gather>>,
    /// The last replies of nodes to INFO.
    last_words: Arc<Mutex<InfoCache>>,
    /// The deadlines of waiting INFOs.
    words_due: Vec<(u64, Handle)>,
    /// The earliest deadline, or an earlier time.
    next_words_us: Option<u64>,
    /// Requests whose replies are late, and how many of each are outstanding.
    late: Vec<(InfoKey, usize)>,
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
    /// Without requests; `last_words` remembers replies to INFO.
    pub(crate) fn new(last_words: Arc<Mutex<InfoCache>>) -> Self {
        Self { last_words, ..Self::default() }
    }

    /// Begins to wait for the parts of a request; `begin` tells the gather which.
    pub(crate) fn begin(&mut self, asker: Asker, begin: impl FnOnce(&mut Gather)) -> Handle {
        let mut gather = self.spare.pop().unwrap_or_default();
        begin(&mut gather);
        self.waiting.insert(Scatter { asker, gather, held: 0, words: None })
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
        self.waiting
            .iter()
            .map(|(_, scatter)| size_of::<Scatter>() + size_of::<Gather>() + scatter.gather.frame_bytes())
            .sum()
    }

    /// The request that waits for the joint reply.
    pub(crate) fn asker(&self, of: Handle) -> Option<ClientHandle> {
        let waits = |scatter: &&Scatter| scatter.words.as_ref().is_none_or(|words| !words.is_answered);
        self.waiting.get(of).filter(waits).map(|scatter| scatter.asker.session)
    }

    /// The bound of a part that is for no client: a late reply to INFO is kept only as far as it may be remembered.
    pub(crate) fn reply_bytes_max(&self, of: Handle) -> Option<usize> {
        let words = self.waiting.get(of)?.words.as_ref()?;
        words.is_answered.then_some(INFO_KEPT_BYTES_MAX)
    }

    /// Makes tables smaller of which most is unused. Of gathers half is given up; requests that need more make them again.
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
        if let Some(words) = &mut scatter.words {
            let part = usize::from(part);
            let was_due = words.is_due.get_mut(part).is_some_and(std::mem::take);
            if was_due && words.is_noted && kind != ReplyKind::Error {
                let mut last = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
                last.note(&words.asked[part], reply, words.asked_us);
            }
            if words.is_answered {
                return self.forget_late(to, part, was_due);
            }
        }
        if reply.len() > PART_LOOKED_AT_BYTES && !clients.has_room(scatter.asker.session, reply.len()) {
            let error = error_text::reply_too_large(clients.output_hard);
            scatter.gather.accept(usize::from(part), ReplyKind::Error, error.as_bytes());
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
    pub(crate) fn fail(&mut self, to: Handle, part: u16, error: &ErrorReply, clients: &mut Clients) {
        if self.waiting.get_mut(to).is_some() {
            self.feed(to, part, ReplyKind::Error, error.as_bytes(), clients);
        }
    }

    /// Marks a request as INFO. After `until_us` remembered replies stand for those that are outstanding.
    pub(crate) fn expect_words(&mut self, of: Handle, words: InfoReplies, until_us: Option<u64>) {
        if let Some(scatter) = self.waiting.get_mut(of) {
            scatter.words = Some(Box::new(words));
            let Some(until_us) = until_us else { return };
            self.words_due.push((until_us, of));
            self.next_words_us = Some(self.next_words_us.map_or(until_us, |next_us| next_us.min(until_us)));
        }
    }

    /// When the next INFO may be completed with remembered replies.
    #[inline]
    pub(crate) fn words_due_us(&self) -> Option<u64> {
        self.next_words_us
    }

    /// The INFOs whose deadlines are over. Each is returned once.
    pub(crate) fn due_words(&mut self, now_us: u64) -> Vec<Handle> {
        let waiting = &self.waiting;
        self.words_due.retain(|(_, of)| waiting.get(*of).is_some());
        let due = self.words_due.extract_if(.., |(until_us, _)| *until_us <= now_us).map(|(_, of)| of).collect();
        self.next_words_us = self.words_due.iter().map(|(until_us, _)| *until_us).min();
        due
    }

    /// Whether the late reply to such a request is outstanding.
    pub(crate) fn is_late(&self, asked: &InfoKey) -> bool {
        self.late.iter().any(|(late, _)| late == asked)
    }

    /// What a node was asked.
    pub(crate) fn asked(&self, of: Handle, part: usize) -> Option<&InfoKey> {
        self.waiting.get(of)?.words.as_ref()?.asked.get(part)
    }

    /// The nodes whose replies to an INFO are outstanding.
    pub(crate) fn missing_words(&self, of: Handle) -> Vec<usize> {
        let words = self.waiting.get(of).and_then(|scatter| scatter.words.as_ref());
        words.map_or_else(Vec::new, |words| {
            words.is_due.iter().enumerate().filter_map(|(node, is_due)| is_due.then_some(node)).collect()
        })
    }

    /// Changes the parts of a joint reply that are not of nodes.
    pub(crate) fn amend(&mut self, of: Handle, change: impl FnOnce(&mut Gather)) {
        if let Some(scatter) = self.waiting.get_mut(of) {
            change(&mut scatter.gather);
        }
    }

    /// Takes a remembered reply, or an error, for the reply of a node. The reply that is outstanding will only be
    /// remembered.
    pub(crate) fn take_last_words(
        &mut self,
        of: Handle,
        part: u16,
        reply: Result<Vec<u8>, ErrorReply>,
        clients: &mut Clients,
    ) {
        let Some(scatter) = self.waiting.get_mut(of) else { return };
        match reply {
            Ok(reply) => scatter.gather.accept(usize::from(part), ReplyKind::Bulk, &reply),
            Err(error) => scatter.gather.accept(usize::from(part), ReplyKind::Error, error.as_bytes()),
        }
        if scatter.gather.is_complete() {
            self.finish(of, clients);
        }
    }

    /// A late reply to an INFO has come. The INFO is forgotten with the last of them.
    fn forget_late(&mut self, of: Handle, part: usize, was_due: bool) {
        let Some(words) = self.waiting.get(of).and_then(|scatter| scatter.words.as_deref()) else { return };
        let place = self.late.iter().position(|(late, _)| was_due && Some(late) == words.asked.get(part));
        let is_over = !words.is_due.contains(&true);
        if let Some(place) = place {
            self.late[place].1 -= 1;
            if self.late[place].1 == 0 {
                self.late.swap_remove(place);
            }
        }
        if is_over {
            self.waiting.remove(of.index);
        }
    }

    fn finish(&mut self, of: Handle, clients: &mut Clients) {
        let Some(scatter) = self.waiting.get_mut(of) else { return };
        if let Some(words) = &mut scatter.words
            && words.is_due.contains(&true)
        {
            // The place is kept for the late replies.
            words.is_answered = true;
            for asked in words.asked.iter().zip(&words.is_due).filter_map(|(asked, is_due)| is_due.then_some(asked)) {
                match self.late.iter_mut().find(|(late, _)| late == asked) {
                    Some((_, count)) => *count += 1,
                    None => self.late.push((asked.clone(), 1)),
                }
            }
            let rest = Scatter { asker: scatter.asker, gather: Box::default(), held: 0, words: scatter.words.take() };
            let scatter = std::mem::replace(scatter, rest);
            return self.answer(scatter, clients);
        }
        if let Some(scatter) = self.waiting.remove(of.index) {
            self.answer(scatter, clients);
        }
    }

    fn answer(&mut self, mut scatter: Scatter, clients: &mut Clients) {
        let asker = scatter.asker;
        clients.note_gathered(asker.session, scatter.held, 0);
        match asker.is_wanted {
            true => clients.finish(asker.session, asker.seq, |out| scatter.gather.finish(out)),
            false => clients.feed(asker.session, asker.seq, &[], true),
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(scatter.gather);
        }
    }
}
