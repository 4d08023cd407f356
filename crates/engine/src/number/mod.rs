//! Numbers as text, exactly as Redis reads and writes them.

pub(crate) mod double;
pub(crate) mod integer;
pub(crate) mod long_double;
