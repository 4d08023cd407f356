//! The entries of a stream: listpacks of a limited size, ordered by the id of the first.
//!
//! The layout of a listpack is Redis's, because the results of approximate trimming and of `XINFO` depend on the boundaries of
//! listpacks. It begins with a master, whose fields are omitted from entries that have the same ones:
//!
//! ```text
//! master:  entries, deleted ones, number of fields, each field, 0
//! entry:   flags, ms and seq behind the first id, [number of fields], [field], value ..., elements up to here
//! ```
//!
//! A deleted entry is marked, and stays until its listpack is removed. Backward iteration finds an entry by its last element.

use respool_wire::Args;

use super::by_id::ById;
use super::id::Id;
use super::radix;
use crate::limits::{STREAM_NODE_BYTES_CEILING, records_like};
use crate::store::heap::EncodingLimits;
use crate::store::listpack::{Appender, ELEMENT_BYTES, Element, Listpack};

/// The entry is deleted.
const DELETED: i64 = 1;
/// The entry has the fields of the master and omits them.
const SAME_FIELDS: i64 = 2;

/// Listpacks grow in steps of this many bytes; full ones have no spare capacity.
const STEP_BYTES: usize = 512;

/// The entries of a stream. See the module documentation.
pub(crate) struct Log {
    nodes: ById<Listpack>,
    /// Nodes that Redis's radix tree of listpacks would have.
    radix_nodes: usize,
    /// Bytes that all listpacks hold from the allocator.
    bytes: usize,
}

impl Clone for Log {
    fn clone(&self) -> Self {
        // Copies have no spare capacity.
        let nodes = self.nodes.clone();
        Self { bytes: nodes.values().map(Listpack::memory_bytes).sum(), radix_nodes: self.radix_nodes, nodes }
    }
}

/// When the last listpack takes no further entry.
#[derive(Clone, Copy)]
pub(crate) struct NodeLimits {
    bytes: usize,
    entries: i64,
}

impl NodeLimits {
    /// Those that the parameters say.
    pub(crate) fn new(encodings: &EncodingLimits) -> Self {
        let unless_zero = |limit: usize| if limit == 0 { usize::MAX } else { limit };
        Self {
            bytes: unless_zero(encodings.stream_node_bytes_max).min(STREAM_NODE_BYTES_CEILING),
            entries: i64::try_from(unless_zero(encodings.stream_node_entries_max)).unwrap_or(i64::MAX),
        }
    }
}

/// The positions in a master.
#[derive(Clone, Copy)]
struct Master {
    entries: i64,
    deleted: i64,
    deleted_at: usize,
    fields: usize,
    fields_at: usize,
}

impl Master {
    #[inline]
    fn of(pack: &Listpack) -> Self {
        let entries_at = pack.first().unwrap_or(0);
        let deleted_at = pack.skip(entries_at, 1);
        let fields_number_at = pack.skip(deleted_at, 1);
        Self {
            entries: pack.integer(entries_at),
            deleted: pack.integer(deleted_at),
            deleted_at,
            fields: usize::try_from(pack.integer(fields_number_at)).unwrap_or(0),
            fields_at: pack.skip(fields_number_at, 1),
        }
    }

    /// Position of the first entry.
    #[inline]
    fn end(&self, pack: &Listpack) -> usize {
        pack.skip(self.fields_at, self.fields + 1)
    }
}

/// A decoded entry, which borrows from its listpack.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pack: &'a Listpack,
    pub(crate) id: Id,
    flags: i64,
    flags_at: usize,
    /// The number of fields.
    pub(crate) fields: usize,
    /// Position of the master's fields, if the entry omits its own.
    master_fields_at: usize,
    /// Position of the first field or value.
    at: usize,
}

