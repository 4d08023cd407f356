//! Values by number, with the sum of the bytes that they hold: every change of one goes through here.

use super::slab::Slab;

/// What knows how many bytes it holds.
pub(crate) trait Footprint {
    /// Bytes that it holds from the allocator beside its records.
    fn memory_bytes(&self) -> usize;
}

/// See the module documentation.
pub(crate) struct Weighed<T> {
    all: Slab<T>,
    /// Bytes that all values hold from the allocator beside their records.
    bytes: usize,
}

impl<T> Default for Weighed<T> {
    fn default() -> Self {
        Self { all: Slab::default(), bytes: 0 }
    }
}

impl<T: Footprint> Weighed<T> {
    /// Bytes of one place.
    #[cfg(debug_assertions)]
    pub(crate) const PLACE_BYTES: usize = Slab::<T>::PLACE_BYTES;

    /// Puts a value in; its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.bytes += value.memory_bytes();
        self.all.insert(value).expect("memory ends before 2^31 values")
    }

    /// The value of a number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.all.get(number)
    }

    /// A value of which a part is changed that has always the same size.
    #[inline]
    pub(crate) fn get_mut_in_place(&mut self, number: u32) -> Option<&mut T> {
        self.all.get_mut(number)
    }

    /// Changes a value.
    #[inline]
    pub(crate) fn edit<R>(&mut self, number: u32, edit: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.edit_part(number, |value| Some(value), edit)
    }

    /// As [`Weighed::edit`], for a part of the value whose bytes are the only ones that change.
    #[inline]
    pub(crate) fn edit_part<P: Footprint, R>(
        &mut self,
        number: u32,
        part: impl FnOnce(&mut T) -> Option<&mut P>,
        edit: impl FnOnce(&mut P) -> R,
    ) -> Option<R> {
        let part = part(self.all.get_mut(number)?)?;
        let before = part.memory_bytes();
        let said = edit(part);
        self.bytes = self.bytes + part.memory_bytes() - before;
        Some(said)
    }

    /// Takes a value out.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let value = self.all.take(number)?;
        self.bytes -= value.memory_bytes();
        Some(value)
    }

    /// Takes the last place away and gives the value in it, once none is put in any more. `None`: no place is left.
    pub(crate) fn pop(&mut self) -> Option<Option<T>> {
        let value = self.all.pop()?;
        self.bytes -= value.as_ref().map_or(0, T::memory_bytes);
        Some(value)
    }

    /// Bytes that the values take, without places that none has.
    #[inline]
    pub(crate) fn used_bytes(&self) -> usize {
        self.bytes + self.all.used_bytes()
    }

    /// Bytes held from the allocator, places that no value has included.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes + self.all.memory_bytes()
    }
}
