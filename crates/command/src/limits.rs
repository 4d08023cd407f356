//! The bounds of this crate.

/// Names that one `COMMAND INFO` or `COMMAND DOCS` may ask about. A name of seven bytes can ask for six kilobytes, so without
/// a bound one request of a megabyte would make a reply of a gigabyte. All rows together are fewer.
pub(crate) const NAMES_ASKED_MAX: usize = 1024;
