//! Databases that nodes are known to have.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many databases nodes are known to have, in the whole process. A number that was accepted stays known, even if other
/// nodes are configured: those that lack it say so.
#[derive(Debug, Default)]
pub(crate) struct Databases(AtomicU32);

impl Databases {
    /// A node has this database, and so those below.
    pub(crate) fn note(&self, database: u32) {
        self.0.fetch_max(database.saturating_add(1), Ordering::Relaxed);
    }

    pub(crate) fn has(&self, database: u32) -> bool {
        database < self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::Databases;

    #[test]
    fn a_database_is_known_with_all_below_it_and_stays_so() {
        let databases = Databases::default();
        assert!(!databases.has(0));
        databases.note(3);
        databases.note(1);
        assert!(databases.has(0) && databases.has(3));
        assert!(!databases.has(4));
        databases.note(u32::MAX);
        assert!(!databases.has(u32::MAX), "the highest number has no place above it");
    }
}
