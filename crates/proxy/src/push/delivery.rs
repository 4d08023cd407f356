//! The way of a message to the clients that subscribe.
//!
//! A small message for a client that keeps up is copied into its outbox, where it shares a write with whatever else is there.
//! For a client that does not, messages wait in its backlog: there every message is one piece of memory, however many wait for
//! it, and moves into the outbox as that empties. A client whose outbox and backlog pass the mark has shown that it
//! cannot keep up; what then happens to it is a setting.

use crate::config::{SlowSubscribers, SubscriptionTerms};
use crate::env::Env;
use crate::ids::ClientId;
use crate::limits::PUSH_OUTBOX_BYTES;
use crate::push::subscriber::{Message, Subscriber, write};
use crate::push::subscriptions::{Subscriptions, TrackedKeys};
use crate::session::disconnect_log::{DisconnectReason, PendingDisconnect};
use crate::session::table::Clients;
use crate::workers::budget::ProcessBudget;
use respool_command::Execute;
use respool_connection::push::frame::Kind;
use std::sync::Arc;

/// The clients of a worker, and what holds for all messages to them.
#[derive(Debug)]
pub(crate) struct Recipients<'a> {
    pub(crate) clients: &'a mut Clients,
    pub(crate) ledger: &'a Arc<ProcessBudget>,
    pub(crate) settings: &'a SubscriptionTerms,
}

impl<T: TrackedKeys> Subscriptions<T> {
    /// A message has come, or was made here, in the form of either dialect. Returns to how many clients it went.
    pub(crate) fn deliver(&self, kind: Kind, name: &[u8], message: &[u8], to: &mut Recipients<'_>) -> usize {
        let Some(id) = self.registries[kind as usize].find(name) else { return 0 };
        self.deliver_to(kind, id, message, to) + self.deliver_last(kind, id, message, to)
    }

    /// The same for clients that have given a channel up, which nodes call the same, and not been told that they have.
    fn deliver_last(&self, kind: Kind, id: u32, message: &[u8], to: &mut Recipients<'_>) -> usize {
        if self.departing.is_empty() {
            return 0;
        }
        let last = self.departing.of(kind, id).map(|departure| departure.subscriber);
        self.deliver_each(last, (kind, id), message, to)
    }

    /// The same for the channel of this number.
    pub(crate) fn deliver_to(&self, kind: Kind, id: u32, message: &[u8], to: &mut Recipients<'_>) -> usize {
        self.deliver_each(self.registries[kind as usize].subscribers(id), (kind, id), message, to)
    }

    /// The same for the channel's clients of these numbers.
    pub(crate) fn deliver_each(
        &self,
        numbers: impl Iterator<Item = u32>,
        (kind, id): (Kind, u32),
        message: &[u8],
        to: &mut Recipients<'_>,
    ) -> usize {
        let registry = &self.registries[kind as usize];
        let rest = message.get(1..).unwrap_or_default();
        let mut shared = None;
        let mut count = 0;
        let Recipients { clients, ledger, settings } = to;
        let Clients { sessions, pool, listed, gathered, doomed, counters, .. } = &mut **clients;
        for number in numbers {
            let Some(handle) = self.subscribers.at(number) else { continue };
            let Some(session) = sessions.get_mut(*handle) else { continue };
            let waiting = session.down.waiting_bytes();
            let protocol = session.protocol;
            let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { continue };
            let Subscriber { backlog, after, unsettled, is_gathered, .. } = subscriber;
            if unsettled.as_ref().is_some_and(|u| u[kind as usize].contains(id, registry.mix())) {
                continue;
            }
            count += 1;
            if backlog.is_cut_off {
                continue;
            }
            if backlog.bytes == 0 && (waiting == 0 || waiting + rest.len() <= PUSH_OUTBOX_BYTES) {
                write(&mut session.down, *after, pool, protocol, rest);
            } else {
                backlog.push(Arc::clone(shared.get_or_insert_with(|| Arc::new(Message::new(rest, ledger)))));
                while backlog.bytes + waiting > settings.output_bytes && backlog.bytes > 0 {
                    counters.messages_dropped.add(1);
                    if settings.slow == SlowSubscribers::DropOldest {
                        backlog.pop();
                        continue;
                    }
                    let bytes = backlog.bytes + waiting;
                    backlog.cut_off();
                    doomed.push(PendingDisconnect { client: *handle, why: DisconnectReason::Subscriber, bytes });
                }
            }
            counters.messages_delivered.add(1);
            if session.is_listed || *is_gathered && gathered.takes(waiting) {
                continue;
            }
            if gathered.takes(waiting + rest.len()) {
                *is_gathered = true;
                gathered.clients.push(handle.index);
            } else {
                session.is_listed = true;
                listed.push(handle.index);
            }
        }
        count
    }

    /// A client has been written to; if messages wait for the room it is written again in the next turn.
    #[cold]
    pub(crate) fn note_room(&mut self, env: &mut Env<impl Execute>, index: ClientId) {
        let Some(session) = env.clients.sessions.at(index) else { return };
        if !session.is_blocked && session.subscriber.as_ref().is_some_and(|s| s.backlog_bytes() > 0) {
            self.refilling.push(index);
        }
    }

    /// Lists those whose outboxes have room for what waits.
    pub(crate) fn go_on_refilling(&mut self, env: &mut Env<impl Execute>) {
        while let Some(index) = self.refilling.pop() {
            env.clients.list(index);
        }
    }
}

impl Clients {
    /// Lists the clients whose messages are written now. `false`: there are none.
    pub(crate) fn list_gathered(&mut self) -> bool {
        while let Some(index) = self.gathered.clients.pop() {
            if let Some(session) = self.sessions.at_mut(index)
                && let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber)
            {
                subscriber.is_gathered = false;
                self.list(index);
            }
        }
        !self.listed.is_empty()
    }

    /// Moves messages into the outbox of a client that is about to be written.
    #[cold]
    pub(crate) fn refill_outbox(&mut self, index: ClientId) {
        let Some(session) = self.sessions.at_mut(index) else { return };
        let Some(subscriber) = Subscriber::of_mut(&mut session.subscriber) else { return };
        let after = subscriber.after;
        subscriber.backlog.refill(&mut session.down, after, &mut self.pool, session.protocol, PUSH_OUTBOX_BYTES);
    }
}
