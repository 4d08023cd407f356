//! Requests that change subscriptions, from the moment they are read until they are answered.
//!
//! A client's requests of this kind are answered in order, so that each acknowledgement shows the count that holds then: one
//! that nodes have done waits for those before it. What fails is undone, and so is what relied on it. A client may have a
//! hundred thousand of them, so each is found by what it waits for and looked at once, and many that fail are answered in
//! slices, with the requests of others between them.

use super::Subscriptions;
use super::subscriber::{Subscriber, count_of};
use super::unsubscribing::PendingUnsubscribe;
use crate::config::Config;
use crate::nodes::id::NodeId;
use crate::push::frame::{Kind, Verb, acknowledge};
use crate::push::node_ledger::Registries;
use crate::session::SessionFlags;
use crate::session::id::ClientHandle;
use crate::session::table::Clients;
use crate::slab::{Handle, Slab};
use crate::tracking::state::TrackingOptions;
use respool_connection::Seq;
use respool_wire::{Encoder, Protocol};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// One channel that a request names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// Its number, held until the request is answered.
    pub(super) id: u32,
    /// The request changes something: it is not subscribed to already, or was.
    pub(super) is_change: bool,
}

/// One request.
#[derive(Debug)]
pub(crate) struct PendingChange {
    pub(super) session: ClientHandle,
    pub(super) seq: Seq,
    pub(super) kind: Kind,
    pub(super) verb: Verb,
    pub(super) items: Vec<Item>,
    /// Nodes that have not done their part, each as often as it was told, and whether names are still to be read.
    pub(super) missing: usize,
    pub(super) asked_us: u64,
    /// The error reply that it gets instead.
    pub(super) failure: Option<Vec<u8>>,
    /// It is no subscription: the client wants to hear of changed keys.
    pub(super) tracking: Option<TrackingOptions>,
    /// The channels that it gives up, whose messages are passed on until it is answered.
    pub(super) departures: Vec<PendingUnsubscribe>,
    /// The client is about to give everything up in another way, and is told nothing of this.
    pub(super) is_silent: bool,
    /// Its reply is wanted. Acknowledgements of channels are pushes, which come all the same.
    pub(super) is_wanted: bool,
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    all: Slab<PendingChange>,
    /// Those that nodes have to do something for, by when they were made.
    by_time: BTreeSet<(u64, Handle)>,
    /// Those that are about changed keys.
    of_tracking: BTreeSet<Handle>,
}

impl PendingChanges {
    pub(crate) fn insert(&mut self, pending: PendingChange) -> Handle {
        let (asked_us, is_waiting, is_tracking) = (pending.asked_us, pending.missing > 0, pending.tracking.is_some());
        let handle = self.all.insert(pending);
        if is_waiting {
            self.by_time.insert((asked_us, handle));
        }
        if is_tracking {
            self.of_tracking.insert(handle);
        }
        handle
    }

    /// Makes tables smaller of which most is unused.
    pub(super) fn shrink(&mut self) {
        self.all.shrink();
    }

    /// Whether a request is there and has not failed.
    pub(super) fn is_hopeful(&self, handle: Handle) -> bool {
        self.all.get(handle).is_some_and(|pending| pending.failure.is_none())
    }

    /// Adds channels to a request, for which `missing` nodes have to acknowledge. Their time begins now.
    pub(super) fn extend(&mut self, handle: Handle, items: Vec<Item>, missing: usize, now_us: u64) {
        if let Some(pending) = self.all.get_mut(handle) {
            pending.items.extend(items);
            pending.missing += missing;
            if self.by_time.remove(&(pending.asked_us, handle)) {
                pending.asked_us = now_us;
                self.by_time.insert((now_us, handle));
            }
        }
    }

    fn remove(&mut self, handle: Handle) -> Option<PendingChange> {
        self.all.get_mut(handle)?;
        let pending = self.all.remove(handle.index)?;
        self.by_time.remove(&(pending.asked_us, handle));
        self.of_tracking.remove(&handle);
        Some(pending)
    }

