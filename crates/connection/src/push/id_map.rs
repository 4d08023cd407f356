//! A small table from dense numbers to small values: the subscribers of a channel, what a client subscribes to, what a
//! node has been told.
//!
//! Ten million pairs of client and channel are two numbers each, so a pair must not cost a pointer or a node of a tree. One
//! entry lies in the table itself; more lie in one block of memory, probed linearly from a mixed home, at most four
//! fifths full, growing by half. What is removed leaves no mark behind: the entries after it move up.

/// Spreads numbers over a table. Its seed keeps a peer that can choose which numbers it gets from choosing their places.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeededHash(pub u32);

impl SeededHash {
    #[inline]
    fn spread(self, id: u32) -> u32 {
        let mut x = id ^ self.0;
        x ^= x >> 16;
        x = x.wrapping_mul(0x7feb_352d);
        x ^= x >> 15;
        x = x.wrapping_mul(0x846c_a68b);
        x ^ (x >> 16)
    }

    #[inline]
    fn home(self, id: u32, capacity: usize) -> usize {
        ((u64::from(self.spread(id)) * capacity as u64) >> 32) as usize
    }
}

/// No number that is ever kept.
const NO_ID: u32 = u32::MAX;

/// The first block of memory, in entries.
const FIRST_ENTRIES: usize = 4;

/// Numbers with a value each; with `()` a set of numbers.
#[derive(Clone, Debug)]
pub struct IdTable<V> {
    slots: Box<[(u32, V)]>,
    only: (u32, V),
    len: u32,
}

impl<V: Copy + Default> Default for IdTable<V> {
    fn default() -> Self {
        Self { slots: Box::default(), only: (NO_ID, V::default()), len: 0 }
    }
}

impl<V: Copy + Default> IdTable<V> {
    /// How many numbers there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.slots)
    }

    /// The value of `id`.
    #[inline]
    pub fn get(&self, id: u32, mix: SeededHash) -> Option<V> {
        if self.slots.is_empty() {
            return (self.only.0 == id && id != NO_ID).then_some(self.only.1);
        }
        self.place(id, mix).ok().map(|place| self.slots[place].1)
    }

    /// Whether `id` is there.
    #[inline]
    pub fn contains(&self, id: u32, mix: SeededHash) -> bool {
        self.get(id, mix).is_some()
    }

    /// Gives `id` a value. Returns whether it had none.
    pub fn insert(&mut self, id: u32, value: V, mix: SeededHash) -> bool {
        debug_assert_ne!(id, NO_ID, "tables are kept far below 2^32 entries");
        if self.slots.is_empty() {
            if self.len == 0 || self.only.0 == id {
                let is_new = self.len == 0;
                self.only = (id, value);
                self.len = 1;
                return is_new;
            }
            self.resize(FIRST_ENTRIES, mix);
        }
        match self.place(id, mix) {
            Ok(place) => {
                self.slots[place].1 = value;
                false
            }
            Err(_) if (self.len() + 1) * 5 > self.slots.len() * 4 => {
                self.resize(self.slots.len() + self.slots.len().div_ceil(2), mix);
                self.insert(id, value, mix)
            }
            Err(place) => {
                self.slots[place] = (id, value);
                self.len += 1;
                true
            }
        }
    }

    /// Takes the value of `id`.
    pub fn remove(&mut self, id: u32, mix: SeededHash) -> Option<V> {
        if self.slots.is_empty() {
            let value = self.get(id, mix)?;
            *self = Self::default();
            return Some(value);
        }
        let mut hole = self.place(id, mix).ok()?;
        let value = self.slots[hole].1;
        let capacity = self.slots.len();
        let mut at = hole;
        loop {
            at = if at + 1 == capacity { 0 } else { at + 1 };
            let next = self.slots[at].0;
            if next == NO_ID {
                break;
            }
            // An entry moves up unless its home lies behind the hole.
            let from_home = (at + capacity - mix.home(next, capacity)) % capacity;
            let from_hole = (at + capacity - hole) % capacity;
            if from_home >= from_hole {
                self.slots[hole] = self.slots[at];
                hole = at;
            }
        }
        self.slots[hole].0 = NO_ID;
        self.len -= 1;
        if self.len() * 4 < capacity {
            self.resize((self.len() * 2).max(FIRST_ENTRIES), mix);
        }
        Some(value)
    }

    /// All entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, V)> + '_ {
        let only = (self.slots.is_empty() && self.len == 1).then_some(self.only);
        only.into_iter().chain(self.slots.iter().copied().filter(|(id, _)| *id != NO_ID))
    }

    /// All numbers, in no order.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// All numbers, in no order, without a copy of them.
    pub fn into_ids(self) -> Ids<V> {
        let only = (self.slots.is_empty() && self.len == 1).then_some(self.only.0);
        Ids { only, rest: self.slots.into_vec().into_iter() }
    }

    /// Where `id` is, or where it would go.
    fn place(&self, id: u32, mix: SeededHash) -> Result<usize, usize> {
        let mut place = mix.home(id, self.slots.len());
        loop {
            match self.slots[place].0 {
                found if found == id => return Ok(place),
                NO_ID => return Err(place),
                _ => place = if place + 1 == self.slots.len() { 0 } else { place + 1 },
            }
        }
    }

    /// Moves everything to a block of another size; one entry needs none.
    fn resize(&mut self, capacity: usize, mix: SeededHash) {
        let old = std::mem::take(self);
        if old.len() < 2 && old.slots.len() > FIRST_ENTRIES {
            old.iter().for_each(|entry| (self.only, self.len) = (entry, 1));
            return;
        }
        self.slots = vec![(NO_ID, V::default()); capacity].into();
        for (id, value) in old.iter() {
            if let Err(place) = self.place(id, mix) {
                self.slots[place] = (id, value);
                self.len += 1;
            }
        }
    }
}

