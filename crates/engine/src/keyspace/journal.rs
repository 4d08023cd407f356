//! What has changed, for clients that keep copies, and the events that are published. While no client wants either, a change costs one test.

use respool_command::{Change, Wanted};

use super::events::Event;
#[cfg(feature = "scripting")]
use crate::limits::{JOURNAL_EVENT_BYTES_MAX, JOURNAL_EVENTS_MAX};
use crate::limits::{JOURNAL_KEY_BYTES_MAX, JOURNAL_KEYS_MAX};

/// Keys that were written, removed or given another deadline, and what has happened to keys.
#[derive(Default)]
pub(crate) struct Journal {
    wanted: Wanted,
    /// All keys are meant.
    is_everything: bool,
    /// Each once in a row; the database does not matter.
    keys: Vec<Box<[u8]>>,
    /// Keys that were evicted or have expired, in no request's name.
    lost: Vec<Box<[u8]>>,
    /// Bytes of both.
    key_bytes: usize,
    events: Vec<Entry>,
    /// The keys of all events, one behind the other.
    event_keys: Vec<u8>,
}

/// An event, whose key ends here in [`Journal::event_keys`].
struct Entry {
    event: Event,
    database: u32,
    key_end: usize,
}

impl Journal {
    /// Keys or events are noted.
    pub(crate) fn is_kept(&self) -> bool {
        self.wanted != Wanted::default()
    }

    /// What was noted; what is wanted is noted from now on.
    pub(crate) fn replace(&mut self, wanted: Wanted) -> Self {
        std::mem::replace(self, Self { wanted, ..Self::default() })
    }

    /// A key has changed.
    #[cold]
    pub(crate) fn note(&mut self, key: &[u8]) {
        if !self.wanted.keys {
            return;
        }
        if self.is_everything || self.keys.last().is_some_and(|last| **last == *key) {
            return;
        }
        if self.keys.len() >= JOURNAL_KEYS_MAX || self.key_bytes + key.len() > JOURNAL_KEY_BYTES_MAX {
            return self.note_everything();
        }
        self.key_bytes += key.len();
        self.keys.push(key.into());
    }

    /// Something has happened to a key.
    #[cold]
    pub(super) fn note_event(&mut self, database: usize, event: Event, key: &[u8]) {
        if self.wanted.events.has_any(event.class) {
            self.event_keys.extend_from_slice(key);
            let key_end = self.event_keys.len();
            self.events.push(Entry { event, database: database as u32, key_end });
        }
    }

    /// A key is evicted or expires.
    pub(super) fn note_lost(&mut self, key: &[u8]) {
        if !self.wanted.keys || self.is_everything {
            return;
        }
        if self.lost.len() >= JOURNAL_KEYS_MAX || self.key_bytes + key.len() > JOURNAL_KEY_BYTES_MAX {
            return self.note_everything();
        }
        self.key_bytes += key.len();
        self.lost.push(key.into());
    }

    /// Any key may have changed.
    pub(crate) fn note_everything(&mut self) {
        self.is_everything |= self.wanted.keys;
        (self.keys, self.lost, self.key_bytes) = (Vec::new(), Vec::new(), 0);
    }

    /// So many events are kept that a script has to wait until they are taken.
    #[cfg(feature = "scripting")]
    pub(crate) fn is_full(&self) -> bool {
        self.events.len() >= JOURNAL_EVENTS_MAX || self.event_keys.len() >= JOURNAL_EVENT_BYTES_MAX
    }

    /// Shows what was noted.
    pub(crate) fn show(&self, see: &mut dyn FnMut(Change<'_>)) {
        match self.is_everything {
            true => see(Change::Everything),
            false => {
                self.lost.iter().for_each(|key| see(Change::Lost(key)));
                self.keys.iter().for_each(|key| see(Change::Key(key)));
            }
        }
        let mut start = 0;
        for Entry { event, database, key_end } in &self.events {
            let key = &self.event_keys[start..*key_end];
            see(Change::Event { database: *database, key, event: event.name });
            start = *key_end;
        }
    }
}

#[cfg(test)]
mod tests {
    use respool_command::EventClasses;

    use super::super::events;
    use super::*;

    const KEYS: Wanted = Wanted { keys: true, events: EventClasses::NONE };

    #[test]
    fn nothing_is_noted_unless_it_is_wanted() {
        let mut journal = Journal::default();
        journal.note_everything();
        journal.note(b"a");
        journal.note_event(0, events::SET, b"a");
        assert!(!journal.is_kept());
        let noted = journal.replace(KEYS);
        assert!(!noted.is_everything && noted.keys.is_empty() && noted.events.is_empty());
        for key in [b"a", b"a", b"b"] {
            journal.note(key);
            journal.note_event(0, events::SET, key);
        }
        let noted = journal.replace(KEYS);
        assert_eq!((noted.keys.len(), noted.events.len()), (2, 0));
        for number in 0..=JOURNAL_KEYS_MAX {
            journal.note(number.to_string().as_bytes());
        }
        let noted = journal.replace(Wanted::default());
        assert!(noted.is_everything && noted.keys.is_empty() && !journal.is_kept());
    }

    #[test]
    fn long_keys_count_as_everything_before_many_are_kept() {
        for is_lost in [false, true] {
            let mut journal = Journal::default();
            journal.replace(KEYS);
            let mut keys = 0;
            while !journal.is_everything {
                let key = [&vec![b'k'; 1 << 20][..], &usize::to_le_bytes(keys)].concat();
                if is_lost {
                    journal.note_lost(&key)
                } else {
                    journal.note(&key)
                }
                keys += 1;
            }
            assert!((2..=JOURNAL_KEY_BYTES_MAX >> 20).contains(&keys), "{keys}");
            assert_eq!(journal.keys.capacity() + journal.lost.capacity() + journal.key_bytes, 0);
        }
    }

    #[test]
    fn events_are_shown_in_order_with_their_keys() {
        let mut journal = Journal::default();
        journal.replace(Wanted { keys: false, events: EventClasses::STRING.with(EventClasses::GENERIC) });
        for (database, event, key) in
            [(0, events::SET, "a"), (3, events::DEL, ""), (0, events::LPUSH, "list"), (1, events::SET, "bcd")]
        {
            journal.note_event(database, event, key.as_bytes());
        }
        journal.note(b"a");
        let mut seen = Vec::new();
        journal.show(&mut |change| seen.push(format!("{change:?}")));
        let event = |database, key: &[u8], event| format!("{:?}", Change::Event { database, key, event });
        assert_eq!(seen, [event(0, b"a", "set"), event(3, b"", "del"), event(1, b"bcd", "set")]);
    }
}
