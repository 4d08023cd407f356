//! How commands tell of keyspace events.

use super::events::{EXPIRED, Event, NEW};
use super::{At, Found, Keyspace};

impl Keyspace {
    /// Whether changes or events are noted at all.
    #[inline]
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted
    }

    /// `maxmemory` is set, or no more.
    pub(crate) fn note_bound(&mut self, is_bounded: bool) {
        self.eviction.is_bounded = is_bounded;
    }

    /// Whether values are not shared, as `OBJECT REFCOUNT` shows.
    pub(crate) fn keeps_values_apart(&self) -> bool {
        self.eviction.keeps_values_apart()
    }

    /// Something has happened to a key.
    #[inline]
    pub(crate) fn notify(&mut self, database: usize, event: Event, key: &[u8]) {
        if self.is_noted {
            self.journal.note_event(database, event, key);
        }
    }

    /// Something has happened to a key that is there.
    #[inline]
    pub(super) fn notify_of(&mut self, database: usize, event: Event, found: Found) {
        if self.is_noted {
            let key = self.record(found).key().to_vec();
            self.journal.note_event(database, event, &key);
        }
    }

    /// A key is about to get a value, whatever it holds: it may be new, or take the place of one whose time has come.
    #[cold]
    pub(super) fn note_put(&mut self, at: At, key: &[u8]) {
        let found = self.place_of(at.database, key);
        let is_due = found.is_some_and(|found| self.record(found).is_due(at.now));
        if is_due {
            self.journal.note_event(at.database, EXPIRED, key);
        }
        if found.is_none() || is_due {
            self.journal.note_event(at.database, NEW, key);
        }
        self.note_key(at.database, key);
    }
}
