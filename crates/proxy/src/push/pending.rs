//! Requests that change subscriptions, from the moment they are read until they are answered.
//!
//! A client's requests of this kind are answered in order, so that each acknowledgement shows the count that holds then: one
//! that nodes have done waits for those before it. What fails is undone, and so is what relied on it. A client may have a
//! hundred thousand of them, so each is found by what it waits for and looked at once, and many that fail are answered in
//! slices, with the requests of others between them.

use crate::config::Config;
use crate::error_reply::ErrorReply;
use crate::ids::{ClientHandle, Handle, NodeId};
use crate::push::pending_changes::Item;
use crate::push::subscriber::Subscriber;
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use crate::push::unsubscribing::PendingUnsubscribe;
use crate::session::SessionFlags;
use crate::session::marks::SessionSubscriber;
use crate::session::table::Clients;
use respool_connection::push::frame::{Kind, Verb};
use respool_wire::Protocol;
use std::sync::Arc;

impl<T: TrackedKeys> Subscriptions<T> {
    /// A node has done its part of what a request waits for.
    pub(crate) fn progress(&mut self, pending: Handle, clients: &mut Clients) {
        let Some(this) = self.pending.all.get_mut(pending) else { return };
        this.missing = this.missing.saturating_sub(1);
        if this.missing == 0 {
            let session = this.session;
            self.answer(session, clients);
        }
    }

    /// A request cannot be done. What it has changed so far is undone, and later requests of the client that named the same
    /// channels fail with it. Giving something up cannot fail: that request is simply over. Returns how many requests and
    /// channels were looked at.
    pub(crate) fn fail(
        &mut self,
        pending: Handle,
        error: &ErrorReply,
        clients: &mut Clients,
        config: &Config,
    ) -> usize {
        let Some(session) = self.pending.all.get_mut(pending).map(|pending| pending.session) else { return 1 };
        let (mut next, mut steps) = (vec![pending], 0);
        while let Some(pending) = next.pop() {
            steps += 1 + self.undo(pending, error, clients, config, &mut next);
        }
        // Only now: one of them may be over, as far as nodes are concerned, and rely on another that is not.
        self.answer(session, clients);
        steps
    }

