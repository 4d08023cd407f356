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

use crate::limits::POSITIONS_KEPT_MAX;

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

    /// Forgets the keys and keeps the memory, unless a huge request made it huge.
    pub fn clear(&mut self) {
        self.found.clear();
        if self.found.capacity() > POSITIONS_KEPT_MAX {
            self.found = Vec::new();
        }
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
    fn search(&self, args: Args<'_>, may_be_none: bool, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
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
                    return if may_be_none { Ok(()) } else { Err(KeysError::Count) };
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
    /// Whether a request may say that it has no keys.
    may_be_none: bool,
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
    pub(crate) const NONE: Self = Self {
        specs: [KeySpec::NOTHING; Self::SPECS_MAX],
        len: 0,
        first: First::Nowhere,
        may_be_none: false,
        irregular: None,
    };

    pub(crate) const fn with(mut self, spec: KeySpec) -> Self {
        // If an argument is there it is the first key, whatever follows it, unless keys stop short of the end or are counted.
        self.first = match (self.first, spec.begin, spec.find) {
            (First::Nowhere, Begin::Index(index), Find::Range { last: -1.., .. }) => First::At(index),
            (First::At(index), Begin::Index(_), Find::Range { last: -1.., .. }) => First::At(index),
            _ => First::Depends,
        };
        self.specs[self.len as usize] = spec;
        self.len += 1;
        self
    }

    pub(crate) const fn may_be_none(mut self, may_be_none: bool) -> Self {
        self.may_be_none = may_be_none;
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

    /// Whether the specifications suffice to find the keys, or else there is a function that does.
    pub(crate) const fn can_be_found(&self) -> bool {
        let mut at = 0;
        while at < self.len as usize {
            let is_searchable =
                matches!(self.specs[at].begin, Begin::Index(_)) && !matches!(self.specs[at].find, Find::Unknown);
            if !is_searchable && self.irregular.is_none() {
                return false;
            }
            at += 1;
        }
        true
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
            // The functions name the places where keys have to be; too short a request may not have them.
            Some(find) => find(args, &mut |at| match at {
                Found::Key(index, _) if index >= args.len() => {}
                there => found(there),
            }),
            None => self.specs().iter().try_for_each(|spec| spec.search(args, self.may_be_none, found)),
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

#[cfg(test)]
mod tests {
    use respool_wire::ArgsBuf;

    use super::*;
    use crate::{Lane, all, resolve};

    /// The keys of a request, written as `key access`, or what is wrong with it.
    fn keys(request: &str) -> Result<Vec<String>, KeysError> {
        let args: ArgsBuf = request.split(' ').collect();
        let mut positions = KeyPositions::new();
        let row = resolve(args.as_args()).expect("the test names what exists");
        row.keys.positions(args.as_args(), &mut positions)?;
        let shown = |position: KeyPosition| {
            let access: Vec<&str> = position.access.names().collect();
            let key = String::from_utf8_lossy(&args.as_args()[position.index as usize]).into_owned();
            format!("{key} {}", access.join(" "))
        };
        let found: Vec<String> = positions.iter().map(shown).collect();
        assert_eq!(row.keys.first(args.as_args()), positions.iter().next().map(|first| first.index as usize));
        Ok(found)
    }

    fn check(request: &str, expected: &[&str]) {
        assert_eq!(keys(request).as_deref().unwrap_or_default(), expected, "{request}");
    }

    #[test]
    fn regular_keys() {
        check("GET k", &["k RO access"]);
        check("MSET a 1 b 2", &["a OW update", "b OW update"]);
        check("BITOP AND d a b", &["d OW update", "a RO access", "b RO access"]);
        check("BLPOP a b 0", &["a RW access delete", "b RW access delete"]);
        check("RENAME a b", &["a RW access delete", "b OW update"]);
        check("OBJECT ENCODING k", &["k RO"]);
        check("XGROUP CREATE s g $", &["s RW insert"]);
        check("SPUBLISH c m", &["c not_key"]);
        check("PING k", &[]);
        check("PFMERGE d", &["d RW access insert"]);
        check("SUNSUBSCRIBE", &[]);
    }

    #[test]
    fn counted_keys() {
        check("EVAL s 2 a b c", &["a RW access update", "b RW access update"]);
        check("EVAL s 0 a", &[]);
        check("ZUNIONSTORE d 2 a b WEIGHTS 1 2", &["d OW update", "a RO access", "b RO access"]);
        check("BLMPOP 0 1 a LEFT", &["a RW access delete"]);
        for refused in [
            "EVAL s 4 a b c",
            "EVAL s -1 a",
            "EVAL s x a",
            "EVAL s 01 a",
            "EVAL s 18446744073709551617 a",
            "ZUNION 0 a",
            "ZUNION 2 a",
            "LMPOP",
        ] {
            assert_eq!(keys(refused), Err(KeysError::Count), "{refused}");
        }
    }

    #[test]
    fn options_that_name_keys_are_read_as_execution_reads_them() {
        check("SORT l", &["l RO access"]);
        check("SORT l STORE a STORE b", &["l RO access", "b OW update"]);
        check("SORT l STORE GET STORE b", &["l RO access", "b OW update"]);
        check("SORT l GET STORE", &["l RO access"]);
        check("SORT l LIMIT 0 STORE STORE d", &["l RO access", "d OW update"]);
        check("SORT l STORE", &["l RO access"]);
        check("SORT l sToRe\0x d", &["l RO access", "d OW update"]);
        check("SORT_RO l STORE d", &["l RO access"]);
        check("GEORADIUS g 0 0 1 km STORE STORE", &["g RO access", "STORE OW update"]);
        check("GEORADIUS g 0 0 1 km STORE a STOREDIST b", &["g RO access", "b OW update"]);
        check("GEORADIUS g 0 0 1 km COUNT STORE x", &["g RO access"]);
        check("GEORADIUSBYMEMBER g m 1 km STORE STORE STORE d", &["g RO access", "d OW update"]);
        check("MIGRATE h 1 k 0 10", &["k RW access delete"]);
        check("MIGRATE h 1  0 10 AUTH KEYS KEYS a b", &["a RW access delete", "b RW access delete"]);
        assert_eq!(keys("MIGRATE h 1 k 0 10 KEYS a"), Err(KeysError::Syntax));
        check("XREAD COUNT STREAMS STREAMS a 0", &["a RO access"]);
        check("XREADGROUP GROUP STREAMS STREAMS STREAMS a b > >", &["a RO access", "b RO access"]);
        check("XREADGROUP COUNT 1 GROUP g STREAMS NOACK STREAMS a >", &["a RO access"]);
        assert_eq!(keys("XREAD COUNT 1 a 0"), Err(KeysError::Syntax));
        assert_eq!(keys("XREAD BLOCK 0 STREAMS"), Err(KeysError::Syntax));
        check("SET k v GET", &["k RW access update"]);
        check("SET k GET", &["k OW update"]);
        check("BITFIELD k GET u8 0", &["k RO access"]);
        check("BITFIELD k OVERFLOW WRAP GET u8 0 SET u8 0 1", &["k RW access update"]);
    }

    #[test]
    fn patterns_reach_keys_that_nobody_names() {
        let reaches = |request: &str| {
            let args: ArgsBuf = request.split(' ').collect();
            let mut positions = KeyPositions::new();
            let row = resolve(args.as_args()).expect("SORT has a row");
            row.keys.positions(args.as_args(), &mut positions).expect("the request is well made");
            positions.has_unnamed()
        };
        assert!(reaches("SORT l BY w_*") && reaches("SORT_RO l GET # GET o_*->f"));
        assert!(!reaches("SORT l BY nosort GET #") && !reaches("SORT l STORE w_*") && !reaches("SORT l* ASC"));
    }

    #[test]
    fn any_number_of_arguments_is_survived() {
        let mut positions = KeyPositions::new();
        for row in all() {
            for filler in ["1", "9", "STORE", "STREAMS", "KEYS", ""] {
                let mut args: ArgsBuf = row.name.split(' ').collect();
                for _ in 0..12 {
                    let _ = row.keys.positions(args.as_args(), &mut positions);
                    assert!(
                        positions.iter().all(|position| (position.index as usize) < args.as_args().len()),
                        "{row:?}"
                    );
                    assert!(row.keys.first(args.as_args()).is_none_or(|first| first < args.as_args().len()), "{row:?}");
                    args.push(filler.as_bytes());
                }
                for len in 0..row.name.split(' ').count() {
                    let cut: ArgsBuf = row.name.split(' ').take(len).collect();
                    let _ = row.keys.positions(cut.as_args(), &mut positions);
                    assert!(positions.is_empty(), "{row:?} with {len} arguments");
                }
            }
        }
    }

    #[test]
    fn streams_block_only_when_asked_to() {
        let lane = |request: &str| {
            let args: ArgsBuf = request.split(' ').collect();
            resolve(args.as_args()).expect("it has a row").lane(args.as_args())
        };
        assert_eq!(lane("XREAD STREAMS BLOCK 0"), Lane::Shared);
        assert_eq!(lane("XREAD COUNT BLOCK STREAMS a 0"), Lane::Shared);
        assert_eq!(lane("XREAD block 0 STREAMS a $"), Lane::Blocking);
        assert_eq!(lane("XREADGROUP GROUP g BLOCK STREAMS a >"), Lane::Shared);
        assert_eq!(lane("XREADGROUP GROUP g c COUNT 1 BLOCK 5 STREAMS a >"), Lane::Blocking);
        assert_eq!(lane("BLPOP a 0"), Lane::Blocking);
        assert_eq!(lane("GET a"), Lane::Shared);
    }

    #[test]
    fn a_single_key_is_where_every_request_has_it() {
        let single = |name: &str| {
            let args: ArgsBuf = name.split(' ').collect();
            resolve(args.as_args()).expect("it has a row").keys.single()
        };
        assert_eq!(single("GET"), Some(1));
        assert_eq!(single("SET"), Some(1));
        assert_eq!(single("OBJECT ENCODING"), Some(2));
        for none in ["MGET", "RENAME", "SORT", "XREAD", "EVAL", "MIGRATE", "PING", "GEORADIUS"] {
            assert_eq!(single(none), None, "{none}");
        }
    }
}
