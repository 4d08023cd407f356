//! Requests that change subscriptions, from the moment they are read until they are answered.
//!
//! A client's requests of this kind are answered in order, so that each acknowledgement shows the count that holds then: one
//! that nodes have done waits for those before it. What fails is undone, and so is what relied on it.

use super::book::Registries;
use super::frame::{Kind, Verb, acknowledge};
use super::tracking::Wanted;
use super::{Subscriber, Subscriptions, count_of};
use crate::clients::Clients;
use crate::config::Config;
use crate::session::Special;
use crate::slab::Handle;
use respool_connection::Seq;
use respool_wire::{Encoder, Protocol};

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
pub(super) struct Wait {
    pub(super) session: Handle,
    pub(super) seq: Seq,
    pub(super) kind: Kind,
    pub(super) verb: Verb,
    pub(super) items: Vec<Item>,
    /// Nodes that have not done their part.
    pub(super) missing: usize,
    pub(super) asked_us: u64,
    /// The error reply that it gets instead.
    pub(super) failure: Option<Vec<u8>>,
    /// It is no subscription: the client wants to hear of changed keys.
    pub(super) tracking: Option<Wanted>,
}

impl Wait {
    /// A request to track, at place `seq`, that `nodes` nodes have to do their part of.
    pub(super) fn for_tracking(session: Handle, seq: Seq, wanted: Wanted, nodes: usize, now_us: u64) -> Self {
        Self {
            session,
            seq,
            kind: Kind::Channel,
            verb: Verb::Subscribe,
            items: Vec::new(),
            missing: nodes,
            asked_us: now_us,
            failure: None,
            tracking: Some(wanted),
        }
    }

    fn is_over(&self) -> bool {
        self.missing == 0 || self.failure.is_some()
    }

