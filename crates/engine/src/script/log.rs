//! `redis.log`: what scripts write to the log of the program that they run in.

use crate::limits::SCRIPT_LOG_BYTES_MAX;

/// How much what a script writes to the log matters, in Redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScriptLogLevel {
    /// `redis.LOG_DEBUG`.
    Debug,
    /// `redis.LOG_VERBOSE`.
    Verbose,
    /// `redis.LOG_NOTICE`.
    Notice,
    /// `redis.LOG_WARNING`.
    Warning,
}

impl ScriptLogLevel {
    /// By the number that scripts know it by.
    pub(super) fn of(number: i64) -> Option<Self> {
        [Self::Debug, Self::Verbose, Self::Notice, Self::Warning].get(usize::try_from(number).ok()?).copied()
    }
}

/// Is told each line.
pub(crate) type Log = Box<dyn FnMut(ScriptLogLevel, &[u8]) + Send>;

/// A line of words, as long as Redis lets one be.
pub(super) fn line<'a>(words: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut line = Vec::new();
    for (number, word) in words.enumerate() {
        if number > 0 {
            line.push(b' ');
        }
        line.extend_from_slice(&word[..word.len().min(SCRIPT_LOG_BYTES_MAX)]);
        line.truncate(SCRIPT_LOG_BYTES_MAX);
    }
    line
}
