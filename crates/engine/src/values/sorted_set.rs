//! Sorted sets: a listpack of members and scores in order while small; a table of scored records and an ordered index
//! over the same records after.
//!
//! Everything that is asked of the order is asked by rank; see [`SortedSet::rank_by_score`].

use std::cmp::Ordering;

use respool_wire::DoubleText;

use crate::store::heap::Heap;
use crate::store::listpack::{Element, Listpack};
use crate::store::pool::{Handle, Pool};
use crate::store::record;
use crate::store::sorted_index::{Entry, SortedIndex};
use crate::store::table::Table;

/// Whole scores up to this size are kept as integers in a listpack; all others as the eight bytes of the double.
const WHOLE_SCORE_MAX: f64 = (i64::MAX / 2) as f64;

/// Members with scores, in the order of scores and then of bytes.
pub(crate) enum SortedSet {
    Packed(Listpack),
    Indexed(Box<Indexed>),
}

/// The encoding of a large sorted set.
#[derive(Default)]
pub(crate) struct Indexed {
    table: Table,
    index: SortedIndex,
}

/// Whether a member comes before another. It is looked at only if the scores are equal.
#[inline]
fn is_less<'a>(score: f64, member: impl FnOnce() -> Element<'a>, (other_score, other): (f64, &[u8])) -> bool {
    match score.partial_cmp(&other_score) {
        Some(Ordering::Less) => true,
        Some(Ordering::Equal) => member().read(|member| member < other),
        _ => false,
    }
}

fn read_score(element: Element<'_>) -> f64 {
    match element {
        Element::Integer(value) => value as f64,
        Element::Bytes(bytes) => <[u8; 8]>::try_from(bytes).map_or(0.0, f64::from_le_bytes),
    }
}

fn push_score(pack: &mut Listpack, at: Option<usize>, score: f64) {
    // As in Redis, minus zero loses its sign here.
    let is_integer = score == score.trunc() && score.abs() <= WHOLE_SCORE_MAX;
    if is_integer {
        pack.insert_integer(at, score as i64);
    } else {
        pack.insert_bytes(at, &score.to_le_bytes());
    }
}

impl Indexed {
    fn find(&self, heap: &Heap, member: &[u8]) -> Option<Handle> {
        self.find_hashed(heap, heap.hasher.hash(member), member)
    }

    fn find_hashed(&self, heap: &Heap, hash: u64, member: &[u8]) -> Option<Handle> {
        self.table.find(hash, |handle| record::scored_text(&heap.pool, handle) == member)
    }

    #[inline]
    fn is_entry_less(pool: &Pool, entry: Entry, bound: (f64, &[u8])) -> bool {
        is_less(entry.score, || Element::Bytes(record::scored_text(pool, entry.member)), bound)
    }

    /// Puts in a member with this hash that is not there yet.
    fn insert(&mut self, heap: &mut Heap, hash: u64, score: f64, member: &[u8]) {
        let Heap { pool, hasher, .. } = heap;
        let handle = record::new_scored(pool, score, member);
        self.table.insert(hash, handle, |moved| hasher.hash(record::scored_text(pool, moved)));
        self.index.insert(Entry { score, member: handle }, |other| Self::is_entry_less(pool, other, (score, member)));
    }

    /// Gives the member of a record another score than the old one.
    fn rescore(&mut self, pool: &mut Pool, handle: Handle, old: f64, score: f64, member: &[u8]) {
        let rank = self.rank(pool, old, member);
        record::set_score(pool, handle, score);
        if self.index.rescore(rank, score, |other| Self::is_entry_less(pool, other, (score, member))) {
            return;
        }
        self.index.remove(rank);
        let entry = Entry { score, member: handle };
        self.index.insert(entry, |other| Self::is_entry_less(pool, other, (score, member)));
    }

    fn rank(&self, pool: &Pool, score: f64, member: &[u8]) -> usize {
        self.index.rank_by(|other| Self::is_entry_less(pool, other, (score, member)))
    }

    /// Frees part of what no key holds any more: nodes of the index, whose number is returned, and then records, which `see` frees; and
    /// whether anything is left.
    pub(crate) fn drain(&mut self, see: impl FnMut(Handle)) -> (usize, bool) {
        match self.index.drain() {
            0 => (0, self.table.drain_bucket(see)),
            nodes => (nodes, true),
        }
    }

    /// Bytes held from the allocator beside the records.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.table.memory_bytes() + self.index.memory_bytes()
    }

    /// Passes every record to `see`, and returns [`Indexed::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walk(&self, see: &mut dyn FnMut(Handle)) -> usize {
        self.table.iter().for_each(see);
        size_of::<Self>() + self.table.memory_bytes() + self.index.walked_bytes()
    }
}