impl<'a> Entry<'a> {
    /// Decodes the entry whose flags are at `flags_at`.
    #[inline]
    fn read(pack: &'a Listpack, first: Id, master: &Master, flags_at: usize) -> Self {
        let flags = pack.integer(flags_at);
        let ms_at = pack.skip(flags_at, 1);
        let seq_at = pack.skip(ms_at, 1);
        let id = Id::at_distance(first, pack.integer(ms_at), pack.integer(seq_at));
        let mut at = pack.skip(seq_at, 1);
        let mut fields = master.fields;
        if flags & SAME_FIELDS == 0 {
            fields = usize::try_from(pack.integer(at)).unwrap_or(0);
            at = pack.skip(at, 1);
        }
        Self { pack, id, flags, flags_at, fields, master_fields_at: master.fields_at, at }
    }

    fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    fn has_same_fields(&self) -> bool {
        self.flags & SAME_FIELDS != 0
    }

    /// Position of the next entry.
    #[inline]
    fn end(&self) -> usize {
        let elements = if self.has_same_fields() { self.fields } else { 2 * self.fields };
        self.pack.skip(self.at, elements + 1)
    }

    /// Its fields and values.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (Element<'a>, Element<'a>)> + use<'a> {
        let (pack, has_same_fields) = (self.pack, self.has_same_fields());
        let (mut field_at, mut at) = (self.master_fields_at, self.at);
        (0..self.fields).map(move |_| {
            if has_same_fields {
                let pair = (pack.get(field_at), pack.get(at));
                (field_at, at) = (pack.skip(field_at, 1), pack.skip(at, 1));
                pair
            } else {
                let value_at = pack.skip(at, 1);
                let pair = (pack.get(at), pack.get(value_at));
                at = pack.skip(value_at, 1);
                pair
            }
        })
    }
}

/// Entries of one listpack in order, deleted ones included.
fn forward<'a>(first: Id, pack: &'a Listpack) -> impl Iterator<Item = Entry<'a>> + use<'a> {
    let master = Master::of(pack);
    let mut at = master.end(pack);
    std::iter::from_fn(move || {
        let entry = pack.has(at).then(|| Entry::read(pack, first, &master, at))?;
        at = entry.end();
        Some(entry)
    })
}

/// Entries of one listpack from the last on, deleted ones included.
fn backward<'a>(first: Id, pack: &'a Listpack) -> impl Iterator<Item = Entry<'a>> + use<'a> {
    let master = Master::of(pack);
    let mut end = pack.last();
    std::iter::from_fn(move || {
        let count_at = end?;
        let count = usize::try_from(pack.integer(count_at)).unwrap_or(0);
        // The master ends with a zero.
        let back = (0..count).try_fold(count_at, |at, _| pack.previous(at));
        let flags_at = back.filter(|_| count > 0)?;
        end = pack.previous(flags_at);
        Some(Entry::read(pack, first, &master, flags_at))
    })
}

/// The ids of the entries of one listpack.
pub(super) struct NodeIds {
    pub(super) ids: Vec<Id>,
    /// The last id, whether its entry is deleted or not.
    pub(super) last: Id,
}

impl Log {
    pub(super) fn new() -> Self {
        Self { nodes: ById::new(), radix_nodes: 1, bytes: 0 }
    }

    /// The number of listpacks.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes that Redis's radix tree of listpacks would have.
    pub(crate) fn radix_nodes(&self) -> usize {
        self.radix_nodes
    }

