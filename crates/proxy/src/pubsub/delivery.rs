//! The way of a message to the clients that subscribe.
//!
//! A small message for a client that keeps up is copied into its outbox, where it shares a write with whatever else is there.
//! For a client that does not, messages wait in its backlog: there every message is one piece of memory, however many wait for
//! it, and moves into the outbox as that empties. A client whose outbox and backlog pass the mark has shown that it
//! cannot keep up; what then happens to it is a setting.

use super::{Subscriber, Subscriptions};
use crate::config::SlowSubscribers;
use crate::env::Env;
use crate::limits::PUSH_OUTBOX_BYTES;
use crate::push::frame::Kind;
use crate::session::forced_disconnect::{DisconnectReason, PendingDisconnect};
use crate::session::id::ClientId;
use crate::session::table::Clients;
use crate::workers::shared::ProcessBudget;
use respool_command::Execute;
use respool_connection::limits::ALLOCATION_BYTES;
use respool_connection::{BufferPool, Downstream, Seq};
use respool_wire::Protocol;
use std::collections::VecDeque;
use std::sync::Arc;

/// One message, without the first byte, which depends on the reader's dialect. It is in the process's account once.
#[derive(Debug)]
pub struct Message {
    rest: Box<[u8]>,
    ledger: Arc<ProcessBudget>,
}

/// What a message takes besides its bytes, and what each who waits for it takes: many small ones are more than their bytes.
/// A growing queue reserves up to twice its length, which takes memory only where it has been written to.
const MESSAGE_BYTES: usize = size_of::<Message>() + 2 * size_of::<usize>() + 2 * ALLOCATION_BYTES;
const WAITING_BYTES: usize = size_of::<Arc<Message>>();

impl Message {
    fn new(rest: &[u8], ledger: &Arc<ProcessBudget>) -> Self {
        ledger.account(0, rest.len() + MESSAGE_BYTES);
        Self { rest: rest.into(), ledger: Arc::clone(ledger) }
    }

    /// What it counts for each client that it waits for.
    fn waiting_bytes(&self) -> usize {
        self.rest.len() + 1 + WAITING_BYTES
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.ledger.account(self.rest.len() + MESSAGE_BYTES, 0);
    }
}

/// Messages that wait for room in a client's outbox.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    waiting: VecDeque<Arc<Message>>,
    /// Places of the queue that have been written to since it was allocated: these are in the process's account.
    touched: usize,
    bytes: usize,
    /// The client is to be disconnected: it gets no more.
    is_cut_off: bool,
}

impl Backlog {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn push(&mut self, message: Arc<Message>) {
        self.bytes += message.waiting_bytes();
        let (ledger, room) = (Arc::clone(&message.ledger), self.waiting.capacity());
        self.waiting.push_back(message);
        let has_grown = self.waiting.capacity() != room;
        let touched = if has_grown { self.waiting.len() } else { (self.touched + 1).min(room) };
        ledger.account(self.touched * WAITING_BYTES, touched * WAITING_BYTES);
        self.touched = touched;
    }

    fn pop(&mut self) -> Option<Arc<Message>> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.waiting_bytes();
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
            message.ledger.account(std::mem::take(&mut self.touched) * WAITING_BYTES, 0);
        }
        Some(message)
    }

    /// The client is to be disconnected: what waits for it is forgotten.
    fn cut_off(&mut self) {
        while self.pop().is_some() {}
        self.is_cut_off = true;
    }

    /// Moves messages to the outbox while less than `most` waits there.
    fn refill(
        &mut self,
        down: &mut Downstream,
        after: Option<Seq>,
        pool: &mut BufferPool,
        protocol: Protocol,
        most: usize,
    ) {
        while down.waiting_bytes() < most
            && let Some(message) = self.pop()
        {
            write(down, after, pool, protocol, &message.rest);
        }
    }

    /// Moves everything to the outbox.
    pub(super) fn flush(
        &mut self,
        down: &mut Downstream,
        after: Option<Seq>,
        pool: &mut BufferPool,
        protocol: Protocol,
    ) {
        self.refill(down, after, pool, protocol, usize::MAX);
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

fn write(down: &mut Downstream, after: Option<Seq>, pool: &mut BufferPool, protocol: Protocol, rest: &[u8]) {
    down.push(after, pool, |out| {
        out.push(if protocol == Protocol::Resp3 { b'>' } else { b'*' });
        out.extend_from_slice(rest);
    });
}

/// What holds for all messages of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) ledger: &'a Arc<ProcessBudget>,
    /// The mark, in bytes.
    pub(super) bytes_max: usize,
    pub(super) slow: SlowSubscribers,
}