    /// One that has waited since `due_us` or longer. It is not told of again.
    fn pop_due(&mut self, due_us: u64) -> Option<Handle> {
        let (_, handle) = self.by_time.first().filter(|(asked_us, _)| *asked_us <= due_us)?;
        let handle = *handle;
        self.by_time.pop_first();
        Some(handle)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingChange> {
        self.all.iter_mut().map(|(_, pending)| pending)
    }
}

/// Requests that are to fail, each with its error reply.
#[derive(Debug, Default)]
pub(super) struct FailedRequests(VecDeque<(Handle, Arc<[u8]>)>);

impl FailedRequests {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

impl PendingChange {
    /// A request to track, at place `seq`, that `nodes` nodes have to do their part of.
    pub(crate) fn for_tracking(
        session: ClientHandle,
        seq: Seq,
        wanted: TrackingOptions,
        nodes: usize,
        now_us: u64,
    ) -> Self {
        Self {
            session,
            seq,
            kind: Kind::Channel,
            verb: Verb::Subscribe,
            items: Vec::new(),
            missing: nodes,
            asked_us: now_us,
            failure: None,
            is_wanted: wanted.is_reply_wanted,
            tracking: Some(wanted),
            departures: Vec::new(),
            is_silent: false,
        }
    }

    fn is_over(&self) -> bool {
        self.missing == 0 || self.failure.is_some()
    }

