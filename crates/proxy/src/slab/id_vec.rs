//! Something for each place of one kind: vectors that are indexed by ids instead of numbers.

use std::fmt::{Debug, Formatter};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// The name of a place among others of its kind.
pub(crate) trait Id: Copy {
    /// The place that comes behind so many others.
    fn nth(before: usize) -> Self;

    /// How many places come before it.
    fn index(self) -> usize;
}

/// Makes a number of a type of its own such a name, which is shown as its number.
macro_rules! id {
    ($id:ident, $number:ty) => {
        impl $crate::slab::id_vec::Id for $id {
            #[inline(always)]
            fn nth(before: usize) -> Self {
                Self(before as $number)
            }

            #[inline(always)]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}
pub(crate) use id;

impl Id for u32 {
    #[inline(always)]
    fn nth(before: usize) -> Self {
        before as Self
    }

    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }
}

/// Something for each of the first places.
#[derive(Clone)]
pub(crate) struct IdVec<I, T>(Vec<T>, PhantomData<I>);

impl<I, T> Default for IdVec<I, T> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<I, T: Debug> Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<I: Id, T> IdVec<I, T> {
    /// For the first places, as many as `all` has.
    pub(crate) fn new(all: impl IntoIterator<Item = T>) -> Self {
        Self(all.into_iter().collect(), PhantomData)
    }

    /// For one place more. Returns which that is.
    pub(crate) fn push(&mut self, of: T) -> I {
        let id = self.next_id();
        self.0.push(of);
        id
    }

    /// The place that comes next.
    pub(crate) fn next_id(&self) -> I {
        I::nth(self.0.len())
    }

    /// What there is for a place; made, with that for all places before it, if there is nothing.
    pub(crate) fn get_or_default(&mut self, id: I) -> &mut T
    where
        T: Default,
    {
        debug_assert!(id.index() < u32::MAX as usize, "only places have something");
        if self.0.len() <= id.index() {
            self.resize(id.index() + 1);
        }
        &mut self.0[id.index()]
    }

    /// For so many places, from now on.
    pub(crate) fn resize(&mut self, count: usize)
    where
        T: Default,
    {
        self.0.resize_with(count, T::default);
    }

    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.0.get(id.index())
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.0.get_mut(id.index())
    }

    /// For how many places there is something.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places for which there is something.
    pub(crate) fn ids(&self) -> impl Iterator<Item = I> + use<I, T> {
        (0..self.0.len()).map(I::nth)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// All with their places.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (I, &T)> {
        self.ids().zip(&self.0)
    }

    /// All with their places.
    pub(crate) fn entries_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.ids().zip(&mut self.0)
    }

    /// All with their places.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (I, T)> {
        self.ids().zip(self.0)
    }

    /// The first place for which `is_fit` holds.
    pub(crate) fn position(&self, is_fit: impl FnMut(&T) -> bool) -> Option<I> {
        self.0.iter().position(is_fit).map(I::nth)
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: I) -> &T {
        &self.0[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline(always)]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.0[id.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[test]
    fn every_place_up_to_the_last_asked_for_has_a_value() {
        let mut per_node: IdVec<NodeId, u8> = IdVec::default();
        *per_node.get_or_default(NodeId::nth(2)) = 7;
        assert_eq!(per_node.iter().copied().collect::<Vec<_>>(), [0, 0, 7]);
        assert_eq!((per_node.next_id(), per_node.push(9)), (NodeId::nth(3), NodeId::nth(3)));
        assert_eq!(per_node.position(|of| *of == 9), Some(NodeId::nth(3)));
        assert_eq!(per_node.get(NodeId::nth(4)), None);
        assert_eq!(per_node.get(NodeId::NONE), None);
        per_node.resize(1);
        assert_eq!((per_node.len(), per_node[NodeId::nth(0)]), (1, 0));
        assert_eq!(per_node.into_entries().collect::<Vec<_>>(), [(NodeId::nth(0), 0)]);
    }
}
