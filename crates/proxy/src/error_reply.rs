//! An error reply as a value of its own: bytes that are known to be one error cannot be taken for a node's reply or a request.

use respool_wire::{Encoder, Protocol};

/// One encoded error reply, from its `-` to the end of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorReply(Vec<u8>);

impl ErrorReply {
    /// The error of these words, its code first. Ends of lines among them do not end the reply.
    pub(crate) fn new(words: impl AsRef<[u8]>) -> Self {
        Self::written(|reply| reply.error(words.as_ref()))
    }

    /// The error that `write` writes, which is one and in one line.
    pub(crate) fn written(write: impl FnOnce(&mut Encoder<'_>)) -> Self {
        let mut line = Vec::new();
        write(&mut Encoder::new(&mut line, Protocol::Resp2));
        debug_assert!(line.starts_with(b"-") && line.ends_with(b"\r\n"), "one error");
        Self(line)
    }

    /// Its words, its code first, without what a reply adds to them.
    pub(crate) fn words(&self) -> &[u8] {
        crate::error_text::words(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_words_it_was_made_of() {
        let error = ErrorReply::new("ERR no");
        assert_eq!((error.words(), &error.0[..]), (&b"ERR no"[..], &b"-ERR no\r\n"[..]));
        assert_eq!(error, ErrorReply::written(|reply| reply.error(b"ERR no")));
        assert_eq!(error, ErrorReply::new(error.words()));
    }

    #[test]
    fn words_with_ends_of_lines_make_one_error() {
        let error = ErrorReply::new("ERR a\r\n+OK\r\n$1");
        assert_eq!(error.0.iter().filter(|byte| b"\r\n".contains(byte)).count(), 2, "{error:?}");
        assert!(!error.words().iter().any(|byte| b"\r\n".contains(byte)));
    }
}
