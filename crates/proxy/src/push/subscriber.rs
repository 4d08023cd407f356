//! One client with subscriptions: what it subscribes to, its requests that wait, and messages for which it has no room.

use crate::ids::Handle;
use crate::limits::SCOPES_PER_CLIENT_MAX;
use crate::session::marks::SessionSubscriber;
use crate::workers::budget::ProcessBudget;
use respool_connection::limits::ALLOCATION_BYTES;
use respool_connection::push::frame::Kind;
use respool_connection::push::id_map::IdTable;
use respool_connection::push::registry::{PAIR_BYTES, Registry};
use respool_connection::push::scope::Scope;
use respool_connection::{BufferPool, Downstream, Seq};
use respool_wire::Protocol;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What one client subscribes to, and what is on its way to it because of that.
#[derive(Debug, Default)]
pub(crate) struct Subscriber {
    /// The number by which registries know the client.
    pub(crate) id: u32,
    /// Numbers of channels by kind.
    pub(crate) sets: [IdTable<()>; 3],
    /// Bytes of their names, and of its places among their subscribers.
    name_bytes: usize,
    /// Bytes of prefixes of keys that it is told of.
    pub(crate) prefix_bytes: usize,
    /// Under routes, as which user and in which databases it has subscribed.
    pub(crate) scopes: Vec<Scope>,
    /// Those of them that it has not been told of yet, if any, each with the number of the request that began it: it gets no
    /// messages of theirs.
    pub(crate) unsettled: Option<Box<[IdTable<u32>; 3]>>,
    /// Numbers of requests that name channels whose subscription was begun by another and may still fail.
    pub(crate) relying: BTreeMap<(Kind, u32), Vec<u32>>,
    /// The counts that its last acknowledgement showed, by [`count_of`].
    pub(crate) shown: [usize; 2],
    /// Its requests that wait for nodes, or for such a request before them.
    pub(crate) pending: VecDeque<Handle>,
    /// The number of the first of them; those behind it count on.
    pub(crate) first_pending: u32,
    /// How many of them give something up.
    pub(crate) pending_departures: usize,
    /// Channels that they have named since none waited.
    pub(crate) pending_names: usize,
    /// What has been done of the request that is being read.
    pub(crate) begun: Option<PartialSubscribe>,
    /// Everything has come that nodes had to say to it before it asked to end its subscriptions.
    pub(crate) has_heard_out: bool,
    /// The place of the last request that changed its subscriptions: no message may overtake that reply.
    pub(crate) after: Option<Seq>,
    pub(crate) backlog: Backlog,
    /// It is among those whose messages may be written a moment later.
    pub(crate) is_gathered: bool,
    /// What it wants to hear of changed keys, and what it has because of that. It is known to the feature alone.
    pub(crate) tracking: Option<Box<dyn Any + Send>>,
}

impl SessionSubscriber for Subscriber {
    fn counts(&self) -> [usize; 3] {
        Kind::ALL.map(|kind| self.count(kind))
    }

    fn backlog_bytes(&self) -> usize {
        self.backlog.bytes()
    }

    fn backlog_len(&self) -> usize {
        self.backlog.waiting.len()
    }

    fn named_bytes(&self) -> usize {
        self.name_bytes + self.prefix_bytes
    }
}

impl Subscriber {
    pub(crate) fn new(id: u32) -> Self {
        Self { id, ..Self::default() }
    }

    /// What a session has subscribed to.
    pub(crate) fn of(subscriber: &Option<Box<dyn SessionSubscriber>>) -> Option<&Self> {
        let subscriber: &dyn Any = &**subscriber.as_ref()?;
        subscriber.downcast_ref()
    }

    /// The same, to be changed.
    pub(crate) fn of_mut(subscriber: &mut Option<Box<dyn SessionSubscriber>>) -> Option<&mut Self> {
        let subscriber: &mut dyn Any = &mut **subscriber.as_mut()?;
        subscriber.downcast_mut()
    }