impl SortedSet {
    /// No members yet; compact unless the first member that is to come is too long for that.
    pub(crate) fn new_for(heap: &Heap, first_member_bytes: usize) -> Self {
        let limits = &heap.encodings;
        if limits.sorted_set_entries_max == 0 || first_member_bytes > limits.sorted_set_value_bytes_max {
            return Self::Indexed(Box::default());
        }
        Self::Packed(Listpack::new())
    }

    /// No members yet, and not compact: what results are gathered in.
    pub(crate) fn new_indexed() -> Self {
        Self::Indexed(Box::default())
    }

    /// The sorted set of a listpack of members and scores, non-integer scores as text; `None` if a
    /// member is duplicated or a score is invalid.
    pub(crate) fn from_pack(pack: &Listpack, heap: &mut Heap) -> Option<Self> {
        let len = pack.len();
        if !len.is_multiple_of(2) {
            return None;
        }
        let mut sorted = Self::new_indexed();
        for (member, score) in pack.pairs() {
            let score = match score {
                Element::Integer(value) => Some(value as f64),
                Element::Bytes(text) => crate::number::double::parse(text),
            };
            let is_new = score.is_some_and(|score| member.read(|member| sorted.insert(heap, score, member)));
            if !is_new {
                sorted.free(heap);
                return None;
            }
        }
        if sorted.len() <= heap.encodings.sorted_set_entries_max {
            sorted.pack(heap);
        }
        Some(sorted)
    }

    /// The listpack that Redis stores for a compact sorted set; `None` if the set is not compact.
    pub(crate) fn to_pack(&self) -> Option<Listpack> {
        let Self::Packed(own) = self else { return None };
        let mut pack = Listpack::new();
        for (member, score) in own.pairs() {
            pack.insert_element(None, member);
            match score {
                Element::Integer(value) => pack.insert_integer(None, value),
                Element::Bytes(_) => pack.push(DoubleText::new(read_score(score)).as_bytes()),
            }
        }
        Some(pack)
    }

    /// Frees the records of a set that no key holds.
    pub(crate) fn free(self, heap: &mut Heap) {
        if let Self::Indexed(indexed) = self {
            indexed.table.iter().for_each(|handle| heap.pool.free(handle));
        }
    }

