//! Why the keys of a request cannot be found.

use std::fmt;

/// Why a request has no keys although its command has some. The executing server refuses such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysError {
    /// The count in front of the keys is no integer, is not positive, or exceeds the arguments.
    Count,
    /// The word behind which the keys stand is missing, or nothing stands behind it.
    Syntax,
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "the number of keys does not fit the arguments",
            Self::Syntax => "the arguments do not say where the keys are",
        })
    }
}

impl std::error::Error for KeysError {}
