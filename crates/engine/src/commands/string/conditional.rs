//! Strings that are set or deleted depending on what keys hold: `DELEX`, `DELIFEQ`, `MSETEX`, and the comparisons of `SET`.

use respool_command::text;

use super::super::{Answer, Call, Fault, named};
use super::{Options, OptionsOf, options};
use crate::store::listpack::Element;
use crate::store::xxh3;

const INVALID_CONDITION: &str = "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE";
const NOT_A_STRING: &str = "ERR Key should be of string type if conditions are specified";
const INVALID_COUNT: &str = "ERR invalid numkeys value";
const INVALID_DIGEST: &str = "ERR must be exactly 16 hexadecimal characters";
const WRONG_PAIRS: &str = "ERR wrong number of key-value pairs";

/// Digits of a digest.
const DIGEST_LEN: usize = 16;

/// How a value is compared with an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Comparison {
    is_equal: bool,
    /// The argument is a digest.
    is_of_digests: bool,
}

impl Comparison {
    const EQUAL: Self = Self { is_equal: true, is_of_digests: false };

    /// The comparison of an option word.
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        let (is_equal, is_of_digests) = match () {
            () if word.eq_ignore_ascii_case(b"IFEQ") => (true, false),
            () if word.eq_ignore_ascii_case(b"IFNE") => (false, false),
            () if word.eq_ignore_ascii_case(b"IFDEQ") => (true, true),
            () if word.eq_ignore_ascii_case(b"IFDNE") => (false, true),
            () => return None,
        };
        Some(Self { is_equal, is_of_digests })
    }

    /// Whether it holds for a value; a missing one differs from all others. As in Redis, a digest is only looked at if there is a value
    /// to compare it with, and only its length is checked.
    pub(super) fn holds(self, value: Option<Element<'_>>, argument: &[u8]) -> Result<bool, Fault> {
        let Some(value) = value else { return Ok(!self.is_equal) };
        if self.is_of_digests && argument.len() != DIGEST_LEN {
            return Err(INVALID_DIGEST.into());
        }
        let is_equal = match self.is_of_digests {
            true => digest_of(value).as_bytes().eq_ignore_ascii_case(argument),
            false => value.read(|value| value == argument),
        };
        Ok(is_equal == self.is_equal)
    }
}

fn digest_of(value: Element<'_>) -> String {
    format!("{:016x}", value.read(xxh3::digest))
}

/// `DIGEST key`, of Redis.
pub(super) fn digest(call: &mut Call<'_, '_>) -> Answer {
    let found = call.read_string(call.arg(1))?;
    match found.and_then(|found| call.keyspace.text(found)) {
        Some(value) => call.reply.bulk(digest_of(value).as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

/// `DELIFEQ key value`, of Valkey.
pub(super) fn delifeq(call: &mut Call<'_, '_>) -> Answer {
    let found = call.find_string(call.arg(1))?;
    let value = found.and_then(|found| call.keyspace.text(found));
    let is_equal = Comparison::EQUAL.holds(value, call.arg(2))?;
    if let Some(found) = found.filter(|_| is_equal) {
        call.keyspace.delete(call.at.database, found);
    }
    call.reply_integer(is_equal.into())
}

/// `DELEX key [IFEQ|IFNE value|IFDEQ|IFDNE digest]`, of Redis. As there, the type is checked before the word.
pub(super) fn delex(call: &mut Call<'_, '_>) -> Answer {
    if !matches!(call.args.len(), 2 | 4) {
        return Err(named(call.row, text::wrong_arity));
    }
    let Some(found) = call.keyspace.find(call.at, call.arg(1)) else { return call.reply_integer(0) };
    if call.args.len() == 4 {
        let value = call.keyspace.text(found).ok_or(NOT_A_STRING)?;
        let comparison = Comparison::of(call.arg(2)).ok_or(INVALID_CONDITION)?;
        if !comparison.holds(Some(value), call.arg(3))? {
            return call.reply_integer(0);
        }
    }
    call.keyspace.delete(call.at.database, found);
    call.reply_integer(1)
}

/// `MSETEX count key value ... [NX|XX] [EX|PX|EXAT|PXAT time|KEEPTTL]`.
pub(super) fn msetex(call: &mut Call<'_, '_>) -> Answer {
    let count = call.integer_from(1, 1, INVALID_COUNT)?;
    if count > i32::MAX as usize {
        return Err(INVALID_COUNT.into());
    }
    let first_option = 2 + 2 * count;
    if first_option > call.args.len() {
        return Err(WRONG_PAIRS.into());
    }
    let options: Options = options(call.args, first_option, OptionsOf::Msetex)?;
    let expiry = options.expiry(call)?;
    let keys = || (2..first_option).step_by(2);
    for index in keys() {
        let is_there = call.keyspace.find(call.at, call.arg(index)).is_some();
        if is_there && options.only_if_absent || !is_there && options.only_if_present {
            return call.reply_integer(0);
        }
    }
    for index in keys() {
        let (key, value) = (call.arg(index), call.arg(index + 1));
        call.set_string(key, value, expiry);
    }
    call.reply_integer(1)
}
