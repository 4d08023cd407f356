//! Reading values of every encoding that a server of version 7.0 or older writes, and of hashes with deadlines.

use super::foreign;
use super::format::{Broken, NO_DEADLINE, kind, node};
use super::reader::Reader;
use crate::keyspace::key::Expiry;
use crate::store::heap::Heap;
use crate::store::int_set::IntSet;
use crate::store::listpack::Listpack;
use crate::store::quick_list::{End, QuickList};
use crate::values::{Hash, Held, Object, Remains, Set, SortedSet};

/// A value that was read.
pub(crate) enum Loaded {
    Text(Vec<u8>),
    Object(Object),
}

/// Frees the records of an object that no key holds.
pub(super) fn free(object: Object, heap: &mut Heap) {
    match object.into_remains() {
        Some(Remains::Table(table)) => table.iter().for_each(|handle| heap.pool.free(handle)),
        Some(Remains::Sorted(mut indexed)) => while indexed.drain(|handle| heap.pool.free(handle)).1 {},
        Some(Remains::Fields(mut fields)) => while fields.drain(|handle| heap.pool.free(handle)) {},
        Some(Remains::List(_) | Remains::Stream(_) | Remains::Everything(_)) | None => {}
    }
}

/// Fills a value; frees it again if the input is invalid or empty.
fn fill<T: Held>(
    mut value: T,
    heap: &mut Heap,
    fill: impl FnOnce(&mut T, &mut Heap) -> Result<(), Broken>,
) -> Result<Object, Broken> {
    let is_filled = fill(&mut value, heap);
    sound(is_filled.map(|()| true), value, heap)
}

/// The value as an object if it is valid and not empty.
fn sound<T: Held>(is_sound: Result<bool, Broken>, value: T, heap: &mut Heap) -> Result<Object, Broken> {
    let object = value.into_object();
    if is_sound == Ok(true) && object.len() > 0 {
        return Ok(object);
    }
    free(object, heap);
    Err(Broken)
}

/// Fails if an element that has to be unique was not new.
fn new(is_new: bool) -> Result<(), Broken> {
    if is_new { Ok(()) } else { Err(Broken) }
}

/// Reads the type of a value and the value.
pub(crate) fn read(reader: &mut Reader<'_>, heap: &mut Heap) -> Result<Loaded, Broken> {
    let object = match reader.byte()? {
        kind::STRING => return reader.text().map(|text| Loaded::Text(text.into_owned())),
        kind::LIST => fill(QuickList::new(), heap, |list, _| {
            for _ in 0..reader.count()? {
                list.push(End::Tail, &reader.text()?);
            }
            Ok(())
        }),
        kind::LIST_ZIPLIST => fill(QuickList::new(), heap, |list, _| {
            reader.ziplist()?.iter().for_each(|element| element.read(|text| list.push(End::Tail, text)));
            Ok(())
        }),
        kind::QUICKLIST_ZIPLISTS => fill(QuickList::new(), heap, |list, _| {
            for _ in 0..reader.count()? {
                list.push_chunk(reader.ziplist()?);
            }
            Ok(())
        }),
        kind::QUICKLIST => fill(QuickList::new(), heap, |list, _| quicklist(reader, list)),
        kind::SET => {
            let count = reader.count()?;
            fill(Set::new_for(heap, count), heap, |set, heap| {
                (0..count).try_for_each(|_| new(set.insert(heap, &reader.text()?)))
            })
        }
        kind::SET_INTSET => {
            let integers = IntSet::from_bytes(&reader.text()?).ok_or(Broken)?;
            let set = Set::from_integers(integers, heap);
            sound(Ok(true), set, heap)
        }
        kind @ (kind::SORTED_SET | kind::SORTED_SET_TEXT) => {
            let mut sorted = SortedSet::new_indexed();
            let is_filled = (0..reader.count()?).try_for_each(|_| {
                let member = reader.text()?;
                let score = if kind == kind::SORTED_SET { reader.score()? } else { reader.score_text()? };
                new(!score.is_nan() && sorted.insert(heap, score, &member))
            });
            if is_filled.is_ok() {
                sorted.repack(heap);
            }
            sound(is_filled.map(|()| true), sorted, heap)
        }
        kind::SORTED_SET_LISTPACK => sorted_set(&reader.listpack()?, heap),
        kind::SORTED_SET_ZIPLIST => sorted_set(&reader.ziplist()?, heap),
        kind::HASH => {
            let count = reader.count()?;
            fill(Hash::new(), heap, |hash, heap| {
                (0..count).try_for_each(|_| {
                    let (field, value) = (reader.text()?, reader.text()?);
                    new(hash.set(heap, &field, &value))
                })
            })
        }
        kind::HASH_WITH_DEADLINES => {
            let count = reader.count()?;
            fill(Hash::new(), heap, |hash, heap| {
                (0..count).try_for_each(|_| {
                    let (field, value) = (reader.text()?, reader.text()?);
                    let deadline = reader.moment()?;
                    let expiry = if deadline == NO_DEADLINE { Expiry::Never } else { Expiry::At(deadline) };
                    new(hash.set_with(heap, &field, &value, expiry))
                })
            })
        }
        kind::HASH_ZIPMAP => {
            let pack = foreign::zipmap(&reader.text()?).ok_or(Broken)?;
            fill(Hash::new(), heap, |hash, heap| {
                pack.pairs().try_for_each(|(field, value)| {
                    new(field.read(|field| value.read(|value| hash.set(heap, field, value))))
                })
            })
        }
        kind::HASH_LISTPACK => hash(reader.listpack()?, heap),
        kind::HASH_ZIPLIST => hash(reader.ziplist()?, heap),
        kind @ (kind::STREAM | kind::STREAM_WITH_FIGURES) => {
            super::stream::read(reader, kind == kind::STREAM_WITH_FIGURES).map(|stream| stream.into_object())
        }
        _ => Err(Broken),
    };
    object.map(Loaded::Object)
}

fn quicklist(reader: &mut Reader<'_>, list: &mut QuickList) -> Result<(), Broken> {
    for _ in 0..reader.count()? {
        match reader.count()? {
            node::PLAIN => {
                let mut chunk = Listpack::new();
                chunk.push(&reader.text()?);
                list.push_chunk(chunk);
            }
            node::LISTPACK => list.push_chunk(reader.listpack()?),
            _ => return Err(Broken),
        }
    }
    Ok(())
}

fn sorted_set(pack: &Listpack, heap: &mut Heap) -> Result<Object, Broken> {
    let sorted = SortedSet::from_pack(pack, heap).ok_or(Broken)?;
    sound(Ok(true), sorted, heap)
}

fn hash(pack: Listpack, heap: &mut Heap) -> Result<Object, Broken> {
    let hash = Hash::from_pack(pack, heap).ok_or(Broken)?;
    sound(Ok(true), hash, heap)
}
