//! All clients of one worker, and everything that is done to their replies.
//!
//! Kept apart from the lanes so that a reply can go from one to the other while both are borrowed.

use crate::error_reply::ErrorReply;
use crate::ids::{Asker, ClientHandle, ClientId, Handle};
use crate::limits::SLAB_KEPT_PLACES;
use crate::observe::counters::Counters;
use crate::push::gathered::GatheredPushes;
use crate::reply::owner::Owner;
use crate::reply::progress::ReplyMode;
use crate::session::disconnect_log::{DisconnectReason, PendingDisconnect};
use crate::session::{PauseReasons, Session};
use crate::slab::Slab;
use respool_connection::flush::Arrivals;
use respool_connection::{BufferPool, Seq};
use respool_wire::Encoder;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What a client goes on with that had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// Its requests are read.
    Read,
    /// It is not read, and the reply to its EXEC is ended.
    EndExecReply,
}

/// The clients of one worker.
#[derive(Debug)]
pub(crate) struct Clients {
    pub(crate) sessions: Slab<Session, ClientId>,
    pub(crate) pool: BufferPool,
    /// Clients with something to write or to look at, each once.
    pub(crate) listed: Vec<ClientId>,
    /// Clients with messages that may be written a moment later.
    pub(crate) gathered: GatheredPushes,
    /// Clients whose replies may be waiting for the rest of their pipeline.
    pub(crate) unflushed: Vec<ClientId>,
    /// Clients whose connections are full.
    pub(crate) full: BTreeSet<ClientId>,
    /// Clients that may be read again, each once.
    pub(crate) resuming: VecDeque<ClientId>,
    /// How often the reading of a client has been halted.
    halts: u64,
    /// Clients that must be closed, as when their reply broke off in the middle.
    pub(crate) doomed: Vec<PendingDisconnect>,
    /// What they are expected to send.
    pub(crate) arrivals: Arrivals,
    pub(crate) counters: Arc<Counters>,
    /// Bytes that may be held of replies to one of them.
    pub(crate) output_hard: usize,
}

impl Clients {
    pub(crate) fn new(counters: Arc<Counters>) -> Self {
        Self {
            sessions: Slab::default(),
            pool: BufferPool::new(),
            listed: Vec::new(),
            gathered: GatheredPushes::default(),
            unflushed: Vec::new(),
            full: BTreeSet::new(),
            resuming: VecDeque::new(),
            halts: 0,
            doomed: Vec::new(),
            arrivals: Arrivals::NONE,
            counters,
            output_hard: usize::MAX,
        }
    }

    /// Makes tables smaller of which most is unused.
    pub(crate) fn shrink(&mut self) {
        self.sessions.shrink();
        for list in [&mut self.listed, &mut self.gathered.clients, &mut self.unflushed] {
            list.shrink_to(SLAB_KEPT_PLACES.max(2 * list.len()));
        }
        self.resuming.shrink_to(SLAB_KEPT_PLACES.max(2 * self.resuming.len()));
    }

    /// The reading of a client is halted: the rest of its requests goes behind those of clients that were halted before.
    pub(crate) fn note_halted(&mut self, index: ClientId) {
        self.halts += 1;
        if let Some(session) = self.sessions.at_mut(index) {
            session.details.halted = self.halts;
        }
    }

    /// Sorts the clients that may be read again by the order in which their reading was halted, whatever halted each.
    pub(crate) fn sort_resuming(&mut self) {
        if self.resuming.len() > 1 {
            let sessions = &self.sessions;
            let halted = |index: &ClientId| sessions.at(*index).map_or(0, |session| session.details.halted);
            self.resuming.make_contiguous().sort_by_cached_key(halted);
        }
    }

    /// The next client that goes on, and with what.
    pub(crate) fn next_resuming(&mut self) -> Option<(ClientId, Resumption)> {
        while let Some(index) = self.resuming.pop_front() {
            let Some(session) = self.sessions.at_mut(index) else { continue };
            session.is_resuming = false;
            if session.pause.is_none() {
                return Some((index, Resumption::Read));
            }
            if session.is_to_end_exec_reply() {
                return Some((index, Resumption::EndExecReply));
            }
        }
        None
    }

    /// Bytes of replies that wait to be written to a client.
    pub(crate) fn waiting_bytes_of(&self, index: ClientId) -> usize {
        self.sessions.at(index).map_or(0, |session| session.down.waiting_bytes())
    }

    /// Bytes of the reply in place `seq` of a client; `is_last` ends it. Nothing happens if the client has gone.
    pub(crate) fn feed(&mut self, to: ClientHandle, seq: Seq, bytes: &[u8], is_last: bool) {
        self.feed_at_once(to, seq, bytes, is_last);
    }

