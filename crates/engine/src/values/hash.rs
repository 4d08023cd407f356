//! Hashes: a listpack of fields and values while small, a table of pair records after.

use crate::store::heap::{Heap, KeyHasher};
use crate::store::listpack::{Element, Listpack};
use crate::store::pool::{Handle, Pool};
use crate::store::record;
use crate::store::table::{Place, Table};

/// A map from fields to values.
pub(crate) enum Hash {
    Packed(Listpack),
    Table(Box<Table>),
}

fn place(table: &Table, pool: &Pool, hash: u64, field: &[u8]) -> Option<Place> {
    table.place(hash, |handle| record::pair(pool, handle).0 == field)
}

fn insert(table: &mut Table, pool: &mut Pool, hasher: &KeyHasher, field: &[u8], value: &[u8]) {
    let handle = record::new_pair(pool, field, value);
    table.insert(hasher.hash(field), handle, |moved| hasher.hash(record::pair(pool, moved).0));
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

    /// How many fields there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Packed(pack) => pack.len() / 2,
            Self::Table(table) => table.len(),
        }
    }

    /// Redis's name for the encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::Packed(_) => "listpack",
            Self::Table(_) => "hashtable",
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
        }
    }

    /// Leaves the compact encoding if one of `texts` is too long for it.
    pub(crate) fn make_room_for<'a>(&mut self, heap: &mut Heap, mut texts: impl Iterator<Item = &'a [u8]>) {
        let max = heap.encodings.hash_value_bytes_max;
        if matches!(self, Self::Packed(_)) && texts.any(|text| text.len() > max) {
            self.unpack(heap);
        }
    }

    /// Gives `field` the value; whether the field is new.
    pub(crate) fn set(&mut self, heap: &mut Heap, field: &[u8], value: &[u8]) -> bool {
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
            Self::Table(table) => match place(table, pool, hasher.hash(field), field) {
                Some(place) => {
                    let moved = record::set_second(pool, table.at(place), field, value);
                    table.replace(place, moved);
                    false
                }
                None => {
                    insert(table, pool, hasher, field, value);
                    true
                }
            },
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
        }
    }

    /// Shows every field with its value.
    pub(crate) fn each<'a>(&'a self, heap: &'a Heap, mut see: impl FnMut(Element<'a>, Element<'a>)) {
        match self {
            Self::Packed(pack) => pack.pairs().for_each(|(field, value)| see(field, value)),
            Self::Table(table) => table.iter().for_each(|handle| see_record(heap, handle, &mut see)),
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
            Self::Table(table) => super::scan_table(table, cursor, count, |handle| see_record(heap, handle, &mut see)),
        }
    }

    /// Shows one field with its value, each with the same chance.
    pub(crate) fn random(&self, heap: &mut Heap, see: impl FnOnce(Element<'_>, Element<'_>)) {
        match self {
            Self::Packed(pack) => {
                let index = heap.random.below(self.len() as u64) as usize;
                if let Some((field, value)) = pack.pairs().nth(index) {
                    see(field, value);
                }
            }
            Self::Table(table) => {
                if let Some(handle) = table.random(&mut heap.random) {
                    see_record(heap, handle, see);
                }
            }
        }
    }

    fn unpack(&mut self, heap: &mut Heap) {
        let Self::Packed(pack) = self else { return };
        let Heap { pool, hasher, .. } = heap;
        let mut table = Box::<Table>::default();
        for (field, value) in pack.pairs() {
            field.read(|field| value.read(|value| insert(&mut table, pool, hasher, field, value)));
        }
        *self = Self::Table(table);
    }

    /// The same fields and values once more.
    pub(crate) fn duplicate(&self, heap: &mut Heap) -> Self {
        match self {
            Self::Packed(pack) => Self::Packed(pack.clone()),
            Self::Table(table) => {
                let mut copy = Box::<Table>::default();
                for handle in table.iter() {
                    let (field, value) = record::pair(&heap.pool, handle);
                    let (field, value) = (field.to_vec(), value.to_vec());
                    insert(&mut copy, &mut heap.pool, &heap.hasher, &field, &value);
                }
                Self::Table(copy)
            }
        }
    }
}

fn see_record<'a>(heap: &'a Heap, handle: Handle, see: impl FnOnce(Element<'a>, Element<'a>)) {
    let (field, value) = record::pair(&heap.pool, handle);
    see(Element::Bytes(field), Element::Bytes(value));
}
