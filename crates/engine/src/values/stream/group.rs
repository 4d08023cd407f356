//! A consumer group: its last delivered id, and the pending entries of its consumers.
//!
//! A pending entry is stored once, by id; each consumer has the set of its own ids.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::Id;
use crate::store::slab::Slab;

/// The number of entries that a group has read is unknown.
pub(crate) const READ_UNKNOWN: i64 = -1;

/// See the module documentation.
#[derive(Clone)]
pub(crate) struct Group {
    /// The last entry that was delivered.
    pub(crate) last_id: Id,
    /// The number of entries read, of all that were ever added.
    pub(crate) entries_read: i64,
    pending: BTreeMap<Id, Pending>,
    consumers: Slab<Consumer>,
    numbers: BTreeMap<Arc<[u8]>, u32>,
    /// Bytes of the names of all consumers.
    name_bytes: usize,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    /// The number of the consumer that has it.
    consumer: u32,
    /// When it was last delivered, in milliseconds since the Unix epoch.
    pub(crate) delivered: i64,
    /// The delivery count.
    pub(crate) deliveries: i64,
}

/// A consumer of a group.
#[derive(Clone)]
pub(crate) struct Consumer {
    pub(crate) name: Arc<[u8]>,
    /// The time of its last request, in milliseconds since the Unix epoch.
    pub(crate) seen: i64,
    pending: BTreeSet<Id>,
}

impl Consumer {
    /// The number of its pending entries.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }
}

impl Group {
    /// A group that has read up to an id.
    pub(crate) fn new(last_id: Id, entries_read: i64) -> Self {
        Self {
            last_id,
            entries_read,
            pending: BTreeMap::new(),
            consumers: Slab::default(),
            numbers: BTreeMap::new(),
            name_bytes: 0,
        }
    }

    /// The number of a consumer.
    pub(crate) fn number_of(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Creates a consumer; `None` if the name exists.
    pub(crate) fn create_consumer(&mut self, name: &[u8], now: i64) -> Option<u32> {
        if self.numbers.contains_key(name) {
            return None;
        }
        let name: Arc<[u8]> = name.into();
        self.name_bytes += name.len();
        let consumer = Consumer { name: Arc::clone(&name), seen: now, pending: BTreeSet::new() };
        let number = self.consumers.insert(consumer).expect("memory ends before 2^31 consumers");
        self.numbers.insert(name, number);
        Some(number)
    }

    /// The consumer of a name, created if it does not exist; sets its time of last request.
    pub(crate) fn enter(&mut self, name: &[u8], now: i64) -> u32 {
        match self.number_of(name) {
            Some(number) => {
                if let Some(consumer) = self.consumers.get_mut(number) {
                    consumer.seen = now;
                }
                number
            }
            None => self.create_consumer(name, now).unwrap_or_default(),
        }
    }

    /// Removes a consumer and its pending entries, and returns their number.
    pub(crate) fn remove_consumer(&mut self, name: &[u8]) -> usize {
        let Some(consumer) = self.numbers.remove(name).and_then(|number| self.consumers.take(number)) else { return 0 };
        self.name_bytes -= consumer.name.len();
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        consumer.pending.len()
    }

    /// The name of the consumer that has a pending entry.
    pub(crate) fn owner(&self, pending: &Pending) -> &[u8] {
        self.consumers.get(pending.consumer).map_or(&[], |consumer| &consumer.name)
    }

    /// All consumers, by their names.
    pub(crate) fn consumers(&self) -> impl ExactSizeIterator<Item = (u32, &Consumer)> + '_ {
        let of = |number: &u32| (*number, self.consumers.get(*number).expect("a consumer that has a name is there"));
        self.numbers.values().map(of)
    }

    /// The number of pending entries.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The pending entries from an id on, of all consumers or of one.
    pub(crate) fn pending_from(&self, from: Id, consumer: Option<u32>) -> impl Iterator<Item = (Id, &Pending)> + '_ {
        let own = consumer.and_then(|number| self.consumers.get(number));
        let of_one = own.map(|own| own.pending.range(from..)).into_iter().flatten();
        let of_one = of_one.filter_map(|id| Some((*id, self.pending.get(id)?)));
        let of_all = consumer.is_none().then(|| self.pending.range(from..)).into_iter().flatten();
        of_one.chain(of_all.map(|(id, pending)| (*id, pending)))
    }

    /// The id of the last pending entry.
    pub(crate) fn last_pending(&self) -> Option<Id> {
        self.pending.last_key_value().map(|(id, _)| *id)
    }

    /// The pending entry of an id.
    pub(crate) fn get(&self, id: Id) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// Adds an entry to the pending ones of a consumer, with a delivery count of one.
    pub(crate) fn deliver(&mut self, id: Id, consumer: u32, now: i64) {
        self.assign(id, Pending { consumer, delivered: now, deliveries: 1 });
    }

    /// Assigns a pending entry to a consumer.
    pub(crate) fn claim(&mut self, id: Id, consumer: u32, delivered: i64, deliveries: i64) {
        self.assign(id, Pending { consumer, delivered, deliveries });
    }

    fn assign(&mut self, id: Id, pending: Pending) {
        let old = self.pending.insert(id, pending);
        if let Some(old) = old {
            if old.consumer == pending.consumer {
                return;
            }
            if let Some(owner) = self.consumers.get_mut(old.consumer) {
                owner.pending.remove(&id);
            }
        }
        if let Some(owner) = self.consumers.get_mut(pending.consumer) {
            owner.pending.insert(id);
        }
    }

    /// Counts another delivery of an entry to the consumer that has it pending.
    pub(crate) fn redeliver(&mut self, id: Id, now: i64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.delivered = now;
            pending.deliveries = pending.deliveries.wrapping_add(1);
        }
    }

    /// Removes a pending entry; returns whether it existed.
    pub(crate) fn settle(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        if let Some(owner) = self.consumers.get_mut(pending.consumer) {
            owner.pending.remove(&id);
        }
        true
    }

    /// Bytes held from the allocator.
    pub(super) fn memory_bytes(&self) -> usize {
        self.name_bytes + self.node_bytes()
    }

    fn node_bytes(&self) -> usize {
        // Leaves of the ordered maps are about half full.
        let pending = self.pending.len() * 2 * (size_of::<(Id, Pending)>() + size_of::<Id>());
        pending + self.numbers.len() * 2 * size_of::<(Arc<[u8]>, u32)>() + self.consumers.used_bytes()
    }

    /// As [`Group::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(super) fn walked_bytes(&self) -> usize {
        self.numbers.keys().map(|name| name.len()).sum::<usize>() + self.node_bytes()
    }

    /// Frees about `budget` pending entries of a deleted group, and returns how many.
    pub(super) fn drain(&mut self, budget: usize) -> usize {
        let mut freed = 0;
        while freed < budget && self.pending.pop_first().is_some() {
            freed += 1;
        }
        while freed < budget
            && let Some(mut last) = self.numbers.last_entry()
        {
            let number = *last.get_mut();
            match self.consumers.get_mut(number).and_then(|consumer| consumer.pending.pop_first()) {
                Some(_) => {}
                None => {
                    let (name, _) = last.remove_entry();
                    self.name_bytes -= name.len();
                    self.consumers.take(number);
                }
            }
            freed += 1;
        }
        freed
    }

    pub(super) fn is_drained(&self) -> bool {
        self.pending.is_empty() && self.numbers.is_empty()
    }
}