    /// Bytes held from the allocator.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.node_bytes()
    }

    fn node_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<(Id, Listpack)>()
    }

    /// As [`Log::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(super) fn walked_bytes(&self) -> usize {
        self.nodes.values().map(Listpack::memory_bytes).sum::<usize>() + self.node_bytes()
    }

    /// Appends an entry.
    pub(super) fn append(&mut self, id: Id, pairs: Args<'_>, limits: NodeLimits) {
        let bytes: usize = pairs.iter().map(<[u8]>::len).sum();
        if let Some((first, pack)) = self.nodes.len().checked_sub(1).and_then(|last| self.nodes.at_mut(last)) {
            let master = Master::of(pack);
            let before = pack.memory_bytes();
            // Figures that come from elsewhere may be of any size.
            let entries = master.entries.saturating_add(master.deleted);
            if pack.byte_len() + bytes < limits.bytes && entries < limits.entries {
                append_to(pack, first, &master, id, (pairs, bytes));
                self.bytes = self.bytes + pack.memory_bytes() - before;
                return;
            }
            pack.shrink();
            self.bytes = self.bytes + pack.memory_bytes() - before;
        }
        let mut pack = Listpack::new();
        // The fields are stored twice.
        let room = 2 * (bytes + room_beside(pairs));
        pack.append(room, STEP_BYTES, |out| {
            out.push_integer(1);
            out.push_integer(0);
            out.push_integer((pairs.len() / 2) as i64);
            pairs.iter().step_by(2).for_each(|field| out.push(field));
            out.push_integer(0);
            write_entry(out, SAME_FIELDS, (0, 0), pairs);
        });
        self.bytes += pack.memory_bytes();
        self.radix_nodes += radix::gained(&self.nodes, id);
        self.nodes.insert(id, pack);
    }

    /// The listpacks, each with the id of its first entry.
    pub(crate) fn packs(&self) -> impl Iterator<Item = (Id, &Listpack)> {
        self.nodes.from(0)
    }

    /// The ids of each listpack's entries.
    pub(super) fn node_ids(&self) -> impl Iterator<Item = NodeIds> + '_ {
        self.nodes.from(0).map(|(first, pack)| {
            let (mut ids, mut last) = (Vec::new(), first);
            for entry in forward(first, pack) {
                last = entry.id;
                if !entry.is_deleted() {
                    ids.push(entry.id);
                }
            }
            NodeIds { ids, last }
        })
    }

    /// Appends a listpack that was read from a dump, and returns its number of entries; `None` if it is invalid. The caller keeps
    /// the last id in `last`, because finding it among deleted entries takes long.
    pub(crate) fn push_pack(&mut self, first: Id, pack: Listpack, last: &mut Option<Id>) -> Option<usize> {
        let (entries, last_here) = sound_entries(first, &pack)?;
        if last.is_some_and(|last| last >= first) || self.nodes.before(first) < self.nodes.len() {
            return None;
        }
        *last = last_here.or(*last);
        self.bytes += pack.memory_bytes();
        self.radix_nodes += radix::gained(&self.nodes, first);
        self.nodes.insert(first, pack);
        Some(entries)
    }

    /// Removes the listpack that begins with `first`.
    fn remove_node(&mut self, first: Id) {
        if let Some(pack) = self.nodes.remove(first) {
            self.bytes -= pack.memory_bytes();
            self.radix_nodes -= radix::gained(&self.nodes, first);
        }
    }

    /// Marks entries as deleted whose ids ascend, in one walk through each listpack; shows the ids of those that existed.
    pub(super) fn delete(&mut self, mut ids: &[Id], mut see: impl FnMut(Id)) {
        while let Some(&id) = ids.first() {
            let place = self.nodes.up_to(id);
            let next = self.nodes.id_at(place);
            let (here, behind) = ids.split_at(ids.partition_point(|id| next.is_none_or(|next| *id < next)));
            ids = behind;
            // What is before the first listpack is not there.
            if let Some(place) = place.checked_sub(1) {
                self.delete_from_node(place, here, &mut see);
            }
        }
    }

    fn delete_from_node(&mut self, place: usize, ids: &[Id], see: &mut impl FnMut(Id)) {
        let Some((first, pack)) = self.nodes.at_mut(place) else { return };
        let (mut wanted, mut marked) = (ids.iter().peekable(), Vec::new());
        for entry in forward(first, pack) {
            while wanted.next_if(|id| **id < entry.id).is_some() {}
            let Some(id) = wanted.peek() else { break };
            if **id == entry.id && !entry.is_deleted() {
                see(entry.id);
                marked.push((entry.flags_at, entry.flags));
            }
        }
        let master = Master::of(pack);
        if marked.is_empty() {
        } else if master.entries == marked.len() as i64 {
            self.remove_node(first);
        } else {
            let before = pack.memory_bytes();
            mark(pack, &marked);
            self.bytes = self.bytes + pack.memory_bytes() - before;
        }
    }

    /// Removes the first listpack if `may_go` accepts its first id, entries and last id; returns the number of its entries.
    pub(super) fn remove_first_node(
        &mut self,
        may_go: impl FnOnce(i64, &mut dyn FnMut() -> Id) -> bool,
    ) -> Option<i64> {
        let (first, pack) = self.nodes.from(0).next()?;
        let entries = Master::of(pack).entries;
        // The last id counts even if its entry is deleted.
        let mut last = || backward(first, pack).next().map_or(Id::MIN, |entry| entry.id);
        if !may_go(entries, &mut last) {
            return None;
        }
        self.remove_node(first);
        Some(entries)
    }

    /// Marks entries of the first listpack as deleted while `may_go` accepts them; returns how many.
    pub(super) fn delete_from_first_node(&mut self, mut may_go: impl FnMut(Id, usize) -> bool) -> usize {
        let Some((first, pack)) = self.nodes.at_mut(0) else { return 0 };
        let mut marked: Vec<(usize, i64)> = Vec::new();
        for entry in forward(first, pack) {
            if !may_go(entry.id, marked.len()) {
                break;
            }
            if !entry.is_deleted() {
                marked.push((entry.flags_at, entry.flags));
            }
        }
        let before = pack.memory_bytes();
        mark(pack, &marked);
        self.bytes = self.bytes + pack.memory_bytes() - before;
        marked.len()
    }

    /// The entries between two ids, both included.
    pub(crate) fn range(&self, from: Id, to: Id) -> impl Iterator<Item = Entry<'_>> + '_ {
        let nodes = self.nodes.from(self.nodes.up_to(from).saturating_sub(1));
        let all = nodes.flat_map(|(first, pack)| forward(first, pack));
        all.filter(move |entry| !entry.is_deleted() && entry.id >= from).take_while(move |entry| entry.id <= to)
    }

    /// The entries between two ids, both included, from the last on.
    pub(crate) fn range_back(&self, from: Id, to: Id) -> impl Iterator<Item = Entry<'_>> + '_ {
        let nodes = self.nodes.first(self.nodes.up_to(to)).rev();
        let all = nodes.flat_map(|(first, pack)| backward(first, pack));
        all.filter(move |entry| !entry.is_deleted() && entry.id <= to).take_while(move |entry| entry.id >= from)
    }

    /// The entry of an id.
    pub(crate) fn get(&self, id: Id) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// The id of the first entry.
    pub(crate) fn first_id(&self) -> Option<Id> {
        self.range(Id::MIN, Id::MAX).next().map(|entry| entry.id)
    }

    /// The id of the last entry.
    pub(crate) fn last_id(&self) -> Option<Id> {
        self.range_back(Id::MIN, Id::MAX).next().map(|entry| entry.id)
    }

    /// Frees about `budget` listpacks, a large one counting as several; returns how many.
    pub(super) fn drain(&mut self, budget: usize) -> usize {
        let mut freed = 0;
        while freed < budget
            && let Some(pack) = self.nodes.pop_first()
        {
            self.bytes -= pack.memory_bytes();
            freed += 1 + records_like(pack.memory_bytes());
        }
        freed
    }
}

