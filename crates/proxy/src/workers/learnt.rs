//! Commands that nodes were asked for, known to all workers.

use crate::limits::{LEARN_AGAIN_US, LEARNT_MAX, NOBODYS_MAX};
use respool_command::Row;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What all workers know of names that the table does not have.
#[derive(Debug, Default)]
pub(crate) struct LearntCommands {
    pub(crate) rows: Arc<BTreeMap<String, &'static Row>>,
    /// Names that a node did not know, and until when that is taken for granted.
    pub(crate) unknown: BTreeMap<String, u64>,
}

/// What is known of a name.
pub(crate) enum LearntCommand {
    Row(&'static Row),
    /// A node has said that there is no such command.
    Unknown,
    /// Nothing yet.
    Nothing,
}

impl LearntCommands {
    pub(crate) fn find(&self, name: &str, now_us: u64) -> LearntCommand {
        if let Some(row) = self.rows.get(name) {
            return LearntCommand::Row(row);
        }
        if self.unknown.get(name).is_some_and(|until_us| now_us < *until_us) {
            LearntCommand::Unknown
        } else {
            LearntCommand::Nothing
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= LEARNT_MAX
    }

    pub(crate) fn note_row(&mut self, name: &str, row: &'static Row) {
        // A worker that has the rows at hand keeps those that it knows.
        let mut rows = BTreeMap::clone(&self.rows);
        rows.entry(name.to_owned()).or_insert(row);
        self.rows = Arc::new(rows);
    }

    /// Remembers that a node does not know a name. Of too many the one that would be asked for again first is forgotten.
    pub(crate) fn note_unknown(&mut self, name: &str, now_us: u64) {
        self.unknown.retain(|_, until_us| now_us < *until_us);
        if self.unknown.len() >= NOBODYS_MAX
            && let Some(first) =
                self.unknown.iter().min_by_key(|(_, until_us)| **until_us).map(|(name, _)| name.clone())
        {
            self.unknown.remove(&first);
        }
        self.unknown.insert(name.to_owned(), now_us + LEARN_AGAIN_US);
    }
}