    /// [`Self::feed`] inlined into the loop that most replies pass: a call would double the cost.
    #[inline(always)]
    pub(crate) fn feed_at_once(&mut self, to: ClientHandle, seq: Seq, bytes: &[u8], is_last: bool) {
        let Some(session) = self.sessions.get_mut(to) else {
            self.counters.replies_swallowed.add(u64::from(is_last));
            return;
        };
        session.down.feed(seq, bytes, is_last, &mut self.pool);
        if !session.is_listed {
            session.is_listed = true;
            self.listed.push(to.index);
        }
    }

    /// Takes the next place for a reply of a client.
    pub(crate) fn expect(&mut self, index: ClientId) -> Option<Asker> {
        let session = self.sessions.handle(index)?;
        let this = self.sessions.at_mut(index)?;
        let is_wanted = this.reply_mode == ReplyMode::On;
        this.reply_mode.pass();
        Some(Asker { session, seq: this.down.expect(), is_wanted })
    }

    /// The same, and the client is not read on before the reply has come.
    pub(crate) fn expect_behind_barrier(&mut self, index: ClientId) -> Option<Asker> {
        let asker = self.expect(index)?;
        self.sessions.at_mut(index)?.pause.add(PauseReasons::BARRIER);
        Some(asker)
    }

    /// The same for a reply that does not come from one node alone, and takes no place if it is not wanted: `None` within.
    pub(crate) fn expect_reply(&mut self, index: ClientId) -> Option<Option<Asker>> {
        let this = self.sessions.at_mut(index)?;
        if this.reply_mode == ReplyMode::On {
            return self.expect(index).map(Some);
        }
        this.reply_mode.pass();
        Some(None)
    }

    /// The whole reply that a client has waited for, if it wants it. Nothing happens if the client has gone.
    pub(crate) fn fill(&mut self, asker: Asker, reply: &[u8]) {
        self.feed(asker.session, asker.seq, if asker.is_wanted { reply } else { &[] }, true);
    }

