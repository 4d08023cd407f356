//! An error reply as a value of its own: bytes that are known to be one error cannot be taken for a node's reply or a request.

use respool_wire::{Encoder, Protocol};

/// One error reply as it is sent, from its `-` to the end of its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorReply(Vec<u8>);

impl ErrorReply {
    /// The error of these words, its code first. Ends of lines among them do not end the reply.
    pub(crate) fn new(words: impl AsRef<[u8]>) -> Self {
        Self::written(|reply| reply.error(words.as_ref()))
    }

    /// The error of the words that `write` appends to a buffer.
    pub(crate) fn of(write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut words = Vec::new();
        write(&mut words);
        Self::new(words)
    }

    /// The error that `write` writes, which is one and in one line.
    pub(crate) fn written(write: impl FnOnce(&mut Encoder<'_>)) -> Self {
        let mut line = Vec::new();
        write(&mut Encoder::new(&mut line, Protocol::Resp2));
        debug_assert!(line.starts_with(b"-") && line.ends_with(b"\r\n"), "one error");
        Self(line)
    }

    /// What a node or an engine has replied instead of what was asked for, in whatever form.
    pub(crate) fn of_reply(reply: &[u8]) -> Self {
        Self(reply.to_vec())
    }

    /// Whether it is in the form that both dialects have.
    pub(crate) fn is_line(&self) -> bool {
        self.0.starts_with(b"-")
    }

    /// The whole reply.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The same, where a reply is kept that may as well be none.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Its words, its code first, without what a reply adds to them.
    pub(crate) fn words(&self) -> &[u8] {
        self.0.strip_prefix(b"-").and_then(|line| line.strip_suffix(b"\r\n")).unwrap_or(&self.0)
    }
}

/// Words are an error when they are replied.
impl<W: AsRef<[u8]>> From<W> for ErrorReply {
    fn from(words: W) -> Self {
        Self::new(words)
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