    /// What the client is told.
    fn answer(&self, registries: &Registries, subscriber: &mut Subscriber, protocol: Protocol) -> Vec<u8> {
        if let Some(error) = &self.failure {
            return if self.is_wanted { error.clone() } else { Vec::new() };
        }
        if self.is_silent {
            return Vec::new();
        }
        let mut bytes = Vec::new();
        let mut out = Encoder::new(&mut bytes, protocol);
        let count = &mut subscriber.shown[count_of(self.kind)];
        for item in &self.items {
            match self.verb {
                Verb::Subscribe => *count += usize::from(item.is_change),
                Verb::Unsubscribe => *count -= usize::from(item.is_change),
            }
            acknowledge(&mut out, self.kind, self.verb, Some(registries[self.kind as usize].name(item.id)), *count);
        }
        if self.items.is_empty() {
            acknowledge(&mut out, self.kind, self.verb, None, *count);
        }
        bytes
    }
}

impl Subscriptions {
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
    pub(crate) fn fail(&mut self, pending: Handle, error: &[u8], clients: &mut Clients, config: &Config) -> usize {
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
        error: &[u8],
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
        this.failure = Some(error.to_vec());
        let (handle, kind) = (this.session, this.kind);
        let undone: Vec<u32> = this.items.iter().filter(|item| item.is_change).map(|item| item.id).collect();
        let Some(session) = clients.sessions.get_mut(handle) else { return 0 };
        let Some(subscriber) = &mut session.subscriber else { return 0 };
        let mix = self.registries[kind as usize].mix();
        for id in &undone {
            subscriber.sets[kind as usize].remove(*id, mix);
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
    pub(super) fn fail_later(&mut self, pending: Handle, error: &Arc<[u8]>) {
        self.failing.0.push_back((pending, Arc::clone(error)));
    }

    /// Fails those whose turn has come: `most` requests and channels, or the one that has more.
    pub(super) fn fail_some(&mut self, most: usize, clients: &mut Clients, config: &Config) -> usize {
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
        let Some(subscriber) = &mut session.subscriber else { return };
        let mut answers = Vec::new();
        while let Some(front) = subscriber.pending.front() {
            let Some(pending) = self.pending.all.get_mut(*front).filter(|w| w.is_over()) else { break };
            if pending.verb == Verb::Unsubscribe {
                // What came before it was given up is delivered before the client hears that nothing more will.
                subscriber.backlog.flush(&mut session.down, subscriber.after, pool, protocol);
                subscriber.pending_departures -= 1;
            }
            if pending.tracking.is_some() && pending.failure.is_some() {
                self.tracked.parting.push(of);
            }
            if let Some(noloop) = subscriber.noloop.as_mut().filter(|noloop| noloop.pending == Some(*front)) {
                noloop.pending = None;
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
                self.track(subscriber, wanted);
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
    pub(super) fn end_change(&mut self, pending: Handle) -> usize {
        let Some(pending) = self.pending.remove(pending) else { return 0 };
        // Nodes may have been asked to tell of changed keys for it alone.
        self.has_news |= pending.tracking.is_some();
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
    pub(super) fn depart(&mut self, mut departures: Vec<PendingUnsubscribe>) -> Vec<PendingUnsubscribe> {
        departures.retain(|departure| self.departing.begin(*departure));
        if let Some(at_nodes) = &mut self.at_nodes {
            departures.iter().for_each(|departure| at_nodes[departure.kind as usize].retain(departure.told));
        }
        departures
    }

    /// Channels have other numbers: what is still on its way is lost, as everything is that is said meanwhile.
    pub(super) fn forget_departures(&mut self) {
        self.departing.clear();
        self.pending.iter_mut().for_each(|pending| pending.departures.clear());
    }

    /// Has the requests fail that have waited since before `due_us`. `error` says which node has kept one waiting.
    pub(super) fn expire(
        &mut self,
        due_us: u64,
        error: impl Fn(NodeId) -> Vec<u8>,
        clients: &mut Clients,
        config: &Config,
    ) -> usize {
        let mut expired = 0;
        // Many that came together have been kept waiting by the same node.
        let mut errors: Option<(NodeId, Arc<[u8]>)> = None;
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
            let node = items.iter().find_map(owing).unwrap_or(NodeId::at(0));
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

    /// Whether what waits is no subscription, but a request to track.
    pub(super) fn is_tracking_request(&mut self, pending: Handle) -> bool {
        self.pending.all.get_mut(pending).is_some_and(|w| w.tracking.is_some())
    }

    /// What waits to begin a subscription, or to give some up: which kind of channel it is about.
    pub(super) fn change_of(&mut self, pending: Handle) -> Option<(Verb, Kind)> {
        self.pending.all.get_mut(pending).map(|pending| (pending.verb, pending.kind))
    }

    /// The requests that wait for nodes to tell of changed keys.
    pub(super) fn pending_of_tracking(&self) -> Vec<Handle> {
        self.pending.of_tracking.iter().copied().collect()
    }

    /// Whether any request waits for nodes to tell of changed keys.
    pub(super) fn has_pending_of_tracking(&self) -> bool {
        !self.pending.of_tracking.is_empty()
    }

    /// Whether any request waits for a node.
    pub(super) fn has_pending_changes(&self) -> bool {
        self.pending.len() > 0
    }

    /// The requests that wait for a channel to be subscribed to.
    pub(super) fn pending_of_channel(&self, kind: Kind, id: u32, clients: &mut Clients) -> Vec<Handle> {
        let mix = self.registries[kind as usize].mix();
        let mut found = Vec::new();
        for number in self.registries[kind as usize].subscribers(id) {
            let session = self.subscribers.at(number).and_then(|handle| clients.sessions.get_mut(*handle));
            let Some(subscriber) = session.and_then(|session| session.subscriber.as_deref()) else { continue };
            let begun = subscriber.unsettled.as_ref().and_then(|unsettled| unsettled[kind as usize].get(id, mix));
            let relying = subscriber.relying.get(&(kind, id)).into_iter().flatten().copied();
            found.extend(begun.into_iter().chain(relying).filter_map(|number| subscriber.pending_of(number)));
        }
        found
    }
}
