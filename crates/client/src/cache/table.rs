//! A table of what is cached, by names, which takes no more room than what is in it.

use bytes::Bytes;
use std::collections::HashMap;

/// A table that gives back what was for things that are no longer in it.
#[derive(Debug)]
pub(super) struct Table<T> {
    pub(super) map: HashMap<Bytes, T>,
    /// For how many things the table was made. What the table says of itself is less once things were removed.
    pub(super) room: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { map: HashMap::new(), room: 0 }
    }
}

impl<T> Table<T> {
    pub(super) fn insert(&mut self, name: Bytes, thing: T) {
        self.map.insert(name, thing);
        self.room = self.room.max(self.map.capacity());
    }

    /// Gives back what is too much, if it is for more than `few` things.
    pub(super) fn shrink(&mut self, few: usize) {
        let len = self.map.len();
        if len * 4 < self.room && self.room > few {
            self.map.shrink_to(len * 2);
            self.room = self.map.capacity();
        }
    }
}
