//! A dense table whose places are reused, with handles that notice.
//!
//! A handle is a place and a generation. The handle of something that was removed finds nothing in its place,
//! never its successor: this is what makes a late reply to a client that left harmless.

pub(crate) mod id_vec;

use crate::ids::Handle;
use crate::limits::SLAB_KEPT_PLACES;
use crate::slab::id_vec::Id;
use std::cmp::Reverse;
use std::marker::PhantomData;

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Slab<T, I = u32> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
    /// Places that are empty and not free.
    retired: usize,
    /// The generations of places that were given back, the last place first: it is as if they were there.
    gone: Vec<u32>,
    index: PhantomData<I>,
    /// Places have become free since it was last looked at whether some can be given back.
    has_freed: bool,
}

impl<T, I> Default for Slab<T, I> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
            retired: 0,
            gone: Vec::new(),
            index: PhantomData,
            has_freed: false,
        }
    }
}

impl<T, I: Id> Slab<T, I> {
    /// Keeps `value`. Panics at 2^31 values, which the limit on clients keeps far away.
    pub(crate) fn insert(&mut self, value: T) -> Handle<I> {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.value = Some(value);
            return Handle { index: I::nth(index as usize), generation: place.generation };
        }
        let index = u32::try_from(self.places.len()).ok().filter(|i| *i < 1 << 31);
        let index = index.expect("limits keep tables far below 2^31 places");
        let generation = self.gone.pop().unwrap_or(0);
        self.places.push(Place { generation, value: Some(value) });
        Handle { index: I::nth(index as usize), generation }
    }

    /// Gives back memory of places behind the last that is taken, if there are many and most are free. Further values come
    /// to the first places that are free, so that the last ones become free in time. To be called now and then.
    pub(crate) fn shrink(&mut self) {
        if !std::mem::take(&mut self.has_freed)
            || self.places.len() < SLAB_KEPT_PLACES
            || self.free.len() * 2 < self.places.len()
        {
            return;
        }
        self.free.sort_unstable_by_key(|index| Reverse(*index));
        // The free places are in order, so those at the end of the table are the first ones here.
        let ends = self.free.iter().zip((0..self.places.len() as u32).rev());
        let count = ends.take_while(|(free, last)| *free == last).count();
        let kept = self.places.len() - count;
        self.gone.extend(self.places.drain(kept..).rev().map(|place| place.generation));
        self.free.drain(..count);
        if self.places.capacity() > 2 * SLAB_KEPT_PLACES.max(kept) {
            self.places.shrink_to(SLAB_KEPT_PLACES.max(kept));
            self.free.shrink_to(SLAB_KEPT_PLACES.max(self.free.len()));
        }
    }

    /// Takes a value out; its handles are void from now on, and its place is free.
    pub(crate) fn remove(&mut self, index: I) -> Option<T> {
        let value = self.retire(index)?;
        self.release(index);
        Some(value)
    }

    /// Takes a value out; its handles are void from now on, but its place is not given away before [`Self::release`].
    pub(crate) fn retire(&mut self, index: I) -> Option<T> {
        let place = self.places.get_mut(index.index())?;
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.retired += 1;
        Some(value)
    }

    /// Gives the place of a retired value free. To be called once for each.
    pub(crate) fn release(&mut self, index: I) {
        debug_assert!(
            self.at(index).is_none() && !self.free.iter().rev().take(64).any(|free| *free as usize == index.index()),
            "only what was retired is released"
        );
        self.retired -= 1;
        self.free.push(index.index() as u32);
        self.has_freed = true;
    }

    /// The value of a handle, unless it has gone.
    pub(crate) fn get(&self, of: Handle<I>) -> Option<&T> {
        self.places.get(of.index.index()).filter(|place| place.generation == of.generation)?.value.as_ref()
    }

    /// The value at a place, whichever generation.
    #[inline]
    pub(crate) fn at(&self, index: I) -> Option<&T> {
        self.places.get(index.index())?.value.as_ref()
    }

    /// The value at a place, whichever generation.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: I) -> Option<&mut T> {
        self.places.get_mut(index.index())?.value.as_mut()
    }

    /// The value at a place, and which generation it is of.
    #[inline(always)]
    pub(crate) fn with_generation(&mut self, index: I) -> Option<(&mut T, u32)> {
        let place = self.places.get_mut(index.index())?;
        Some((place.value.as_mut()?, place.generation))
    }

    /// The value of a handle, unless it has gone.
    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle<I>) -> Option<&mut T> {
        let place = self.places.get_mut(handle.index.index())?;
        if place.generation == handle.generation { place.value.as_mut() } else { None }
    }

    /// The handle of what is at a place now.
    #[inline]
    pub(crate) fn handle(&self, index: I) -> Option<Handle<I>> {
        let place = self.places.get(index.index())?;
        place.value.is_some().then_some(Handle { index, generation: place.generation })
    }

    /// How many values are kept.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len() - self.retired
    }

    /// Whether nothing is kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All values with their places, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (I, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(i, p)| p.value.as_mut().map(|v| (I::nth(i), v)))
    }

    /// The places of those that `is` holds for, to be gone through while values change.
    pub(crate) fn places(&self, is: impl Fn(&T) -> bool) -> Vec<I> {
        self.iter().filter(|(_, value)| is(value)).map(|(place, _)| place).collect()
    }

    /// All values with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.places.iter().enumerate().filter_map(|(i, p)| p.value.as_ref().map(|v| (I::nth(i), v)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_never_finds_the_successor() {
        let mut slab = Slab::<_>::default();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first.index), Some("first"));
        let second = slab.insert("second");
        assert_eq!(second.index, first.index);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut "second"));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn memory_of_a_crowd_that_has_left_is_given_back() {
        let crowd = 10 * SLAB_KEPT_PLACES as u32;
        let mut slab = Slab::<_>::default();
        let handles: Vec<Handle> = (0..crowd).map(|number| slab.insert(number)).collect();
        let stays = handles[3];
        handles.iter().filter(|handle| **handle != stays).for_each(|handle| _ = slab.remove(handle.index));
        slab.shrink();
        assert!(slab.places.capacity() <= SLAB_KEPT_PLACES && slab.free.capacity() <= SLAB_KEPT_PLACES);
        assert_eq!((slab.get(stays), slab.len()), (Some(&3), 1));
        // Clients that come next find places of which handles may still be about.
        let next: Vec<Handle> = (0..crowd).map(|number| slab.insert(crowd + number)).collect();
        assert!(handles.iter().all(|handle| *handle == stays || slab.get(*handle).is_none()));
        assert!(next.iter().all(|handle| slab.get(*handle).is_some_and(|number| *number >= crowd)));
        assert_eq!(slab.len(), crowd as usize + 1);
    }

    #[test]
    fn one_that_stays_in_a_late_place_holds_back_only_until_it_goes() {
        let crowd = 10 * SLAB_KEPT_PLACES as u32;
        let mut slab = Slab::<_>::default();
        let handles: Vec<Handle> = (0..crowd).map(|number| slab.insert(number)).collect();
        let last = handles[handles.len() - 1];
        handles.iter().filter(|handle| **handle != last).for_each(|handle| _ = slab.remove(handle.index));
        slab.shrink();
        assert_eq!(slab.get(last), Some(&(crowd - 1)));
        assert_eq!(slab.insert(0).index, 0, "the first place that is free");
        slab.remove(last.index);
        slab.shrink();
        assert!(slab.places.capacity() <= SLAB_KEPT_PLACES);
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn a_place_that_is_to_be_closed_is_kept() {
        let crowd = 10 * SLAB_KEPT_PLACES as u32;
        let mut slab = Slab::<_>::default();
        let handles: Vec<Handle> = (0..crowd).map(|number| slab.insert(number)).collect();
        let middle = handles[handles.len() / 2];
        slab.retire(middle.index);
        handles.iter().filter(|handle| **handle != middle).for_each(|handle| _ = slab.remove(handle.index));
        slab.shrink();
        assert_eq!(slab.places.len(), middle.index as usize + 1);
        assert!((0..slab.free.len()).all(|_| slab.insert(0).index != middle.index));
        slab.release(middle.index);
        assert_eq!(slab.insert(1), Handle { index: middle.index, generation: 1 });
    }
}
