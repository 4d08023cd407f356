//! The counted ordered index of a sorted set: a B+ tree of (score, handle) with the number of entries below every child.
//!
//! Everything is asked by rank. A bound of any kind (score, member, both) becomes a rank through [`SortedIndex::rank_by`],
//! which takes a predicate that holds for a prefix of the order; ranges, counts, removals and iteration then work on
//! ranks alone. The tree compares nothing itself, so it needs neither the members nor their order.

use super::pool::Handle;

/// Entries in a leaf.
const LEAF_ENTRIES: usize = 39;
/// What the columns of a leaf have room for, one after the other; an entry more than a leaf may have is there while it is split.
/// Allocators have pieces of just these sizes for columns of eight and of four bytes, and a leaf that was split is half full.
const LEAF_STEPS: [usize; 4] = [8, 16, 28, LEAF_ENTRIES + 1];
/// Children of an inner node.
const FANOUT: usize = 32;
/// No node.
const NONE: u32 = u32::MAX;

/// One entry: a score and the record that holds the member.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) score: f64,
    pub(crate) member: Handle,
}

/// Scores and members lie apart, so that an entry takes twelve bytes and not sixteen.
struct Leaf {
    scores: Vec<f64>,
    members: Vec<Handle>,
    previous: u32,
    next: u32,
}

impl Leaf {
    fn entry(&self, at: usize) -> Option<Entry> {
        Some(Entry { score: *self.scores.get(at)?, member: *self.members.get(at)? })
    }

    fn len(&self) -> usize {
        self.scores.len()
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        vectors_bytes(&self.scores, &self.members)
    }
}

fn vectors_bytes(scores: &Vec<f64>, members: &Vec<Handle>) -> usize {
    scores.capacity() * size_of::<f64>() + members.capacity() * size_of::<Handle>()
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
    leaves: Vec<Leaf>,
    inners: Vec<Vec<Child>>,
    spare_leaves: Vec<u32>,
    spare_inners: Vec<u32>,
    root: u32,
    /// Levels of inner nodes above the leaves.
    height: u32,
    len: usize,
    /// Bytes that the entries of leaves and the children of inner nodes hold from the allocator.
    node_bytes: usize,
}

/// What an insertion did to a node, for its parent to know.
struct Grown {
    split: Option<Child>,
}

