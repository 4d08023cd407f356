//! Sets: sorted integers while they are few and all integers, a table of member records after.

use crate::number::integer;
use crate::store::heap::{Heap, KeyHasher};
use crate::store::int_set::IntSet;
use crate::store::listpack::Element;
use crate::store::pool::Pool;
use crate::store::record;
use crate::store::table::{Place, Table};

/// A set of members.
pub(crate) enum Set {
    Integers(IntSet),
    Table(Box<Table>),
}

fn place(table: &Table, pool: &Pool, hash: u64, member: &[u8]) -> Option<Place> {
    table.place(hash, |handle| record::text(pool, handle) == member)
}

/// Puts in a member with this hash that is not there yet.
fn insert(table: &mut Table, pool: &mut Pool, hasher: &KeyHasher, hash: u64, member: &[u8]) {
    let handle = record::new_text(pool, member);
    table.insert(hash, handle, |moved| hasher.hash(record::text(pool, moved)));
}

impl Set {
    /// No members yet.
    pub(crate) fn new() -> Self {
        Self::Integers(IntSet::new())
    }

    /// The set of these integers.
    pub(crate) fn from_integers(integers: IntSet, heap: &mut Heap) -> Self {
        let mut set = Self::Integers(integers);
        if set.len() > heap.encodings.set_integers_max {
            set.unpack(heap);
        }
        set
    }

    /// An empty set for `len` members; compact only if they are few and integers.
    pub(crate) fn new_for(heap: &Heap, len: u64) -> Self {
        if len > heap.encodings.set_integers_max as u64 { Self::Table(Box::default()) } else { Self::new() }
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.len(),
            Self::Table(table) => table.len(),
        }
    }

    /// Bytes that the set holds from the allocator beside its records.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.memory_bytes(),
            Self::Table(table) => size_of::<Table>() + table.memory_bytes(),
        }
    }

    /// Redis's name for the encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::Integers(_) => "intset",
            Self::Table(_) => "hashtable",
        }
    }

    /// Whether `member` is in.
    pub(crate) fn contains(&self, heap: &Heap, member: &[u8]) -> bool {
        match self {
            Self::Integers(integers) => integer::parse(member).is_some_and(|value| integers.contains(value)),
            Self::Table(table) => place(table, &heap.pool, heap.hasher.hash(member), member).is_some(),
        }
    }

    /// Puts `member` in; whether it is new.
    pub(crate) fn insert(&mut self, heap: &mut Heap, member: &[u8]) -> bool {
        if let Self::Integers(integers) = self {
            if let Some(value) = integer::parse(member) {
                let is_new = integers.insert(value);
                if integers.len() > heap.encodings.set_integers_max {
                    self.unpack(heap);
                }
                return is_new;
            }
            self.unpack(heap);
        }
        let Self::Table(table) = self else { return false };
        let Heap { pool, hasher, .. } = heap;
        let hash = hasher.hash(member);
        let is_new = place(table, pool, hash, member).is_none();
        if is_new {
            insert(table, pool, hasher, hash, member);
        }
        is_new
    }

    /// Takes `member` out; whether it was in.
    pub(crate) fn remove(&mut self, heap: &mut Heap, member: &[u8]) -> bool {
        match self {
            Self::Integers(integers) => integer::parse(member).is_some_and(|value| integers.remove(value)),
            Self::Table(table) => match place(table, &heap.pool, heap.hasher.hash(member), member) {
                Some(place) => {
                    heap.pool.free(table.remove(place));
                    true
                }
                None => false,
            },
        }
    }

    /// Shows every member until `see` says false.
    pub(crate) fn each<'a>(&'a self, heap: &'a Heap, mut see: impl FnMut(Element<'a>) -> bool) {
        match self {
            Self::Integers(integers) => _ = integers.iter().all(|value| see(Element::Integer(value))),
            Self::Table(table) => {
                _ = table.iter().all(|handle| see(Element::Bytes(record::text(&heap.pool, handle))));
            }
        }
    }

    /// Shows what is behind `cursor`, until about `count` members were seen; the next cursor.
    pub(crate) fn scan(&self, heap: &Heap, cursor: u64, count: usize, mut see: impl FnMut(Element<'_>)) -> u64 {
        match self {
            Self::Integers(integers) => {
                integers.iter().for_each(|value| see(Element::Integer(value)));
                0
            }
            Self::Table(table) => table.scan_many(cursor, count, |handle| {
                see(Element::Bytes(record::text(&heap.pool, handle)));
            }),
        }
    }

    /// One member, each with the same chance.
    pub(crate) fn random(&self, heap: &mut Heap) -> Option<Vec<u8>> {
        match self {
            Self::Integers(integers) => {
                let value = integers.get(heap.random.below(integers.len() as u64) as usize)?;
                Some(Element::Integer(value).to_vec())
            }
            Self::Table(table) => Some(record::text(&heap.pool, table.random(&mut heap.random)?).to_vec()),
        }
    }

    fn unpack(&mut self, heap: &mut Heap) {
        let Self::Integers(integers) = self else { return };
        let mut table = Box::<Table>::default();
        let Heap { pool, hasher, .. } = heap;
        for value in integers.iter() {
            Element::Integer(value).read(|member| insert(&mut table, pool, hasher, hasher.hash(member), member));
        }
        *self = Self::Table(table);
    }

    /// The same members once more.
    pub(crate) fn duplicate(&self, heap: &mut Heap) -> Self {
        match self {
            Self::Integers(integers) => Self::Integers(integers.clone()),
            Self::Table(table) => {
                let mut copy = Box::<Table>::default();
                let Heap { pool, hasher, .. } = heap;
                for handle in table.iter() {
                    let member = record::text(pool, handle).to_vec();
                    insert(&mut copy, pool, hasher, hasher.hash(&member), &member);
                }
                Self::Table(copy)
            }
        }
    }
}