    /// The reply that a client has waited for. Nothing happens if the client has gone.
    pub(crate) fn reply(&mut self, asker: Asker, write: impl FnOnce(&mut Encoder<'_>)) {
        let Some(protocol) = self.sessions.get(asker.session).map(|session| session.protocol) else { return };
        let mut bytes = Vec::new();
        write(&mut Encoder::new(&mut bytes, protocol));
        self.fill(asker, &bytes);
    }

    /// The reply that a client has waited for will not come, which it is told if it wants a reply.
    pub(crate) fn fail_asker(&mut self, asker: Asker, error: &ErrorReply) {
        match asker.is_wanted {
            true => self.fail(asker.session, asker.seq, error),
            false => self.fill(asker, &[]),
        }
    }

    /// The whole reply in place `seq` of a client, as `write` appends it to an empty buffer.
    pub(crate) fn finish(&mut self, to: ClientHandle, seq: Seq, write: impl FnOnce(&mut Vec<u8>)) {
        let mut reply = self.pool.take();
        write(&mut reply);
        self.feed(to, seq, &reply, true);
        self.pool.put(reply);
    }

    /// Answers the request in place `seq` with an error instead. A client that has seen the beginning of the reply already
    /// is disconnected: that is the only truth left to tell it.
    pub(crate) fn fail(&mut self, to: ClientHandle, seq: Seq, error: &ErrorReply) {
        self.replace(to, seq, error.as_bytes());
    }

    /// The same with whatever takes the place of a reply; nothing, if there was no request.
    pub(crate) fn replace(&mut self, to: ClientHandle, seq: Seq, reply: &[u8]) {
        let Some(session) = self.sessions.get_mut(to) else { return };
        if !session.down.fail(seq, reply, &mut self.pool) {
            self.doomed.push(PendingDisconnect {
                client: to,
                why: DisconnectReason::Broken,
                bytes: session.held_bytes(),
            });
        }
        self.list(to.index);
    }

    /// A request has timed out, which its client is told: it may still be executed.
    pub(crate) fn note_late(&mut self, of: Option<ClientHandle>) {
        if let Some(session) = of.and_then(|of| self.sessions.get_mut(of)) {
            session.details.has_late = true;
        }
    }

    /// A request was queued for a node. If its reply is not wanted, its client counts it until the node has answered.
    pub(crate) fn note_sent(&mut self, owner: Owner) {
        if let Owner::Unanswered { index, generation } = owner
            && let Some(session) = self.sessions.get_mut(Handle { index, generation })
        {
            session.down.note_unanswered();
        }
    }

    /// A node has answered such a request with so many bytes, or never will.
    #[cold]
    pub(crate) fn end_unanswered(&mut self, of: ClientHandle, bytes: usize) {
        let Some(session) = self.sessions.get_mut(of) else { return };
        session.credit.note_swallowed(bytes);
        session.down.end_unanswered();
        // It may be what the client waits for before it is read on, or closed.
        if !session.pause.is_none() {
            self.list(of.index);
        }
    }

    /// Whether so many bytes more of a reply that has to be kept whole fit what may be held for a client. Nothing is kept for one
    /// that has gone.
    pub(crate) fn has_room(&self, of: ClientHandle, bytes: usize) -> bool {
        self.sessions.get(of).is_some_and(|session| session.reply_bytes().saturating_add(bytes) <= self.output_hard)
    }

    /// Parts of a client's reply that wait for others take so many bytes now. `false`: it has gone.
    pub(crate) fn note_gathered(&mut self, of: ClientHandle, before: usize, now: usize) -> bool {
        let Some(session) = self.sessions.get_mut(of) else { return false };
        session.gathered_bytes = (session.gathered_bytes + now).saturating_sub(before);
        self.list(of.index);
        true
    }

    /// Answers the request that is being read, in its place.
    #[inline]
    pub(crate) fn answer(&mut self, index: ClientId, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        session.down.answer(&mut self.pool, write);
        if !session.is_listed {
            session.is_listed = true;
            self.listed.push(index);
        }
    }

    /// Has a client looked at when this turn's outboxes are written.
    #[inline]
    pub(crate) fn list(&mut self, index: ClientId) {
        if let Some(session) = self.sessions.at_mut(index)
            && !session.is_listed
        {
            session.is_listed = true;
            self.listed.push(index);
        }
    }

    /// Has all replies written that waited for the rest of their client's pipeline.
    pub(crate) fn release_unflushed(&mut self) {
        while let Some(index) = self.unflushed.pop() {
            let Some(session) = self.sessions.at_mut(index) else { continue };
            session.is_unflushed = false;
            if session.held_since_us > 0 {
                self.list(index);
            }
        }
    }

    /// A reason not to read a client has gone. If it was the last, the client is read on.
    pub(crate) fn unpause(&mut self, index: ClientId, reason: PauseReasons) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        if !session.pause.has(reason) {
            return;
        }
        session.pause.remove(reason);
        if (session.pause.is_none() || session.is_to_end_exec_reply()) && !session.is_resuming {
            session.is_resuming = true;
            self.resuming.push_back(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::env_with_node;

    #[test]
    fn clients_go_on_in_the_order_in_which_they_were_halted() {
        let mut env = env_with_node();
        let [first, second, third] = [(), (), ()].map(|()| env.test_client());
        for client in [second, third, first] {
            env.test_session(client).pause.add(PauseReasons::SLICE);
            env.clients.note_halted(client);
        }
        [first, second, third].into_iter().for_each(|client| env.clients.unpause(client, PauseReasons::SLICE));
        env.test_session(third).pause.add(PauseReasons::PRESSURE);
        env.clients.sort_resuming();
        let order: Vec<_> = std::iter::from_fn(|| env.clients.next_resuming()).collect();
        assert_eq!(order, [(second, Resumption::Read), (first, Resumption::Read)], "the third may not be read again");
    }

    #[test]
    fn a_client_is_read_on_when_the_last_reason_has_gone() {
        let mut env = env_with_node();
        let client = env.test_client();
        env.test_session(client).pause.add(PauseReasons::OUTPUT);
        env.test_session(client).pause.add(PauseReasons::RATE);
        env.clients.unpause(client, PauseReasons::SLICE);
        env.clients.unpause(client, PauseReasons::OUTPUT);
        assert!(env.clients.resuming.is_empty());
        env.clients.unpause(client, PauseReasons::RATE);
        env.clients.unpause(client, PauseReasons::RATE);
        assert_eq!(env.clients.resuming.len(), 1);
    }

    #[test]
    fn a_reply_for_a_gone_client_reaches_no_other_in_its_place() {
        let mut env = env_with_node();
        let client = env.test_client();
        let asker = env.test_asker(client);
        env.drop_client(client);
        assert_eq!(env.test_client(), client, "the place is taken again");
        env.test_asker(client);
        env.clients.feed(asker.session, asker.seq, b"+LATE\r\n", true);
        assert_eq!(env.take_output(client), "");
    }
}