impl SortedIndex {
    /// An index of nothing.
    pub(crate) fn new() -> Self {
        let mut made = Self {
            leaves: Vec::new(),
            inners: Vec::new(),
            spare_leaves: Vec::new(),
            spare_inners: Vec::new(),
            root: 0,
            height: 0,
            len: 0,
            node_bytes: 0,
        };
        made.root = made.take_leaf();
        made
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn take_leaf(&mut self) -> u32 {
        let leaf = Leaf { scores: Vec::new(), members: Vec::new(), previous: NONE, next: NONE };
        if let Some(index) = self.spare_leaves.pop() {
            self.leaves[index as usize] = leaf;
            return index;
        }
        self.leaves.push(leaf);
        (self.leaves.len() - 1) as u32
    }

    /// Changes a leaf.
    #[inline]
    fn edit_leaf<R>(&mut self, node: u32, edit: impl FnOnce(&mut Leaf) -> R) -> R {
        let leaf = &mut self.leaves[node as usize];
        let before = leaf.memory_bytes();
        let said = edit(leaf);
        self.node_bytes = self.node_bytes + leaf.memory_bytes() - before;
        said
    }

    /// Changes an inner node.
    fn edit_inner<R>(&mut self, node: u32, edit: impl FnOnce(&mut Vec<Child>) -> R) -> R {
        let children = &mut self.inners[node as usize];
        let before = children.capacity();
        let said = edit(children);
        self.node_bytes = self.node_bytes + children.capacity() * size_of::<Child>() - before * size_of::<Child>();
        said
    }

    fn take_inner(&mut self, children: Vec<Child>) -> u32 {
        self.node_bytes += children.capacity() * size_of::<Child>();
        if let Some(index) = self.spare_inners.pop() {
            self.inners[index as usize] = children;
            return index;
        }
        self.inners.push(children);
        (self.inners.len() - 1) as u32
    }

    /// How many entries `is_before` holds for. It must hold for a prefix of the order and for nothing behind it.
    pub(crate) fn rank_by(&self, mut is_before: impl FnMut(Entry) -> bool) -> usize {
        let (mut node, mut rank) = (self.root, 0);
        for _ in 0..self.height {
            let children = &self.inners[node as usize];
            let at = children.partition_point(|child| is_before(child.first)).saturating_sub(1);
            rank += children[..at].iter().map(|child| child.count as usize).sum::<usize>();
            node = children[at].node;
        }
        let leaf = &self.leaves[node as usize];
        rank + partition(leaf, is_before)
    }

    /// The leaf that holds rank `rank` and the place in it.
    fn locate(&self, mut rank: usize) -> Option<(u32, usize)> {
        if rank >= self.len {
            return None;
        }
        let mut node = self.root;
        for _ in 0..self.height {
            let child = self.inners[node as usize].iter().find(|child| {
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
        self.leaves[leaf as usize].entry(at)
    }

    /// The entries from `rank` on, upwards.
    pub(crate) fn iter_from(&self, rank: usize) -> impl Iterator<Item = Entry> + '_ {
        let mut place = self.locate(rank);
        std::iter::from_fn(move || {
            let (leaf, at) = place?;
            let leaf_ref = &self.leaves[leaf as usize];
            let found = leaf_ref.entry(at);
            place = if at + 1 < leaf_ref.len() {
                Some((leaf, at + 1))
            } else {
                (leaf_ref.next != NONE).then_some((leaf_ref.next, 0))
            };
            found
        })
    }

    /// The entries from `rank` on, downwards.
    pub(crate) fn iter_back_from(&self, rank: usize) -> impl Iterator<Item = Entry> + '_ {
        let mut place = self.locate(rank);
        std::iter::from_fn(move || {
            let (leaf, at) = place?;
            let leaf_ref = &self.leaves[leaf as usize];
            let found = leaf_ref.entry(at);
            place = match at.checked_sub(1) {
                Some(before) => Some((leaf, before)),
                None if leaf_ref.previous == NONE => None,
                None => Some((leaf_ref.previous, self.leaves[leaf_ref.previous as usize].len() - 1)),
            };
            found
        })
    }

    /// Adds `entry` behind all entries that `is_before` holds for.
    pub(crate) fn insert(&mut self, entry: Entry, mut is_before: impl FnMut(Entry) -> bool) {
        let root = self.root;
        let grown = self.insert_into(root, self.height, entry, &mut is_before);
        self.len += 1;
        if let Some(right) = grown.split {
            let left = Child {
                node: root,
                count: self.len as u32 - right.count,
                first: self.first_of(root, self.height).unwrap_or(entry),
            };
            self.root = self.take_inner(vec![left, right]);
            self.height += 1;
        }
    }

    fn first_of(&self, node: u32, height: u32) -> Option<Entry> {
        if height == 0 { self.leaves[node as usize].entry(0) } else { Some(self.inners[node as usize].first()?.first) }
    }

    fn insert_into(
        &mut self,
        node: u32,
        height: u32,
        entry: Entry,
        is_before: &mut impl FnMut(Entry) -> bool,
    ) -> Grown {
        if height == 0 {
            return Grown { split: self.insert_into_leaf(node, entry, is_before) };
        }
        let children = &self.inners[node as usize];
        let at = children.partition_point(|child| is_before(child.first)).saturating_sub(1);
        let below = children[at].node;
        let grown = self.insert_into(below, height - 1, entry, is_before);
        let first = self.first_of(below, height - 1).unwrap_or(entry);
        let children = &mut self.inners[node as usize];
        let child = &mut children[at];
        child.first = first;
        child.count += 1;
        let Some(right) = grown.split else { return Grown { split: None } };
        child.count -= right.count;
        let moved = self.edit_inner(node, |children| {
            children.insert(at + 1, right);
            let middle = if at + 2 == children.len() { FANOUT * 3 / 4 } else { FANOUT / 2 };
            (children.len() > FANOUT).then(|| children.split_off(middle))
        });
        let Some(moved) = moved else { return Grown { split: None } };
        let (count, first) = (total(&moved), moved[0].first);
        Grown { split: Some(Child { node: self.take_inner(moved), count, first }) }
    }

    fn insert_into_leaf(
        &mut self,
        node: u32,
        entry: Entry,
        is_before: &mut impl FnMut(Entry) -> bool,
    ) -> Option<Child> {
        let leaf = &self.leaves[node as usize];
        let at = partition(leaf, is_before);
        let was_full = leaf.len() >= LEAF_ENTRIES;
        let is_append = at == leaf.len() && leaf.next == NONE;
        self.edit_leaf(node, |leaf| {
            insert_at(&mut leaf.scores, at, entry.score);
            insert_at(&mut leaf.members, at, entry.member);
        });
        if !was_full {
            return None;
        }
        // Ascending insertion is common: then the old leaf stays full and the new one starts with the new entry.
        let middle = if is_append { LEAF_ENTRIES } else { LEAF_ENTRIES / 2 };
        let right = self.take_leaf();
        let (scores, members, next) = self.edit_leaf(node, |leaf| {
            let next = std::mem::replace(&mut leaf.next, right);
            (split_off(&mut leaf.scores, middle), split_off(&mut leaf.members, middle), next)
        });
        let first = Entry { score: scores[0], member: members[0] };
        let count = scores.len() as u32;
        self.edit_leaf(right, |leaf| *leaf = Leaf { scores, members, previous: node, next });
        if next != NONE {
            self.leaves[next as usize].previous = right;
        }
        Some(Child { node: right, count, first })
    }

    /// Takes the entry at `rank` out.
    pub(crate) fn remove(&mut self, rank: usize) -> Option<Entry> {
        if rank >= self.len {
            return None;
        }
        let removed = self.remove_from(self.root, self.height, rank);
        self.len -= 1;
        while self.height > 0 && self.inners[self.root as usize].len() == 1 {
            let old = self.root;
            self.root = self.inners[old as usize][0].node;
            self.edit_inner(old, std::mem::take);
            self.spare_inners.push(old);
            self.height -= 1;
        }
        removed
    }

    fn remove_from(&mut self, node: u32, height: u32, mut rank: usize) -> Option<Entry> {
        if height == 0 {
            let leaf = &mut self.leaves[node as usize];
            return Some(Entry { score: leaf.scores.remove(rank), member: leaf.members.remove(rank) });
        }
        let at = self.inners[node as usize].iter().position(|child| {
            let is_inside = rank < child.count as usize;
            if !is_inside {
                rank -= child.count as usize;
            }
            is_inside
        })?;
        let below = self.inners[node as usize][at].node;
        let removed = self.remove_from(below, height - 1, rank);
        let child = &mut self.inners[node as usize][at];
        child.count -= 1;
        if child.count == 0 {
            self.inners[node as usize].remove(at);
            self.drop_node(below, height - 1);
            return removed;
        }
        if let Some(first) = self.first_of(below, height - 1) {
            self.inners[node as usize][at].first = first;
        }
        self.merge_at(node, at, height);
        removed
    }

    /// Joins the child at `at` with a neighbour when the two fill three quarters of one node at most.
    fn merge_at(&mut self, node: u32, at: usize, height: u32) {
        let room = if height == 1 { LEAF_ENTRIES } else { FANOUT };
        let size = |tree: &Self, child: &Child| {
            if height == 1 { tree.leaves[child.node as usize].len() } else { tree.inners[child.node as usize].len() }
        };
        let children = &self.inners[node as usize];
        if size(self, &children[at]) > room / 3 {
            return;
        }
        let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
        let Some((a, b)) = children.get(left).zip(children.get(left + 1)) else { return };
        if size(self, a) + size(self, b) > room * 3 / 4 {
            return;
        }
        let (a, b) = (*a, *b);
        if height == 1 {
            let taken = &mut self.leaves[b.node as usize];
            let (mut scores, mut members) = (std::mem::take(&mut taken.scores), std::mem::take(&mut taken.members));
            self.node_bytes -= vectors_bytes(&scores, &members);
            self.edit_leaf(a.node, |kept| {
                kept.scores.append(&mut scores);
                kept.members.append(&mut members);
            });
        } else {
            let mut taken = self.edit_inner(b.node, std::mem::take);
            self.edit_inner(a.node, |kept| kept.append(&mut taken));
        }
        let children = &mut self.inners[node as usize];
        children[left].count += b.count;
        children.remove(left + 1);
        self.drop_node(b.node, height - 1);
    }

    fn drop_node(&mut self, node: u32, height: u32) {
        if height > 0 {
            self.edit_inner(node, std::mem::take);
            self.spare_inners.push(node);
            return;
        }
        let (previous, next) = self.edit_leaf(node, |leaf| {
            leaf.scores = Vec::new();
            leaf.members = Vec::new();
            (leaf.previous, leaf.next)
        });
        if previous != NONE {
            self.leaves[previous as usize].next = next;
        }
        if next != NONE {
            self.leaves[next as usize].previous = previous;
        }
        self.spare_leaves.push(node);
    }

    /// Bytes held from the allocator.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.node_bytes + self.list_bytes()
    }

    /// Bytes of the lists of nodes.
    fn list_bytes(&self) -> usize {
        let spare = self.spare_leaves.capacity() + self.spare_inners.capacity();
        self.leaves.capacity() * size_of::<Leaf>()
            + self.inners.capacity() * size_of::<Vec<Child>>()
            + spare * size_of::<u32>()
    }

    /// As [`SortedIndex::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(crate) fn walked_bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(Leaf::memory_bytes).sum();
        let inners: usize = self.inners.iter().map(Vec::capacity).sum();
        leaves + inners * size_of::<Child>() + self.list_bytes()
    }
}

