//! Arguments that many commands read in the same way.

use respool_command::text;

use super::{Call, Fault, named};
use crate::number::integer;

/// An integer that must fit a C `int` does not.
pub(super) const NOT_IN_INT_RANGE: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";

/// The unit of a time that a command is given, and whether it counts from now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment {
    pub(crate) is_seconds: bool,
    pub(crate) is_relative: bool,
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
