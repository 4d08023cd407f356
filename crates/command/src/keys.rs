//! Which arguments of a request are keys, and how each is used.
//!
//! A row describes its keys by [`KeySpec`]s, in the terms of Redis' own key specifications, so that `COMMAND INFO` is a
//! projection of them. The same specifications find the keys of nearly every command. The few whose specification says
//! less than the command does (`SORT`, `MIGRATE`, `GEORADIUS`, `XREAD`, ...) name a function of [`irregular`], which reads
//! the arguments exactly as execution does. Routing, ACL and execution all ask here and nowhere else.

mod access;
pub(crate) mod irregular;

use std::fmt;

use respool_wire::Args;

pub use access::KeyAccess;
pub(crate) use irregular::{Found, Irregular};

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
    has_unnamed: bool,
}

impl KeyPositions {
    /// No keys yet.
    pub const fn new() -> Self {
        Self { found: Vec::new(), has_unnamed: false }
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
        self.has_unnamed
    }

    /// Forgets the keys and keeps the memory.
    pub fn clear(&mut self) {
        self.found.clear();
        self.has_unnamed = false;
    }

    fn add(&mut self, found: Found) {
        match found {
            Found::Key(index, access) => {
                // An index that does not fit cannot be: a request has less than 4 Gi bytes.
                if let Ok(index) = u32::try_from(index) {
                    self.found.push(KeyPosition { index, access });
                }
            }
            Found::Unnamed => self.has_unnamed = true,
        }
    }
}

/// Why a request has no keys although its command has some. The executing server refuses such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// The count in front of the keys is no integer, is not positive, or exceeds the arguments.
    Count,
    /// The word behind which the keys stand is missing, or nothing stands behind it.
    Syntax,
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "the number of keys does not fit the arguments",
            Self::Syntax => "the arguments do not say where the keys are",
        })
    }
}

