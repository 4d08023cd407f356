//! Hashes: a listpack of fields and values while small, a table of pair records after. A hash with deadlines on fields is
//! neither: the others pay nothing for them.

mod volatile;

use crate::keyspace::key::Expiry;
use crate::store::heap::{Heap, KeyHasher};
use crate::store::listpack::{Element, Listpack};
use crate::store::pool::{Handle, Pool};
use crate::store::record::{self, Field};
use crate::store::table::{Place, Table};

pub(crate) use volatile::{NOT_LISTED, Volatile};

/// A map from fields to values.
pub(crate) enum Hash {
    Packed(Listpack),
    Table(Box<Table>),
    /// Some fields have deadlines.
    Volatile(Box<Volatile>),
}

fn place(table: &Table, pool: &Pool, hash: u64, field: &[u8]) -> Option<Place> {
    table.place(hash, |handle| record::pair(pool, handle).0 == field)
}

/// Puts in a field with this hash that is not there yet.
fn insert(table: &mut Table, pool: &mut Pool, hasher: &KeyHasher, hash: u64, field: &[u8], value: &[u8]) {
    let handle = record::new_pair(pool, field, value);
    table.insert(hash, handle, |moved| hasher.hash(record::pair(pool, moved).0));
}

impl Hash {
    /// No fields yet.
    pub(crate) fn new() -> Self {
        Self::Packed(Listpack::new())
    }

    /// The hash of a listpack of fields and values; `None` if a field is duplicated.
    pub(crate) fn from_pack(pack: Listpack, heap: &mut Heap) -> Option<Self> {
        let len = pack.len();
        let fields: std::collections::BTreeSet<_> = pack.pairs().map(|(field, _)| field.to_vec()).collect();
        if !len.is_multiple_of(2) || fields.len() != len / 2 {
            return None;
        }
        let mut hash = Self::Packed(pack);
        if fields.len() > heap.encodings.hash_entries_max {
            hash.unpack(heap);
        }
        Some(hash)
    }

    /// The number of fields, expired ones that are not removed yet included: zero if the key has to be removed.
    pub(crate) fn records(&self) -> usize {
        match self {
            Self::Packed(pack) => pack.len() / 2,
            Self::Table(table) => table.len(),
            Self::Volatile(volatile) => volatile.records(),
        }
    }

    /// The number of fields.
    pub(crate) fn len(&self, heap: &Heap) -> usize {
        match self {
            Self::Volatile(volatile) => volatile.len(heap.now),
            _ => self.records(),
        }
    }

