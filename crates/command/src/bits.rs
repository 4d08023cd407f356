//! Small sets whose members have a name on the wire: command flags, ACL categories, key access.
//!
//! The rows write these sets as words (`"write denyoom fast"`), which are parsed while compiling: a word that does not
//! exist is a compile error, and the names exist once.

/// Makes a set type: a bit per member, its wire name, a compile-time parser and an iterator over names.
macro_rules! bits {
    (
        $(#[$about:meta])*
        pub struct $set:ident($repr:ty) { $( $(#[$doc:meta])* $member:ident = $word:literal, )+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $set($repr);

        impl $set {
            /// Every member with its name, in the order in which `COMMAND` lists them.
            pub const ALL: &'static [($set, &'static str)] = &[ $( ($set::$member, $word) ),+ ];

            bits!(@members $set, $repr, 0, $( $(#[$doc])* $member, )+);

            /// The set with no member.
            pub const NONE: Self = Self(0);

            /// The set of the named members, which are separated by single spaces. Panics on a name that does not exist,
            /// which in a row is a compile error.
            pub const fn of(words: &str) -> Self {
                let mut set = Self::NONE;
                let mut rest = words.as_bytes();
                while !rest.is_empty() {
                    let (word, behind) = crate::bits::split_word(rest);
                    let mut at = 0;
                    while at < Self::ALL.len() && !crate::bits::is_same(Self::ALL[at].1.as_bytes(), word) {
                        at += 1;
                    }
                    assert!(at < Self::ALL.len(), "a row names a member that does not exist");
                    set = set.with(Self::ALL[at].0);
                    rest = behind;
                }
                set
            }

            /// The member called `name`, in any case, if there is one.
            pub fn named(name: &[u8]) -> Option<Self> {
                Self::ALL.iter().find(|(_, word)| word.as_bytes().eq_ignore_ascii_case(name)).map(|(member, _)| *member)
            }

            /// The union of both sets.
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// This set without the other's members.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Whether every member of `other` is in this set.
            #[inline]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether the sets share a member.
            #[inline]
            pub const fn has_any(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Whether there is no member.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// How many members there are.
            pub const fn len(self) -> usize {
                self.0.count_ones() as usize
            }

            /// The names of the members, in the order in which `COMMAND` lists them.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                Self::ALL.iter().filter(move |(member, _)| self.has(*member)).map(|(_, word)| *word)
            }
        }

        impl std::fmt::Debug for $set {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_set().entries(self.names()).finish()
            }
        }
    };
    (@members $set:ident, $repr:ty, $bit:expr, ) => {};
    (@members $set:ident, $repr:ty, $bit:expr, $(#[$doc:meta])* $member:ident, $($rest:tt)*) => {
        $(#[$doc])*
        pub const $member: Self = Self(1 << ($bit));
        bits!(@members $set, $repr, $bit + 1, $($rest)*);
    };
}
pub(crate) use bits;

/// The bytes before the first space and those behind it.
pub(crate) const fn split_word(words: &[u8]) -> (&[u8], &[u8]) {
    let mut at = 0;
    while at < words.len() && words[at] != b' ' {
        at += 1;
    }
    let (word, rest) = words.split_at(at);
    match rest {
        [] => (word, rest),
        [_, behind @ ..] => (word, behind),
    }
}

/// Byte equality that works while compiling.
pub(crate) const fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use crate::Flags;

    #[test]
    fn words_become_members_and_members_become_words() {
        let set = Flags::of("fast write");
        assert!(set.has(Flags::WRITE) && set.has(Flags::FAST) && !set.has(Flags::READONLY));
        assert_eq!(set.names().collect::<Vec<_>>(), ["write", "fast"]);
        assert_eq!(set.len(), 2);
        assert_eq!(Flags::named(b"WRITE"), Some(Flags::WRITE));
        assert_eq!(Flags::named(b"writ"), None);
    }

    #[test]
    #[should_panic(expected = "does not exist")]
    fn an_unknown_word_is_refused() {
        let _ = Flags::of("write quick");
    }
}
