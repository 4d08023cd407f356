//! Keyspace events: their classes, as the setting `notify-keyspace-events` names them, and what a local node tells of changes.

/// A set of classes of keyspace events, and the channels to which they are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventClasses(u16);

/// Each class with its letter, in the order in which Redis shows them.
const LETTERS: [(u8, EventClasses); 14] = [
    (b'g', EventClasses::GENERIC),
    (b'$', EventClasses::STRING),
    (b'l', EventClasses::LIST),
    (b's', EventClasses::SET),
    (b'h', EventClasses::HASH),
    (b'z', EventClasses::SORTED_SET),
    (b'x', EventClasses::EXPIRED),
    (b'e', EventClasses::EVICTED),
    (b't', EventClasses::STREAM),
    (b'd', EventClasses::MODULE),
    (b'n', EventClasses::NEW),
    (b'K', EventClasses::KEYSPACE),
    (b'E', EventClasses::KEYEVENT),
    (b'm', EventClasses::KEY_MISS),
];

impl EventClasses {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Events are published to `__keyspace@<database>__:<key>`.
    pub const KEYSPACE: Self = Self(1);
    /// Events are published to `__keyevent@<database>__:<event>`.
    pub const KEYEVENT: Self = Self(1 << 1);
    /// Of keys of any type.
    pub const GENERIC: Self = Self(1 << 2);
    /// Of strings.
    pub const STRING: Self = Self(1 << 3);
    /// Of lists.
    pub const LIST: Self = Self(1 << 4);
    /// Of sets.
    pub const SET: Self = Self(1 << 5);
    /// Of hashes.
    pub const HASH: Self = Self(1 << 6);
    /// Of sorted sets.
    pub const SORTED_SET: Self = Self(1 << 7);
    /// Keys removed because their time has come.
    pub const EXPIRED: Self = Self(1 << 8);
    /// Keys removed to make room.
    pub const EVICTED: Self = Self(1 << 9);
    /// Of streams.
    pub const STREAM: Self = Self(1 << 10);
    /// Reads of keys that are not there.
    pub const KEY_MISS: Self = Self(1 << 11);
    /// Of types of modules.
    pub const MODULE: Self = Self(1 << 12);
    /// Keys that were not there before.
    pub const NEW: Self = Self(1 << 13);
    /// What `A` stands for: all classes but [`Self::KEY_MISS`] and [`Self::NEW`].
    pub const ALL: Self = Self(0b1_0111_1111_1100);

    /// Reads the letters of the setting. `None`: one of them is no class.
    pub fn parse(letters: &[u8]) -> Option<Self> {
        letters.iter().try_fold(Self::NONE, |classes, letter| {
            let of = |(_, class): &(u8, Self)| *class;
            let class =
                if *letter == b'A' { Some(Self::ALL) } else { LETTERS.iter().find(|(l, _)| l == letter).map(of) };
            class.map(|class| classes.with(class))
        })
    }

    /// The letters of the setting, as Redis shows them: it leaves `n` out beside `A`.
    pub fn letters(self) -> String {
        let has_all = self.has_all(Self::ALL);
        let is_shown =
            |class: Self| self.has_any(class) && !(has_all && Self(Self::ALL.0 | Self::NEW.0).has_any(class));
        let all = has_all.then_some('A');
        all.into_iter()
            .chain(LETTERS.iter().filter(|(_, class)| is_shown(*class)).map(|(l, _)| char::from(*l)))
            .collect()
    }

    /// Both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one of `other` is among them.
    #[inline]
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    const fn has_all(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether events are published at all: to some channel, and of some class.
    pub const fn publishes(self) -> bool {
        self.has_any(Self(Self::KEYSPACE.0 | Self::KEYEVENT.0)) && self.0 & !(Self::KEYSPACE.0 | Self::KEYEVENT.0) != 0
    }
}

/// What a local node keeps of changes, to be given by [`Execute::changes`](crate::Execute::changes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Keys that have changed.
    pub keys: bool,
    /// Events of these classes.
    pub events: EventClasses,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'c> {
    /// Any key of any database may have changed.
    Everything,
    /// A key of some database was evicted or has expired, which no client has done.
    Lost(&'c [u8]),
    /// A key of some database has changed, come or gone.
    Key(&'c [u8]),
    /// Something with a name has happened to a key.
    Event {
        /// Its database.
        database: u32,
        /// Its name.
        key: &'c [u8],
        /// What has happened, as Redis calls it.
        event: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_and_shown_as_by_redis() {
        for (letters, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("g$lshzxetdK", "AK"),
            ("AKEmn", "AKEm"),
            ("g$lshzxetnEKm", "g$lshzxetnKEm"),
            ("Elg", "glE"),
        ] {
            assert_eq!(EventClasses::parse(letters.as_bytes()).map(EventClasses::letters).as_deref(), Some(shown));
        }
        assert_eq!(EventClasses::parse(b"KEq"), None);
        let publishes = |letters: &[u8]| EventClasses::parse(letters).is_some_and(EventClasses::publishes);
        assert!(publishes(b"Kg") && publishes(b"EAn") && !publishes(b"A") && !publishes(b"KE") && !publishes(b""));
    }
}