    /// Subscribes to the channel of this number. `false`: it does already.
    pub(crate) fn take_channel(&mut self, kind: Kind, id: u32, registry: &Registry) -> bool {
        let is_change = self.sets[kind as usize].insert(id, (), registry.mix());
        if is_change {
            self.name_bytes += channel_bytes(registry, id);
        }
        is_change
    }

    /// Subscribes to it no more. `false`: it does not.
    pub(crate) fn drop_channel(&mut self, kind: Kind, id: u32, registry: &Registry) -> bool {
        let is_change = self.sets[kind as usize].remove(id, registry.mix()).is_some();
        if is_change {
            self.name_bytes -= channel_bytes(registry, id);
        }
        is_change
    }

    /// What it subscribes to, of which it forgets that it does.
    pub(crate) fn take_channels(&mut self, kind: Kind, registry: &Registry) -> Vec<u32> {
        let ids: Vec<u32> = self.sets[kind as usize].ids().collect();
        ids.iter().for_each(|id| _ = self.drop_channel(kind, *id, registry));
        ids
    }

    /// How many channels of a kind it subscribes to.
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.sets[kind as usize].len()
    }

    /// The number that its next request has among those that wait.
    pub(crate) fn next_pending(&self) -> u32 {
        self.first_pending.wrapping_add(self.pending.len() as u32)
    }

    /// The request of this number, if it still waits.
    pub(crate) fn pending_of(&self, number: u32) -> Option<Handle> {
        self.pending.get(number.wrapping_sub(self.first_pending) as usize).copied()
    }

    pub(crate) fn pop_pending(&mut self) -> Option<Handle> {
        let front = self.pending.pop_front()?;
        self.first_pending = self.first_pending.wrapping_add(1);
        Some(front)
    }

    /// Remembers as which user and where the client subscribes. `false`: there are too many others.
    pub(crate) fn take_scope(&mut self, scope: &Scope) -> bool {
        if scope.is_empty() || self.scopes.contains(scope) {
            return true;
        }
        if !self.is_subscribed() {
            self.scopes.clear();
        }
        self.scopes.push(scope.clone());
        self.scopes.len() <= SCOPES_PER_CLIENT_MAX || self.scopes.pop().is_none()
    }
}

/// A request with so many names that it takes several turns to subscribe to them, or to give them up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartialSubscribe {
    /// What waits for nodes on behalf of all names, and for the last of them.
    pub(crate) pending: Option<Handle>,
    /// The number of that among those that wait.
    pub(crate) number: u32,
    /// Names that are dealt with.
    pub(crate) done: usize,
}

/// What a subscription to a channel takes, as if the channel had no other subscriber.
fn channel_bytes(registry: &Registry, id: u32) -> usize {
    registry.full_name(id).len() + PAIR_BYTES
}

/// Which of a subscriber's two counts a kind belongs to: Redis counts channels and patterns together.
pub(crate) const fn count_of(kind: Kind) -> usize {
    match kind {
        Kind::Channel | Kind::Pattern => 0,
        Kind::Shard => 1,
    }
}

/// One message, without the first byte, which depends on the reader's dialect. It is in the process's account once.
#[derive(Debug)]
pub struct Message {
    pub(crate) rest: Box<[u8]>,
    pub(crate) ledger: Arc<ProcessBudget>,
}

/// What a message takes besides its bytes, and what each subscriber that waits for it takes: many small ones are more than their bytes.
/// A growing queue reserves up to twice its length, which takes memory only where it has been written to.
const MESSAGE_BYTES: usize = size_of::<Message>() + 2 * size_of::<usize>() + 2 * ALLOCATION_BYTES;
const WAITING_BYTES: usize = size_of::<Arc<Message>>();

impl Message {
    pub(crate) fn new(rest: &[u8], ledger: &Arc<ProcessBudget>) -> Self {
        ledger.account(0, rest.len() + MESSAGE_BYTES);
        Self { rest: rest.into(), ledger: Arc::clone(ledger) }
    }

    /// What it counts for each client that it waits for: all that is held because of it. Others that it waits for may leave before,
    /// and small messages take more than their bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.rest.len() + MESSAGE_BYTES + WAITING_BYTES
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.ledger.account(self.rest.len() + MESSAGE_BYTES, 0);
    }
}

