//! Values by number, in chunks: adding one never moves the others, so there is no pause however many there are.

/// Values in one chunk. The first chunk grows as it needs to.
const CHUNK: usize = 1024;

/// Numbered places for values, used again when they are taken out.
#[derive(Clone)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<Option<T>>>,
    len: usize,
    /// Numbers of empty places.
    spare: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0, spare: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts a value in; its number. `None`, and the value is lost, if there are 2^31 already.
    pub(crate) fn insert(&mut self, value: T) -> Option<u32> {
        if let Some(number) = self.spare.pop() {
            self.chunks[number as usize / CHUNK][number as usize % CHUNK] = Some(value);
            return Some(number);
        }
        let number = u32::try_from(self.len).ok().filter(|number| number >> 31 == 0)?;
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(if self.len == 0 { Vec::new() } else { Vec::with_capacity(CHUNK) });
        }
        self.chunks.last_mut()?.push(Some(value));
        self.len += 1;
        Some(number)
    }

    /// The value of a number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.chunks.get(number as usize / CHUNK)?.get(number as usize % CHUNK)?.as_ref()
    }

    /// The value of a number, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.chunks.get_mut(number as usize / CHUNK)?.get_mut(number as usize % CHUNK)?.as_mut()
    }

    /// Takes a value out. Its number will be given to another.
    pub(crate) fn take(&mut self, number: u32) -> Option<T> {
        let taken = self.chunks.get_mut(number as usize / CHUNK)?.get_mut(number as usize % CHUNK)?.take()?;
        self.spare.push(number);
        if self.spare.len() == self.len {
            *self = Self::default();
        }
        Some(taken)
    }

    /// Drops the values of the last chunk, after `see` has seen them: a large slab goes a part at a time, and nothing is put in
    /// any more. How many there were; `None` when nothing is left.
    pub(crate) fn drop_chunk(&mut self, see: impl FnMut(&T)) -> Option<usize> {
        self.spare = Vec::new();
        let chunk = self.chunks.pop()?;
        chunk.iter().flatten().for_each(see);
        self.len = self.chunks.len() * CHUNK;
        Some(chunk.len())
    }

    /// Takes the last place away and gives what was in it, once nothing is put in any more. `None`: no place is left.
    pub(crate) fn pop(&mut self) -> Option<Option<T>> {
        let chunk = self.chunks.last_mut()?;
        let value = chunk.pop()?;
        if chunk.is_empty() {
            self.chunks.pop();
        }
        self.len -= 1;
        if value.is_none() {
            // Which places are empty is of no interest by now, only how many.
            self.spare.pop();
        }
        Some(value)
    }

    /// All values, in the order of their numbers.
    #[cfg(debug_assertions)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().flatten()
    }

    /// Bytes of one place.
    pub(crate) const PLACE_BYTES: usize = size_of::<Option<T>>();

    /// Bytes of the places in use, without what the values own.
    #[inline]
    pub(crate) fn used_bytes(&self) -> usize {
        (self.len - self.spare.len()) * Self::PLACE_BYTES
    }

    /// Bytes held from the allocator, without what the values own.
    #[inline]
    pub(crate) fn memory_bytes(&self) -> usize {
        let first = self.chunks.first().map_or(0, Vec::capacity);
        let places = first + self.chunks.len().saturating_sub(1) * CHUNK;
        places * size_of::<Option<T>>() + self.spare.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again() {
        let mut slab = Slab::default();
        let numbers: Vec<u32> = (0..5_000).map(|value| slab.insert(value).expect("there is room")).collect();
        assert_eq!(slab.take(numbers[77]), Some(77));
        assert_eq!(slab.get(numbers[77]), None);
        assert_eq!(slab.take(numbers[77]), None);
        assert_eq!(slab.insert(9), Some(numbers[77]));
        if let Some(value) = slab.get_mut(numbers[78]) {
            *value += 1;
        }
        assert_eq!((slab.get(numbers[77]), slab.get(numbers[78])), (Some(&9), Some(&79)));
        assert_eq!(slab.used_bytes(), 5_000 * size_of::<Option<u32>>());
        for number in numbers {
            slab.take(number);
        }
        assert_eq!((slab.memory_bytes(), slab.get(3)), (0, None));
    }

    #[test]
    fn a_slab_goes_a_chunk_at_a_time() {
        let mut slab = Slab::default();
        (0..2_500).for_each(|value| _ = slab.insert(value));
        slab.take(7);
        slab.take(2_499);
        let (mut seen, mut parts) = (Vec::new(), Vec::new());
        while let Some(count) = slab.drop_chunk(|value| seen.push(*value)) {
            parts.push(count);
        }
        assert_eq!(parts, [452, CHUNK, CHUNK]);
        seen.sort_unstable();
        assert_eq!(seen, (0..2_499).filter(|value| *value != 7).collect::<Vec<_>>());
        assert_eq!((slab.memory_bytes(), slab.get(3)), (0, None));
    }

    #[test]
    fn a_slab_goes_a_place_at_a_time() {
        let mut slab = Slab::default();
        (0..2_500).for_each(|value| _ = slab.insert(value));
        for gone in [7, 2_000, 2_499] {
            slab.take(gone);
        }
        let (mut seen, mut empty) = (Vec::new(), 0);
        while let Some(value) = slab.pop() {
            seen.extend(value);
            empty += usize::from(value.is_none());
            let left = 2_500 - 3 - seen.len();
            assert_eq!(slab.used_bytes(), left * size_of::<Option<u32>>());
        }
        seen.reverse();
        assert_eq!(seen, (0..2_500).filter(|value| ![7, 2_000, 2_499].contains(value)).collect::<Vec<u32>>());
        assert_eq!((empty, slab.chunks.len()), (3, 0));
    }
}
