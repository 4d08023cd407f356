//! A consumer group: how far it has read, and which entries wait for which consumer to acknowledge them.
//!
//! What is pending is kept once, by id; each consumer has the ids of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::id::Id;
use crate::store::slab::Slab;

/// It is not known how many entries a group has read.
pub(crate) const READ_UNKNOWN: i64 = -1;

/// See the module's text.
#[derive(Clone)]
pub(crate) struct Group {
    /// The last entry that was delivered.
    pub(crate) last_id: Id,
    /// How many entries were read of all that were ever added.
    pub(crate) entries_read: i64,
    pending: BTreeMap<Id, Pending>,
    consumers: Slab<Consumer>,
    numbers: BTreeMap<Arc<[u8]>, u32>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    /// The number of the consumer that has it.
    consumer: u32,
    /// When it was last delivered, in milliseconds since the Unix epoch.
    pub(crate) delivered: i64,
    /// How often it was.
    pub(crate) deliveries: i64,
}

/// A reader of a group.
#[derive(Clone)]
pub(crate) struct Consumer {
    pub(crate) name: Arc<[u8]>,
    /// When it last asked for something, in milliseconds since the Unix epoch.
    pub(crate) seen: i64,
    pending: BTreeSet<Id>,
}

impl Consumer {
    /// How many entries it has not acknowledged.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }
}

impl Group {
    /// A group that has read up to an id.
    pub(crate) fn new(last_id: Id, entries_read: i64) -> Self {
        Self { last_id, entries_read, pending: BTreeMap::new(), consumers: Slab::default(), numbers: BTreeMap::new() }
    }

    /// The number of a consumer.
    pub(crate) fn number_of(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// Makes a consumer. `None`: there is one of this name.
    pub(crate) fn create_consumer(&mut self, name: &[u8], now: i64) -> Option<u32> {
        if self.numbers.contains_key(name) {
            return None;
        }
        let name: Arc<[u8]> = name.into();
        let consumer = Consumer { name: Arc::clone(&name), seen: now, pending: BTreeSet::new() };
        let number = self.consumers.insert(consumer).expect("memory ends before 2^31 consumers");
        self.numbers.insert(name, number);
        Some(number)
    }

    /// The consumer of a name, which asks for something now; made if there is none.
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

    /// Removes a consumer and what is pending for it; how much that was.
    pub(crate) fn remove_consumer(&mut self, name: &[u8]) -> usize {
        let Some(consumer) = self.numbers.remove(name).and_then(|number| self.consumers.take(number)) else { return 0 };
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

    /// How many entries are pending.
    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// What is pending from an id on, of all consumers or of one.
    pub(crate) fn pending_from(&self, from: Id, consumer: Option<u32>) -> impl Iterator<Item = (Id, &Pending)> + '_ {
        let own = consumer.and_then(|number| self.consumers.get(number));
        let of_one = own.map(|own| own.pending.range(from..)).into_iter().flatten();
        let of_one = of_one.filter_map(|id| Some((*id, self.pending.get(id)?)));
        let of_all = consumer.is_none().then(|| self.pending.range(from..)).into_iter().flatten();
        of_one.chain(of_all.map(|(id, pending)| (*id, pending)))
    }

    /// The last id that is pending.
    pub(crate) fn last_pending(&self) -> Option<Id> {
        self.pending.last_key_value().map(|(id, _)| *id)
    }

    /// What is pending of an id.
    pub(crate) fn get(&self, id: Id) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// A consumer is given an entry, for the first time as far as it is concerned.
    pub(crate) fn deliver(&mut self, id: Id, consumer: u32, now: i64) {
        self.assign(id, Pending { consumer, delivered: now, deliveries: 1 });
    }

    /// A consumer takes an entry over, or has it once more.
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

    /// A consumer is shown an entry again that it has.
    pub(crate) fn redeliver(&mut self, id: Id, now: i64) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.delivered = now;
            pending.deliveries = pending.deliveries.wrapping_add(1);
        }
    }

    /// An entry is pending no longer. Whether it was.
    pub(crate) fn settle(&mut self, id: Id) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        if let Some(owner) = self.consumers.get_mut(pending.consumer) {
            owner.pending.remove(&id);
        }
        true
    }

    /// About the bytes held from the allocator. Names are left out.
    pub(super) fn memory_bytes(&self) -> usize {
        // Leaves of the ordered maps are about half full.
        let pending = self.pending.len() * 2 * (size_of::<(Id, Pending)>() + size_of::<Id>());
        pending + self.numbers.len() * 2 * size_of::<(Arc<[u8]>, u32)>() + self.consumers.memory_bytes()
    }

    /// Frees about `budget` of what is pending; how much it was. Nothing of the group is of use afterwards.
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
                    last.remove();
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
