//! `DEBUG DIGEST`: a signature of everything that is held, the same as redis-server's of the same keys.
//!
//! What has an order is mixed, each part into the digest of those before it; what has none is joined by exclusive or. A key's digest is
//! joined to the others in the same way. Deadlines of fields are not part of it: redis-server 7.0 has none.

use sha1::{Digest as _, Sha1};

use super::{Handle, KeyRecord, Keyspace, Value, text_of};
use crate::store::heap::Heap;
use crate::store::listpack::Element;
use crate::store::quick_list::End;
use crate::values::stream::id::Id;
use crate::values::{Object, Set, SortedSet};

/// A digest under way.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Digest([u8; 20]);

impl Digest {
    /// Joins data without an order.
    fn join(&mut self, data: &[u8]) {
        let hash = Sha1::digest(data);
        self.0.iter_mut().zip(hash).for_each(|(byte, other)| *byte ^= other);
    }

    /// Adds data whose place matters.
    fn mix(&mut self, data: &[u8]) {
        self.join(data);
        self.0 = Sha1::digest(self.0).into();
    }

    fn mix_element(&mut self, element: Element<'_>) {
        element.read(|text| self.mix(text));
    }

    /// Joins the finished digest of a part.
    fn join_part(&mut self, part: Self) {
        self.join(&part.0);
    }

    /// As hexadecimal digits.
    pub(crate) fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Redis's numbers of types.
fn type_number(object: Option<&Object>) -> u32 {
    match object {
        None => 0,
        Some(Object::List(_)) => 1,
        Some(Object::Set(_)) => 2,
        Some(Object::SortedSet(_)) => 3,
        Some(Object::Hash(_)) => 4,
        Some(Object::Stream(_)) => 6,
    }
}

fn of_object(digest: &mut Digest, object: &Object, heap: &Heap) {
    match object {
        Object::List(list) => list.iter(End::Head).for_each(|element| digest.mix_element(element)),
        Object::Set(set) => of_set(digest, set, heap),
        Object::SortedSet(sorted) => of_sorted_set(digest, sorted, heap),
        Object::Hash(hash) => hash.each(heap, |field, value| {
            let mut part = Digest::default();
            part.mix_element(field);
            part.mix_element(value);
            digest.join_part(part);
        }),
        Object::Stream(stream) => {
            for entry in stream.log.range(Id::MIN, Id::MAX) {
                digest.mix(format!("{}.{}", entry.id.ms, entry.id.seq).as_bytes());
                for (field, value) in entry.pairs() {
                    digest.mix_element(field);
                    digest.mix_element(value);
                }
            }
        }
    }
}

fn of_set(digest: &mut Digest, set: &Set, heap: &Heap) {
    set.each(heap, |member| {
        member.read(|text| digest.join(text));
        true
    });
}

fn of_sorted_set(digest: &mut Digest, sorted: &SortedSet, heap: &Heap) {
    sorted.each_from(heap, 0, false, |member, score| {
        let mut part = Digest::default();
        part.mix_element(member);
        part.mix(respool_wire::DoubleText::new(score).as_bytes());
        digest.join_part(part);
        true
    });
}

impl Keyspace {
    fn mix_record(&self, digest: &mut Digest, record: Handle) {
        let record = KeyRecord::new(self.heap.pool.get(record));
        let value = record.value();
        let object = match value {
            Value::Object(_, number) => self.objects.get(number),
            _ => None,
        };
        digest.mix(&type_number(object).to_be_bytes());
        match (object, text_of(&self.heap.pool, value)) {
            (Some(object), _) => of_object(digest, object, &self.heap),
            (None, Some(text)) => digest.mix_element(text),
            (None, None) => {}
        }
        if record.deadline().is_some() {
            digest.join(b"!!expire!!");
        }
    }

    /// The digest of all databases.
    pub(crate) fn digest(&self) -> Digest {
        let mut whole = Digest::default();
        for (number, database) in self.databases.iter().enumerate().filter(|(_, database)| database.table.len() > 0) {
            whole.mix(&(number as u32).to_be_bytes());
            for record in database.table.iter() {
                let mut key = Digest::default();
                key.mix(KeyRecord::new(self.heap.pool.get(record)).key());
                self.mix_record(&mut key, record);
                whole.join_part(key);
            }
        }
        whole
    }

    /// The digest of one key's value: zeros if there is none. An expired key that is not removed yet has one.
    pub(crate) fn digest_of(&self, database: usize, key: &[u8]) -> Digest {
        let mut digest = Digest::default();
        if let Some(found) = self.place_of(database, key) {
            self.mix_record(&mut digest, found.record);
        }
        digest
    }
}
