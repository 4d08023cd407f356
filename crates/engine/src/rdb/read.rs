//! Reading values of every encoding that a server of version 7.0 or older writes, and of hashes with deadlines.

use std::borrow::Cow;

use super::{Broken, NO_DEADLINE, foreign, kind, length, lzf, node, special};
use crate::keyspace::Expiry;
use crate::limits::READ_BYTES_MAX;
use crate::number::double;
use crate::number::integer::IntegerText;
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

/// A reader of serialised bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes to which compressed strings may still expand.
    left: usize,
}

/// A length, or the encoding of a string that has none.
enum Length {
    Count(u64),
    Special(u8),
}

impl<'a> Reader<'a> {
    /// Reads from these bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, left: READ_BYTES_MAX }
    }

    /// Whether everything has been read.
    #[cfg(feature = "scripting")]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Broken> {
        let len = usize::try_from(len).map_err(|_| Broken)?;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Broken)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Broken> {
        let mut array = [0; LEN];
        array.copy_from_slice(self.take(LEN as u64)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, Broken> {
        Ok(self.array::<1>()?[0])
    }

    fn length(&mut self) -> Result<Length, Broken> {
        let lead = self.byte()?;
        let low = u64::from(lead & 0x3f);
        let count = match lead >> 6 {
            length::SHORT => low,
            length::MIDDLE => low << 8 | u64::from(self.byte()?),
            length::LONG => match lead {
                length::FOUR_BYTES => u32::from_be_bytes(self.array()?).into(),
                length::EIGHT_BYTES => u64::from_be_bytes(self.array()?),
                _ => return Err(Broken),
            },
            _ => return Ok(Length::Special(lead & 0x3f)),
        };
        Ok(Length::Count(count))
    }

    /// The number of elements that follow.
    pub(super) fn count(&mut self) -> Result<u64, Broken> {
        match self.length()? {
            Length::Count(count) => Ok(count),
            // As in Redis, the encodings of strings are small numbers here.
            Length::Special(how) => Ok(how.into()),
        }
    }

    /// A string.
    pub(super) fn text(&mut self) -> Result<Cow<'a, [u8]>, Broken> {
        let how = match self.length()? {
            Length::Count(len) => return self.take(len).map(Cow::Borrowed),
            Length::Special(how) => how,
        };
        let value: i64 = match how {
            special::ONE_BYTE => i8::from_le_bytes(self.array()?).into(),
            special::TWO_BYTES => i16::from_le_bytes(self.array()?).into(),
            special::FOUR_BYTES => i32::from_le_bytes(self.array()?).into(),
            special::COMPRESSED => {
                let (compressed_len, len) = (self.count()?, self.count()?);
                let compressed = self.take(compressed_len)?;
                let len = usize::try_from(len).map_err(|_| Broken)?;
                self.left = self.left.checked_sub(len).ok_or(Broken)?;
                return match len {
                    // As in Redis, an empty string may have any compressed form.
                    0 => Ok(Cow::Borrowed(b"")),
                    _ => lzf::decompress(compressed, len).map(Cow::Owned).ok_or(Broken),
                };
            }
            _ => return Err(Broken),
        };
        Ok(Cow::Owned(IntegerText::new(value).as_bytes().to_vec()))
    }

    /// A score in eight bytes.
    fn score(&mut self) -> Result<f64, Broken> {
        Ok(f64::from_le_bytes(self.array()?))
    }

    /// A score as text; three lengths stand for NaN and the infinities.
    fn score_text(&mut self) -> Result<f64, Broken> {
        match self.byte()? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => double::parse(self.take(len.into())?).ok_or(Broken),
        }
    }

    pub(super) fn listpack(&mut self) -> Result<Listpack, Broken> {
        Listpack::from_bytes(&self.text()?).ok_or(Broken)
    }

    fn ziplist(&mut self) -> Result<Listpack, Broken> {
        foreign::ziplist(&self.text()?).ok_or(Broken)
    }
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
