//! The list encoding: a deque of listpacks of a few kilobytes each, so that an element costs its bytes and little more.
//!
//! Both ends are cheap; the middle is reached by walking chunk counts and then one chunk.

use super::chunks::Chunks;
use super::listpack::{Element, Listpack};
use crate::limits::records_like;

/// A chunk takes no further element past this many bytes; a longer element has a chunk of its own.
const CHUNK_BYTES_MAX: usize = 8192;
/// Bytes that an entry may take beside its text.
const ENTRY_OVERHEAD_BYTES: usize = 8;

/// Which end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Head,
    Tail,
}

/// Where an element stands, until the next change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    chunk: usize,
    at: usize,
}

/// A list of elements. See the module's text.
#[derive(Clone)]
pub(crate) struct QuickList {
    chunks: Chunks,
    len: usize,
}

fn has_room(chunk: &Listpack, bytes: usize) -> bool {
    chunk.is_empty() || chunk.byte_len() + bytes + ENTRY_OVERHEAD_BYTES <= CHUNK_BYTES_MAX
}

impl QuickList {
    /// No elements yet.
    pub(crate) fn new() -> Self {
        Self { chunks: Chunks::default(), len: 0 }
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Frees about `budget` chunks of a list that is asked for nothing any more, a large one counting as several; how many, and
    /// whether any are left.
    pub(crate) fn drain(&mut self, budget: usize) -> (usize, bool) {
        let mut freed = 0;
        while freed < budget
            && let Some(chunk) = self.chunks.pop()
        {
            freed += 1 + records_like(chunk.memory_bytes());
        }
        (freed, self.chunks.len() > 0)
    }

    /// The chunks in order.
    pub(crate) fn chunks(&self) -> impl ExactSizeIterator<Item = &Listpack> {
        self.chunks.iter()
    }

    /// Appends a chunk that was read from a dump. One that is too large is split.
    pub(crate) fn push_chunk(&mut self, chunk: Listpack) {
        let len = chunk.len();
        if chunk.byte_len() <= CHUNK_BYTES_MAX || len == 1 {
            self.len += len;
            if len > 0 {
                self.chunks.push(chunk);
            }
        } else {
            chunk.iter().for_each(|element| element.read(|text| self.push(End::Tail, text)));
        }
    }

    /// Adds an element at one end.
    pub(crate) fn push(&mut self, end: End, bytes: &[u8]) {
        let last = self.end_chunk(end);
        let is_done = self.chunks.edit(last, |chunk| {
            let has_room = has_room(chunk, bytes.len());
            if has_room {
                let at = if end == End::Head { chunk.first() } else { None };
                chunk.insert(at, bytes);
            } else {
                chunk.shrink();
            }
            has_room
        });
        if is_done != Some(true) {
            let mut fresh = Listpack::new();
            fresh.push(bytes);
            self.chunks.insert(if end == End::Head { 0 } else { self.chunks.len() }, fresh);
        }
        self.len += 1;
    }

    /// The index of the chunk at one end.
    fn end_chunk(&self, end: End) -> usize {
        if end == End::Head { 0 } else { self.chunks.len().saturating_sub(1) }
    }

    /// Takes the element at one end out, after `read` has seen it.
    pub(crate) fn pop<T>(&mut self, end: End, read: impl FnOnce(Element<'_>) -> T) -> Option<T> {
        let chunk = self.end_chunk(end);
        let pack = self.chunks.get(chunk)?;
        let at = if end == End::Head { pack.first()? } else { pack.last()? };
        let seen = read(pack.get(at));
        self.remove(Spot { chunk, at });
        Some(seen)
    }

    /// Where element `index` stands.
    pub(crate) fn seek(&self, index: usize) -> Option<Spot> {
        if index >= self.len {
            return None;
        }
        if index <= self.len / 2 {
            let mut left = index;
            for (chunk, pack) in self.chunks.iter().enumerate() {
                let len = pack.len();
                if left < len {
                    return Some(Spot { chunk, at: pack.seek(left)? });
                }
                left -= len;
            }
            return None;
        }
        let mut left = self.len - 1 - index;
        for (chunk, pack) in self.chunks.iter().enumerate().rev() {
            let len = pack.len();
            if left < len {
                return Some(Spot { chunk, at: pack.seek(len - 1 - left)? });
            }
            left -= len;
        }
        None
    }

    /// The element at a spot.
    pub(crate) fn get(&self, spot: Spot) -> Option<Element<'_>> {
        Some(self.chunks.get(spot.chunk)?.get(spot.at))
    }

    /// The spot after `spot`, going away from `from`.
    pub(crate) fn step(&self, spot: Spot, from: End) -> Option<Spot> {
        let pack = self.chunks.get(spot.chunk)?;
        let within = if from == End::Head { pack.next(spot.at) } else { pack.previous(spot.at) };
        if let Some(at) = within {
            return Some(Spot { at, ..spot });
        }
        let chunk = if from == End::Head { spot.chunk + 1 } else { spot.chunk.checked_sub(1)? };
        let pack = self.chunks.get(chunk)?;
        Some(Spot { chunk, at: if from == End::Head { pack.first()? } else { pack.last()? } })
    }

    /// The first spot, seen from one end.
    pub(crate) fn start(&self, from: End) -> Option<Spot> {
        self.seek(if from == End::Head { 0 } else { self.len.checked_sub(1)? })
    }

    /// All elements in order, seen from one end.
    pub(crate) fn iter(&self, from: End) -> impl Iterator<Item = Element<'_>> + '_ {
        self.iter_at(self.start(from), from)
    }

    /// The elements from `spot` on, going away from `from`.
    pub(crate) fn iter_at(&self, spot: Option<Spot>, from: End) -> impl Iterator<Item = Element<'_>> + '_ {
        std::iter::successors(spot, move |&spot| self.step(spot, from)).filter_map(|spot| self.get(spot))
    }

    /// Takes the element at `spot` out.
    pub(crate) fn remove(&mut self, spot: Spot) {
        let remove = |pack: &mut Listpack| {
            pack.remove(spot.at, 1);
            pack.is_empty()
        };
        let Some(is_drained) = self.chunks.edit(spot.chunk, remove) else { return };
        if is_drained {
            self.chunks.remove(spot.chunk);
        }
        self.len -= 1;
    }

    /// Puts other text in the place of the element at `spot`.
    pub(crate) fn replace(&mut self, spot: Spot, bytes: &[u8]) {
        let is_replaced = self.chunks.edit(spot.chunk, |pack| {
            let fits = pack.len() == 1 || pack.byte_len() + bytes.len() + ENTRY_OVERHEAD_BYTES <= CHUNK_BYTES_MAX;
            if fits {
                pack.replace(spot.at, bytes);
            }
            fits
        });
        if is_replaced != Some(false) {
            return;
        }
        self.insert_before(spot, bytes);
        // The old element now starts what stands behind the new one.
        let old = self.find_behind(spot);
        if let Some(old) = old {
            self.remove(old);
        }
    }

    /// The spot behind the element that an insertion has put at `spot`'s place or in a chunk after it.
    fn find_behind(&self, spot: Spot) -> Option<Spot> {
        let at_spot = match self.chunks.get(spot.chunk) {
            Some(pack) if spot.at < pack.byte_len() - 1 => spot,
            _ => Spot { chunk: spot.chunk + 1, at: self.chunks.get(spot.chunk + 1)?.first()? },
        };
        self.step(at_spot, End::Head)
    }

    /// Adds an element before the one at `spot`.
    pub(crate) fn insert_before(&mut self, spot: Spot, bytes: &[u8]) {
        let Some(pack) = self.chunks.get(spot.chunk) else { return };
        self.len += 1;
        if has_room(pack, bytes.len()) {
            self.chunks.edit(spot.chunk, |pack| pack.insert(Some(spot.at), bytes));
            return;
        }
        let mut fresh = Listpack::new();
        fresh.push(bytes);
        if pack.first() == Some(spot.at) {
            return self.chunks.insert(spot.chunk, fresh);
        }
        let Some(mut tail) = self.chunks.edit(spot.chunk, |pack| pack.split_off(spot.at)) else { return };
        if self.chunks.get(spot.chunk).is_some_and(|pack| has_room(pack, bytes.len())) {
            self.chunks.edit(spot.chunk, |pack| pack.push(bytes));
        } else if has_room(&tail, bytes.len()) {
            tail.insert(tail.first(), bytes);
        } else {
            self.chunks.insert(spot.chunk + 1, tail);
            return self.chunks.insert(spot.chunk + 1, fresh);
        }
        self.chunks.insert(spot.chunk + 1, tail);
        self.join(spot.chunk + 1);
    }

    /// Adds an element after the one at `spot`.
    pub(crate) fn insert_after(&mut self, spot: Spot, bytes: &[u8]) {
        match self.step(spot, End::Head) {
            Some(next) if next.chunk == spot.chunk => self.insert_before(next, bytes),
            _ => {
                let Some(pack) = self.chunks.get(spot.chunk) else { return };
                self.len += 1;
                if has_room(pack, bytes.len()) {
                    self.chunks.edit(spot.chunk, |pack| pack.push(bytes));
                    return;
                }
                let mut fresh = Listpack::new();
                fresh.push(bytes);
                self.chunks.insert(spot.chunk + 1, fresh);
            }
        }
    }

    /// Joins the chunk at `index` with the one behind it if one chunk holds both: splitting must not leave crumbs.
    fn join(&mut self, index: usize) {
        let Some((left, right)) = self.chunks.get(index).zip(self.chunks.get(index + 1)) else { return };
        if left.byte_len() + right.byte_len() > CHUNK_BYTES_MAX {
            return;
        }
        let Some(right) = self.chunks.remove(index + 1) else { return };
        self.chunks.edit(index, |left| right.iter().for_each(|element| left.insert_element(None, element)));
    }

    /// Takes out up to `limit` elements that are the text `bytes`, starting at one end. Tells how many there were.
    pub(crate) fn remove_equal(&mut self, from: End, limit: usize, bytes: &[u8]) -> usize {
        let mut removed = 0;
        let mut chunk = self.end_chunk(from);
        while removed < limit {
            let remove = |pack: &mut Listpack| (remove_equal_in(pack, from, limit - removed, bytes), pack.is_empty());
            let Some((count, is_drained)) = self.chunks.edit(chunk, remove) else { break };
            removed += count;
            if is_drained {
                self.chunks.remove(chunk);
            }
            chunk = match from {
                End::Head if is_drained => chunk,
                End::Head => chunk + 1,
                End::Tail if chunk == 0 => break,
                End::Tail => chunk - 1,
            };
        }
        self.len -= removed;
        removed
    }

    /// Keeps `keep` elements from index `start` on and forgets the others.
    pub(crate) fn trim(&mut self, start: usize, keep: usize) {
        self.drop_end(End::Head, start);
        self.drop_end(End::Tail, self.len.saturating_sub(keep));
    }

    fn drop_end(&mut self, end: End, count: usize) {
        let mut left = count.min(self.len);
        self.len -= left;
        while left > 0 {
            let chunk = self.end_chunk(end);
            let Some(len) = self.chunks.get(chunk).map(Listpack::len) else { return };
            if left < len {
                let first = if end == End::Head { 0 } else { len - left };
                self.chunks.edit(chunk, |pack| {
                    if let Some(at) = pack.seek(first) {
                        pack.remove(at, left);
                    }
                });
                return;
            }
            left -= len;
            self.chunks.remove(chunk);
        }
    }

    /// Bytes held from the allocator.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.memory_bytes()
    }

