//! Topics that are put into the hub of a node: sharded channels that go from one node of a cluster to another, and what is subscribed to at
//! one of several servers.

use super::hub::{Hub, Kind, Topic, Work};
use super::mailbox::Mailbox;
use crate::core::Waiter;
use crate::limits::MOVED_RETRY_PAUSE;
use crate::{Error, ErrorKind, Outcome, ServerError};
use bytes::Bytes;
use respool_route::cluster::{Redirect, Trigger};
use std::sync::{Arc, Weak};
use std::time::Instant;

/// A topic on its way.
#[derive(Debug)]
pub(crate) struct Moving {
    pub(crate) kind: Kind,
    pub(crate) name: Bytes,
    pub(crate) listeners: Vec<Arc<Mailbox>>,
    /// Of them, those that are not confirmed, and when their callers give up.
    pub(crate) pending: Vec<(Arc<Mailbox>, Instant)>,
}

impl Hub {
    /// Takes out the sharded channels that are another node's.
    pub(crate) fn take_foreign(self: &Arc<Self>, is_foreign: impl Fn(&[u8]) -> bool) -> Vec<Moving> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let is_taken = |(kind, name): &(Kind, Bytes)| *kind == Kind::Shard && is_foreign(name);
        let foreign: Vec<_> = state.topics.extract_if(|key, _| is_taken(key)).collect();
        let mut taken = Vec::new();
        for (key, topic) in foreign {
            if topic.is_held {
                topic.listeners.iter().for_each(|listener| listener.lose(1));
            }
            let is_of = |(mailbox, _): &&(Arc<Mailbox>, Instant)| {
                topic.listeners.iter().any(|listener| Arc::ptr_eq(listener, mailbox))
            };
            let pending = state.pending.iter().filter(is_of).cloned().collect();
            state.give_up(key.clone(), topic.is_asked);
            taken.push(Moving { kind: key.0, name: key.1, listeners: topic.listeners, pending });
        }
        if !taken.is_empty() && guard.has_pump {
            self.wake(guard);
        }
        taken
    }

    /// Takes in a topic whose listeners expect its confirmation. What it returns is woken once its caller holds no lock: what wakes may drop
    /// a subscription.
    #[must_use = "callers wait for it"]
    pub(crate) fn adopt(self: &Arc<Self>, moving: Moving) -> Vec<Waiter> {
        let Moving { kind, name, mut listeners, pending } = moving;
        // Those of subscriptions that were dropped on the way are not listened to any longer.
        listeners.retain(|listener| !listener.is_ended());
        let mut woken: Vec<Waiter> = Vec::new();
        if listeners.is_empty() {
            return woken;
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.is_closed {
            drop(guard);
            let closed = || Error::new(ErrorKind::Closed, Outcome::NotSent);
            woken.extend(listeners.iter().map(|listener| listener.end(Some(closed()))));
            return woken;
        }
        let key = (kind, name);
        let number = state.numbers + 1;
        let work = &mut state.work;
        let topic = state.topics.entry(key.clone()).or_insert_with(|| {
            work.push_back(Work { key, topic: Some(number) });
            Topic::new(number)
        });
        state.numbers = number;
        if topic.is_held {
            woken.extend(listeners.iter().map(|listener| listener.confirm()));
        }
        topic.listeners.extend(listeners);
        state.pending.extend(pending);
        self.wake(guard);
        woken
    }

    /// The server has refused a topic: whether because it has another place, where it is looked for then.
    pub(super) fn follow_refusal(&self, work: &Work, error: &ServerError) -> bool {
        let Some(cluster) = self.cluster.as_ref().and_then(Weak::upgrade).filter(|_| work.key.0 == Kind::Shard) else {
            return false;
        };
        let Some(redirect) = self.config.address().and_then(|address| Redirect::parse(error.bytes(), &address)) else {
            return false;
        };
        // If the table does not change for it, it is asked for here again after a while.
        self.lock().astray.push((Instant::now() + MOVED_RETRY_PAUSE, work.clone()));
        match &redirect {
            Redirect::Moved { slot, to } => cluster.note_moved(*slot, to),
            _ => cluster.trigger(Trigger::Stuck),
        }
        true
    }

    /// The connection cannot be made or was lost.
    pub(super) fn note_lost(&self) {
        if let Some(cluster) = self.cluster.as_ref().and_then(Weak::upgrade) {
            cluster.trigger(Trigger::Stuck);
        }
    }
}
