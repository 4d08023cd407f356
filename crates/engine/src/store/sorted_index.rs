//! The counted ordered index of a sorted set: a B+ tree of (score, handle) with the number of entries below every child.
//!
//! Everything is asked by rank. A bound of any kind (score, member, both) becomes a rank through [`SortedIndex::rank_by`],
//! which takes a predicate that holds for a prefix of the order; ranges, counts, removals and iteration then work on
//! ranks alone. The tree compares nothing itself, so it needs neither the members nor their order.

use super::pool::Handle;
use super::slab::Slab;

/// Entries in a leaf at most.
const LEAF_ENTRIES: usize = 128;
/// What a leaf has room for, one after the other: so many entries of twelve bytes fill a piece of just the size that allocators
/// have (96 to 1,536 bytes, four sizes each time it doubles). A leaf of any fill has little room that it does not use, so the bytes
/// of an entry depend little on the order in which entries come.
const LEAF_STEPS: [usize; 16] = [4, 8, 10, 13, 16, 21, 26, 32, 37, 42, 53, 64, 74, 85, 106, LEAF_ENTRIES];
/// Children of an inner node at most.
const FANOUT: usize = 32;
/// The same for inner nodes, whose children take 24 bytes.
const INNER_STEPS: [usize; 7] = [2, 4, 8, 16, 21, 26, FANOUT];
/// No node.
const NONE: u32 = u32::MAX;
/// Why a node is there.
const IS_THERE: &str = "a node that is named by another has not been dropped";
/// Why there is a number for one more.
const FEW_NODES: &str = "every node but the root holds an entry, and there are fewer than 2^31 records";

/// One entry: a score and the record that holds the member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) score: f64,
    pub(crate) member: Handle,
}

/// An entry in twelve bytes and not sixteen: the score has no alignment of its own.
#[derive(Clone, Copy)]
struct Packed {
    score: [u32; 2],
    member: Handle,
}

impl From<Entry> for Packed {
    #[inline]
    fn from(entry: Entry) -> Self {
        let bits = entry.score.to_bits();
        Self { score: [bits as u32, (bits >> 32) as u32], member: entry.member }
    }
}

impl From<Packed> for Entry {
    #[inline]
    fn from(packed: Packed) -> Self {
        let [low, high] = packed.score.map(u64::from);
        Self { score: f64::from_bits(high << 32 | low), member: packed.member }
    }
}

struct Leaf {
    entries: Vec<Packed>,
    previous: u32,
    next: u32,
}

impl Leaf {
    #[inline]
    fn entry(&self, at: usize) -> Option<Entry> {
        self.entries.get(at).copied().map(Entry::from)
    }

    #[inline]
    fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many of its entries `is_before` holds for.
    #[inline]
    fn partition(&self, mut is_before: impl FnMut(Entry) -> bool) -> usize {
        self.entries.partition_point(|entry| is_before((*entry).into()))
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Packed>()
    }
}

#[derive(Clone, Copy)]
struct Child {
    node: u32,
    /// Entries in the whole subtree.
    count: u32,
    /// The subtree's first entry.
    first: Entry,
}

/// An order-statistic tree. See the module's text.
pub(crate) struct SortedIndex {
    leaves: Slab<Leaf>,
    inners: Slab<Vec<Child>>,
    root: u32,
    /// Levels of inner nodes above the leaves.
    height: u32,
    len: usize,
    /// Bytes that the entries of leaves and the children of inner nodes hold from the allocator.
    node_bytes: usize,
}

