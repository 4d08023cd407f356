//! The listpacks of a list, with the sum of the bytes that they hold: every change of one goes through here.

use std::collections::VecDeque;

use super::listpack::Listpack;

/// Listpacks in order.
#[derive(Default)]
pub(super) struct Chunks {
    packs: VecDeque<Listpack>,
    /// Bytes that all listpacks hold from the allocator.
    bytes: usize,
}

impl Clone for Chunks {
    fn clone(&self) -> Self {
        // Copies have no spare capacity.
        let packs = self.packs.clone();
        Self { bytes: sum(&packs), packs }
    }
}

fn sum(packs: &VecDeque<Listpack>) -> usize {
    packs.iter().map(Listpack::memory_bytes).sum()
}

impl Chunks {
    pub(super) fn len(&self) -> usize {
        self.packs.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<&Listpack> {
        self.packs.get(index)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Listpack> + DoubleEndedIterator {
        self.packs.iter()
    }

    /// Changes the listpack at `index`.
    #[inline]
    pub(super) fn edit<R>(&mut self, index: usize, edit: impl FnOnce(&mut Listpack) -> R) -> Option<R> {
        let pack = self.packs.get_mut(index)?;
        let before = pack.memory_bytes();
        let said = edit(pack);
        self.bytes = self.bytes + pack.memory_bytes() - before;
        Some(said)
    }

    /// Adds a listpack before the one at `index`.
    pub(super) fn insert(&mut self, index: usize, pack: Listpack) {
        self.bytes += pack.memory_bytes();
        self.packs.insert(index, pack);
    }

    /// Appends a listpack.
    pub(super) fn push(&mut self, pack: Listpack) {
        self.insert(self.packs.len(), pack);
    }

    /// Takes the listpack at `index` out.
    pub(super) fn remove(&mut self, index: usize) -> Option<Listpack> {
        let pack = self.packs.remove(index)?;
        self.bytes -= pack.memory_bytes();
        Some(pack)
    }

    /// Takes the last listpack out.
    pub(super) fn pop(&mut self) -> Option<Listpack> {
        self.remove(self.packs.len().checked_sub(1)?)
    }

    /// Bytes held from the allocator.
    #[inline]
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes + self.packs.capacity() * size_of::<Listpack>()
    }

    /// As [`Chunks::memory_bytes`], counted anew.
    #[cfg(debug_assertions)]
    pub(super) fn walked_bytes(&self) -> usize {
        sum(&self.packs) + self.packs.capacity() * size_of::<Listpack>()
    }
}
