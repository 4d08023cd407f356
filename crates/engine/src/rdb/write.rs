//! Serialises values to the same bytes as redis-server 7.0, and hashes with deadlines as Valkey 9 does.

use super::format::{NO_DEADLINE, kind, node};
use super::writer::Writer;
use crate::store::heap::Heap;
use crate::store::listpack::Element;
use crate::values::{Hash, Object, Set, SortedSet};

/// The value to serialise.
pub(crate) enum Stored<'a> {
    Text(Element<'a>),
    Object(&'a Object),
}

/// Writes the type of a value and the value.
pub(crate) fn write(writer: &mut Writer, value: Stored<'_>, heap: &Heap) {
    match value {
        Stored::Text(text) => {
            writer.byte(kind::STRING);
            writer.element(text);
        }
        Stored::Object(value) => object(writer, value, heap),
    }
}

pub(super) fn object(writer: &mut Writer, object: &Object, heap: &Heap) {
    match object {
        Object::List(list) => {
            writer.byte(kind::QUICKLIST);
            writer.length(list.chunks().len());
            for chunk in list.chunks() {
                writer.length(node::LISTPACK as usize);
                writer.text(chunk.as_bytes());
            }
        }
        Object::Hash(Hash::Packed(pack)) => {
            writer.byte(kind::HASH_LISTPACK);
            writer.text(pack.as_bytes());
        }
        Object::Hash(hash @ Hash::Volatile(_)) => {
            writer.byte(kind::HASH_WITH_DEADLINES);
            writer.length(hash.len(heap));
            hash.each_volatile(heap, |field| {
                writer.text(field.name);
                writer.text(field.value);
                writer.raw(&field.deadline.unwrap_or(NO_DEADLINE).to_le_bytes());
            });
        }
        Object::Hash(hash) => {
            writer.byte(kind::HASH);
            writer.length(hash.records());
            hash.each(heap, |field, value| {
                writer.element(field);
                writer.element(value);
            });
        }
        Object::Set(Set::Integers(integers)) => {
            writer.byte(kind::SET_INTSET);
            writer.text(&integers.to_bytes());
        }
        Object::Set(set) => {
            writer.byte(kind::SET);
            writer.length(set.len());
            set.each(heap, |member| {
                writer.element(member);
                true
            });
        }
        Object::SortedSet(sorted) => sorted_set(writer, sorted, heap),
        Object::Stream(stream) => super::stream::write(writer, stream),
    }
}

fn sorted_set(writer: &mut Writer, sorted: &SortedSet, heap: &Heap) {
    if let Some(pack) = sorted.to_pack() {
        writer.byte(kind::SORTED_SET_LISTPACK);
        return writer.text(pack.as_bytes());
    }
    writer.byte(kind::SORTED_SET);
    writer.length(sorted.len());
    // In descending order, so that a reader inserts each member at the front.
    sorted.each_from(heap, sorted.len().saturating_sub(1), true, |member, score| {
        writer.element(member);
        writer.raw(&score.to_le_bytes());
        true
    });
}