/// The numbers of a table that is no more.
#[derive(Debug)]
pub struct Ids<V> {
    only: Option<u32>,
    rest: std::vec::IntoIter<(u32, V)>,
}

impl<V> Iterator for Ids<V> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.only.take().or_else(|| self.rest.by_ref().map(|(id, _)| id).find(|id| *id != NO_ID))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_equals_a_map_whatever_is_put_in_and_taken_out() {
        for seed in 1..=6_u32 {
            let mix = SeededHash(seed.wrapping_mul(0x9e37_79b9));
            let mut table = IdTable::<u32>::default();
            let mut model = BTreeMap::new();
            let mut chance = u64::from(seed) | 1;
            for step in 0..20_000_u32 {
                chance ^= chance << 13;
                chance ^= chance >> 7;
                chance ^= chance << 17;
                // The numbers in use swell and shrink, so that the block does too.
                let range = [3, 40, 700, 12][(step / 5_000) as usize];
                let id = (chance >> 20) as u32 % range;
                if chance.is_multiple_of(2) {
                    assert_eq!(table.insert(id, step, mix), model.insert(id, step).is_none());
                } else {
                    assert_eq!(table.remove(id, mix), model.remove(&id));
                }
                assert_eq!(table.len(), model.len());
                assert_eq!(table.get(id, mix), model.get(&id).copied());
            }
            let mut all: Vec<_> = table.iter().collect();
            all.sort_unstable();
            assert!(all.iter().copied().eq(model.iter().map(|(id, value)| (*id, *value))));
            let mut ids: Vec<u32> = table.clone().into_ids().collect();
            ids.sort_unstable();
            assert!(ids.iter().eq(model.keys()));
            for id in model.into_keys().collect::<Vec<_>>() {
                assert!(table.remove(id, mix).is_some());
            }
            assert!(table.is_empty() && table.heap_bytes() <= 4 * 8);
        }
    }

    #[test]
    fn a_pair_costs_a_few_bytes() {
        let mix = SeededHash(7);
        let mut set = IdTable::<()>::default();
        set.insert(5, (), mix);
        assert_eq!(set.heap_bytes(), 0, "one entry needs no block");
        for count in [100, 1_000, 10_000, 100_000] {
            (0..count).for_each(|id| _ = set.insert(id, (), mix));
            assert!(set.heap_bytes() < 8 * count as usize, "{} for {count}", set.heap_bytes());
        }
    }
}
