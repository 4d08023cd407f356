//! The name of a channel, kept in its record if it is short. A million names of their own on the heap would each cost a piece of
//! memory, and a look at another place for every message.

/// Bytes of a name that need no memory of their own: with its length and a mark they are as large as three pointers.
const SHORT_BYTES: usize = 22;

/// A name.
#[derive(Debug, Clone)]
pub(super) enum Name {
    Short { length: u8, bytes: [u8; SHORT_BYTES] },
    Long(Box<[u8]>),
}

impl Name {
    /// The name without bytes.
    pub(super) const EMPTY: Self = Self::Short { length: 0, bytes: [0; SHORT_BYTES] };

    pub(super) fn new(name: &[u8]) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        match bytes.get_mut(..name.len()) {
            Some(place) => {
                place.copy_from_slice(name);
                Self::Short { length: name.len() as u8, bytes }
            }
            None => Self::Long(name.into()),
        }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Long(bytes) => bytes,
        }
    }

    /// Bytes beside itself.
    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Self::Short { .. } => 0,
            Self::Long(bytes) => bytes.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_length_is_kept_as_it_is() {
        for length in 0..=2 * SHORT_BYTES {
            let bytes: Vec<u8> = (0..length as u8).collect();
            let name = Name::new(&bytes);
            assert_eq!(name.as_bytes(), bytes);
            assert_eq!(name.heap_bytes(), if length > SHORT_BYTES { length } else { 0 });
        }
        assert_eq!(Name::EMPTY.as_bytes(), b"");
        assert_eq!(size_of::<Name>(), 3 * size_of::<usize>());
    }
}
