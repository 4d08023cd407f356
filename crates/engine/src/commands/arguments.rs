//! Arguments that many commands read in the same way.

use std::ops::Range;

use respool_command::text;
use respool_command::words::until_nul;
use respool_wire::Args;

use super::{Call, Fault, named};
use crate::keyspace::Found;
use crate::limits::RANDOM_ELEMENTS_MAX;
use crate::number::{integer, long_double};

/// An integer that must fit a C `int` does not.
pub(super) const NOT_IN_INT_RANGE: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";

/// An integer has no opposite.
const NOT_SYMMETRIC: &str =
    "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
/// A count is too large for what it counts.
const OUT_OF_RANGE: &str = "ERR value is out of range";
const NX_WITH_OTHERS: &str = "ERR NX and XX, GT or LT options at the same time are not compatible";
const GT_WITH_LT: &str = "ERR GT and LT options at the same time are not compatible";

/// The unit of a time that a command is given, and whether it counts from now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    pub(crate) is_seconds: bool,
    pub(crate) is_relative: bool,
}

impl Moment {
    pub(super) const SECONDS_FROM_NOW: Self = Self { is_seconds: true, is_relative: true };
    pub(super) const MILLIS_FROM_NOW: Self = Self { is_seconds: false, is_relative: true };
    pub(super) const SECONDS: Self = Self { is_seconds: true, is_relative: false };
    pub(super) const MILLIS: Self = Self { is_seconds: false, is_relative: false };

    /// The moment that an option word is followed by: `EX`, `PX`, `EXAT`, `PXAT`.
    pub(super) fn of(word: &[u8]) -> Option<Self> {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        match word.len() {
            2 if is("EX") => Some(Self::SECONDS_FROM_NOW),
            2 if is("PX") => Some(Self::MILLIS_FROM_NOW),
            4 if is("EXAT") => Some(Self::SECONDS),
            4 if is("PXAT") => Some(Self::MILLIS),
            _ => None,
        }
    }

    /// A deadline as `TTL` and its kin reply it.
    pub(super) fn shown(self, deadline: i64, now: i64) -> i64 {
        let millis = if self.is_relative { deadline.saturating_sub(now).max(0) } else { deadline };
        if self.is_seconds { millis.saturating_add(500) / 1000 } else { millis }
    }
}

/// The conditions of `EXPIRE` and its kin on the old deadline.
#[derive(Default)]
pub(super) struct Conditions {
    only_if_absent: bool,
    only_if_present: bool,
    only_if_later: bool,
    only_if_sooner: bool,
}

impl Conditions {
    /// Parses the conditions in these arguments.
    pub(super) fn read(call: &Call<'_, '_>, arguments: Range<usize>) -> Result<Self, Fault> {
        let mut read = Self::default();
        for index in arguments {
            match () {
                () if call.is_word(index, "NX") => read.only_if_absent = true,
                () if call.is_word(index, "XX") => read.only_if_present = true,
                () if call.is_word(index, "GT") => read.only_if_later = true,
                () if call.is_word(index, "LT") => read.only_if_sooner = true,
                () => {
                    let text = [b"ERR Unsupported option ", until_nul(call.arg(index))].concat();
                    return Err(Fault::Written(text));
                }
            }
        }
        if read.only_if_absent && (read.only_if_present || read.only_if_later || read.only_if_sooner) {
            return Err(NX_WITH_OTHERS.into());
        }
        if read.only_if_later && read.only_if_sooner {
            return Err(GT_WITH_LT.into());
        }
        Ok(read)
    }

    /// Whether the new deadline may replace the old one.
    pub(super) fn allow(&self, old: Option<i64>, new: i64) -> bool {
        let is_refused = match old {
            Some(old) => {
                self.only_if_absent || (self.only_if_later && new <= old) || (self.only_if_sooner && new >= old)
            }
            None => self.only_if_present || self.only_if_later,
        };
        !is_refused
    }
}

