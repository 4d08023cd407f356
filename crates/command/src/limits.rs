//! The bounds of this crate.

/// Names that one `COMMAND INFO` or `COMMAND DOCS` may ask about. A name of seven bytes can ask for eight kilobytes, so without
/// a bound one request of a megabyte would make a reply of a gigabyte. All rows together are fewer.
pub(crate) const NAMES_ASKED_MAX: usize = 1024;

/// Positions of keys for which memory is kept between requests: 128 KB. A request may have a million keys; the next one has
/// few.
pub(crate) const POSITIONS_KEPT_MAX: usize = 16 * 1024;

/// Shapes of replies that a connection to an old server keeps room for while nothing is owed.
pub(crate) const SHAPES_KEPT: usize = 1024;
