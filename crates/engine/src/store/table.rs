//! The hash table: from a hash to record handles, one cache line per look-up.
//!
//! Buckets of 64 bytes hold twelve handles and one tag byte each; a bucket that overflows chains another. The table grows
//! by linear hashing: it splits one bucket at a time as entries arrive and folds one back as they leave, so there is
//! never a second table, never a pause, and the memory per entry is the same at every size. The table stores no keys and
//! no hashes: the owner of the records passes the comparison, and the hash function when a bucket may split.
//!
//! Scanning has the guarantee of Redis's `SCAN`: the cursor counts hash residues in reversed binary, so an entry that is
//! there from the first call to the last is reported at least once, however often the table grows or shrinks in between.

use super::pool::Handle;
use super::random::Random;

/// Handles in one bucket.
const SLOTS: usize = 12;
/// Buckets in one allocation; a table of fewer has a single, smaller allocation.
const SEGMENT_BUCKETS: usize = 512;
/// Mean entries per bucket above which the table grows by a bucket.
const GROW_ABOVE: usize = 8;
/// Mean entries per bucket below which the table gives a bucket back.
const SHRINK_BELOW: usize = 3;
/// The end of a chain of overflow buckets.
const NO_BUCKET: u32 = u32::MAX;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// One cache line: a tag byte and a handle per entry. A tag of zero marks an empty slot, whose handle is zero as well: a
/// search may come upon it, and what has been removed may name the record of another table by then.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Bucket {
    tags: [u8; SLOTS],
    next: u32,
    items: [u32; SLOTS],
}

const EMPTY: Bucket = Bucket { tags: [0; SLOTS], next: NO_BUCKET, items: [0; SLOTS] };

impl Bucket {
    /// The slot with this tag whose handle `is_it` holds for.
    #[inline]
    fn find(&self, tag: u8, mut is_it: impl FnMut(Handle) -> bool) -> Option<u8> {
        // Eight tags are compared at a time: a byte of `differing` is zero where a tag is equal, and the arithmetic sets
        // the high bit of every such byte, and of one above it that differs in the lowest bit alone. That costs a
        // comparison in vain if the slot is taken; if it is empty, its handle is none.
        let t = &self.tags;
        let words = [
            u64::from_le_bytes([t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7]]),
            u64::from(u32::from_le_bytes([t[8], t[9], t[10], t[11]])),
        ];
        let pattern = LOW_BITS.wrapping_mul(u64::from(tag));
        for (word, first) in words.into_iter().zip([0, 8]) {
            let differing = word ^ pattern;
            let mut equal = differing.wrapping_sub(LOW_BITS) & !differing & HIGH_BITS;
            while equal != 0 {
                let slot = first + equal.trailing_zeros() as usize / 8;
                let item = self.items.get(slot).and_then(|&item| Handle::from_u32(item));
                if item.is_some_and(&mut is_it) {
                    return Some(slot as u8);
                }
                equal &= equal - 1;
            }
        }
        None
    }

    #[inline]
    fn free_slot(&self) -> Option<usize> {
        self.tags.iter().position(|&tag| tag == 0)
    }

    fn len(&self) -> usize {
        self.tags.iter().filter(|&&tag| tag != 0).count()
    }
}

/// Buckets by index, in segments, so that growing moves none of them.
#[derive(Default)]
struct Buckets {
    segments: Vec<Vec<Bucket>>,
    len: usize,
    /// Bytes held from the allocator, counted whenever `len` changes.
    bytes: usize,
}

impl Buckets {
    #[inline]
    fn get(&self, index: usize) -> &Bucket {
        &self.segments[index / SEGMENT_BUCKETS][index % SEGMENT_BUCKETS]
    }

    #[inline]
    fn get_mut(&mut self, index: usize) -> &mut Bucket {
        &mut self.segments[index / SEGMENT_BUCKETS][index % SEGMENT_BUCKETS]
    }

    fn push(&mut self) {
        if self.len.is_multiple_of(SEGMENT_BUCKETS) {
            let room = if self.len == 0 { 1 } else { SEGMENT_BUCKETS };
            self.segments.push(Vec::with_capacity(room));
        }
        self.segments.last_mut().expect("a segment was pushed above or is not full").push(EMPTY);
        self.len += 1;
        self.bytes = self.counted_bytes();
    }

