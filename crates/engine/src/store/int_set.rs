//! The compact encoding of a small set of integers: sorted, in the narrowest width that holds them all.

/// Sorted integers of 16, 32 or 64 bits. Growing wider is for good, as in Redis.
#[derive(Clone)]
pub(crate) enum IntSet {
    Narrow(Vec<i16>),
    Middle(Vec<i32>),
    Wide(Vec<i64>),
}

/// Runs one body for whichever width it is.
macro_rules! each_width {
    ($set:expr, $values:ident => $body:expr) => {
        match $set {
            IntSet::Narrow($values) => $body,
            IntSet::Middle($values) => $body,
            IntSet::Wide($values) => $body,
        }
    };
}

fn find<T: Copy + Into<i64>>(values: &[T], wanted: i64) -> Result<usize, usize> {
    values.binary_search_by(|&value| value.into().cmp(&wanted))
}

fn widened<T: Into<i64>>(value: T) -> i64 {
    value.into()
}

impl IntSet {
    /// No integers yet.
    pub(crate) fn new() -> Self {
        Self::Narrow(Vec::new())
    }

    /// The integers in order in the layout of Redis's intset: bytes of each, how many, and themselves.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let width: u32 = match self {
            Self::Narrow(_) => 2,
            Self::Middle(_) => 4,
            Self::Wide(_) => 8,
        };
        let mut bytes = Vec::with_capacity(8 + width as usize * self.len());
        bytes.extend_from_slice(&width.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(self.len()).unwrap_or(u32::MAX).to_le_bytes());
        for value in self.iter() {
            bytes.extend_from_slice(&value.to_le_bytes()[..width as usize]);
        }
        bytes
    }

    /// Parses the layout of [`IntSet::to_bytes`]; `None` unless the integers are in order and distinct.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word =
            |at: usize| bytes.get(at..at + 4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let (width, len) = (word(0)? as usize, word(4)? as usize);
        let values = &bytes[8..];
        if !matches!(width, 2 | 4 | 8) || len.checked_mul(width)? != values.len() {
            return None;
        }
        let read = |value: &[u8]| {
            let mut wide = [if value.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 }; 8];
            wide[..width].copy_from_slice(value);
            i64::from_le_bytes(wide)
        };
        let values = values.chunks_exact(width).map(read);
        let is_sorted = values.clone().is_sorted_by(|a, b| a < b);
        let set = match width {
            2 => Self::Narrow(values.map(|value| value as i16).collect()),
            4 => Self::Middle(values.map(|value| value as i32).collect()),
            _ => Self::Wide(values.collect()),
        };
        is_sorted.then_some(set)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        each_width!(self, values => values.len())
    }

    /// Whether `wanted` is among them.
    pub(crate) fn contains(&self, wanted: i64) -> bool {
        each_width!(self, values => find(values, wanted).is_ok())
    }

    /// The integer at `index` in order.
    pub(crate) fn get(&self, index: usize) -> Option<i64> {
        each_width!(self, values => values.get(index).map(|&value| widened(value)))
    }

    /// All integers in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Adds `value`; whether it was new.
    pub(crate) fn insert(&mut self, value: i64) -> bool {
        self.widen_for(value);
        match self {
            Self::Narrow(values) => insert_sorted(values, value),
            Self::Middle(values) => insert_sorted(values, value),
            Self::Wide(values) => insert_sorted(values, value),
        }
    }

    fn widen_for(&mut self, value: i64) {
        let fits_narrow = i16::try_from(value).is_ok();
        let fits_middle = i32::try_from(value).is_ok();
        match self {
            Self::Narrow(values) if !fits_narrow && fits_middle => {
                *self = Self::Middle(values.iter().map(|&v| v.into()).collect());
            }
            Self::Narrow(_) | Self::Middle(_) if !fits_middle => *self = Self::Wide(self.iter().collect()),
            _ => {}
        }
    }

    /// Takes `value` out; whether it was there.
    pub(crate) fn remove(&mut self, value: i64) -> bool {
        each_width!(self, values => match find(values, value) {
            Ok(index) => {
                values.remove(index);
                true
            }
            Err(_) => false,
        })
    }

    /// Bytes held from the allocator.
    pub(crate) fn memory_bytes(&self) -> usize {
        each_width!(self, values => std::mem::size_of_val(values.as_slice()))
    }
}

fn insert_sorted<T: Copy + Into<i64> + TryFrom<i64>>(values: &mut Vec<T>, value: i64) -> bool {
    let (Err(index), Ok(narrow)) = (find(values, value), T::try_from(value)) else { return false };
    if values.len() == values.capacity() {
        values.reserve_exact((values.len() / 4).max(4));
    }
    values.insert(index, narrow);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn it_does_what_a_set_does() {
        let (mut set, mut model, mut random) = (IntSet::new(), BTreeSet::new(), Random::new(5));
        for round in 0..6_000_u32 {
            let value = (random.bits() as i64) >> (63 - (round / 100).min(63)) as i64;
            if random.below(3) == 0 {
                assert_eq!(set.remove(value), model.remove(&value));
            } else {
                assert_eq!(set.insert(value), model.insert(value));
            }
            assert_eq!(set.contains(value), model.contains(&value));
        }
        for value in [i64::MIN, i64::MAX, 0, -1] {
            assert_eq!(set.insert(value), model.insert(value));
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
        assert_eq!(set.len(), model.len());
    }
}
