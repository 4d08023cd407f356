//! The keys that are seen most often, or with the largest values: bounded tables fed by samples.
//!
//! Samples of many keys are mostly of keys that are in no table, so that is what has to be cheap: such a key is told from all
//! others by a row of hashes, what cannot be among the largest is not even looked for, and the place that it may take is
//! found by going on where the last one was found.

use respool_route::KeyHash;

/// A key and its figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    pub(crate) key: Vec<u8>,
    pub(crate) figure: u64,
    /// By how much the figure may be too high.
    pub(crate) error: u64,
    pub(crate) command: &'static str,
}

/// Keys with figures that only grow, but for [`Table::halve`].
#[derive(Debug, Default)]
struct Table {
    keys: Vec<Ranked>,
    /// Of the keys, in their order.
    hashes: Vec<u32>,
    /// No figure is smaller.
    floor: u64,
    /// All keys before this one have figures above the floor.
    cursor: usize,
}

/// Hashes that are compared in one go.
const HASHES_AT_ONCE: usize = 16;

impl Table {
    /// Where a key is.
    fn find(&self, key: &[u8], hash: u32) -> Option<usize> {
        let is_near = |hashes: &[u32]| hashes.iter().fold(false, |is_any, known| is_any | (*known == hash));
        let near = self.hashes.chunks(HASHES_AT_ONCE).enumerate().filter(|(_, hashes)| is_near(hashes));
        near.flat_map(|(at, hashes)| at * HASHES_AT_ONCE..at * HASHES_AT_ONCE + hashes.len())
            .find(|at| self.hashes[*at] == hash && self.keys[*at].key == key)
    }

    fn push(&mut self, key: &[u8], hash: u32, figure: u64, command: &'static str) {
        self.keys.push(Ranked { key: key.into(), figure, error: 0, command });
        self.hashes.push(hash);
        (self.floor, self.cursor) = (0, 0);
    }

    /// The place of the smallest figure, if there is any. Costs next to nothing while many are equally small.
    fn least(&mut self) -> Option<usize> {
        let is_least = |floor: u64| move |known: &Ranked| known.figure == floor;
        if let Some(ahead) = self.keys[self.cursor..].iter().position(is_least(self.floor)) {
            self.cursor += ahead;
        } else {
            self.floor = self.keys.iter().map(|known| known.figure).min()?;
            self.cursor = self.keys.iter().position(is_least(self.floor))?;
        }
        Some(self.cursor)
    }

    /// Another key comes to a place.
    fn replace(&mut self, at: usize, key: &[u8], hash: u32, command: &'static str) -> &mut Ranked {
        self.hashes[at] = hash;
        let place = &mut self.keys[at];
        place.key.clear();
        place.key.extend_from_slice(key);
        place.command = command;
        place
    }

    /// Halves all figures.
    fn halve(&mut self) {
        for known in &mut self.keys {
            known.figure /= 2;
            known.error /= 2;
        }
        self.keys.retain(|known| known.figure > 0);
        self.hashes.clear();
        self.hashes.extend(self.keys.iter().map(|known| hash_of(&known.key)));
        (self.floor, self.cursor) = (0, 0);
    }

    fn ranked(&self) -> Vec<Ranked> {
        let mut keys = self.keys.clone();
        keys.sort_by_key(|known| std::cmp::Reverse(known.figure));
        keys
    }
}

/// Keys that collide cost a comparison each, and no table is long.
fn hash_of(key: &[u8]) -> u32 {
    KeyHash::Fnv1aWith32.hash(key)
}

/// Keys by how often they are seen: the space-saving table of Metwally, Agrawal and El Abbadi. A key that is seen more
/// often than one in its length of all is in it for certain.
#[derive(Debug, Default)]
pub(crate) struct FrequentKeys {
    table: Table,
    pub(crate) seen: u64,
}