    fn pop(&mut self) -> Option<Bucket> {
        let segment = self.segments.last_mut()?;
        let popped = segment.pop()?;
        self.len -= 1;
        if segment.is_empty() {
            self.segments.pop();
        } else if segment.len() * 4 < segment.capacity() && self.len < SEGMENT_BUCKETS {
            segment.shrink_to(self.len * 2);
        }
        self.bytes = self.counted_bytes();
        Some(popped)
    }

    fn counted_bytes(&self) -> usize {
        let Some(first) = self.segments.first() else { return 0 };
        let buckets = first.capacity() + (self.segments.len() - 1) * SEGMENT_BUCKETS;
        buckets * size_of::<Bucket>() + self.segments.capacity() * size_of::<Vec<Bucket>>()
    }
}

/// Where one entry stands, until the next insertion or removal.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// Index of the main bucket that the chain starts at.
    home: u32,
    /// Index of the main bucket, or of an overflow bucket.
    bucket: u32,
    is_overflow: bool,
    slot: u8,
}

/// From hashes to handles. See the module's text.
#[derive(Default)]
pub(crate) struct Table {
    /// The main buckets. `0..split` have been split at this level, so there are `(1 << level) + split`.
    buckets: Buckets,
    split: usize,
    level: u32,
    len: usize,
    overflow: Buckets,
    spare_overflow: u32,
    overflow_used: u32,
    /// The longest chain there ever was, in buckets; random sampling needs a bound.
    chain_max: u32,
}

