//! Values of every type that is no string, each in its compact and its large encoding.

pub(crate) mod hash;
pub(crate) mod hyperloglog;
pub(crate) mod set;
pub(crate) mod sorted_set;
pub(crate) mod stream;

use crate::keyspace::key::Kind;
use crate::limits::{LARGE_BYTES, LARGE_EFFORT, records_like};
use crate::store::heap::Heap;
use crate::store::lazy_free::{Drain, LazyFree};
use crate::store::pool::{Handle, Pool};
use crate::store::quick_list::QuickList;
use crate::store::table::Table;
use crate::store::weighed::{Footprint, Weighed};

pub(crate) use hash::{Hash, Volatile};
pub(crate) use set::Set;
pub(crate) use sorted_set::{Indexed, SortedSet};
pub(crate) use stream::Stream;

/// A value that is no string.
pub(crate) enum Object {
    List(Box<QuickList>),
    Hash(Hash),
    Set(Set),
    SortedSet(SortedSet),
    Stream(Box<Stream>),
}

/// The rest of a deleted value, which is freed incrementally.
pub(crate) enum Remains {
    List(Box<QuickList>),
    /// The table of the records of a hash or a set.
    Table(Table),
    Sorted(Box<Indexed>),
    /// A hash with deadlines.
    Fields(Box<Volatile>),
    Stream(Box<Stream>),
    /// What there was before a FLUSHALL.
    Everything(Box<Everything>),
}

impl Object {
    /// Redis's name for the encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::List(_) => "quicklist",
            Self::Hash(hash) => hash.encoding(),
            Self::Set(set) => set.encoding(),
            Self::SortedSet(sorted) => sorted.encoding(),
            Self::Stream(_) => "stream",
        }
    }

    /// The number of elements, expired ones that are not removed yet included.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Hash(hash) => hash.records(),
            Self::Set(set) => set.len(),
            Self::SortedSet(sorted) => sorted.len(),
            Self::Stream(stream) => stream.len(),
        }
    }

    /// About how many records or nodes have to be freed with it, as Redis counts them.
    pub(crate) fn free_effort(&self) -> usize {
        match self {
            Self::List(list) => list.chunks().len(),
            Self::Hash(Hash::Packed(_)) | Self::Set(Set::Integers(_)) => 1,
            Self::Hash(hash) => hash.records(),
            Self::Set(set) => set.len(),
            Self::SortedSet(sorted) if sorted.is_packed() => 1,
            Self::SortedSet(sorted) => sorted.len(),
            Self::Stream(stream) => {
                let pending = stream.groups.values().next().map_or(0, |group| 1 + group.pending_len());
                stream.log.nodes() + stream.groups.len() * pending
            }
        }
    }

    /// About how many records and nodes are made for a copy of it. What is held as bytes in a row is one.
    #[cfg(feature = "scripting")]
    pub(crate) fn copy_effort(&self) -> usize {
        match self {
            Self::Stream(stream) => {
                let groups = stream.groups.values();
                let entries = groups.map(|group| 1 + group.consumers().len() + group.pending_len());
                stream.log.nodes() + entries.sum::<usize>()
            }
            _ => self.free_effort(),
        }
    }

    /// The same value once more.
    pub(crate) fn duplicate(&self, heap: &mut Heap) -> Self {
        match self {
            Self::List(list) => Self::List(list.clone()),
            Self::Hash(hash) => Self::Hash(hash.duplicate(heap)),
            Self::Set(set) => Self::Set(set.duplicate(heap)),
            Self::SortedSet(sorted) => Self::SortedSet(sorted.duplicate(heap)),
            Self::Stream(stream) => Self::Stream(stream.clone()),
        }
    }

    /// The part of a deleted value that is freed incrementally.
    pub(crate) fn into_remains(self) -> Option<Remains> {
        match self {
            Self::Hash(Hash::Table(table)) | Self::Set(Set::Table(table)) => Some(Remains::Table(*table)),
            Self::Hash(Hash::Volatile(volatile)) => Some(Remains::Fields(volatile)),
            Self::SortedSet(sorted) => sorted.into_indexed().map(Remains::Sorted),
            Self::Stream(stream) => Some(Remains::Stream(stream)),
            // A list of a few chunks costs less to free than to remember.
            Self::List(list) if list.chunks().len() > LARGE_EFFORT || list.memory_bytes() > LARGE_BYTES => {
                Some(Remains::List(list))
            }
            _ => None,
        }
    }

    /// About the bytes of its members' records, of which so many are measured.
    pub(crate) fn record_bytes(&self, pool: &Pool, samples: usize) -> usize {
        let table = match self {
            Self::Hash(Hash::Table(table)) | Self::Set(Set::Table(table)) => table,
            Self::Hash(Hash::Volatile(volatile)) => volatile.table(),
            Self::SortedSet(sorted) => match sorted.table() {
                Some(table) => table,
                None => return 0,
            },
            Self::List(_) | Self::Hash(Hash::Packed(_)) | Self::Set(Set::Integers(_)) | Self::Stream(_) => return 0,
        };
        let measured = table.len().min(samples);
        let bytes: usize = table.iter().take(measured).map(|record| pool.get(record).len()).sum();
        // Rounded as a mean of the measured ones.
        bytes.checked_div(measured).map_or(0, |mean| if measured == table.len() { bytes } else { mean * table.len() })
    }

    /// Passes every record of the value to `see`, and returns [`Object::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walk(&self, see: &mut dyn FnMut(Handle)) -> usize {
        match self {
            Self::List(list) => size_of::<QuickList>() + list.walked_bytes(),
            Self::Hash(Hash::Table(table)) | Self::Set(Set::Table(table)) => {
                table.iter().for_each(see);
                self.memory_bytes()
            }
            Self::Hash(Hash::Volatile(volatile)) => {
                volatile.each_record(see);
                self.memory_bytes()
            }
            Self::SortedSet(sorted) => sorted.walk(see),
            Self::Stream(stream) => size_of::<Stream>() + stream.walked_bytes(),
            Self::Hash(Hash::Packed(_)) | Self::Set(Set::Integers(_)) => self.memory_bytes(),
        }
    }
}

