//! Giving back the memory of tables that a crowd has made large, once it has left.
//!
//! Nothing of it is on the way of a request: it is looked at once a second whether most of a table is unused.

/// When tables are looked at.
#[derive(Debug, Default)]
pub(crate) struct TableShrink {
    pub(crate) at_us: u64,
}
