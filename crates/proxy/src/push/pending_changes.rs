//! Changes of subscriptions that wait for nodes to say so.

use crate::error_reply::ErrorReply;
use crate::ids::{ClientHandle, Handle};
use crate::push::subscriber::{Subscriber, count_of};
use crate::push::unsubscribing::PendingUnsubscribe;
use crate::slab::Slab;
use respool_connection::Seq;
use respool_connection::push::frame::{Kind, Verb, acknowledge};
use respool_connection::push::node_ledger::Registries;
use respool_wire::{Encoder, Protocol};
use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// One channel that a request names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// Its number, held until the request is answered.
    pub(crate) id: u32,
    /// The request changes something: it is not subscribed to already, or was.
    pub(crate) is_change: bool,
}

/// One request.
#[derive(Debug)]
pub(crate) struct PendingChange {
    pub(crate) session: ClientHandle,
    pub(crate) seq: Seq,
    pub(crate) kind: Kind,
    pub(crate) verb: Verb,
    pub(crate) items: Vec<Item>,
    /// Nodes that have not done their part, each as often as it was told, and whether names are still to be read.
    pub(crate) missing: usize,
    pub(crate) asked_us: u64,
    /// The error reply that it gets instead.
    pub(crate) failure: Option<ErrorReply>,
    /// It is no subscription: the client wants to hear of changed keys. How is known to the feature alone.
    pub(crate) tracking: Option<Box<dyn Any + Send>>,
    /// The channels that it gives up, whose messages are passed on until it is answered.
    pub(crate) departures: Vec<PendingUnsubscribe>,
    /// The client is about to give everything up in another way, and is told nothing of this.
    pub(crate) is_silent: bool,
    /// Its reply is wanted. Acknowledgements of channels are pushes, which come all the same.
    pub(crate) is_wanted: bool,
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(crate) struct PendingChanges {
    pub(crate) all: Slab<PendingChange>,
    /// Those that nodes have to do something for, by when they were made.
    by_time: BTreeSet<(u64, Handle)>,
    /// Those that are about changed keys.
    pub(crate) of_tracking: BTreeSet<Handle>,
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
    pub(crate) fn shrink(&mut self) {
        self.all.shrink();
    }

    /// Adds channels to a request, for which `missing` nodes have to acknowledge. Their time begins now.
    pub(crate) fn extend(&mut self, handle: Handle, items: Vec<Item>, missing: usize, now_us: u64) {
        if let Some(pending) = self.all.get_mut(handle) {
            pending.items.extend(items);
            pending.missing += missing;
            if self.by_time.remove(&(pending.asked_us, handle)) {
                pending.asked_us = now_us;
                self.by_time.insert((now_us, handle));
            }
        }
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<PendingChange> {
        self.all.get_mut(handle)?;
        let pending = self.all.remove(handle.index)?;
        self.by_time.remove(&(pending.asked_us, handle));
        self.of_tracking.remove(&handle);
        Some(pending)
    }

    /// One that has waited since `due_us` or longer. It is not told of again.
    pub(crate) fn pop_due(&mut self, due_us: u64) -> Option<Handle> {
        let (_, handle) = self.by_time.first().filter(|(asked_us, _)| *asked_us <= due_us)?;
        let handle = *handle;
        self.by_time.pop_first();
        Some(handle)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingChange> {
        self.all.iter_mut().map(|(_, pending)| pending)
    }
}

/// Requests that are to fail, each with its error reply.
#[derive(Debug, Default)]
pub(crate) struct FailedRequests(pub(crate) VecDeque<(Handle, Arc<ErrorReply>)>);

impl FailedRequests {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl PendingChange {
    /// A request to track, at place `seq`, that `nodes` nodes have to do their part of.
    pub(crate) fn for_tracking(
        session: ClientHandle,
        seq: Seq,
        is_wanted: bool,
        nodes: usize,
        now_us: u64,
        tracking: Box<dyn Any + Send>,
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
            is_wanted,
            tracking: Some(tracking),
            departures: Vec::new(),
            is_silent: false,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.missing == 0 || self.failure.is_some()
    }

    /// What the client is told.
    pub(crate) fn answer(&self, registries: &Registries, subscriber: &mut Subscriber, protocol: Protocol) -> Vec<u8> {
        if let Some(error) = &self.failure {
            return if self.is_wanted { error.as_bytes().to_vec() } else { Vec::new() };
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
