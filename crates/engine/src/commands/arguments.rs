//! Arguments that many commands read in the same way.

use respool_command::text;

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
/// The unit of a time that a command is given, and whether it counts from now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    pub(crate) is_seconds: bool,
    pub(crate) is_relative: bool,
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

    /// The seconds that a blocking command at `index` would wait. Nobody waits here, but the argument is checked.
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
        let value = self.integer(index)?;
        let millis = if moment.is_seconds { value.checked_mul(1000) } else { Some(value) };
        let deadline = millis
            .filter(|_| value > 0)
            .and_then(|millis| millis.checked_add(if moment.is_relative { self.at.now } else { 0 }));
        deadline.ok_or_else(|| named(self.row, text::invalid_expire_time))
    }
}