    /// As [`QuickList::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walked_bytes(&self) -> usize {
        self.chunks.walked_bytes()
    }
}

fn remove_equal_in(pack: &mut Listpack, from: End, limit: usize, bytes: &[u8]) -> usize {
    let mut removed = 0;
    let mut next = if from == End::Head { pack.first() } else { pack.last() };
    while let (Some(at), true) = (next, removed < limit) {
        let before = pack.previous(at);
        let is_it = pack.get(at).is(bytes);
        if is_it {
            pack.remove(at, 1);
            removed += 1;
        }
        next = match from {
            End::Tail => before,
            End::Head if !is_it => pack.next(at),
            // What stood behind the removed element has moved into its place, unless it was the last.
            End::Head => (at < pack.byte_len() - 1).then_some(at),
        };
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    fn text(random: &mut Random) -> Vec<u8> {
        match random.below(4) {
            0 => vec![b'a' + random.below(3) as u8; 1 + random.below(10_000) as usize],
            1 => random.below(5).to_string().into_bytes(),
            _ => vec![b'x'; random.below(60) as usize],
        }
    }

    #[test]
    fn it_does_what_a_vector_does() {
        let (mut list, mut model, mut random) = (QuickList::new(), Vec::<Vec<u8>>::new(), Random::new(17));
        for round in 0..12_000 {
            let value = text(&mut random);
            let at = random.below(model.len() as u64 + 1) as usize;
            let spot = list.seek(at);
            assert_eq!(spot.is_some(), at < model.len());
            match (random.below(14), spot) {
                (0..3, _) => {
                    list.push(End::Head, &value);
                    model.insert(0, value);
                }
                (3..6, _) => {
                    list.push(End::Tail, &value);
                    model.push(value);
                }
                (6..8, Some(spot)) => {
                    list.insert_before(spot, &value);
                    model.insert(at, value);
                }
                (8, Some(spot)) => {
                    list.insert_after(spot, &value);
                    model.insert(at + 1, value);
                }
                (9, Some(spot)) => {
                    list.replace(spot, &value);
                    model[at] = value;
                }
                (10, Some(spot)) => {
                    list.remove(spot);
                    model.remove(at);
                }
                (11, _) => {
                    let expected = if model.is_empty() { None } else { Some(model.remove(0)) };
                    assert_eq!(list.pop(End::Head, |element| element.to_vec()), expected);
                    assert_eq!(list.pop(End::Tail, |element| element.to_vec()), model.pop());
                }
                (12, _) if round % 50 == 0 => {
                    let removed = list.remove_equal(End::Head, 2, &value);
                    let before = model.len();
                    for _ in 0..2 {
                        if let Some(index) = model.iter().position(|other| *other == value) {
                            model.remove(index);
                        }
                    }
                    assert_eq!(removed, before - model.len());
                }
                (13, _) if round % 50 == 0 => {
                    let removed = list.remove_equal(End::Tail, 2, &value);
                    let before = model.len();
                    for _ in 0..2 {
                        if let Some(index) = model.iter().rposition(|other| *other == value) {
                            model.remove(index);
                        }
                    }
                    assert_eq!(removed, before - model.len());
                }
                _ => {}
            }
            if model.len() > 900 {
                list.trim(300, 500);
                model = model[300..800].to_vec();
            }
            assert_eq!(list.len(), model.len());
            if round % 100 == 0 {
                assert!(list.iter(End::Head).map(Element::to_vec).eq(model.iter().cloned()), "round {round}");
                assert!(list.iter(End::Tail).map(Element::to_vec).eq(model.iter().rev().cloned()));
            }
        }
    }
}