    /// Whether it is kept in the compact encoding.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed(_))
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Packed(pack) => pack.len() / 2,
            Self::Indexed(indexed) => indexed.index.len(),
        }
    }

    /// Redis's name for the encoding.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::Packed(_) => "listpack",
            Self::Indexed(_) => "skiplist",
        }
    }

    /// The score of `member`.
    pub(crate) fn score(&self, heap: &Heap, member: &[u8]) -> Option<f64> {
        match self {
            Self::Packed(pack) => Some(read_score(pack.get(pack.next(pack.find(member, 2)?)?))),
            Self::Indexed(indexed) => Some(record::score(&heap.pool, indexed.find(heap, member)?)),
        }
    }

    /// Gives `member` the score; whether the member is new.
    pub(crate) fn insert(&mut self, heap: &mut Heap, score: f64, member: &[u8]) -> bool {
        let mut is_new = false;
        self.revise(heap, member, |old| {
            is_new = old.is_none();
            Some(score)
        });
        is_new
    }

    /// Gives `member` the score that `decide` makes of the one it has. If it makes none, nothing changes.
    pub(crate) fn revise(&mut self, heap: &mut Heap, member: &[u8], decide: impl FnOnce(Option<f64>) -> Option<f64>) {
        match self {
            Self::Packed(pack) => {
                let found = pack.find(member, 2);
                let old = found.and_then(|at| pack.next(at)).map(|at| read_score(pack.get(at)));
                let Some(score) = decide(old) else { return };
                if let Some(at) = found {
                    pack.remove(at, 2);
                } else if pack.len() / 2 + 1 > heap.encodings.sorted_set_entries_max
                    || member.len() > heap.encodings.sorted_set_value_bytes_max
                {
                    self.unpack(heap);
                    self.revise_indexed(heap, member, |_| Some(score));
                    return;
                }
                insert_packed(pack, score, member);
            }
            Self::Indexed(_) => self.revise_indexed(heap, member, decide),
        }
    }

    #[inline]
    fn revise_indexed(&mut self, heap: &mut Heap, member: &[u8], decide: impl FnOnce(Option<f64>) -> Option<f64>) {
        let Self::Indexed(indexed) = self else { return };
        let hash = heap.hasher.hash(member);
        let found = indexed.find_hashed(heap, hash, member);
        let old = found.map(|handle| record::score(&heap.pool, handle));
        let Some(score) = decide(old) else { return };
        match found.zip(old) {
            Some((handle, old)) => indexed.rescore(&mut heap.pool, handle, old, score, member),
            None => indexed.insert(heap, hash, score, member),
        }
    }

    /// Takes `member` out; whether it was there.
    pub(crate) fn remove(&mut self, heap: &mut Heap, member: &[u8]) -> bool {
        match self {
            Self::Packed(pack) => {
                let found = pack.find(member, 2);
                if let Some(at) = found {
                    pack.remove(at, 2);
                }
                found.is_some()
            }
            Self::Indexed(indexed) => {
                let Some(score) = indexed.find(heap, member).map(|handle| record::score(&heap.pool, handle)) else {
                    return false;
                };
                let rank = indexed.rank(&heap.pool, score, member);
                self.remove_rank(heap, rank);
                true
            }
        }
    }

    /// Takes out `count` members from `rank` on.
    pub(crate) fn remove_range(&mut self, heap: &mut Heap, rank: usize, count: usize) {
        match self {
            Self::Packed(pack) => {
                if let Some(at) = pack.seek(rank * 2) {
                    pack.remove(at, count * 2);
                }
            }
            Self::Indexed(_) => {
                for _ in 0..count.min(self.len().saturating_sub(rank)) {
                    self.remove_rank(heap, rank);
                }
            }
        }
    }

    fn remove_rank(&mut self, heap: &mut Heap, rank: usize) {
        let Self::Indexed(indexed) = self else { return };
        let Some(entry) = indexed.index.remove(rank) else { return };
        let hash = heap.hasher.hash(record::scored_text(&heap.pool, entry.member));
        if let Some(place) = indexed.table.place(hash, |handle| handle == entry.member) {
            indexed.table.remove(place);
        }
        heap.pool.free(entry.member);
    }

    /// How many members have scores for which `is_before` holds; it must hold for all scores below some bound.
    pub(crate) fn rank_by_score(&self, mut is_before: impl FnMut(f64) -> bool) -> usize {
        match self {
            Self::Packed(pack) => pack.pairs().take_while(|(_, score)| is_before(read_score(*score))).count(),
            Self::Indexed(indexed) => indexed.index.rank_by(|entry| is_before(entry.score)),
        }
    }

    /// How many members `is_before` holds for; it must hold for a prefix of the order.
    pub(crate) fn rank_by_member(&self, heap: &Heap, mut is_before: impl FnMut(&[u8]) -> bool) -> usize {
        match self {
            Self::Packed(pack) => pack.pairs().take_while(|(member, _)| member.read(&mut is_before)).count(),
            Self::Indexed(indexed) => {
                indexed.index.rank_by(|entry| is_before(record::scored_text(&heap.pool, entry.member)))
            }
        }
    }

    /// The rank of `member`.
    pub(crate) fn rank(&self, heap: &Heap, member: &[u8]) -> Option<usize> {
        match self {
            Self::Packed(pack) => pack.pairs().position(|(other, _)| other.is(member)),
            Self::Indexed(indexed) => {
                let score = record::score(&heap.pool, indexed.find(heap, member)?);
                Some(indexed.rank(&heap.pool, score, member))
            }
        }
    }

    /// Shows members with scores from `rank` on, upwards or downwards, until `see` says false.
    pub(crate) fn each_from<'a>(
        &'a self,
        heap: &'a Heap,
        rank: usize,
        is_downwards: bool,
        mut see: impl FnMut(Element<'a>, f64) -> bool,
    ) {
        match self {
            Self::Packed(pack) => {
                let mut next = pack.seek(rank * 2);
                while let Some(at) = next {
                    let Some(score_at) = pack.next(at) else { return };
                    if !see(pack.get(at), read_score(pack.get(score_at))) {
                        return;
                    }
                    next = if is_downwards {
                        pack.previous(at).and_then(|score| pack.previous(score))
                    } else {
                        pack.next(score_at)
                    };
                }
            }
            Self::Indexed(indexed) => {
                let mut see_entry =
                    |entry: Entry| see(Element::Bytes(record::scored_text(&heap.pool, entry.member)), entry.score);
                if is_downwards {
                    _ = indexed.index.iter_back_from(rank).all(&mut see_entry);
                } else {
                    _ = indexed.index.iter_from(rank).all(&mut see_entry);
                }
            }
        }
    }

    /// Shows what is behind `cursor` with scores as text, until about `count` members were seen; the next cursor.
    pub(crate) fn scan(
        &self,
        heap: &Heap,
        cursor: u64,
        count: usize,
        mut see: impl FnMut(Element<'_>, Element<'_>),
    ) -> u64 {
        match self {
            Self::Packed(pack) => {
                for (member, score) in pack.pairs() {
                    match score {
                        // Kept as an integer, it is shown as one: without an exponent, however large.
                        Element::Integer(_) => see(member, score),
                        Element::Bytes(_) => see(member, Element::Bytes(DoubleText::new(read_score(score)).as_bytes())),
                    }
                }
                0
            }
            Self::Indexed(indexed) => indexed.table.scan_many(cursor, count, |handle| {
                let score = DoubleText::new(record::score(&heap.pool, handle));
                see(Element::Bytes(record::scored_text(&heap.pool, handle)), Element::Bytes(score.as_bytes()));
            }),
        }
    }

    /// Leaves the compact encoding.
    pub(crate) fn unpack(&mut self, heap: &mut Heap) {
        let Self::Packed(pack) = self else { return };
        let mut indexed = Box::<Indexed>::default();
        for (member, score) in pack.pairs() {
            member.read(|member| {
                let hash = heap.hasher.hash(member);
                indexed.insert(heap, hash, read_score(score), member);
            });
        }
        *self = Self::Indexed(indexed);
    }

    /// Goes back to the compact encoding if the members are few and short: what a freshly stored result does.
    pub(crate) fn repack(&mut self, heap: &mut Heap) {
        let Self::Indexed(indexed) = self else { return };
        let limits = heap.encodings;
        let text = |handle| record::scored_text(&heap.pool, handle);
        let is_small = indexed.index.len() <= limits.sorted_set_entries_max
            && indexed.table.iter().all(|handle| text(handle).len() <= limits.sorted_set_value_bytes_max);
        if is_small {
            self.pack(heap);
        }
    }

    /// Converts back to the compact encoding.
    fn pack(&mut self, heap: &mut Heap) {
        let Self::Indexed(indexed) = self else { return };
        let mut pack = Listpack::new();
        for entry in indexed.index.iter_from(0) {
            pack.push(record::scored_text(&heap.pool, entry.member));
            push_score(&mut pack, None, entry.score);
        }
        let handles: Vec<_> = indexed.table.iter().collect();
        handles.into_iter().for_each(|handle| heap.pool.free(handle));
        *self = Self::Packed(pack);
    }

    /// The same members and scores once more.
    pub(crate) fn duplicate(&self, heap: &mut Heap) -> Self {
        match self {
            Self::Packed(pack) => Self::Packed(pack.clone()),
            Self::Indexed(indexed) => {
                let mut copy = Box::<Indexed>::default();
                for entry in indexed.index.iter_from(0) {
                    let member = record::scored_text(&heap.pool, entry.member).to_vec();
                    let hash = heap.hasher.hash(&member);
                    copy.insert(heap, hash, entry.score, &member);
                }
                Self::Indexed(copy)
            }
        }
    }

    /// The table of records, unless the set is kept in the compact encoding.
    pub(crate) fn table(&self) -> Option<&Table> {
        match self {
            Self::Packed(_) => None,
            Self::Indexed(indexed) => Some(&indexed.table),
        }
    }

    /// Gives the index, which is freed in parts. A packed set has none: it is one piece of memory.
    pub(crate) fn into_indexed(self) -> Option<Box<Indexed>> {
        match self {
            Self::Packed(_) => None,
            Self::Indexed(indexed) => Some(indexed),
        }
    }

    /// Passes every record to `see`, and returns [`SortedSet::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walk(&self, see: &mut dyn FnMut(Handle)) -> usize {
        match self {
            Self::Packed(pack) => pack.memory_bytes(),
            Self::Indexed(indexed) => indexed.walk(see),
        }
    }

    /// Bytes that the set holds from the allocator beside its records.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Packed(pack) => pack.memory_bytes(),
            Self::Indexed(indexed) => indexed.memory_bytes(),
        }
    }
}

fn insert_packed(pack: &mut Listpack, score: f64, member: &[u8]) {
    let mut next = pack.first();
    while let Some(at) = next {
        let Some(score_at) = pack.next(at) else { break };
        if !is_less(read_score(pack.get(score_at)), || pack.get(at), (score, member)) {
            break;
        }
        next = pack.next(score_at);
    }
    match next {
        // Inserted in reverse, so that both land before the same entry.
        Some(at) => {
            push_score(pack, Some(at), score);
            pack.insert(Some(at), member);
        }
        None => {
            pack.push(member);
            push_score(pack, None, score);
        }
    }
}