    /// What the client is told.
    fn answer(&self, registries: &Registries, subscriber: &mut Subscriber, protocol: Protocol) -> Vec<u8> {
        if let Some(error) = &self.failure {
            return error.clone();
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
    pub(super) fn progress(&mut self, wait: Handle, clients: &mut Clients) {
        let Some(this) = self.waits.get_mut(wait) else { return };
        this.missing = this.missing.saturating_sub(1);
        if this.missing == 0 {
            let session = this.session;
            self.answer(session, clients);
        }
    }

    /// A request cannot be done. What it has changed so far is undone, and later requests of the client that named the same
    /// channels fail with it. Giving something up cannot fail: that request is simply over.
    pub(super) fn fail(&mut self, wait: Handle, error: &[u8], clients: &mut Clients, config: &Config) {
        let Some(session) = self.waits.get_mut(wait).map(|wait| wait.session) else { return };
        self.undo(wait, error, clients, config);
        // Only now: one of them may be over, as far as nodes are concerned, and rely on another that is not.
        self.answer(session, clients);
    }

    /// The same without answering.
    fn undo(&mut self, wait: Handle, error: &[u8], clients: &mut Clients, config: &Config) {
        // One that is over may still wait for those before it.
        let Some(this) = self.waits.get_mut(wait).filter(|w| w.failure.is_none()) else { return };
        if this.verb == Verb::Unsubscribe {
            this.missing = 0;
            return;
        }
        this.failure = Some(error.to_vec());
        let (handle, kind, items) = (this.session, this.kind, this.items.clone());
        let undone: Vec<u32> = items.into_iter().filter(|item| item.is_change).map(|item| item.id).collect();
        let Some(session) = clients.sessions.get_mut(handle) else { return };
        let Some(subscriber) = &mut session.subscriber else { return };
        let mix = self.registries[kind as usize].mix();
        for id in &undone {
            subscriber.sets[kind as usize].remove(*id, mix);
        }
        let (number, later) = (subscriber.id, subscriber.pending.clone());
        for id in &undone {
            self.leave(config, number, kind, *id);
        }
        for other in later {
            let names_the_same = |w: &&mut Wait| {
                w.kind == kind && w.verb == Verb::Subscribe && w.items.iter().any(|item| undone.contains(&item.id))
            };
            if self.waits.get_mut(other).filter(names_the_same).is_some() {
                self.undo(other, error, clients, config);
            }
        }
    }

    /// Answers those of a client's requests that are over, up to the first that is not.
    pub(super) fn answer(&mut self, of: Handle, clients: &mut Clients) {
        let Some(session) = clients.sessions.get_mut(of) else { return };
        let protocol = session.protocol;
        let Some(subscriber) = &mut session.subscriber else { return };
        let mut answers = Vec::new();
        while let Some(front) = subscriber.pending.front() {
            let Some(wait) = self.waits.get_mut(*front).filter(|w| w.is_over()) else { break };
            if wait.tracking.is_some() && wait.failure.is_some() {
                self.tracked.parting.push(of);
            }
            if let Some(apart) = subscriber.apart.as_mut().filter(|apart| apart.wait == Some(*front)) {
                apart.wait = None;
            }
            if let Some(wanted) = wait.tracking.take().filter(|_| wait.failure.is_none()) {
                answers.push((wait.seq, respool_wire::replies::OK.to_vec()));
                session.special.add(Special::TRACKING);
                if let Some(front) = subscriber.pending.pop_front() {
                    self.end_wait(front);
                }
                self.track(subscriber, wanted);
                continue;
            }
            answers.push((wait.seq, wait.answer(&self.registries, subscriber, protocol)));
            if let Some(unsettled) = subscriber.unsettled.as_mut().filter(|_| wait.verb == Verb::Subscribe) {
                let (kind, mix) = (wait.kind as usize, self.registries[wait.kind as usize].mix());
                wait.items.iter().for_each(|item| _ = unsettled[kind].remove(item.id, mix));
            }
            if let Some(front) = subscriber.pending.pop_front() {
                self.end_wait(front);
            }
        }
        if subscriber.pending.is_empty() {
            subscriber.unsettled = None;
            subscriber.pending_names = 0;
        }
        // In RESP2 a connection with subscriptions is good for little else.
        if protocol == Protocol::Resp2 && subscriber.is_subscribed() {
            session.special.add(Special::SUBSCRIBED);
        } else {
            session.special.remove(Special::SUBSCRIBED);
        }
        for (seq, reply) in answers {
            clients.feed(of, seq, &reply, true);
        }
    }

    /// Forgets a request.
    pub(super) fn end_wait(&mut self, wait: Handle) {
        if self.waits.get_mut(wait).is_none() {
            return;
        }
        let Some(wait) = self.waits.remove(wait.index) else { return };
        // Nodes may have been asked to tell of changed keys for it alone.
        self.has_news |= wait.tracking.is_some();
        wait.items.iter().for_each(|item| self.registries[wait.kind as usize].release(item.id));
    }

    /// Fails the requests that have waited since before `due_us`. `error` says which node has kept one waiting.
    pub(super) fn expire(
        &mut self,
        due_us: u64,
        error: impl Fn(usize) -> Vec<u8>,
        clients: &mut Clients,
        config: &Config,
    ) -> usize {
        let due: Vec<u32> =
            self.waits.iter().filter(|(_, w)| !w.is_over() && w.asked_us <= due_us).map(|(i, _)| i).collect();
        for index in &due {
            let Some(handle) = self.waits.handle(*index) else { continue };
            let Some(wait) = self.waits.at(*index) else { continue };
            if wait.tracking.is_some() {
                // The node that keeps it waiting may not be there. If it is, in the end, everything is to be forgotten.
                self.waits.at_mut(*index).into_iter().for_each(|wait| wait.missing = 0);
                self.answer_of(handle, clients);
                continue;
            }
            let owing = |item: &Item| {
                let mut owing = None;
                self.each_spot(config, wait.kind, item.id, |node, told| {
                    if !self.books[node].is_confirmed(self.told(), wait.kind, told) {
                        owing.get_or_insert(node);
                    }
                });
                owing
            };
            let node = wait.items.iter().find_map(owing).unwrap_or_default();
            self.fail(handle, &error(node), clients, config);
        }
        due.len()
    }

    fn answer_of(&mut self, wait: Handle, clients: &mut Clients) {
        if let Some(session) = self.waits.get_mut(wait).map(|wait| wait.session) {
            self.answer(session, clients);
        }
    }

    /// Whether what waits is no subscription, but a request to track.
    pub(super) fn is_tracking_request(&mut self, wait: Handle) -> bool {
        self.waits.get_mut(wait).is_some_and(|w| w.tracking.is_some())
    }

    /// Whether a request waits to begin a subscription.
    pub(super) fn is_subscribing(&mut self, wait: Handle) -> bool {
        self.waits.get_mut(wait).is_some_and(|w| w.verb == Verb::Subscribe)
    }

    /// The requests that wait for nodes to tell of changed keys.
    pub(super) fn waits_for_tracking(&self) -> Vec<Handle> {
        let all = self.waits.iter().filter(|(_, w)| w.tracking.is_some());
        all.filter_map(|(index, _)| self.waits.handle(index)).collect()
    }

    /// Whether any request waits for nodes to tell of changed keys.
    pub(super) fn has_waits_for_tracking(&self) -> bool {
        self.waits.iter().any(|(_, w)| w.tracking.is_some())
    }

    /// Whether any request waits for a node.
    pub(super) fn has_waits(&self) -> bool {
        !self.waits.is_empty()
    }

    /// The requests that wait for a channel to be subscribed to.
    pub(super) fn waits_for(&self, kind: Kind, id: u32) -> Vec<Handle> {
        let names = |w: &Wait| w.kind == kind && w.verb == Verb::Subscribe && w.items.iter().any(|item| item.id == id);
        let all = self.waits.iter().filter(|(_, w)| !w.is_over() && names(w));
        all.filter_map(|(index, _)| self.waits.handle(index)).collect()
    }
}