/// Refuses a choice with more repetition than one reply may hold.
pub(super) fn limit_repetition(found: Option<Found>, count: i64) -> Result<(), Fault> {
    if found.is_some() && count < -RANDOM_ELEMENTS_MAX { Err(OUT_OF_RANGE.into()) } else { Ok(()) }
}

impl<'c> Call<'c, '_> {
    /// The integer at `index`.
    pub(super) fn integer(&self, index: usize) -> Result<i64, Fault> {
        integer::parse(self.arg(index)).ok_or_else(|| text::NOT_AN_INTEGER.into())
    }

    /// The integer at `index`, which must not be negative; both faults have Redis's own texts.
    pub(super) fn positive_or_zero(&self, index: usize) -> Result<usize, Fault> {
        match integer::parse(self.arg(index)) {
            Some(value) if value >= 0 => Ok(usize::try_from(value).unwrap_or(usize::MAX)),
            _ => Err(text::NOT_POSITIVE.into()),
        }
    }

    /// The integer at `index` between `min` and the largest one, with `fault` for all others.
    pub(super) fn integer_from(&self, index: usize, min: i64, fault: &'static str) -> Result<usize, Fault> {
        let value = integer::parse(self.arg(index)).filter(|value| *value >= min);
        value.map(|value| usize::try_from(value).unwrap_or(usize::MAX)).ok_or_else(|| fault.into())
    }

    /// The integer at `index`, which may be negative but has to have an opposite.
    pub(super) fn symmetric(&self, index: usize) -> Result<i64, Fault> {
        match self.integer(index)? {
            i64::MIN => Err(NOT_SYMMETRIC.into()),
            value => Ok(value),
        }
    }

    /// The count of `HRANDFIELD` and its kin at `index`, negative if elements may repeat; `is_paired` if each comes with
    /// something.
    pub(super) fn random_count(&self, index: usize, is_paired: bool) -> Result<i64, Fault> {
        let count = self.symmetric(index)?;
        let max = if is_paired { i64::MAX / 2 } else { i64::MAX };
        if (-max..=max).contains(&count) { Ok(count) } else { Err(OUT_OF_RANGE.into()) }
    }

    /// The seconds that a blocking command at `index` would wait. Nothing waits here, but the argument is checked.
    pub(super) fn check_timeout(&self, index: usize) -> Result<(), Fault> {
        let seconds = long_double::LongDouble::parse(self.arg(index)).ok_or(text::TIMEOUT_NOT_A_FLOAT)?.to_f64();
        // More milliseconds than 64 bits count turn negative.
        if seconds < 0.0 || seconds * 1000.0 > i64::MAX as f64 {
            return Err(text::TIMEOUT_NEGATIVE.into());
        }
        Ok(())
    }

    /// The keys behind their count at `index`, and the index behind them.
    pub(super) fn counted_keys(&self, index: usize, fault: &'static str) -> Result<(Args<'c>, usize), Fault> {
        let count = self.integer_from(index, 1, fault)?;
        let end = index.saturating_add(1).saturating_add(count);
        if end >= self.args.len() {
            return Err(text::SYNTAX.into());
        }
        Ok((self.args.from(index + 1), end))
    }

    /// Whether the argument at `index` is this word, in any case.
    pub(super) fn is_word(&self, index: usize, word: &str) -> bool {
        self.arg(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// The moment at `index` in milliseconds since the Unix epoch, as `SET` and its kin take it: it must be positive and
    /// must not overflow.
    pub(super) fn deadline(&self, index: usize, moment: Moment) -> Result<i64, Fault> {
        self.deadline_from(index, moment, 1)
    }

    /// As [`Call::deadline`], for a moment whose number is at least `min`.
    pub(super) fn deadline_from(&self, index: usize, moment: Moment, min: i64) -> Result<i64, Fault> {
        let value = self.integer(index)?;
        let millis = if moment.is_seconds { value.checked_mul(1000) } else { Some(value) };
        let deadline = millis
            .filter(|_| value >= min)
            .and_then(|millis| millis.checked_add(if moment.is_relative { self.at.now } else { 0 }));
        deadline.ok_or_else(|| named(self.row, text::invalid_expire_time))
    }
}