impl SortedIndex {
    /// An index of nothing.
    pub(crate) fn new() -> Self {
        let (leaves, inners) = (Slab::default(), Slab::default());
        let mut made = Self { leaves, inners, root: 0, height: 0, len: 0, node_bytes: 0 };
        made.root = made.add_leaf(Leaf { entries: Vec::new(), previous: NONE, next: NONE });
        made
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn leaf(&self, node: u32) -> &Leaf {
        self.leaves.get(node).expect(IS_THERE)
    }

    #[inline]
    fn leaf_mut(&mut self, node: u32) -> &mut Leaf {
        self.leaves.get_mut(node).expect(IS_THERE)
    }

    #[inline]
    fn inner(&self, node: u32) -> &[Child] {
        self.inners.get(node).expect(IS_THERE)
    }

    #[inline]
    fn inner_mut(&mut self, node: u32) -> &mut [Child] {
        self.inners.get_mut(node).expect(IS_THERE)
    }

    fn add_leaf(&mut self, leaf: Leaf) -> u32 {
        self.node_bytes += leaf.memory_bytes();
        self.leaves.insert(leaf).expect(FEW_NODES)
    }

    fn add_inner(&mut self, children: Vec<Child>) -> u32 {
        self.node_bytes += children.capacity() * size_of::<Child>();
        self.inners.insert(children).expect(FEW_NODES)
    }

    /// Changes a leaf.
    #[inline]
    fn edit_leaf<R>(&mut self, node: u32, edit: impl FnOnce(&mut Leaf) -> R) -> R {
        let leaf = self.leaves.get_mut(node).expect(IS_THERE);
        let before = leaf.memory_bytes();
        let said = edit(leaf);
        self.node_bytes = self.node_bytes + leaf.memory_bytes() - before;
        said
    }

    /// Changes the list of children of an inner node.
    fn edit_inner<R>(&mut self, node: u32, edit: impl FnOnce(&mut Vec<Child>) -> R) -> R {
        let children = self.inners.get_mut(node).expect(IS_THERE);
        let before = children.capacity();
        let said = edit(children);
        self.node_bytes = self.node_bytes + children.capacity() * size_of::<Child>() - before * size_of::<Child>();
        said
    }

    /// How many entries `is_before` holds for. It must hold for a prefix of the order and for nothing behind it.
    pub(crate) fn rank_by(&self, mut is_before: impl FnMut(Entry) -> bool) -> usize {
        let (mut node, mut rank) = (self.root, 0);
        for _ in 0..self.height {
            let children = self.inner(node);
            let at = children.partition_point(|child| is_before(child.first)).saturating_sub(1);
            rank += children[..at].iter().map(|child| child.count as usize).sum::<usize>();
            node = children[at].node;
        }
        rank + self.leaf(node).partition(is_before)
    }

    /// The leaf that holds rank `rank` and the place in it.
    fn locate(&self, mut rank: usize) -> Option<(u32, usize)> {
        if rank >= self.len {
            return None;
        }
        let mut node = self.root;
        for _ in 0..self.height {
            let child = self.inner(node).iter().find(|child| {
                let is_inside = rank < child.count as usize;
                if !is_inside {
                    rank -= child.count as usize;
                }
                is_inside
            })?;
            node = child.node;
        }
        Some((node, rank))
    }

    /// The entry at `rank`.
    #[cfg(test)]
    fn get(&self, rank: usize) -> Option<Entry> {
        let (leaf, at) = self.locate(rank)?;
        self.leaf(leaf).entry(at)
    }

    /// The entries from `rank` on, upwards.
    pub(crate) fn iter_from(&self, rank: usize) -> impl Iterator<Item = Entry> + '_ {
        let (mut rest, mut next): (std::slice::Iter<'_, Packed>, u32) = (Default::default(), NONE);
        if let Some((node, at)) = self.locate(rank) {
            let leaf = self.leaf(node);
            (rest, next) = (leaf.entries[at..].iter(), leaf.next);
        }
        std::iter::from_fn(move || {
            loop {
                if let Some(entry) = rest.next() {
                    return Some((*entry).into());
                }
                let leaf = (next != NONE).then(|| self.leaf(next))?;
                (rest, next) = (leaf.entries.iter(), leaf.next);
            }
        })
    }

    /// The entries from `rank` on, downwards.
    pub(crate) fn iter_back_from(&self, rank: usize) -> impl Iterator<Item = Entry> + '_ {
        let (mut rest, mut previous): (std::slice::Iter<'_, Packed>, u32) = (Default::default(), NONE);
        if let Some((node, at)) = self.locate(rank) {
            let leaf = self.leaf(node);
            (rest, previous) = (leaf.entries[..=at].iter(), leaf.previous);
        }
        std::iter::from_fn(move || {
            loop {
                if let Some(entry) = rest.next_back() {
                    return Some((*entry).into());
                }
                let leaf = (previous != NONE).then(|| self.leaf(previous))?;
                (rest, previous) = (leaf.entries.iter(), leaf.previous);
            }
        })
    }

    /// Adds `entry` behind all entries that `is_before` holds for.
    pub(crate) fn insert(&mut self, entry: Entry, mut is_before: impl FnMut(Entry) -> bool) {
        let root = self.root;
        let right = self.insert_into(root, self.height, entry, &mut is_before);
        self.len += 1;
        if let Some(right) = right {
            let first = self.first_of(root, self.height).unwrap_or(entry);
            let left = Child { node: root, count: self.len as u32 - right.count, first };
            self.root = self.add_inner(vec![left, right]);
            self.height += 1;
        }
    }

    fn first_of(&self, node: u32, height: u32) -> Option<Entry> {
        if height == 0 { self.leaf(node).entry(0) } else { self.inner(node).first().map(|child| child.first) }
    }

    /// Puts an entry in below a node. If the node was split for it, what now stands to the right of the node.
    fn insert_into(
        &mut self,
        node: u32,
        height: u32,
        entry: Entry,
        is_before: &mut impl FnMut(Entry) -> bool,
    ) -> Option<Child> {
        if height == 0 {
            return self.insert_into_leaf(node, entry, is_before);
        }
        let children = self.inner(node);
        let at = children.partition_point(|child| is_before(child.first)).saturating_sub(1);
        let below = children[at].node;
        let right = self.insert_into(below, height - 1, entry, is_before);
        let first = self.first_of(below, height - 1).unwrap_or(entry);
        let child = &mut self.inner_mut(node)[at];
        child.first = first;
        child.count += 1;
        let right = right?;
        child.count -= right.count;
        self.insert_child(node, at + 1, right)
    }

    fn insert_child(&mut self, node: u32, at: usize, child: Child) -> Option<Child> {
        let len = self.inner(node).len();
        if len < FANOUT {
            self.edit_inner(node, |children| insert_at(children, at, child, &INNER_STEPS));
            return None;
        }
        let middle = if at == len { FANOUT * 3 / 4 } else { FANOUT / 2 };
        let mut moved = self.edit_inner(node, |children| {
            let moved = split_off(children, middle, &INNER_STEPS);
            if at <= middle {
                insert_at(children, at, child, &INNER_STEPS);
            }
            moved
        });
        if at > middle {
            insert_at(&mut moved, at - middle, child, &INNER_STEPS);
        }
        let count = moved.iter().map(|child| child.count).sum();
        let first = moved[0].first;
        Some(Child { node: self.add_inner(moved), count, first })
    }

    fn insert_into_leaf(
        &mut self,
        node: u32,
        entry: Entry,
        is_before: &mut impl FnMut(Entry) -> bool,
    ) -> Option<Child> {
        let leaf = self.leaf(node);
        let at = leaf.partition(is_before);
        let (len, previous, next) = (leaf.len(), leaf.previous, leaf.next);
        if len < LEAF_ENTRIES {
            self.edit_leaf(node, |leaf| insert_at(&mut leaf.entries, at, entry.into(), &LEAF_STEPS));
            return None;
        }
        // Entries often come in order: then the old leaf stays full, and a new one begins with the new entry.
        let middle = match at {
            0 if previous == NONE => 0,
            at if at == len && next == NONE => len,
            _ => LEAF_ENTRIES / 2,
        };
        let mut moved = self.edit_leaf(node, |leaf| {
            let moved = split_off(&mut leaf.entries, middle, &LEAF_STEPS);
            if at <= middle && middle < len {
                insert_at(&mut leaf.entries, at, entry.into(), &LEAF_STEPS);
            }
            moved
        });
        if at > middle || middle == len {
            insert_at(&mut moved, at - middle, entry.into(), &LEAF_STEPS);
        }
        let (count, first) = (moved.len() as u32, moved[0].into());
        let right = self.add_leaf(Leaf { entries: moved, previous: node, next });
        self.leaf_mut(node).next = right;
        if next != NONE {
            self.leaf_mut(next).previous = right;
        }
        Some(Child { node: right, count, first })
    }

    /// Gives the entry at `rank` another score, if it keeps its place and that is within a leaf; whether it was done. `is_before`
    /// holds for the entries that stand before it then.
    pub(crate) fn rescore(&mut self, rank: usize, score: f64, mut is_before: impl FnMut(Entry) -> bool) -> bool {
        let Some((node, at)) = self.locate(rank) else { return false };
        let leaf = self.leaf_mut(node);
        let around = at.checked_sub(1).and_then(|before| Some((leaf.entry(before)?, leaf.entry(at + 1)?)));
        let keeps_place = around.is_some_and(|(before, behind)| is_before(before) && !is_before(behind));
        if keeps_place {
            let member = leaf.entries[at].member;
            leaf.entries[at] = Entry { score, member }.into();
        }
        keeps_place
    }

    /// Takes the entry at `rank` out.
    pub(crate) fn remove(&mut self, rank: usize) -> Option<Entry> {
        if rank >= self.len {
            return None;
        }
        let removed = self.remove_from(self.root, self.height, rank);
        self.len -= 1;
        while self.height > 0 && self.inner(self.root).len() == 1 {
            let old = self.root;
            self.root = self.inner(old)[0].node;
            self.drop_inner(old);
            self.height -= 1;
        }
        removed
    }

    fn remove_from(&mut self, node: u32, height: u32, mut rank: usize) -> Option<Entry> {
        if height == 0 {
            return Some(self.edit_leaf(node, |leaf| {
                let removed = leaf.entries.remove(rank);
                if leaf.len() < leaf.entries.capacity() / 2 {
                    leaf.entries.shrink_to(step_for(leaf.len(), &LEAF_STEPS));
                }
                removed.into()
            }));
        }
        let at = self.inner(node).iter().position(|child| {
            let is_inside = rank < child.count as usize;
            if !is_inside {
                rank -= child.count as usize;
            }
            is_inside
        })?;
        let below = self.inner(node)[at].node;
        let removed = self.remove_from(below, height - 1, rank);
        let child = &mut self.inner_mut(node)[at];
        child.count -= 1;
        if child.count == 0 {
            self.edit_inner(node, |children| children.remove(at));
            self.drop_node(below, height - 1);
            return removed;
        }
        if let Some(first) = self.first_of(below, height - 1) {
            self.inner_mut(node)[at].first = first;
        }
        self.merge_at(node, at, height);
        removed
    }

    /// Joins the child at `at` with a neighbour when the two fill three quarters of one node at most.
    fn merge_at(&mut self, node: u32, at: usize, height: u32) {
        let room = if height == 1 { LEAF_ENTRIES } else { FANOUT };
        let size = |child: &Child| match height {
            1 => self.leaf(child.node).len(),
            _ => self.inner(child.node).len(),
        };
        let children = self.inner(node);
        if size(&children[at]) > room / 3 {
            return;
        }
        let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
        let Some((a, b)) = children.get(left).zip(children.get(left + 1)) else { return };
        if size(a) + size(b) > room * 3 / 4 {
            return;
        }
        let (a, b) = (*a, *b);
        if height == 1 {
            let taken = self.edit_leaf(b.node, |leaf| std::mem::take(&mut leaf.entries));
            self.edit_leaf(a.node, |kept| append(&mut kept.entries, &taken, &LEAF_STEPS));
        } else {
            let taken = self.edit_inner(b.node, std::mem::take);
            self.edit_inner(a.node, |kept| append(kept, &taken, &INNER_STEPS));
        }
        self.edit_inner(node, |children| {
            children[left].count += b.count;
            children.remove(left + 1);
        });
        self.drop_node(b.node, height - 1);
    }

    fn drop_node(&mut self, node: u32, height: u32) {
        if height > 0 {
            return self.drop_inner(node);
        }
        let Some(gone) = self.leaves.take(node) else { return };
        self.node_bytes -= gone.memory_bytes();
        if gone.previous != NONE {
            self.leaf_mut(gone.previous).next = gone.next;
        }
        if gone.next != NONE {
            self.leaf_mut(gone.next).previous = gone.previous;
        }
    }

    fn drop_inner(&mut self, node: u32) {
        let gone = self.inners.take(node);
        self.node_bytes -= gone.map_or(0, |children| children.capacity()) * size_of::<Child>();
    }

    /// Frees some nodes of an index that is asked for nothing any more; how many, zero when none is left.
    pub(crate) fn drain(&mut self) -> usize {
        let mut bytes = 0;
        let leaves = self.leaves.drop_chunk(|leaf| bytes += leaf.memory_bytes());
        let freed = leaves
            .or_else(|| self.inners.drop_chunk(|children| bytes += children.capacity() * size_of::<Child>()))
            .unwrap_or(0);
        self.node_bytes -= bytes;
        freed
    }

    /// Bytes held from the allocator.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.node_bytes + self.leaves.memory_bytes() + self.inners.memory_bytes()
    }

