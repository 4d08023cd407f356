//! What has changed, to be told to those who keep copies. While no session does, a change costs one test.

use crate::limits::JOURNAL_KEYS_MAX;

/// Keys that were written, removed or given another deadline.
#[derive(Default)]
pub(crate) struct Journal {
    is_kept: bool,
    /// All keys are meant.
    pub(crate) is_everything: bool,
    /// Each once in a row; the database does not matter.
    pub(crate) keys: Vec<Box<[u8]>>,
}

impl Journal {
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// What was noted; it goes on being kept, or not.
    pub(crate) fn replace(&mut self, is_kept: bool) -> Self {
        std::mem::replace(self, Self { is_kept, ..Self::default() })
    }

    #[cold]
    pub(crate) fn note(&mut self, key: &[u8]) {
        if self.keys.len() >= JOURNAL_KEYS_MAX {
            self.note_everything();
        }
        if self.is_everything || self.keys.last().is_some_and(|last| **last == *key) {
            return;
        }
        self.keys.push(key.into());
    }

    pub(crate) fn note_everything(&mut self) {
        self.is_everything |= self.is_kept;
        self.keys.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_noted_unless_somebody_wants_it() {
        let mut journal = Journal::default();
        journal.note_everything();
        assert!(!journal.is_kept() && !journal.replace(true).is_everything);
        for key in [b"a", b"a", b"b"] {
            journal.note(key);
        }
        let noted = journal.replace(true);
        assert_eq!(noted.keys.len(), 2);
        for number in 0..=JOURNAL_KEYS_MAX {
            journal.note(number.to_string().as_bytes());
        }
        let noted = journal.replace(false);
        assert!(noted.is_everything && noted.keys.is_empty() && !journal.is_kept());
    }
}