impl Footprint for Object {
    #[inline]
    fn memory_bytes(&self) -> usize {
        match self {
            Self::List(list) => size_of::<QuickList>() + list.memory_bytes(),
            Self::Hash(hash) => hash.memory_bytes(),
            Self::Set(set) => set.memory_bytes(),
            Self::SortedSet(sorted) => sorted.memory_bytes(),
            Self::Stream(stream) => size_of::<Stream>() + stream.memory_bytes(),
        }
    }
}

impl Footprint for Remains {
    fn memory_bytes(&self) -> usize {
        match self {
            Self::List(list) => size_of::<QuickList>() + list.memory_bytes(),
            Self::Table(table) => table.memory_bytes(),
            Self::Sorted(indexed) => indexed.memory_bytes(),
            Self::Fields(fields) => fields.memory_bytes(),
            Self::Stream(stream) => size_of::<Stream>() + stream.memory_bytes(),
            Self::Everything(everything) => everything.memory_bytes(),
        }
    }
}

impl Drain for Remains {
    fn drain(&mut self, budget: usize, see: &mut dyn FnMut(Handle)) -> (usize, bool) {
        match self {
            Self::List(list) => list.drain(budget),
            Self::Table(table) => (0, table.drain_bucket(see)),
            Self::Sorted(indexed) => indexed.drain(see),
            Self::Fields(fields) => (0, fields.drain(see)),
            Self::Stream(stream) => (stream.drain(budget), !stream.is_drained()),
            Self::Everything(everything) => everything.drain(budget),
        }
    }

    #[cfg(debug_assertions)]
    fn walk(&self, see: &mut dyn FnMut(Handle)) -> usize {
        match self {
            Self::Table(table) => table.iter().for_each(see),
            Self::Fields(fields) => fields.each_record(see),
            Self::List(list) => return size_of::<QuickList>() + list.walked_bytes(),
            Self::Sorted(indexed) => return indexed.walk(see),
            Self::Stream(stream) => return size_of::<Stream>() + stream.walked_bytes(),
            // Its records are in no pool that lives.
            Self::Everything(_) => {}
        }
        self.memory_bytes()
    }
}

