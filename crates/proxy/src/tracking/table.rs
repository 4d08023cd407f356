//! Which client has read which key.

use crate::ids::ClientHandle;
use crate::observe::counters::Counters;
use crate::push::subscriber::Subscriber;
use crate::slab::Slab;
use respool_connection::push::id_map::{IdTable, Ids};
use respool_connection::push::registry::{PAIR_BYTES, Registry};
use std::collections::BTreeMap;

/// Tracked keys of a client that no longer tracks them, still to be removed from the table: a client may have read a million.
#[derive(Debug)]
struct UntrackedKeys {
    /// The number of the former reader. It is not reused before the last of the keys is removed.
    reader: u32,
    pub(crate) keys: Ids<()>,
}

/// What all tracking clients of a worker have in common.
#[derive(Debug)]
pub(crate) struct TrackingTable {
    pub(crate) keys: Registry,
    /// Clients that have read keys. One that is to forget them all has another number with the next.
    readers: Slab<ClientHandle>,
    forgotten: Vec<UntrackedKeys>,
    /// Numbers of subscribers that are told of what push lanes tell.
    pub(crate) clients: IdTable<()>,
    /// Of those that nodes tell on connections of their own.
    pub(crate) noloop: IdTable<()>,
    /// Pairs of client and key.
    pub(crate) pairs: usize,
    /// Prefixes, with how many clients want each.
    pub(crate) prefixes: BTreeMap<Box<[u8]>, usize>,
    /// Where the next key is looked for when there are too many.
    cursor: u32,
    /// Clients that have read something while a lane was missing.
    pub(crate) doubtful: Vec<ClientHandle>,
    /// Clients that may have connections of their own in vain: their request to track has failed, or they share again.
    pub(crate) parting: Vec<ClientHandle>,
}

impl TrackingTable {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            keys: Registry::new(seed),
            readers: Slab::default(),
            forgotten: Vec::new(),
            clients: IdTable::default(),
            noloop: IdTable::default(),
            pairs: 0,
            prefixes: BTreeMap::new(),
            cursor: 0,
            doubtful: Vec::new(),
            parting: Vec::new(),
        }
    }

    pub(crate) fn is_any(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Whether some client wants all keys that begin in some way.
    pub(crate) fn has_prefixes(&self) -> bool {
        !self.prefixes.is_empty()
    }

    /// Shows how much is tracked.
    pub(crate) fn show(&self, counters: &Counters) {
        counters.tracking_clients.set((self.clients.len() + self.noloop.len()) as u64);
        counters.tracked_keys.set(self.keys.len() as u64);
        counters.tracked_items.set(self.pairs as u64);
        counters.tracked_prefixes.set(self.prefixes.len() as u64);
    }

    /// Strikes a key out of a client's.
    pub(crate) fn forget(&mut self, subscriber: &mut Subscriber, key: u32) {
        let Some(tracking) = &mut subscriber.tracking else { return };
        if let Some(reader) = tracking.reader
            && tracking.keys.remove(key, self.keys.mix()).is_some()
        {
            self.strike(key, reader);
        }
    }

    /// The client has read nothing. Its keys are struck out a part at a time.
    pub(crate) fn forget_all(&mut self, subscriber: &mut Subscriber) {
        let Some(tracking) = &mut subscriber.tracking else { return };
        let keys = std::mem::take(&mut tracking.keys).into_ids();
        if let Some(reader) = tracking.reader.take() {
            self.readers.retire(reader);
            self.forgotten.push(UntrackedKeys { reader, keys });
        }
    }

    /// Strikes out keys that have been forgotten, `most` at most.
    pub(crate) fn strike_out(&mut self, most: usize) {
        let mut room = most;
        while room > 0
            && let Some(mut forgotten) = self.forgotten.pop()
        {
            while room > 0 {
                let Some(key) = forgotten.keys.next() else { break };
                self.strike(key, forgotten.reader);
                room -= 1;
            }
            match room {
                // It may have been the last.
                0 => self.forgotten.push(forgotten),
                _ => self.readers.release(forgotten.reader),
            }
        }
    }

    /// How many have keys that are still to be struck out.
    pub(crate) fn forgotten(&self) -> usize {
        self.forgotten.len()
    }

    /// The client with this reader number; `None` if it has left, and its entries are removed.
    pub(crate) fn reader(&self, number: u32) -> Option<ClientHandle> {
        self.readers.at(number).copied()
    }

    /// Strikes out that a key has been read. It may have been done before.
    pub(crate) fn strike(&mut self, key: u32, reader: u32) {
        if self.keys.has(key, reader) {
            self.pairs -= 1;
            self.keys.leave(key, reader);
        }
    }

    /// The client is told of nothing any more.
    pub(crate) fn end(&mut self, subscriber: &mut Subscriber) {
        self.forget_all(subscriber);
        for prefix in subscriber.tracking.take().into_iter().flat_map(|tracking| tracking.prefixes) {
            match self.prefixes.get_mut(&prefix) {
                Some(wanted) if *wanted > 1 => *wanted -= 1,
                _ => drop(self.prefixes.remove(&prefix)),
            }
        }
        self.clients.remove(subscriber.id, self.keys.mix());
        self.noloop.remove(subscriber.id, self.keys.mix());
    }

    /// The client has read a key.
    pub(crate) fn remember(&mut self, subscriber: &mut Subscriber, client: ClientHandle, key: &[u8]) {
        let Some(tracking) = subscriber.tracking.as_mut() else { return };
        let reader = *tracking.reader.get_or_insert_with(|| self.readers.insert(client).index);
        let id = self.keys.intern(key);
        if tracking.keys.insert(id, (), self.keys.mix()) {
            self.pairs += 1;
            self.keys.join(id, reader);
        }
    }

    /// Bytes held for keys and for who has read them.
    pub(crate) fn bytes(&self) -> usize {
        self.keys.bytes() + self.pairs * PAIR_BYTES
    }

    /// A key that has to be forgotten, if there are too many or they take too much.
    pub(crate) fn next_victim(&mut self, keys_max: usize) -> Option<u32> {
        if !self.is_too_large(keys_max) {
            return None;
        }
        let victim = self.keys.active_from(self.cursor).next().or_else(|| self.keys.active_from(0).next())?;
        self.cursor = victim + 1;
        Some(victim)
    }
}