impl Subscriptions {
    /// A message has come, or was made here, in the form of either dialect. Returns to how many clients it went.
    pub(super) fn deliver(
        &self,
        kind: Kind,
        name: &[u8],
        message: &[u8],
        clients: &mut Clients,
        terms: Terms<'_>,
    ) -> usize {
        let Some(id) = self.registries[kind as usize].find(name) else { return 0 };
        self.deliver_to(kind, id, message, clients, terms) + self.deliver_last(kind, id, message, clients, terms)
    }

    /// The same for clients that have given a channel up, which nodes call the same, and not been told that they have.
    fn deliver_last(&self, kind: Kind, id: u32, message: &[u8], clients: &mut Clients, terms: Terms<'_>) -> usize {
        if self.departing.is_empty() {
            return 0;
        }
        let last = self.departing.of(kind, id).map(|departure| departure.subscriber);
        self.deliver_each(last, kind, id, message, clients, terms)
    }

    /// The same for the channel of this number.
    pub(super) fn deliver_to(
        &self,
        kind: Kind,
        id: u32,
        message: &[u8],
        clients: &mut Clients,
        terms: Terms<'_>,
    ) -> usize {
        self.deliver_each(self.registries[kind as usize].subscribers(id), kind, id, message, clients, terms)
    }

    /// The same for the channel's clients of these numbers.
    pub(super) fn deliver_each(
        &self,
        numbers: impl Iterator<Item = u32>,
        kind: Kind,
        id: u32,
        message: &[u8],
        clients: &mut Clients,
        terms: Terms<'_>,
    ) -> usize {
        let registry = &self.registries[kind as usize];
        let rest = message.get(1..).unwrap_or_default();
        let mut shared = None;
        let mut count = 0;
        let Clients { sessions, pool, listed, doomed, counters, .. } = clients;
        for number in numbers {
            let Some(handle) = self.subscribers.at(number) else { continue };
            let Some(session) = sessions.get_mut(*handle) else { continue };
            let waiting = session.down.waiting_bytes();
            let protocol = session.protocol;
            let Some(subscriber) = session.subscriber.as_deref_mut() else { continue };
            let Subscriber { backlog, after, unsettled, .. } = subscriber;
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
                backlog.push(Arc::clone(shared.get_or_insert_with(|| Arc::new(Message::new(rest, terms.ledger)))));
                while backlog.bytes + waiting > terms.bytes_max && backlog.bytes > 0 {
                    counters.messages_dropped.add(1);
                    if terms.slow == SlowSubscribers::DropOldest {
                        backlog.pop();
                        continue;
                    }
                    let bytes = backlog.bytes + waiting;
                    backlog.cut_off();
                    doomed.push(PendingDisconnect { client: *handle, why: DisconnectReason::Subscriber, bytes });
                }
            }
            counters.messages_delivered.add(1);
            if !session.is_listed {
                session.is_listed = true;
                listed.push(handle.index);
            }
        }
        count
    }
}

impl<E: Execute> Env<E> {
    /// Moves messages into the outbox of a client that is about to be written.
    #[cold]
    pub(crate) fn refill_outbox(&mut self, index: ClientId) {
        let Some(session) = self.clients.sessions.at_mut(index) else { return };
        let Some(subscriber) = &mut session.subscriber else { return };
        let after = subscriber.after;
        subscriber.backlog.refill(
            &mut session.down,
            after,
            &mut self.clients.pool,
            session.protocol,
            PUSH_OUTBOX_BYTES,
        );
    }
}

impl Subscriptions {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_accounted_once_whoever_waits_for_it() {
        let ledger = Arc::new(ProcessBudget::default());
        let message = Arc::new(Message::new(b"3\r\n", &ledger));
        let mut backlogs = [Backlog::default(), Backlog::default()];
        backlogs.iter_mut().for_each(|backlog| backlog.push(Arc::clone(&message)));
        drop(message);
        assert_eq!(ledger.held_bytes(), 3 + MESSAGE_BYTES + 2 * WAITING_BYTES);
        let (mut down, mut pool) = (Downstream::new(), BufferPool::new());
        backlogs[0].flush(&mut down, None, &mut pool, Protocol::Resp3);
        assert_eq!(down.output().as_slice(), b">3\r\n");
        let held = 3 + MESSAGE_BYTES + WAITING_BYTES;
        assert_eq!((backlogs[0].bytes(), backlogs[1].bytes(), ledger.held_bytes()), (0, 4 + WAITING_BYTES, held));
        drop(backlogs);
        assert_eq!(ledger.held_bytes(), 0);
    }
}
