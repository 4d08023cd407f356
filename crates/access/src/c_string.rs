//! C strings in what a peer sent: Redis reads most rules up to the first NUL, and so do we.

use respool_command::words::until_nul;

/// Whether it is the word, in any case, up to the first NUL.
pub(crate) fn is_word(bytes: &[u8], word: &str) -> bool {
    until_nul(bytes).eq_ignore_ascii_case(word.as_bytes())
}

/// What C calls a space.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether it has a byte that would break a line of the ACL file apart.
pub(crate) fn has_space(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| is_space(*byte) || *byte == 0)
}