#[inline]
fn tag_of(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

impl Table {
    /// How many entries there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        let mask = (1_usize << self.level) - 1;
        let index = hash as usize & mask;
        if index < self.split { hash as usize & (mask << 1 | 1) } else { index }
    }

    #[inline]
    fn bucket(&self, index: u32, is_overflow: bool) -> &Bucket {
        let buckets = if is_overflow { &self.overflow } else { &self.buckets };
        buckets.get(index as usize)
    }

    #[inline]
    fn bucket_mut(&mut self, index: u32, is_overflow: bool) -> &mut Bucket {
        let buckets = if is_overflow { &mut self.overflow } else { &mut self.buckets };
        buckets.get_mut(index as usize)
    }

    /// The entry with this hash for which `is_it` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_it: impl FnMut(Handle) -> bool) -> Option<Handle> {
        self.place(hash, &mut is_it).map(|place| self.at(place))
    }

    /// Where the entry with this hash stands for which `is_it` holds.
    #[inline]
    pub(crate) fn place(&self, hash: u64, mut is_it: impl FnMut(Handle) -> bool) -> Option<Place> {
        if self.len == 0 {
            return None;
        }
        let tag = tag_of(hash);
        let home = self.home(hash) as u32;
        let bucket = self.buckets.get(home as usize);
        if let Some(slot) = bucket.find(tag, &mut is_it) {
            return Some(Place { home, bucket: home, is_overflow: false, slot });
        }
        if bucket.next == NO_BUCKET {
            return None;
        }
        self.place_in_overflow(home, bucket.next, tag, is_it)
    }

    #[inline(never)]
    fn place_in_overflow(
        &self,
        home: u32,
        first: u32,
        tag: u8,
        mut is_it: impl FnMut(Handle) -> bool,
    ) -> Option<Place> {
        let mut index = first;
        while index != NO_BUCKET {
            let bucket = self.overflow.get(index as usize);
            if let Some(slot) = bucket.find(tag, &mut is_it) {
                return Some(Place { home, bucket: index, is_overflow: true, slot });
            }
            index = bucket.next;
        }
        None
    }

    /// The entry at `place`.
    #[inline]
    pub(crate) fn at(&self, place: Place) -> Handle {
        Handle::from_u32(self.bucket(place.bucket, place.is_overflow).items[usize::from(place.slot)])
            .expect("a place names an occupied slot")
    }

    /// Puts another handle at `place`: the same entry, whose record has moved.
    #[inline]
    pub(crate) fn replace(&mut self, place: Place, handle: Handle) {
        self.bucket_mut(place.bucket, place.is_overflow).items[usize::from(place.slot)] = handle.to_u32();
    }

    /// Adds an entry that is not there yet. `hash_of` tells the hash of entries that a split moves.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, handle: Handle, hash_of: impl FnMut(Handle) -> u64) {
        if self.len == 0 {
            self.buckets.push();
        }
        let home = self.home(hash);
        self.put(home, tag_of(hash), handle.to_u32());
        self.len += 1;
        if self.len > self.buckets.len * GROW_ABOVE && self.buckets.len < u32::MAX as usize / 2 {
            self.split_one(hash_of);
        }
    }

    #[inline]
    fn put(&mut self, home: usize, tag: u8, item: u32) {
        let (mut index, mut is_overflow, mut chain) = (home as u32, false, 0);
        loop {
            let bucket = self.bucket_mut(index, is_overflow);
            if let Some(slot) = bucket.free_slot() {
                bucket.tags[slot] = tag;
                bucket.items[slot] = item;
                return;
            }
            chain += 1;
            if bucket.next == NO_BUCKET {
                let fresh = self.take_overflow();
                self.bucket_mut(index, is_overflow).next = fresh;
                self.chain_max = self.chain_max.max(chain);
                (index, is_overflow) = (fresh, true);
            } else {
                (index, is_overflow) = (bucket.next, true);
            }
        }
    }

    #[cold]
    fn take_overflow(&mut self) -> u32 {
        self.overflow_used += 1;
        if self.overflow_used as usize <= self.overflow.len {
            let index = self.spare_overflow;
            let bucket = self.overflow.get_mut(index as usize);
            self.spare_overflow = std::mem::replace(bucket, EMPTY).next;
            return index;
        }
        self.overflow.push();
        (self.overflow.len - 1) as u32
    }

    fn give_overflow(&mut self, index: u32) {
        self.overflow_used -= 1;
        if self.overflow_used == 0 {
            self.overflow = Buckets::default();
        } else {
            self.overflow.get_mut(index as usize).next = self.spare_overflow;
            self.spare_overflow = index;
        }
    }

    /// Takes the entry at `place` out.
    pub(crate) fn remove(&mut self, place: Place) -> Handle {
        let removed = self.at(place);
        // The last entry of the chain fills the hole, so that chains stay dense and overflow buckets come free.
        let mut before = (place.home, false);
        let (mut last, mut is_overflow) = before;
        loop {
            let next = self.bucket(last, is_overflow).next;
            if next == NO_BUCKET {
                break;
            }
            before = (last, is_overflow);
            (last, is_overflow) = (next, true);
        }
        let bucket = self.bucket_mut(last, is_overflow);
        let slot = bucket.tags.iter().rposition(|&tag| tag != 0).expect("the last bucket of a chain holds an entry");
        let (tag, item) = (bucket.tags[slot], bucket.items[slot]);
        (bucket.tags[slot], bucket.items[slot]) = (0, 0);
        let is_drained = is_overflow && bucket.len() == 0;
        if (last, is_overflow, slot) != (place.bucket, place.is_overflow, usize::from(place.slot)) {
            let hole = self.bucket_mut(place.bucket, place.is_overflow);
            hole.tags[usize::from(place.slot)] = tag;
            hole.items[usize::from(place.slot)] = item;
        }
        if is_drained {
            self.bucket_mut(before.0, before.1).next = NO_BUCKET;
            self.give_overflow(last);
        }
        self.len -= 1;
        if self.len == 0 {
            *self = Self::default();
        } else if self.len < self.buckets.len * SHRINK_BELOW && self.buckets.len > 1 {
            self.fold_one();
        }
        removed
    }

    /// Grows by one bucket, which takes about half of the entries of the next bucket in turn.
    #[inline(never)]
    fn split_one(&mut self, mut hash_of: impl FnMut(Handle) -> u64) {
        let old = self.split;
        self.buckets.push();
        self.split += 1;
        if self.split == 1 << self.level {
            self.split = 0;
            self.level += 1;
        }
        self.rehome(old, |item| Handle::from_u32(item).map_or(0, &mut hash_of));
    }

    /// Takes all entries of the chain at `index` out and puts each where its hash says.
    fn rehome(&mut self, index: usize, mut hash_of: impl FnMut(u32) -> u64) {
        let mut carried = std::mem::replace(self.buckets.get_mut(index), EMPTY);
        loop {
            for slot in 0..SLOTS {
                if carried.tags[slot] != 0 {
                    let home = self.home(hash_of(carried.items[slot]));
                    self.put(home, carried.tags[slot], carried.items[slot]);
                }
            }
            if carried.next == NO_BUCKET {
                return;
            }
            let drained = carried.next;
            carried = *self.overflow.get(drained as usize);
            self.give_overflow(drained);
        }
    }

    /// Shrinks by one bucket: the last one's entries go back to the bucket that it was split from.
    #[inline(never)]
    fn fold_one(&mut self) {
        if self.split == 0 {
            self.level -= 1;
            self.split = 1 << self.level;
        }
        self.split -= 1;
        let target = self.split;
        let Some(mut carried) = self.buckets.pop() else { return };
        loop {
            for slot in 0..SLOTS {
                if carried.tags[slot] != 0 {
                    self.put(target, carried.tags[slot], carried.items[slot]);
                }
            }
            if carried.next == NO_BUCKET {
                return;
            }
            let drained = carried.next;
            carried = *self.overflow.get(drained as usize);
            self.give_overflow(drained);
        }
    }

    /// Every entry, in no order that means anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Handle> + '_ {
        (0..self.buckets.len).flat_map(move |index| self.chain(index))
    }

    fn chain(&self, index: usize) -> impl Iterator<Item = Handle> + '_ {
        let mut next = Some((index as u32, false));
        std::iter::from_fn(move || {
            let (index, is_overflow) = next?;
            let bucket = self.bucket(index, is_overflow);
            next = (bucket.next != NO_BUCKET).then_some((bucket.next, true));
            Some(bucket)
        })
        .flat_map(|bucket| {
            let occupied = bucket.tags.iter().zip(&bucket.items).filter(|(tag, _)| **tag != 0);
            occupied.filter_map(|(_, &item)| Handle::from_u32(item))
        })
    }

    /// Takes a whole bucket out of a table that is of no use any more; whether some are left. Nothing else may be asked of
    /// the table afterwards.
    pub(crate) fn drain_bucket(&mut self, mut see: impl FnMut(Handle)) -> bool {
        if let Some(last) = self.buckets.len.checked_sub(1) {
            self.chain(last).for_each(&mut see);
            self.buckets.pop();
        }
        self.buckets.len > 0
    }

    /// Reports the entries behind `cursor` to `visit` and tells the next cursor; zero starts and zero ends.
    pub(crate) fn scan(&self, cursor: u64, mut visit: impl FnMut(Handle)) -> u64 {
        if self.len == 0 {
            return 0;
        }
        let mask = (1_u64 << self.level) - 1;
        let index = (cursor & mask) as usize;
        self.chain(index).for_each(&mut visit);
        if index < self.split {
            self.chain(index + (1 << self.level)).for_each(&mut visit);
        }
        (cursor | !mask).reverse_bits().wrapping_add(1).reverse_bits()
    }

    /// Shows the entries behind `cursor` until `count` were seen or the table ends; the next cursor.
    pub(crate) fn scan_many(&self, mut cursor: u64, count: usize, mut see: impl FnMut(Handle)) -> u64 {
        let mut seen = 0;
        loop {
            cursor = self.scan(cursor, |handle| {
                seen += 1;
                see(handle);
            });
            if cursor == 0 || seen >= count {
                return cursor;
            }
        }
    }

    /// One entry, each with the same chance; `None` if there is none.
    pub(crate) fn random(&self, random: &mut Random) -> Option<Handle> {
        if self.len == 0 {
            return None;
        }
        // Drawing a bucket and a slot until the slot is taken gives every entry the same chance. The table never
        // empties below SHRINK_BELOW entries a bucket, so a few draws do.
        let depth = SLOTS * (1 + self.chain_max as usize);
        loop {
            let index = random.below(self.buckets.len as u64) as usize;
            let nth = random.below(depth as u64) as usize;
            let (mut bucket, mut slot) = (self.buckets.get(index), nth);
            while slot >= SLOTS && bucket.next != NO_BUCKET {
                bucket = self.overflow.get(bucket.next as usize);
                slot -= SLOTS;
            }
            if slot < SLOTS && bucket.tags[slot] != 0 {
                return Handle::from_u32(bucket.items[slot]);
            }
        }
    }

    /// What changes whenever [`Table::memory_bytes`] does.
    #[inline]
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.buckets.len, self.overflow.len)
    }

    /// Bytes that the table holds from the allocator.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        debug_assert_eq!(self.buckets.bytes, self.buckets.counted_bytes());
        debug_assert_eq!(self.overflow.bytes, self.overflow.counted_bytes());
        self.buckets.bytes + self.overflow.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn hash(item: Handle) -> u64 {
        u64::from(item.to_u32()).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(item.to_u32()) << 40
    }

    fn handle(number: u32) -> Handle {
        Handle::from_u32(number).expect("tests count from one")
    }

    fn table_of(count: u32) -> Table {
        let mut table = Table::default();
        for number in 1..=count {
            table.insert(hash(handle(number)), handle(number), hash);
        }
        table
    }

    /// A hash whose tags are few, next to each other, and at both ends.
    fn poor_hash(item: Handle) -> u64 {
        const TAGS: [u64; 6] = [0, 1, 2, 3, 0x80, 0xff];
        hash(item) & (u64::MAX >> 8) | TAGS[item.to_u32() as usize % TAGS.len()] << 56
    }

    #[test]
    fn it_holds_what_a_set_holds() {
        let good: fn(Handle) -> u64 = hash;
        for (spread, hash) in [(40, good), (900, good), (30_000, good), (20, poor_hash), (900, poor_hash)] {
            let (mut table, mut model, mut random) = (Table::default(), BTreeSet::new(), Random::new(spread));
            for round in 0..80_000 {
                let item = handle(1 + random.below(spread) as u32);
                let is_growing = round % 20_000 < 10_000;
                let found = table.place(hash(item), |other| {
                    assert!(model.contains(&other), "{other:?} was removed and is looked at");
                    other == item
                });
                assert_eq!(found.is_some(), model.contains(&item));
                match found {
                    None if is_growing || random.below(4) == 0 => {
                        table.insert(hash(item), item, hash);
                        model.insert(item);
                    }
                    Some(place) if !is_growing || random.below(4) == 0 => {
                        assert_eq!(table.remove(place), item);
                        model.remove(&item);
                    }
                    _ => {}
                }
                assert_eq!(table.len(), model.len());
            }
            assert_eq!(table.iter().collect::<BTreeSet<_>>(), model);
        }
    }

    #[test]
    fn colliding_hashes_chain_and_leave() {
        let mut table = Table::default();
        for number in 1..=200 {
            table.insert(5, handle(number), |_| 5);
        }
        for number in (1..=200).rev() {
            let place = table.place(5, |item| item == handle(number)).expect("it was inserted");
            table.remove(place);
        }
        assert_eq!((table.len(), table.memory_bytes()), (0, 0));
    }

    #[test]
    fn an_empty_slot_names_no_record() {
        // A tag of one behind an equal tag is where the search may look into an empty slot.
        let mut table = Table::default();
        let hashes = |item: Handle| if item.to_u32().is_multiple_of(3) { hash(item) } else { 1 << 56 };
        for round in 0..200_u32 {
            let numbers: Vec<u32> = (1..=12).map(|number| round * 20 + number).collect();
            numbers.iter().for_each(|&number| table.insert(hashes(handle(number)), handle(number), hashes));
            for (gone, &number) in numbers.iter().enumerate() {
                let item = handle(number);
                let place = table.place(hashes(item), |other| other == item).expect("it was inserted");
                table.remove(place);
                let is_live = |other: Handle| numbers[gone + 1..].contains(&other.to_u32());
                let seen = table.place(hashes(item), |other| {
                    assert!(is_live(other), "{other:?} was removed and is looked at");
                    false
                });
                assert!(seen.is_none());
            }
        }
    }

    #[test]
    fn a_scan_misses_nothing_that_stays() {
        for (first, then) in [(20, 5_000), (5_000, 20), (700, 700), (3_000, 9_000)] {
            let mut table = table_of(first.max(1));
            let stays: BTreeSet<_> = (1..=first.min(then)).map(handle).collect();
            let (mut seen, mut cursor, mut next, mut calls) = (BTreeSet::new(), 0, first, 0);
            loop {
                cursor = table.scan(cursor, |item| {
                    seen.insert(item);
                });
                calls += 1;
                for _ in 0..40 {
                    if next < then {
                        next += 1;
                        table.insert(hash(handle(next)), handle(next), hash);
                    } else if next > then {
                        let gone = handle(next);
                        let place = table.place(hash(gone), |item| item == gone).expect("it was inserted");
                        table.remove(place);
                        next -= 1;
                    }
                }
                if cursor == 0 {
                    break;
                }
                assert!(calls < 100_000, "the scan must end");
            }
            assert!(stays.is_subset(&seen), "{first} to {then}: {} of {}", seen.len(), stays.len());
        }
    }

    #[test]
    fn random_entries_have_equal_chances() {
        let (table, mut random) = (table_of(100), Random::new(3));
        let mut hits = [0_u32; 101];
        for _ in 0..100_000 {
            hits[table.random(&mut random).expect("it is not empty").to_u32() as usize] += 1;
        }
        assert!(hits[1..].iter().all(|&count| (800..1_200).contains(&count)), "{hits:?}");
    }

    #[test]
    fn memory_per_entry_is_steady() {
        for count in [10_000, 15_000, 40_000, 100_000] {
            let per_entry = table_of(count).memory_bytes() as f64 / f64::from(count);
            assert!(per_entry < 11.0, "{per_entry} bytes at {count}");
        }
    }
}
