//! A dense table whose places are reused, with handles that notice.
//!
//! A handle is a place and a generation. Whoever keeps the handle of something that has gone finds nobody in its place,
//! never somebody else: this is what makes a late reply to a client that left harmless.

/// Where something is kept, and which of those that were kept there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Handle {
    /// The place.
    pub(crate) index: u32,
    /// The place's generation.
    pub(crate) generation: u32,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
    /// Places that are empty and not free.
    retired: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), retired: 0 }
    }
}

impl<T> Slab<T> {
    /// Keeps `value`. Panics at 2^31 values, which the limit on clients keeps far away.
    pub(crate) fn insert(&mut self, value: T) -> Handle {
        if let Some(index) = self.free.pop() {
            let place = &mut self.places[index as usize];
            place.value = Some(value);
            return Handle { index, generation: place.generation };
        }
        let index = u32::try_from(self.places.len()).ok().filter(|i| *i < 1 << 31);
        let index = index.expect("limits keep tables far below 2^31 places");
        self.places.push(Place { generation: 0, value: Some(value) });
        Handle { index, generation: 0 }
    }

    /// Takes a value out; its handles are void from now on, and its place is free.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let value = self.retire(index)?;
        self.release(index);
        Some(value)
    }

    /// Takes a value out; its handles are void from now on, but its place is not given away before [`Self::release`].
    pub(crate) fn retire(&mut self, index: u32) -> Option<T> {
        let place = self.places.get_mut(index as usize)?;
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.retired += 1;
        Some(value)
    }

    /// Gives the place of a retired value free. To be called once for each.
    pub(crate) fn release(&mut self, index: u32) {
        debug_assert!(
            self.at(index).is_none() && !self.free.iter().rev().take(64).any(|free| *free == index),
            "only what was retired is released"
        );
        self.retired -= 1;
        self.free.push(index);
    }

    /// The value of a handle, unless it has gone.
    pub(crate) fn get(&self, of: Handle) -> Option<&T> {
        self.places.get(of.index as usize).filter(|place| place.generation == of.generation)?.value.as_ref()
    }

    /// The value at a place, whichever generation.
    #[inline]
    pub(crate) fn at(&self, index: u32) -> Option<&T> {
        self.places.get(index as usize)?.value.as_ref()
    }

    /// The value at a place, whichever generation.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: u32) -> Option<&mut T> {
        self.places.get_mut(index as usize)?.value.as_mut()
    }

    /// The value at a place, and which generation it is of.
    #[inline(always)]
    pub(crate) fn with_generation(&mut self, index: u32) -> Option<(&mut T, u32)> {
        let place = self.places.get_mut(index as usize)?;
        Some((place.value.as_mut()?, place.generation))
    }

    /// The value of a handle, unless it has gone.
    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        let place = self.places.get_mut(handle.index as usize)?;
        if place.generation == handle.generation { place.value.as_mut() } else { None }
    }

    /// The handle of what is at a place now.
    #[inline]
    pub(crate) fn handle(&self, index: u32) -> Option<Handle> {
        let place = self.places.get(index as usize)?;
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
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(i, p)| p.value.as_mut().map(|v| (i as u32, v)))
    }

    /// All values with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.places.iter().enumerate().filter_map(|(i, p)| p.value.as_ref().map(|v| (i as u32, v)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_never_finds_the_successor() {
        let mut slab = Slab::default();
        let first = slab.insert("first");
        assert_eq!(slab.remove(first.index), Some("first"));
        let second = slab.insert("second");
        assert_eq!(second.index, first.index);
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut "second"));
        assert_eq!(slab.len(), 1);
    }
}