/// All that the databases held before a FLUSHALL, which is freed a part at a time without a look at its records: they go with their pages.
pub(crate) struct Everything {
    pool: Pool,
    objects: Weighed<Object>,
    /// The values among them that are large, and those that were on their way to be freed.
    lazy_free: LazyFree<Remains>,
}

impl Everything {
    pub(crate) fn new(pool: Pool, objects: Weighed<Object>, lazy_free: LazyFree<Remains>) -> Self {
        Self { pool, objects, lazy_free }
    }

    /// Frees about `budget` parts; how many, and whether anything is left.
    fn drain(&mut self, budget: usize) -> (usize, bool) {
        let (mut spent, mut records) = (0, Vec::new());
        while spent < budget {
            let (cost, is_left) = self.pool.drop_part(budget - spent);
            spent += cost;
            if is_left {
                continue;
            }
            if let Some(object) = self.objects.pop() {
                spent += 1 + object.map_or(0, |object| self.drop_object(object));
                continue;
            }
            let Some(part) = self.lazy_free.take_part(budget - spent, &mut records) else { return (spent, false) };
            records.clear();
            spent += part.count;
        }
        (spent, true)
    }

    /// Frees a small value, and puts a large one among those that are freed in parts; how many parts were freed.
    fn drop_object(&mut self, object: Object) -> usize {
        let cost = object.free_effort() + records_like(object.memory_bytes());
        match object.into_remains() {
            Some(remains) => {
                self.lazy_free.push(remains);
                0
            }
            None => cost,
        }
    }
}

impl Footprint for Everything {
    fn memory_bytes(&self) -> usize {
        self.pool.used_bytes() + self.objects.used_bytes() + self.lazy_free.memory_bytes()
    }
}

/// A type of value that a key can hold.
pub(crate) trait Held: Footprint + Sized {
    /// The kind under which a key names it.
    const KIND: Kind;
    /// The object as this type, if it is one.
    fn of(object: &Object) -> Option<&Self>;
    /// The object as this type, if it is one.
    fn of_mut(object: &mut Object) -> Option<&mut Self>;
    /// The object that holds this value.
    fn into_object(self) -> Object;
    /// As [`Object::len`], whether there are elements.
    fn has_elements(&self) -> bool;
    /// Whether parts of the value have deadlines, or had before the last change.
    #[inline]
    fn has_deadlines(&self) -> bool {
        false
    }
}

macro_rules! held {
    ($type:ty, $variant:ident, $wrap:expr, $len:expr $(, $has_deadlines:expr)?) => {
        impl Footprint for $type {
            #[inline]
            fn memory_bytes(&self) -> usize {
                <$type>::memory_bytes(self)
            }
        }

        impl Held for $type {
            const KIND: Kind = Kind::$variant;

            fn of(object: &Object) -> Option<&Self> {
                match object {
                    Object::$variant(value) => Some(value),
                    _ => None,
                }
            }

            fn of_mut(object: &mut Object) -> Option<&mut Self> {
                match object {
                    Object::$variant(value) => Some(value),
                    _ => None,
                }
            }

            fn into_object(self) -> Object {
                Object::$variant($wrap(self))
            }

            #[inline]
            fn has_elements(&self) -> bool {
                $len(self) > 0
            }

            $(
                #[inline]
                fn has_deadlines(&self) -> bool {
                    $has_deadlines(self)
                }
            )?
        }
    };
}

held!(QuickList, List, Box::new, QuickList::len);
held!(Hash, Hash, std::convert::identity, Hash::records, |hash: &Hash| hash.volatile().is_some());
held!(Set, Set, std::convert::identity, Set::len);
held!(SortedSet, SortedSet, std::convert::identity, SortedSet::len);
held!(Stream, Stream, Box::new, Stream::len);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_small() {
        assert!(size_of::<Option<Object>>() <= 32, "{} bytes", size_of::<Option<Object>>());
    }
}
