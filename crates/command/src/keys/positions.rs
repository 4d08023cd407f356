//! The keys that were found in a request.

use super::access::KeyAccess;
use super::irregular::Found;
use crate::limits::POSITIONS_KEPT_MAX;

/// One argument that is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPosition {
    /// Its index among the arguments, the command's name being 0.
    pub index: u32,
    /// What the command does with it.
    pub access: KeyAccess,
}

/// The keys of one request. Made to be reused: it keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct KeyPositions {
    found: Vec<KeyPosition>,
    patterns: Vec<u32>,
}

impl KeyPositions {
    /// No keys yet.
    pub const fn new() -> Self {
        Self { found: Vec::new(), patterns: Vec::new() }
    }

    /// The keys in the order in which the specifications name them.
    #[inline]
    pub fn as_slice(&self) -> &[KeyPosition] {
        &self.found
    }

    /// How many keys there are; a key that is named twice counts twice.
    #[inline]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there is no key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The keys one by one.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = KeyPosition> + '_ {
        self.found.iter().copied()
    }

    /// Whether the command will also read keys that no argument names: the patterns of `SORT ... BY` and `GET`.
    pub fn has_unnamed(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// The indexes of the arguments that are patterns for such keys: each is reached whose name is the pattern with something in the
    /// place of its first asterisk.
    pub fn patterns(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.patterns.iter().copied()
    }

    /// Forgets the keys and keeps the memory, unless a huge request made it huge.
    pub fn clear(&mut self) {
        self.found.clear();
        if self.found.capacity() > POSITIONS_KEPT_MAX {
            self.found = Vec::new();
        }
        if self.has_unnamed() {
            self.patterns = Vec::new();
        }
    }

    pub(super) fn add(&mut self, found: Found) {
        match found {
            Found::Key(index, access) => {
                // An index that does not fit cannot be: a request has less than 4 Gi bytes.
                if let Ok(index) = u32::try_from(index) {
                    self.found.push(KeyPosition { index, access });
                }
            }
            Found::Pattern(index) => self.patterns.extend(u32::try_from(index)),
        }
    }
}
