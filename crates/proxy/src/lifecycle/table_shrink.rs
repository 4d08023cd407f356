//! Giving back the memory of tables that a crowd has made large, once it has left.
//!
//! Nothing of it is on the way of a request: it is looked at once a second whether most of a table is unused.

use crate::limits::TIDY_US;

/// When tables are looked at.
#[derive(Debug, Default)]
pub(crate) struct TableShrink {
    at_us: u64,
}

impl TableShrink {
    /// Whether it is time to look at tables. If so, the next time comes [`TIDY_US`] later.
    pub(crate) fn comes_due(&mut self, now_us: u64) -> bool {
        let is_due = now_us >= self.at_us;
        if is_due {
            self.at_us = now_us + TIDY_US;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::{TIDY_US, TableShrink};

    #[test]
    fn tables_are_looked_at_once_in_each_interval() {
        let mut tidying = TableShrink::default();
        let mut is_due = |now_us| tidying.comes_due(now_us);
        assert!(is_due(7));
        assert!(!is_due(6 + TIDY_US));
        // The interval counts from when they were looked at, however late that was.
        assert!(is_due(3 * TIDY_US));
        assert!(!is_due(4 * TIDY_US - 1));
        assert!(is_due(4 * TIDY_US));
    }
}
