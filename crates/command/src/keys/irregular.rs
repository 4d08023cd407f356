//! Keys that no specification finds: each function reads the arguments as the command's execution does, so that what is
//! routed and what is permitted is what will be touched.
//!
//! Option words are compared as Redis compares them, up to the first NUL: `STORE\0x` is `STORE` to it. Where Redis'
//! own key finders differ from what it executes (repeated `STORE`, an option's argument that looks like an option), these
//! follow execution. Requests that will be refused for their syntax are read leniently: their options that can be
//! understood still name keys.

use respool_wire::Args;

use super::access::KeyAccess;
use super::error::KeysError;
use crate::Lane;

/// What a search for keys comes across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A key at this index.
    Key(usize, KeyAccess),
    /// A pattern at this index: keys will be used that no argument names.
    Pattern(usize),
}

/// Finds the keys of a request. It may name places behind the last argument, which are left out.
pub(crate) type Irregular = fn(Args<'_>, &mut dyn FnMut(Found)) -> Result<(), KeysError>;

const READ: KeyAccess = KeyAccess::of("RO access");
const OVERWRITE: KeyAccess = KeyAccess::of("OW update");
const READ_AND_UPDATE: KeyAccess = KeyAccess::of("RW access update");
const MOVE_AWAY: KeyAccess = KeyAccess::of("RW access delete");

/// Whether the argument at `index` is `word`, in any case.
fn is_word(args: Args<'_>, index: usize, word: &[u8]) -> bool {
    args.get(index).is_some_and(|argument| {
        let text = argument.split(|byte| *byte == 0).next().unwrap_or_default();
        text.eq_ignore_ascii_case(word)
    })
}

/// The count at `index` of keys that begin at `first` and are `step` apart: an integer as Redis reads one, not more than the
/// arguments can hold.
pub(super) fn key_count(args: Args<'_>, index: usize, first: usize, step: usize) -> Result<usize, KeysError> {
    let digits = args.get(index).ok_or(KeysError::Count)?;
    let is_canonical = match digits {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_canonical {
        return Err(KeysError::Count);
    }
    let count = digits
        .iter()
        .try_fold(0usize, |sum, digit| sum.checked_mul(10)?.checked_add(usize::from(digit - b'0')))
        .ok_or(KeysError::Count)?;
    if count > args.len().saturating_sub(first) / step.max(1) { Err(KeysError::Count) } else { Ok(count) }
}

/// `SET`: reads the old value only with `GET`, or to compare it.
pub(crate) fn set(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    const READING: [&[u8]; 5] = [b"GET", b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE"];
    let reads = (3..args.len()).any(|index| READING.iter().any(|word| is_word(args, index, word)));
    found(Found::Key(1, if reads { READ_AND_UPDATE } else { OVERWRITE }));
    Ok(())
}

/// `BITFIELD`: changes nothing if all it is asked for is `GET`.
pub(crate) fn bitfield(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    let mut index = 2;
    let mut access = READ;
    while index < args.len() {
        let behind = args.len() - index - 1;
        if is_word(args, index, b"GET") && behind >= 2 {
            index += 3;
        } else if is_word(args, index, b"OVERFLOW") && behind >= 1 {
            index += 2;
        } else {
            access = READ_AND_UPDATE;
            break;
        }
    }
    found(Found::Key(1, access));
    Ok(())
}

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern ...] [ASC|DESC] [ALPHA] [STORE destination]`: the last
/// `STORE` counts, and patterns with an asterisk reach keys that are not named.
pub(crate) fn sort(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    sort_options(args, true, found)
}

/// `SORT_RO`: `SORT` that knows no `STORE`.
pub(crate) fn sort_ro(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    sort_options(args, false, found)
}

fn sort_options(args: Args<'_>, can_store: bool, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    found(Found::Key(1, READ));
    let mut destination = None;
    let mut index = 2;
    while index < args.len() {
        let behind = args.len() - index - 1;
        if is_word(args, index, b"LIMIT") && behind >= 2 {
            index += 2;
        } else if can_store && is_word(args, index, b"STORE") && behind >= 1 {
            destination = Some(index + 1);
            index += 1;
        } else if (is_word(args, index, b"BY") || is_word(args, index, b"GET")) && behind >= 1 {
            if args.get(index + 1).is_some_and(|pattern| pattern.contains(&b'*')) {
                found(Found::Pattern(index + 1));
            }
            index += 1;
        }
        index += 1;
    }
    if let Some(index) = destination {
        found(Found::Key(index, OVERWRITE));
    }
    Ok(())
}

/// `GEORADIUS key longitude latitude radius unit [...]`.
pub(crate) fn georadius(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    georadius_options(args, 6, found)
}

/// `GEORADIUSBYMEMBER key member radius unit [...]`.
pub(crate) fn georadiusbymember(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    georadius_options(args, 5, found)
}

/// Of several `STORE` and `STOREDIST` the last one counts.
fn georadius_options(args: Args<'_>, options: usize, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    found(Found::Key(1, READ));
    let mut destination = None;
    let mut index = options;
    while index + 1 < args.len() {
        if is_word(args, index, b"COUNT") {
            index += 1;
        } else if is_word(args, index, b"STORE") || is_word(args, index, b"STOREDIST") {
            destination = Some(index + 1);
            index += 1;
        }
        index += 1;
    }
    if let Some(index) = destination {
        found(Found::Key(index, OVERWRITE));
    }
    Ok(())
}

/// `MIGRATE host port key|"" database timeout [COPY] [REPLACE] [AUTH p] [AUTH2 u p] [KEYS key ...]`: `KEYS` takes all
/// that follows, is refused unless the key in the usual place is empty, and means nothing as the last word.
pub(crate) fn migrate(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    let mut index = 6;
    while index + 1 < args.len() {
        if is_word(args, index, b"KEYS") {
            if args.get(3) != Some(b"") {
                return Err(KeysError::Syntax);
            }
            (index + 1..args.len()).for_each(|index| found(Found::Key(index, MOVE_AWAY)));
            return Ok(());
        }
        index += if is_word(args, index, b"AUTH") {
            2
        } else if is_word(args, index, b"AUTH2") {
            3
        } else {
            1
        };
    }
    found(Found::Key(3, MOVE_AWAY));
    Ok(())
}

/// `XREAD` and `XREADGROUP`: keys are the first half of what stands behind `STREAMS`. If that does not come out even, the
/// request will be refused, and the argument in the middle is no key.
pub(crate) fn streams(args: Args<'_>, found: &mut dyn FnMut(Found)) -> Result<(), KeysError> {
    let first = stream_options(args).first_key.ok_or(KeysError::Syntax)?;
    let count = args.len().saturating_sub(first) / 2;
    if count == 0 {
        return Err(KeysError::Syntax);
    }
    (first..first + count).for_each(|index| found(Found::Key(index, READ)));
    Ok(())
}

/// The lane of `XREAD` and `XREADGROUP`: they wait only if asked to.
pub(crate) fn streams_lane(args: Args<'_>) -> Lane {
    if stream_options(args).may_block { Lane::Blocking } else { Lane::Shared }
}

struct StreamOptions {
    may_block: bool,
    /// The index behind `STREAMS`.
    first_key: Option<usize>,
}

fn stream_options(args: Args<'_>) -> StreamOptions {
    let mut options = StreamOptions { may_block: false, first_key: None };
    let mut index = 1;
    while index < args.len() {
        index += if is_word(args, index, b"STREAMS") {
            options.first_key = Some(index + 1);
            return options;
        } else if is_word(args, index, b"BLOCK") {
            options.may_block = true;
            2
        } else if is_word(args, index, b"COUNT") {
            2
        } else if is_word(args, index, b"GROUP") {
            3
        } else {
            1
        };
    }
    options
}