/// Validates a listpack, whose ids have to grow; returns the number of entries that are not deleted, and the last id.
fn sound_entries(first: Id, pack: &Listpack) -> Option<(usize, Option<Id>)> {
    let mut elements = pack.iter();
    let mut number = || match elements.next()? {
        Element::Integer(value) => Some(value),
        Element::Bytes(_) => None,
    };
    let (entries, deleted, fields) = (number()?, number()?, number()?);
    let (entries, deleted) = (usize::try_from(entries).ok()?, usize::try_from(deleted).ok()?);
    let fields = usize::try_from(fields).ok()?;
    let skip = |elements: &mut dyn Iterator<Item = Element<'_>>, count: usize| elements.take(count).count() == count;
    if !skip(&mut elements, fields) || elements.next()? != Element::Integer(0) {
        return None;
    }
    let (mut live, mut gone, mut last, mut last_live) = (0, 0, None, None);
    while let Some(flags) = elements.next() {
        let mut number = || match elements.next()? {
            Element::Integer(value) => Some(value),
            Element::Bytes(_) => None,
        };
        let Element::Integer(flags @ 0..=3) = flags else { return None };
        let id = Id::at_distance(first, number()?, number()?);
        if last.is_some_and(|last| last >= id) || id < first {
            return None;
        }
        last = Some(id);
        let (count, more) = match flags & SAME_FIELDS {
            0 => {
                let own = usize::try_from(number()?).ok()?;
                (own.checked_mul(2)?, 4)
            }
            _ => (fields, 3),
        };
        if !skip(&mut elements, count) || elements.next()? != Element::Integer(i64::try_from(count).ok()? + more) {
            return None;
        }
        if flags & DELETED == 0 {
            (live, last_live) = (live + 1, last);
        } else {
            gone += 1;
        }
    }
    (live == entries && gone == deleted && live + gone > 0).then_some((live, last_live))
}