impl std::error::Error for KeysError {}

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
    const NOTHING: Self = Self { access: KeyAccess::NONE, begin: Begin::Unknown, find: Find::Unknown };

    pub(crate) const fn range(first: u8, last: i8, step: u8, access: &str) -> Self {
        Self { access: KeyAccess::of(access), begin: Begin::Index(first), find: Find::Range { last, step, limit: 0 } }
    }

    pub(crate) const fn counted(index: u8, access: &str) -> Self {
        Self {
            access: KeyAccess::of(access),
            begin: Begin::Index(index),
            find: Find::Count { count_at: 0, first: 1, step: 1 },
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
    const fn is_plain(&self) -> bool {
        matches!((self.begin, self.find), (Begin::Index(_), Find::Range { .. }))
    }

    /// Names the keys of this specification. Plain and counted ones only: rows with others have an [`Irregular`].
    fn search(&self, args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
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
                let count = irregular::key_count(args, begin + usize::from(count_at), first)?;
                if count == 0 {
                    return Ok(());
                }
                (first, first + count - 1, step)
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

/// Which arguments of a command are keys.
#[derive(Clone, Copy)]
pub struct Keys {
    specs: [KeySpec; Keys::SPECS_MAX],
    len: u8,
    first: First,
    irregular: Option<Irregular>,
}

/// Where the first key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    /// The command has no keys.
    Nowhere,
    /// Always at this index, if there are that many arguments.
    At(u8),
    /// That depends on the arguments.
    Depends,
}

impl Keys {
    /// The most specifications that a command has: `SORT`, `GEORADIUS`.
    const SPECS_MAX: usize = 3;

    /// No keys.
    pub(crate) const NONE: Self =
        Self { specs: [KeySpec::NOTHING; Self::SPECS_MAX], len: 0, first: First::Nowhere, irregular: None };

    pub(crate) const fn with(mut self, spec: KeySpec) -> Self {
        if self.len == 0 {
            self.first = match (spec.begin, spec.find) {
                (Begin::Index(index), Find::Range { .. }) => First::At(index),
                _ => First::Depends,
            };
        }
        self.specs[self.len as usize] = spec;
        self.len += 1;
        self
    }

    pub(crate) const fn found_by(mut self, find: Irregular) -> Self {
        self.first = First::Depends;
        self.irregular = Some(find);
        self
    }

    pub(crate) const fn used_by(mut self, find: Irregular) -> Self {
        self.irregular = Some(find);
        self
    }

    /// Whether the first/last/step triple cannot say where the keys are.
    pub(crate) const fn are_movable(&self) -> bool {
        let mut at = 0;
        while at < self.len as usize {
            if !self.specs[at].is_plain() {
                return true;
            }
            at += 1;
        }
        false
    }

    /// Whether the command has no keys at all.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.len == 0
    }

    /// The index of the only key, if every valid request has exactly one and always there.
    #[inline]
    pub const fn single(&self) -> Option<usize> {
        match (self.first, self.len, self.specs[0].find) {
            (First::At(index), 1, Find::Range { last: 0, .. }) => Some(index as usize),
            _ => None,
        }
    }

    /// How far a key is from the next one: 2 for `MSET`, else 1.
    pub const fn step(&self) -> usize {
        match self.specs[0].find {
            Find::Range { step, .. } | Find::Count { step, .. } if step > 1 => step as usize,
            _ => 1,
        }
    }

    /// The index of the request's first key, or `None` if it has none.
    #[inline]
    pub fn first(&self, args: Args<'_>) -> Option<usize> {
        match self.first {
            First::At(index) if usize::from(index) < args.len() => Some(usize::from(index)),
            First::At(_) | First::Nowhere => None,
            First::Depends => self.first_by_search(args),
        }
    }

    #[cold]
    fn first_by_search(&self, args: Args<'_>) -> Option<usize> {
        let mut first = None;
        self.search(args, &mut |found| {
            if let Found::Key(index, _) = found {
                first.get_or_insert(index);
            }
        })
        .ok()?;
        first
    }

    /// Puts every key of the request into `out`, which is emptied first. Sharded channels are among them, marked
    /// [`KeyAccess::NOT_KEY`]. An error leaves `out` empty. Any number of arguments is fine: what is not there is no key.
    pub fn positions(&self, args: Args<'_>, out: &mut KeyPositions) -> Result<(), KeysError> {
        out.clear();
        let result = self.search(args, &mut |found| out.add(found));
        if result.is_err() {
            out.clear();
        }
        result
    }

    fn search(&self, args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
        match self.irregular {
            Some(find) => find(args, found),
            None => self.specs().iter().try_for_each(|spec| spec.search(args, found)),
        }
    }

    /// Where the keys are as far as three numbers can say: the first index, the last (negative: counted from the end), and
    /// the distance of a key from the next. Zeros if there are no keys, or none at a fixed place. This is how commands
    /// were described before there were specifications; specifications that are no plain range, or do not go on where the
    /// one before ended, are left out.
    pub fn first_last_step(&self) -> (i64, i64, i64) {
        if let [KeySpec { begin: Begin::Index(first), find: Find::Range { last, step, .. }, .. }] = *self.specs() {
            let last = if last < 0 { i64::from(last) } else { i64::from(first) + i64::from(last) };
            return (first.into(), last, step.into());
        }
        let mut whole: Option<(i64, i64)> = None;
        for spec in self.specs() {
            let (Begin::Index(first), Find::Range { last, step: 1, .. }) = (spec.begin, spec.find) else { continue };
            let first = i64::from(first);
            let last = if last < 0 { i64::from(last) } else { first + i64::from(last) };
            whole = match whole {
                None => Some((first, last)),
                Some((start, end)) if end == first - 1 => Some((start, last)),
                unchanged => unchanged,
            };
        }
        whole.map_or((0, 0, 0), |(first, last)| (first, last, 1))
    }

    /// The specifications, as `COMMAND INFO` tells them.
    pub fn specs(&self) -> &[KeySpec] {
        &self.specs[..usize::from(self.len)]
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs()).finish()
    }
}
