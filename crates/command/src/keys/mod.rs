//! Which arguments of a request are keys, and how each is used.
//!
//! A row describes its keys by [`KeySpec`]s, in the terms of Redis' own key specifications, so that `COMMAND INFO` is a
//! projection of them. The same specifications find the keys of nearly every command. The few whose specification says
//! less than the command does (`SORT`, `MIGRATE`, `GEORADIUS`, `XREAD`, ...) name a function of [`irregular`], which reads
//! the arguments exactly as execution does. Routing, ACL and execution all ask here and nowhere else.

mod access;
mod error;
pub(crate) mod irregular;
mod positions;
mod spec;

use std::fmt;

use respool_wire::Args;

pub use access::KeyAccess;
pub use error::KeysError;
pub(crate) use irregular::{Found, Irregular};
pub use positions::{KeyPosition, KeyPositions};
pub use spec::{Begin, Find, KeySpec};

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
            if !self.specs[at].is_searchable() && self.irregular.is_none() {
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

    /// Whether the arguments decide what is done with a key (`SET ... GET`).
    pub const fn depend_on_options(&self) -> bool {
        self.irregular.is_some()
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
        check("MSETEX 2 a 1 b 2 NX EX 5", &["a OW update", "b OW update"]);
        for refused in [
            "EVAL s 4 a b c",
            "EVAL s -1 a",
            "EVAL s x a",
            "EVAL s 01 a",
            "EVAL s 18446744073709551617 a",
            "ZUNION 0 a",
            "ZUNION 2 a",
            "LMPOP",
            "MSETEX 2 a 1 b",
            "MSETEX 0 a 1",
            "MSETEX 9223372036854775807 a 1",
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
        check("SET k v IFEQ w", &["k RW access update"]);
        check("BITFIELD k GET u8 0", &["k RO access"]);
        check("BITFIELD k OVERFLOW WRAP GET u8 0 SET u8 0 1", &["k RW access update"]);
    }

    #[test]
    fn patterns_reach_keys_that_no_argument_names() {
        let reaches = |request: &str| {
            let args: ArgsBuf = request.split(' ').collect();
            let mut positions = KeyPositions::new();
            let row = resolve(args.as_args()).expect("SORT has a row");
            row.keys.positions(args.as_args(), &mut positions).expect("the request is well made");
            positions.has_unnamed()
        };
        assert!(reaches("SORT l BY w_*") && reaches("SORT_RO l GET # GET o_*->f"));
        assert!(!reaches("SORT l BY nosort GET #") && !reaches("SORT l STORE w_*") && !reaches("SORT l* ASC"));
        let args: ArgsBuf = "SORT l GET # GET o_*->f BY w_* LIMIT 0 *".split(' ').collect();
        let mut positions = KeyPositions::new();
        resolve(args.as_args()).unwrap().keys.positions(args.as_args(), &mut positions).unwrap();
        assert_eq!(positions.patterns().collect::<Vec<_>>(), [5, 7]);
        positions.clear();
        assert!(!positions.has_unnamed());
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