    /// As [`SortedIndex::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walked_bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(Leaf::memory_bytes).sum();
        let inners: usize = self.inners.iter().map(Vec::capacity).sum();
        leaves + inners * size_of::<Child>() + self.leaves.memory_bytes() + self.inners.memory_bytes()
    }
}

impl Default for SortedIndex {
    fn default() -> Self {
        Self::new()
    }
}

/// The smallest step that has room for so many.
fn step_for(len: usize, steps: &[usize]) -> usize {
    steps.iter().copied().find(|step| *step >= len).unwrap_or(len)
}

/// Makes room for so many: the smallest step that has it.
#[inline]
fn reserve<T>(list: &mut Vec<T>, len: usize, steps: &[usize]) {
    if len > list.capacity() {
        list.reserve_exact(step_for(len, steps) - list.len());
    }
}

#[inline]
fn insert_at<T>(list: &mut Vec<T>, at: usize, value: T, steps: &[usize]) {
    reserve(list, list.len() + 1, steps);
    list.insert(at, value);
}

fn append<T: Copy>(list: &mut Vec<T>, others: &[T], steps: &[usize]) {
    reserve(list, list.len() + others.len(), steps);
    list.extend_from_slice(others);
}

/// Takes what stands at `middle` and behind it out. Neither part keeps room for what it has not.
fn split_off<T: Copy>(list: &mut Vec<T>, middle: usize, steps: &[usize]) -> Vec<T> {
    if middle == 0 {
        return std::mem::take(list);
    }
    let mut moved = Vec::new();
    append(&mut moved, &list[middle..], steps);
    list.truncate(middle);
    list.shrink_to(step_for(middle, steps));
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;

    fn entry(score: f64, member: u32) -> Entry {
        Entry { score, member: Handle::from_u32(member).expect("tests count from one") }
    }

    fn is_less(a: Entry, b: Entry) -> bool {
        (a.score, a.member) < (b.score, b.member)
    }

    /// Asserts what holds for a node and all below it, passes its leaves to `see`, and returns its entries.
    fn check(index: &SortedIndex, node: u32, height: u32, see: &mut dyn FnMut(u32)) -> Vec<Entry> {
        if height == 0 {
            let leaf = index.leaf(node);
            assert!(leaf.entries.capacity() <= LEAF_ENTRIES, "room for {} entries", leaf.entries.capacity());
            see(node);
            return (0..leaf.len()).filter_map(|at| leaf.entry(at)).collect();
        }
        let mut all = Vec::new();
        let children = index.inners.get(node).expect("it is named");
        assert!((1..=FANOUT).contains(&children.len()) && children.capacity() <= FANOUT);
        for child in children {
            let entries = check(index, child.node, height - 1, see);
            assert_eq!((entries.len(), entries.first()), (child.count as usize, Some(&child.first)));
            all.extend(entries);
        }
        all
    }

    /// Asserts that the index is sound and has just these entries.
    fn assert_is(index: &SortedIndex, model: &[Entry]) {
        let mut leaves = Vec::new();
        assert_eq!(check(index, index.root, index.height, &mut |leaf| leaves.push(leaf)), model);
        let around = |place: usize| (place.checked_sub(1).map_or(NONE, |before| leaves[before]), leaves.get(place + 1));
        for (place, leaf) in leaves.iter().enumerate() {
            let (previous, next) = around(place);
            let leaf = index.leaf(*leaf);
            assert_eq!((leaf.previous, leaf.next), (previous, next.copied().unwrap_or(NONE)));
        }
        assert_eq!((index.len(), index.leaves.iter().count()), (model.len(), leaves.len()));
        assert_eq!(index.memory_bytes(), index.walked_bytes());
    }

    /// Where entries come and whether they go again, for all of which an index is compared with a sorted vector.
    fn compare(rounds: u64, spread: u64, mut score: impl FnMut(u64, &mut Random) -> f64) {
        let (mut index, mut model, mut random) = (SortedIndex::new(), Vec::<Entry>::new(), Random::new(spread));
        for round in 0..rounds {
            let is_growing = round % 8_000 < 5_000;
            if is_growing || model.is_empty() {
                let new = entry(score(round, &mut random), 1 + random.below(spread) as u32);
                let at = model.partition_point(|&other| is_less(other, new));
                index.insert(new, |other| is_less(other, new));
                model.insert(at, new);
            } else {
                let rank = random.below(model.len() as u64) as usize;
                assert_eq!(index.remove(rank), Some(model.remove(rank)));
            }
            if let Some(rank) = random.below(2 * model.len() as u64 + 1).checked_sub(model.len() as u64) {
                // Sometimes a score between those of its neighbours, sometimes any.
                let Some(&old) = model.get(rank as usize) else { continue };
                let new = Entry { score: old.score + random.below(3) as f64 - 1.0, ..old };
                let others_before = model.partition_point(|&other| is_less(other, new));
                let is_kept = index.rescore(rank as usize, new.score, |other| is_less(other, new));
                // A later place counts the entry itself.
                let stays = (rank as usize..=rank as usize + 1).contains(&others_before);
                assert!(!is_kept || stays, "rank {rank} for {others_before}");
                if is_kept {
                    model[rank as usize] = new;
                }
            }
            let bound = random.below(spread) as f64;
            let rank = model.partition_point(|other| other.score < bound);
            assert_eq!(index.rank_by(|other| other.score < bound), rank);
            assert_eq!(index.get(rank), model.get(rank).copied());
            if round % 512 == 0 {
                assert_is(&index, &model);
                assert!(index.iter_from(rank).eq(model[rank..].iter().copied()));
                assert!(
                    index.iter_back_from(rank).eq(model[..model.len().min(rank + 1)].iter().rev().copied())
                        || rank >= model.len()
                );
            }
        }
        assert!(index.iter_from(0).eq(model.iter().copied()));
        while let Some(gone) = index.remove(index.len() / 2) {
            assert_eq!(gone, model.remove(model.len() / 2));
        }
        assert_is(&index, &[]);
    }

    #[test]
    fn it_does_what_a_sorted_vector_does() {
        compare(3_000, 30, |_, random| random.below(30) as f64);
        compare(30_000, 3_000, |_, random| random.below(3_000) as f64);
        // In order, from either end.
        compare(20_000, 40_000, |round, _| round as f64);
        compare(20_000, 40_000, |round, _| 40_000.0 - round as f64);
        // Always at one place within.
        compare(20_000, 40_000, |round, _| if round % 2 == 0 { round as f64 } else { 80_000.0 - round as f64 });
    }

    #[test]
    fn a_score_changes_where_the_entry_keeps_its_place() {
        let mut index = SortedIndex::new();
        for number in 1..=1_000 {
            index.insert(entry(f64::from(number) * 10.0, number), |_| true);
        }
        let kept = (1..=1_000_u32).filter(|&number| {
            let new = entry(f64::from(number) * 10.0 + 5.0, number);
            index.rescore(number as usize - 1, new.score, |other| is_less(other, new))
        });
        // All but those at the ends of leaves.
        assert!(kept.count() > 950);
        let far = entry(4_000.0, 2);
        assert!(!index.rescore(1, far.score, |other| is_less(other, far)));
        assert_eq!(index.get(1), Some(entry(25.0, 2)));
    }

    fn bytes_each(count: u32, mut score: impl FnMut(u32) -> u32) -> f64 {
        let mut index = SortedIndex::new();
        for number in 1..=count {
            let new = entry(f64::from(score(number)), number);
            index.insert(new, |other| is_less(other, new));
        }
        index.memory_bytes() as f64 / f64::from(count)
    }

    #[test]
    fn an_entry_takes_little_more_than_its_twelve_bytes() {
        // In order; in no order; and as many between all that are there, so that all leaves are equally full and split at once.
        let mut random = Random::new(5);
        let mut scattered = |_| random.bits() as u32;
        for count in (1..=6).map(|step| step * 9_000) {
            let evenly = |number: u32| number.reverse_bits();
            for (bytes, max) in [
                (bytes_each(count, |number| number), 13.5),
                (bytes_each(count, |number| count - number), 13.5),
                (bytes_each(count, &mut scattered), 15.0),
                (bytes_each(count, evenly), 16.0),
            ] {
                assert!(bytes < max, "{bytes} bytes each of {count}, and not {max}");
            }
        }
    }

    #[test]
    fn what_is_left_of_many_gives_room_back() {
        let mut index = SortedIndex::new();
        for number in 1..=100_000_u32 {
            index.insert(entry(f64::from(number), number), |_| true);
        }
        // Every leaf keeps some.
        for rank in (0..100_000).rev().filter(|rank| rank % 4 != 0) {
            index.remove(rank);
        }
        let per_entry = index.memory_bytes() as f64 / index.len() as f64;
        assert!(per_entry < 24.0, "{per_entry} bytes");
    }
}
