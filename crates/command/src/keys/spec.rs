//! Key specifications, in the terms of Redis.

use respool_wire::Args;

use super::access::KeyAccess;
use super::error::KeysError;
use super::irregular::{Found, key_count};

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At an index.
    Index(u8),
    /// Behind a word (in any case), looked for from an index; from a negative one backwards, -1 being the last argument.
    Keyword {
        /// The word in capitals.
        word: &'static str,
        /// Where to start looking.
        from: i8,
    },
    /// A specification cannot say.
    Unknown,
}

/// Which arguments are keys from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th one up to `last`.
    Range {
        /// Relative to the first key; negative: counted from the end of the arguments, -1 being the last.
        last: i8,
        /// Distance of a key from the next.
        step: u8,
        /// With a `last` of -1: only the first 1/`limit` of the arguments are keys. 0 and 1: all of them.
        limit: u8,
    },
    /// As many as an argument counts.
    Count {
        /// Where the count is, relative to the beginning.
        count_at: u8,
        /// Where the first key is, relative to the beginning.
        first: u8,
        /// Distance of a key from the next.
        step: u8,
    },
    /// A specification cannot say.
    Unknown,
}

/// Some keys of a command that are used alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// How they are used.
    pub access: KeyAccess,
    /// Where they begin.
    pub begin: Begin,
    /// Which they are.
    pub find: Find,
}

impl KeySpec {
    pub(super) const NOTHING: Self = Self { access: KeyAccess::NONE, begin: Begin::Unknown, find: Find::Unknown };

    pub(crate) const fn range(first: u8, last: i8, step: u8, access: &str) -> Self {
        Self { access: KeyAccess::of(access), begin: Begin::Index(first), find: Find::Range { last, step, limit: 0 } }
    }

    pub(crate) const fn counted(index: u8, step: u8, access: &str) -> Self {
        Self {
            access: KeyAccess::of(access),
            begin: Begin::Index(index),
            find: Find::Count { count_at: 0, first: 1, step },
        }
    }

    /// The keys behind `word`, up to the argument `last` of [`Find::Range`], in the first 1/`limit` of what follows.
    pub(crate) const fn keyword(word: &'static str, from: i8, last: i8, limit: u8, access: &str) -> Self {
        Self {
            access: KeyAccess::of(access),
            begin: Begin::Keyword { word, from },
            find: Find::Range { last, step: 1, limit },
        }
    }

    pub(crate) const fn unknown(access: &str) -> Self {
        Self { access: KeyAccess::of(access), begin: Begin::Unknown, find: Find::Unknown }
    }

    /// Whether first, last and step say all of it.
    pub(super) const fn is_plain(&self) -> bool {
        matches!((self.begin, self.find), (Begin::Index(_), Find::Range { .. }))
    }

    /// Whether [`KeySpec::search`] can find its keys.
    pub(super) const fn is_searchable(&self) -> bool {
        matches!((self.begin, self.find), (Begin::Index(_), Find::Range { .. } | Find::Count { .. }))
    }

    /// Names the keys of this specification, which has to be searchable: rows with others have a function.
    pub(super) fn search(
        &self,
        args: Args<'_>,
        may_be_none: bool,
        found: &mut dyn FnMut(Found),
    ) -> Result<(), KeysError> {
        let Begin::Index(begin) = self.begin else { return Err(KeysError::Syntax) };
        let begin = usize::from(begin);
        let (first, last, step) = match self.find {
            Find::Range { last, step, .. } => {
                let last = if last < 0 {
                    let behind = usize::from(last.unsigned_abs());
                    if behind > args.len() {
                        return Ok(());
                    }
                    args.len() - behind
                } else {
                    begin + usize::from(last.unsigned_abs())
                };
                (begin, last, step)
            }
            Find::Count { count_at, first, step } => {
                let first = begin + usize::from(first);
                let count = key_count(args, begin + usize::from(count_at), first, usize::from(step))?;
                if count == 0 {
                    return if may_be_none { Ok(()) } else { Err(KeysError::Count) };
                }
                (first, first + (count - 1) * usize::from(step), step)
            }
            Find::Unknown => return Err(KeysError::Syntax),
        };
        let last = last.min(args.len().saturating_sub(1));
        let mut index = first;
        while index <= last {
            found(Found::Key(index, self.access));
            index += usize::from(step.max(1));
        }
        Ok(())
    }
}