impl Default for SortedIndex {
    fn default() -> Self {
        Self::new()
    }
}

fn total(children: &[Child]) -> u32 {
    children.iter().map(|child| child.count).sum()
}

fn partition(leaf: &Leaf, mut is_before: impl FnMut(Entry) -> bool) -> usize {
    let (mut low, mut high) = (0, leaf.len());
    while low < high {
        let middle = low.midpoint(high);
        if leaf.entry(middle).is_some_and(&mut is_before) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The smallest step that has room for so many entries.
fn step_for(entries: usize) -> usize {
    LEAF_STEPS.into_iter().find(|step| *step >= entries).unwrap_or(entries)
}

/// Inserts into a leaf's column, which grows to a full leaf in few exact steps.
fn insert_at<T>(column: &mut Vec<T>, at: usize, value: T) {
    if column.len() == column.capacity() {
        column.reserve_exact(step_for(column.len() + 1) - column.len());
    }
    column.insert(at, value);
}

/// Takes the entries from `middle` on out of a leaf's column. Neither keeps room for a full leaf.
fn split_off<T: Copy>(column: &mut Vec<T>, middle: usize) -> Vec<T> {
    let moved = &column[middle..];
    let mut right = Vec::with_capacity(step_for(moved.len()));
    right.extend_from_slice(moved);
    column.truncate(middle);
    column.shrink_to(step_for(middle));
    right
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

    #[test]
    fn it_does_what_a_sorted_vector_does() {
        for (spread, rounds) in [(30, 3_000), (3_000, 30_000)] {
            let (mut index, mut model, mut random) = (SortedIndex::new(), Vec::<Entry>::new(), Random::new(spread));
            for round in 0..rounds {
                let is_growing = round % 8_000 < 5_000;
                if is_growing || model.is_empty() {
                    let new = entry(random.below(spread) as f64, 1 + random.below(spread) as u32);
                    let at = model.partition_point(|&other| is_less(other, new));
                    index.insert(new, |other| is_less(other, new));
                    model.insert(at, new);
                } else {
                    let rank = random.below(model.len() as u64) as usize;
                    assert_eq!(index.remove(rank), Some(model.remove(rank)));
                }
                assert_eq!(index.len(), model.len());
                let bound = random.below(spread) as f64;
                let rank = model.partition_point(|other| other.score < bound);
                assert_eq!(index.rank_by(|other| other.score < bound), rank);
                assert_eq!(index.get(rank), model.get(rank).copied());
                if round % 512 == 0 {
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
            assert_eq!(index.iter_from(0).count(), 0);
        }
    }

    #[test]
    fn ascending_insertion_fills_leaves() {
        let mut index = SortedIndex::new();
        for number in 1..=100_000_u32 {
            index.insert(entry(f64::from(number), number), |_| true);
        }
        let per_entry = index.memory_bytes() as f64 / 100_000.0;
        assert!(per_entry < 18.0, "{per_entry} bytes");
        assert_eq!(index.get(77_776), Some(entry(77_777.0, 77_777)));
    }
}