    /// The same without answering, for one request. Those that rely on it come to `next`.
    fn undo(
        &mut self,
        pending: Handle,
        error: &ErrorReply,
        clients: &mut Clients,
        config: &Config,
        next: &mut Vec<Handle>,
    ) -> usize {
        // One that is over may still wait for those before it.
        let Some(this) = self.pending.all.get_mut(pending).filter(|w| w.failure.is_none()) else { return 0 };
        if this.verb == Verb::Unsubscribe {
            this.missing = 0;
            return 0;
        }
        this.failure = Some(error.clone());
        let (handle, kind) = (this.session, this.kind);
        let undone: Vec<u32> = this.items.iter().filter(|item| item.is_change).map(|item| item.id).collect();
        let Some(session) = clients.sessions.get_mut(handle) else { return 0 };
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return 0 };
        for id in &undone {
            subscriber.drop_channel(kind, *id, &self.registries[kind as usize]);
            let relying = if subscriber.relying.is_empty() { None } else { subscriber.relying.remove(&(kind, *id)) };
            next.extend(relying.into_iter().flatten().filter_map(|number| subscriber.pending_of(number)));
        }
        let number = subscriber.id;
        for id in &undone {
            self.leave(config, number, kind, *id);
        }
        undone.len()
    }

    /// A request is to fail, with others: when its turn comes.
    pub(crate) fn fail_later(&mut self, pending: Handle, error: &Arc<ErrorReply>) {
        self.failing.0.push_back((pending, Arc::clone(error)));
    }

    /// Fails those whose turn has come: `most` requests and channels, or the one that has more.
    pub(crate) fn fail_some(&mut self, most: usize, clients: &mut Clients, config: &Config) -> usize {
        let mut steps = 0;
        while steps < most
            && let Some((pending, error)) = self.failing.0.pop_front()
        {
            steps += self.fail(pending, &error, clients, config);
        }
        steps
    }

    /// Answers those of a client's requests that are over, up to the first that is not.
    pub(crate) fn answer(&mut self, of: ClientHandle, clients: &mut Clients) {
        let Clients { sessions, pool, .. } = clients;
        let Some(session) = sessions.get_mut(of) else { return };
        let protocol = session.protocol;
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return };
        let mut answers = Vec::new();
        while let Some(front) = subscriber.pending.front() {
            let Some(pending) = self.pending.all.get_mut(*front).filter(|w| w.is_over()) else { break };
            if pending.verb == Verb::Unsubscribe {
                // What came before it was given up is delivered before the client hears that nothing more will.
                subscriber.backlog.refill(&mut session.down, subscriber.after, pool, protocol, usize::MAX);
                subscriber.pending_departures -= 1;
            }
            if pending.tracking.is_some() {
                let (pending, has_failed) = (*front, pending.failure.is_some());
                self.tracked.note_answered(of, subscriber, pending, has_failed);
            }
            if let Some(wanted) = pending.tracking.take().filter(|_| pending.failure.is_none()) {
                answers.push((
                    pending.seq,
                    if pending.is_wanted { respool_wire::replies::OK.to_vec() } else { Vec::new() },
                ));
                session.flags.add(SessionFlags::TRACKING);
                if let Some(front) = subscriber.pop_pending() {
                    self.end_change(front);
                }
                T::begin(self, subscriber, wanted);
                continue;
            }
            answers.push((pending.seq, pending.answer(&self.registries, subscriber, protocol)));
            if let Some(unsettled) = subscriber.unsettled.as_mut().filter(|_| pending.verb == Verb::Subscribe) {
                let (kind, mix) = (pending.kind as usize, self.registries[pending.kind as usize].mix());
                for item in &pending.items {
                    unsettled[kind].remove(item.id, mix);
                    if !subscriber.relying.is_empty() {
                        subscriber.relying.remove(&(pending.kind, item.id));
                    }
                }
            }
            if let Some(front) = subscriber.pop_pending() {
                self.end_change(front);
            }
        }
        if subscriber.pending.is_empty() {
            subscriber.unsettled = None;
            subscriber.relying.clear();
            subscriber.pending_names = 0;
        }
        // In RESP2 a connection with subscriptions is good for little else.
        if protocol == Protocol::Resp2 && subscriber.is_subscribed() {
            session.flags.add(SessionFlags::SUBSCRIBED);
        } else {
            session.flags.remove(SessionFlags::SUBSCRIBED);
        }
        for (seq, reply) in answers {
            clients.feed(of, seq, &reply, true);
        }
    }

    /// Forgets a request. Returns how many channels it was about.
    pub(crate) fn end_change(&mut self, pending: Handle) -> usize {
        let Some(pending) = self.pending.remove(pending) else { return 0 };
        // Nodes may have been asked to tell of changed keys for it alone.
        self.has_pending_updates |= pending.tracking.is_some();
        pending.items.iter().for_each(|item| self.registries[pending.kind as usize].release(item.id));
        for departure in &pending.departures {
            if self.departing.end(*departure)
                && let Some(at_nodes) = &mut self.at_nodes
            {
                at_nodes[departure.kind as usize].release(departure.told);
            }
        }
        pending.items.len() + pending.departures.len()
    }

    /// Messages of these channels are passed on to the client until its request is answered. Gives those that are new.
    pub(crate) fn depart(&mut self, mut departures: Vec<PendingUnsubscribe>) -> Vec<PendingUnsubscribe> {
        departures.retain(|departure| self.departing.begin(*departure));
        if let Some(at_nodes) = &mut self.at_nodes {
            departures.iter().for_each(|departure| at_nodes[departure.kind as usize].retain(departure.told));
        }
        departures
    }

    /// Has the requests fail that have waited since before `due_us`. `error` says which node has kept one waiting.
    pub(crate) fn expire(
        &mut self,
        due_us: u64,
        error: impl Fn(NodeId) -> ErrorReply,
        clients: &mut Clients,
        config: &Config,
    ) -> usize {
        let mut expired = 0;
        // Many that came together have been kept waiting by the same node.
        let mut errors: Option<(NodeId, Arc<ErrorReply>)> = None;
        while let Some(handle) = self.pending.pop_due(due_us) {
            let Some(pending) = self.pending.all.get_mut(handle).filter(|pending| !pending.is_over()) else { continue };
            expired += 1;
            if pending.tracking.is_some() {
                // The node that keeps it waiting may not be there. If it is, in the end, everything is to be forgotten.
                pending.missing = 0;
                let session = pending.session;
                self.answer(session, clients);
                continue;
            }
            let (kind, items) = (pending.kind, std::mem::take(&mut pending.items));
            let owing = |item: &Item| {
                let mut owing = None;
                self.each_spot(config, kind, item.id, |node, told| {
                    if !self.books[node].is_confirmed(self.told(), kind, told) {
                        owing.get_or_insert(node);
                    }
                });
                owing
            };
            let node = items.iter().find_map(owing).unwrap_or(NodeId::nth(0));
            if let Some(pending) = self.pending.all.get_mut(handle) {
                pending.items = items;
            }
            let words = match &errors {
                Some((known, words)) if *known == node => Arc::clone(words),
                _ => error(node).into(),
            };
            self.fail_later(handle, &words);
            errors = Some((node, words));
        }
        expired
    }

    /// What waits to begin a subscription, or to give some up: which kind of channel it is about.
    pub(crate) fn change_of(&mut self, pending: Handle) -> Option<(Verb, Kind)> {
        self.pending.all.get_mut(pending).map(|pending| (pending.verb, pending.kind))
    }

    /// The requests that wait for a channel to be subscribed to.
    pub(crate) fn pending_of_channel(&self, kind: Kind, id: u32, clients: &mut Clients) -> Vec<Handle> {
        let mix = self.registries[kind as usize].mix();
        let mut found = Vec::new();
        for number in self.registries[kind as usize].subscribers(id) {
            let session = self.subscribers.at(number).and_then(|handle| clients.sessions.get_mut(*handle));
            let Some(subscriber) = session.and_then(|session| Subscriber::of(&session.subscriber)) else { continue };
            let begun = subscriber.unsettled.as_ref().and_then(|unsettled| unsettled[kind as usize].get(id, mix));
            let relying = subscriber.relying.get(&(kind, id)).into_iter().flatten().copied();
            found.extend(begun.into_iter().chain(relying).filter_map(|number| subscriber.pending_of(number)));
        }
        found
    }
}