/// Marks entries of a listpack as deleted, given the places of their flags and these, and counts them.
fn mark(pack: &mut Listpack, entries: &[(usize, i64)]) {
    // From the last one on: flags that come from elsewhere may take more bytes than they need, and then those behind move.
    for (flags_at, flags) in entries.iter().rev() {
        pack.replace_integer(*flags_at, flags | DELETED);
    }
    let master = Master::of(pack);
    count_deleted(pack, &master, entries.len() as i64);
}

/// Moves `count` entries from a master's counter of entries to its counter of deleted ones.
fn count_deleted(pack: &mut Listpack, master: &Master, count: i64) {
    pack.replace_integer(master.deleted_at, master.deleted + count);
    if let Some(first) = pack.first() {
        pack.replace_integer(first, master.entries - count);
    }
}

/// Adds an entry to a listpack that has room.
fn append_to(pack: &mut Listpack, first: Id, master: &Master, id: Id, (pairs, bytes): (Args<'_>, usize)) {
    let has_same_fields = pairs.len() == 2 * master.fields && {
        let mut at = master.fields_at;
        pairs.iter().step_by(2).all(|field| {
            let (is_same, behind) = pack.is_at(at, field);
            at = behind;
            is_same
        })
    };
    if let Some(first) = pack.first() {
        pack.replace_integer(first, master.entries + 1);
    }
    let flags = if has_same_fields { SAME_FIELDS } else { 0 };
    // Large ones grow by a part of what they are, so that entries are not copied over and over.
    let step = STEP_BYTES.max(pack.byte_len() / 8);
    pack.append(bytes + room_beside(pairs), step, |out| write_entry(out, flags, id.distance(first), pairs));
}

/// Bytes that an entry may take beside its fields and values.
fn room_beside(pairs: Args<'_>) -> usize {
    (pairs.len() + 5) * ELEMENT_BYTES
}

fn write_entry(out: &mut Appender<'_>, flags: i64, distance: (i64, i64), pairs: Args<'_>) {
    let fields = (pairs.len() / 2) as i64;
    out.push_integer(flags);
    out.push_integer(distance.0);
    out.push_integer(distance.1);
    if flags & SAME_FIELDS != 0 {
        pairs.iter().skip(1).step_by(2).for_each(|value| out.push(value));
        out.push_integer(fields + 3);
    } else {
        out.push_integer(fields);
        pairs.iter().for_each(|text| out.push(text));
        out.push_integer(2 * fields + 4);
    }
}