/// Messages that wait for room in a client's outbox.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    pub(crate) waiting: VecDeque<Arc<Message>>,
    /// Places of the queue that have been written to since it was allocated: these are in the process's account.
    pub(crate) touched: usize,
    pub(crate) bytes: usize,
    /// The client is to be disconnected: it gets no more.
    pub(crate) is_cut_off: bool,
}

impl Backlog {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, message: Arc<Message>) {
        self.bytes += message.waiting_bytes();
        let (ledger, room) = (Arc::clone(&message.ledger), self.waiting.capacity());
        self.waiting.push_back(message);
        let has_grown = self.waiting.capacity() != room;
        let touched = if has_grown { self.waiting.len() } else { (self.touched + 1).min(room) };
        ledger.account(self.touched * WAITING_BYTES, touched * WAITING_BYTES);
        self.touched = touched;
    }

    pub(crate) fn pop(&mut self) -> Option<Arc<Message>> {
        let message = self.waiting.pop_front()?;
        self.bytes -= message.waiting_bytes();
        if self.waiting.is_empty() {
            self.waiting = VecDeque::new();
            message.ledger.account(std::mem::take(&mut self.touched) * WAITING_BYTES, 0);
        }
        Some(message)
    }

    /// The client is to be disconnected: what waits for it is forgotten.
    pub(crate) fn cut_off(&mut self) {
        while self.pop().is_some() {}
        self.is_cut_off = true;
    }

    /// Moves messages to the outbox while less than `most` waits there.
    pub(crate) fn refill(
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
}

impl Drop for Backlog {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

pub(crate) fn write(down: &mut Downstream, after: Option<Seq>, pool: &mut BufferPool, protocol: Protocol, rest: &[u8]) {
    down.push(after, pool, |out| {
        out.push(if protocol == Protocol::Resp3 { b'>' } else { b'*' });
        out.extend_from_slice(rest);
    });
}

#[cfg(test)]
impl Subscriber {
    /// One for which a message waits.
    pub(crate) fn waited_for(message: &[u8], ledger: &Arc<ProcessBudget>) -> Self {
        let mut subscriber = Self::default();
        subscriber.backlog.push(Arc::new(Message::new(message, ledger)));
        subscriber
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_accounted_once_for_all_subscribers() {
        let ledger = Arc::new(ProcessBudget::default());
        let message = Arc::new(Message::new(b"3\r\n", &ledger));
        let mut backlogs = [Backlog::default(), Backlog::default()];
        backlogs.iter_mut().for_each(|backlog| backlog.push(Arc::clone(&message)));
        drop(message);
        assert_eq!(ledger.held_bytes(), 3 + MESSAGE_BYTES + 2 * WAITING_BYTES);
        let (mut down, mut pool) = (Downstream::new(), BufferPool::new());
        backlogs[0].refill(&mut down, None, &mut pool, Protocol::Resp3, usize::MAX);
        assert_eq!(down.output().as_slice(), b">3\r\n");
        let held = 3 + MESSAGE_BYTES + WAITING_BYTES;
        assert_eq!((backlogs[0].bytes(), backlogs[1].bytes(), ledger.held_bytes()), (0, held, held));
        drop(backlogs);
        assert_eq!(ledger.held_bytes(), 0);
    }

    #[test]
    fn what_waits_for_one_client_counts_as_much_as_is_held_for_it() {
        let (ledger, mut backlog) = (Arc::new(ProcessBudget::default()), Backlog::default());
        for length in [0, 1, 50, 3000] {
            (0..100).for_each(|_| backlog.push(Arc::new(Message::new(&vec![b'x'; length], &ledger))));
            assert!(backlog.bytes() >= ledger.held_bytes(), "{} of {}", backlog.bytes(), ledger.held_bytes());
        }
        while backlog.pop().is_some() {}
        assert_eq!((backlog.bytes(), ledger.held_bytes()), (0, 0));
    }
}