impl FrequentKeys {
    pub(crate) fn note(&mut self, key: &[u8], command: &'static str, length: usize) {
        self.seen += 1;
        let hash = hash_of(key);
        if let Some(at) = self.table.find(key, hash) {
            let known = &mut self.table.keys[at];
            known.figure += 1;
            known.command = command;
        } else if self.table.keys.len() < length {
            self.table.push(key, hash, 1, command);
        } else if let Some(at) = self.table.least() {
            let place = self.table.replace(at, key, hash, command);
            place.error = place.figure;
            place.figure += 1;
        }
    }

    /// Halves all figures, so that what was often once is forgotten.
    pub(crate) fn age(&mut self) {
        self.seen /= 2;
        self.table.halve();
    }

    pub(crate) fn ranked(&self) -> Vec<Ranked> {
        self.table.ranked()
    }
}

/// Keys by the largest value that was seen.
#[derive(Debug, Default)]
pub(crate) struct LargestKeys {
    table: Table,
}

impl LargestKeys {
    pub(crate) fn note(&mut self, key: &[u8], command: &'static str, bytes: u64, length: usize) {
        let is_full = self.table.keys.len() >= length;
        if is_full && bytes <= self.table.floor {
            return;
        }
        let hash = hash_of(key);
        if let Some(at) = self.table.find(key, hash) {
            let known = &mut self.table.keys[at];
            if bytes > known.figure {
                known.figure = bytes;
                known.command = command;
            }
        } else if !is_full {
            self.table.push(key, hash, bytes, command);
        } else if let Some(at) = self.table.least()
            && bytes > self.table.floor
        {
            self.table.replace(at, key, hash, command).figure = bytes;
        }
    }

    pub(crate) fn ranked(&self) -> Vec<Ranked> {
        self.table.ranked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_often_enough_is_never_lost() {
        let mut often = FrequentKeys::default();
        for n in 0..10_000u32 {
            often.note(&n.to_le_bytes(), "get", 16);
            if n % 4 == 0 {
                often.note(b"hot", "get", 16);
            }
        }
        let first = often.ranked().swap_remove(0);
        assert_eq!(first.key, b"hot");
        assert!(first.figure >= 2_500 && first.figure - first.error <= 2_500, "{first:?}");
        assert_eq!(often.ranked().len(), 16);
        (0..20).for_each(|_| often.age());
        assert!(often.ranked().is_empty());
    }

    #[test]
    fn figures_of_keys_are_right_or_too_high_by_the_stated_error() {
        let mut often = FrequentKeys::default();
        let mut times = std::collections::HashMap::<u32, u64>::new();
        let mut drawn = 1u32;
        for n in 0..50_000u32 {
            drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Small numbers come more often than large ones.
            let key = (drawn >> 16) % ((drawn >> 8) % 100 + 1);
            often.note(&key.to_le_bytes(), "get", 20);
            *times.entry(key).or_default() += 1;
            if n == 30_000 {
                often.age();
                times.values_mut().for_each(|seen| *seen /= 2);
            }
        }
        let ranked = often.ranked();
        assert_eq!(ranked.len(), 20);
        for Ranked { key, figure, error, .. } in &ranked {
            let seen = times[&u32::from_le_bytes(key[..].try_into().unwrap())];
            assert!(*figure + 1 >= seen && figure - error <= seen + 1, "{key:?}: {seen} times, {figure} - {error}");
        }
        let least = ranked.last().unwrap().figure;
        let missing = times.iter().filter(|(key, _)| !ranked.iter().any(|known| known.key == key.to_le_bytes()));
        missing.for_each(|(key, seen)| assert!(*seen <= least + 1, "{key} was seen {seen} times, others {least}"));
    }

    #[test]
    fn the_largest_stay() {
        let mut largest = LargestKeys::default();
        (0..100u64).for_each(|n| largest.note(&n.to_le_bytes(), "get", n, 4));
        largest.note(&99u64.to_le_bytes(), "get", 5, 4);
        largest.note(&7u64.to_le_bytes(), "get", 96, 4);
        assert_eq!(largest.ranked().iter().map(|ranked| ranked.figure).collect::<Vec<_>>(), [99, 98, 97, 96]);
    }
}