    /// Bytes that the hash holds from the allocator beside its records.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Packed(pack) => pack.memory_bytes(),
            Self::Table(table) => size_of::<Table>() + table.memory_bytes(),
            Self::Volatile(volatile) => volatile.memory_bytes(),
        }
    }

    /// Redis's name for the encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::Packed(_) => "listpack",
            Self::Table(_) | Self::Volatile(_) => "hashtable",
        }
    }

    /// The value of `field`.
    pub(crate) fn get<'a>(&'a self, heap: &'a Heap, field: &[u8]) -> Option<Element<'a>> {
        match self {
            Self::Packed(pack) => Some(pack.get(pack.next(pack.find(field, 2)?)?)),
            Self::Table(table) => {
                let handle =
                    table.find(heap.hasher.hash(field), |handle| record::pair(&heap.pool, handle).0 == field)?;
                Some(Element::Bytes(record::pair(&heap.pool, handle).1))
            }
            Self::Volatile(volatile) => volatile.get(heap, field).map(|field| Element::Bytes(field.value)),
        }
    }

    /// The deadline of a field; `None` if the field does not exist.
    pub(crate) fn deadline(&self, heap: &Heap, field: &[u8]) -> Option<Option<i64>> {
        match self {
            Self::Volatile(volatile) => volatile.get(heap, field).map(|field| field.deadline),
            _ => self.get(heap, field).map(|_| None),
        }
    }

    /// Leaves the compact encoding if one of `texts` is too long for it.
    pub(crate) fn make_room_for<'a>(&mut self, heap: &mut Heap, mut texts: impl Iterator<Item = &'a [u8]>) {
        let max = heap.encodings.hash_value_bytes_max;
        if matches!(self, Self::Packed(_)) && texts.any(|text| text.len() > max) {
            self.unpack(heap);
        }
    }

    /// Gives `field` the value, which drops its deadline; whether the field is new.
    pub(crate) fn set(&mut self, heap: &mut Heap, field: &[u8], value: &[u8]) -> bool {
        self.set_with(heap, field, value, Expiry::Never)
    }

    /// As [`Hash::set`], with a deadline.
    pub(crate) fn set_with(&mut self, heap: &mut Heap, field: &[u8], value: &[u8], expiry: Expiry) -> bool {
        if let Expiry::At(_) = expiry {
            self.make_volatile(heap);
        }
        self.make_room_for(heap, [field, value].into_iter());
        let Heap { pool, hasher, encodings, .. } = heap;
        match self {
            Self::Packed(pack) => {
                if let Some(at) = pack.find(field, 2).and_then(|at| pack.next(at)) {
                    pack.replace(at, value);
                    return false;
                }
                pack.push(field);
                pack.push(value);
                if pack.len() / 2 > encodings.hash_entries_max {
                    self.unpack(heap);
                }
                true
            }
            Self::Table(table) => {
                let hash = hasher.hash(field);
                let found = place(table, pool, hash, field);
                match found {
                    Some(place) => {
                        let moved = record::set_second(pool, table.at(place), field, value);
                        table.replace(place, moved);
                    }
                    None => insert(table, pool, hasher, hash, field, value),
                }
                found.is_none()
            }
            Self::Volatile(volatile) => volatile.set(heap, field, value, expiry),
        }
    }

    /// Gives a field a deadline; whether the field exists.
    pub(crate) fn set_deadline(&mut self, heap: &mut Heap, field: &[u8], deadline: i64) -> bool {
        if self.get(heap, field).is_none() {
            return false;
        }
        self.make_volatile(heap).is_some_and(|volatile| volatile.set_deadline(heap, field, Some(deadline)))
    }

    /// Takes the deadline of a field away.
    pub(crate) fn clear_deadline(&mut self, heap: &mut Heap, field: &[u8]) {
        if let Self::Volatile(volatile) = self {
            volatile.set_deadline(heap, field, None);
        }
    }

    /// Converts to the encoding that has deadlines.
    fn make_volatile(&mut self, heap: &mut Heap) -> Option<&mut Volatile> {
        self.unpack(heap);
        if let Self::Table(table) = self {
            *self = Self::Volatile(Box::new(Volatile::new(std::mem::take(table))));
        }
        self.volatile_mut()
    }

    /// The fields and deadlines of a hash that has some.
    pub(crate) fn volatile(&self) -> Option<&Volatile> {
        if let Self::Volatile(volatile) = self { Some(volatile) } else { None }
    }

    /// As [`Hash::volatile`], for writing.
    pub(crate) fn volatile_mut(&mut self) -> Option<&mut Volatile> {
        if let Self::Volatile(volatile) = self { Some(volatile) } else { None }
    }

    /// Converts back to a table if no field has a deadline any more.
    pub(crate) fn settle(&mut self) {
        if let Self::Volatile(volatile) = self
            && let Some(table) = volatile.take_table()
        {
            *self = Self::Table(Box::new(table));
        }
    }

    /// Takes `field` out; whether it was there.
    pub(crate) fn remove(&mut self, heap: &mut Heap, field: &[u8]) -> bool {
        match self {
            Self::Packed(pack) => {
                let found = pack.find(field, 2);
                if let Some(at) = found {
                    pack.remove(at, 2);
                }
                found.is_some()
            }
            Self::Table(table) => match place(table, &heap.pool, heap.hasher.hash(field), field) {
                Some(place) => {
                    heap.pool.free(table.remove(place));
                    true
                }
                None => false,
            },
            Self::Volatile(volatile) => volatile.remove(heap, field),
        }
    }

    /// Shows every field with its value.
    pub(crate) fn each<'a>(&'a self, heap: &'a Heap, mut see: impl FnMut(Element<'a>, Element<'a>)) {
        match self {
            Self::Packed(pack) => pack.pairs().for_each(|(field, value)| see(field, value)),
            Self::Table(table) => table.iter().for_each(|handle| see_record(heap, handle, &mut see)),
            Self::Volatile(volatile) => {
                volatile.each(heap, |Field { name, value, .. }| see(Element::Bytes(name), Element::Bytes(value)));
            }
        }
    }

    /// Shows every field of a hash that has deadlines; nothing of others.
    pub(crate) fn each_volatile<'a>(&'a self, heap: &'a Heap, see: impl FnMut(Field<'a>)) {
        if let Self::Volatile(volatile) = self {
            volatile.each(heap, see);
        }
    }

    /// Shows what is behind `cursor`, until about `count` fields were seen; the next cursor.
    pub(crate) fn scan(
        &self,
        heap: &Heap,
        cursor: u64,
        count: usize,
        mut see: impl FnMut(Element<'_>, Element<'_>),
    ) -> u64 {
        match self {
            Self::Packed(pack) => {
                pack.pairs().for_each(|(field, value)| see(field, value));
                0
            }
            Self::Table(table) => table.scan_many(cursor, count, |handle| see_record(heap, handle, &mut see)),
            Self::Volatile(volatile) => volatile.scan(heap, cursor, count, |Field { name, value, .. }| {
                see(Element::Bytes(name), Element::Bytes(value));
            }),
        }
    }

    /// Shows one field with its value, each with the same chance.
    pub(crate) fn random(&self, heap: &mut Heap, see: impl FnOnce(Element<'_>, Element<'_>)) {
        match self {
            Self::Packed(pack) => {
                let index = heap.random.below(self.records() as u64) as usize;
                if let Some((field, value)) = pack.pairs().nth(index) {
                    see(field, value);
                }
            }
            Self::Table(table) => {
                if let Some(handle) = table.random(&mut heap.random) {
                    see_record(heap, handle, see);
                }
            }
            Self::Volatile(volatile) => volatile.random(heap, see),
        }
    }

    /// Shows so many fields with their values, each time any of them with the same chance, until `see` says that it is enough. What
    /// it takes to reach any field at once is done before the first: walking to each would take the product of both numbers.
    pub(crate) fn draw(&self, heap: &mut Heap, count: usize, mut see: impl FnMut(Element<'_>, Element<'_>) -> bool) {
        let mut is_wanted = true;
        match self {
            Self::Packed(pack) if count > 1 => {
                let behind = |at: usize| pack.next(pack.next(at)?);
                let starts: Vec<usize> = std::iter::successors(pack.first(), |at| behind(*at)).collect();
                for _ in 0..count {
                    let start = starts.get(heap.random.below(starts.len() as u64) as usize);
                    let pair = start.and_then(|&start| Some((pack.get(start), pack.get(pack.next(start)?))));
                    if !pair.is_some_and(|(field, value)| see(field, value)) {
                        return;
                    }
                }
            }
            Self::Volatile(volatile) if count > 1 && volatile.is_mostly_past(heap.now) => {
                let live = volatile.live(heap);
                for _ in 0..count {
                    let Some(&handle) = live.get(heap.random.below(live.len() as u64) as usize) else { return };
                    let Field { name, value, .. } = record::field(&heap.pool, handle);
                    if !see(Element::Bytes(name), Element::Bytes(value)) {
                        return;
                    }
                }
            }
            _ => {
                for _ in 0..count {
                    self.random(heap, |field, value| is_wanted = see(field, value));
                    if !is_wanted {
                        return;
                    }
                }
            }
        }
    }

    fn unpack(&mut self, heap: &mut Heap) {
        let Self::Packed(pack) = self else { return };
        let Heap { pool, hasher, .. } = heap;
        let mut table = Box::<Table>::default();
        for (field, value) in pack.pairs() {
            field.read(|field| value.read(|value| insert(&mut table, pool, hasher, hasher.hash(field), field, value)));
        }
        *self = Self::Table(table);
    }

    /// The same fields and values once more.
    pub(crate) fn duplicate(&self, heap: &mut Heap) -> Self {
        match self {
            Self::Packed(pack) => Self::Packed(pack.clone()),
            Self::Table(table) => {
                let mut copy = Box::<Table>::default();
                let Heap { pool, hasher, .. } = heap;
                for handle in table.iter() {
                    let (field, value) = record::pair(pool, handle);
                    let (field, value) = (field.to_vec(), value.to_vec());
                    insert(&mut copy, pool, hasher, hasher.hash(&field), &field, &value);
                }
                Self::Table(copy)
            }
            Self::Volatile(volatile) => Self::Volatile(Box::new(volatile.duplicate(heap))),
        }
    }
}

fn see_record<'a>(heap: &'a Heap, handle: Handle, see: impl FnOnce(Element<'a>, Element<'a>)) {
    let (field, value) = record::pair(&heap.pool, handle);
    see(Element::Bytes(field), Element::Bytes(value));
}
